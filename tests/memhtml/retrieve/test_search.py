"""`search` on an index: its payload, its arms, its scope, and what it leaves alone (§6 to §9)."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.support.embed import Fixed
from tests.support.reads import link, meta
from tests.support.retrieve import (
    NOW_S,
    TRACE_TABLES,
    accessed,
    give_vectors,
    memory,
    statements,
    store,
)

from memhtml.index.database import Index, open_index
from memhtml.retrieve.recall import recall
from memhtml.retrieve.scope import Scope
from memhtml.retrieve.search import fused_pool, search
from memhtml.retrieve.vectors import plane

DEPTH = "resources/queue/queue-depth-cap.html"
RELAY = "areas/inbox/relay.html"
PUMP = "areas/inbox/pump.html"
OLD = "archive/2026/areas/inbox/cap.html"
FILES = {
    DEPTH: memory(
        "The ingest queue depth cap is 4096.",
        title="Queue depth cap",
        updated="2026-04-30T16:08:35Z",
        head=meta("entity", "service:ingest")
        + meta("confidence", "0.90")
        + meta("tag", "caps")
        + link("supersedes", OLD),
        more="<p>A <dfn>cap</dfn> is hard.</p>\n",
    ),
    RELAY: memory("The relay batch limit is 11.", title="Relay"),
    PUMP: memory("The pump runs at night.", title="Pump", updated="2026-06-01T00:00:00Z"),
    OLD: memory(
        "The ingest queue depth cap was 512.",
        title="Old cap",
        head=meta("tag", "caps") + meta("tag", "gone"),
    ),
}


def found(index: Index, query: str, limit: int = 10, **wanted: Any) -> dict[str, Any]:
    """An answer without an embedder."""
    return search(index, query, Scope(**wanted), limit, now_s=NOW_S)


def paths(answer: dict[str, Any]) -> list[str]:
    """The paths of its hits."""
    return [hit["path"] for hit in answer["hits"]]


def test_a_hit_has_every_field(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = found(index, "how deep is the ingest queue", 1)
    assert answer == {
        "hits": [
            {
                "path": DEPTH,
                "title": "Queue depth cap",
                "gist": "The ingest queue depth cap is 4096.",
                "memoryType": "semantic",
                "score": 1.0,
                "confidence": 0.9,
                "updatedAt": "2026-04-30T16:08:35Z",
                "snippet": "The ingest queue depth cap is 4096. A cap is hard.",
                "entities": ["concept:cap", "service:ingest"],
                "supersededBy": None,
                "estTokens": 13,
            }
        ],
        "degraded": True,
        "vectorCoverage": 0.0,
        "arms": ["fts", "recency", "salience"],
        "entityScope": None,
        "scopeEmpty": False,
        "archivedMatches": 0,
        "archived": [],
    }


def test_a_replaced_hit_names_what_replaced_it(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = found(index, "gone", include_archived=True, tags=("gone",))
    assert [(hit["path"], hit["supersededBy"]) for hit in answer["hits"]] == [(OLD, DEPTH)]


def test_of_several_that_replace_a_file_the_newest_edge_counts(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        for path, derived, at in (
            ("areas/z.html", 0, "2026-07-02"),
            ("areas/b.html", 0, "2026-07-03"),
            ("areas/a.html", 0, "2026-07-03"),
            ("areas/0.html", 1, "2026-07-04"),
        ):
            index.conn.execute(
                "INSERT INTO edges(src_path, rel, dst_path, edge_class, derived, created_at)"
                " VALUES(?, 'supersedes', ?, 'memory', ?, ?)",
                (path, RELAY, derived, at),
            )
        index.conn.execute("DELETE FROM edges WHERE rel = 'supersedes' AND dst_path = ?", (OLD,))
        (hit,) = found(index, "relay", 1)["hits"]
    assert hit["supersededBy"] == "areas/a.html"


def test_what_replaces_a_live_record_comes_first_and_comes_in(tmp_path: Path) -> None:
    old, new = "areas/inbox/old-port.html", "areas/inbox/port.html"
    files = {
        old: memory("The gateway listens on port 80.", title="Gateway port"),
        new: memory("It is 8443 since May.", title="Change", head=link("supersedes", old)),
        **FILES,
    }
    with store(str(tmp_path), files) as index:
        answer = found(index, "which port does the gateway listen on")
        one = found(index, "which port does the gateway listen on", 1)
        everything = found(index, "gateway port", include_archived=True)
        pack = recall(index, "gateway port", Scope(), now_s=NOW_S)
    assert paths(answer)[:2] == [new, old]
    assert answer["hits"][1]["supersededBy"] == new
    assert paths(one) == [new]
    assert paths(everything)[0] == old
    assert [each["path"] for each in pack["memories"]["disclosed"]][:2] == [new, old]


def test_a_query_that_matches_nothing_gets_the_newest(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = found(index, "xylophone")
        blank = found(index, "  ")
    assert set(paths(answer)) == {PUMP, RELAY, DEPTH}
    assert paths(answer)[0] == PUMP
    assert answer["arms"] == ["fts", "recency", "salience"]
    assert paths(blank)[0] == PUMP
    assert blank["arms"] == ["recency", "salience"]


def test_the_scores_fall_from_one(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        scores = [hit["score"] for hit in found(index, "relay")["hits"]]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (1, 1), (2, 2), (10**9, 3)])
def test_the_limit_bounds_the_hits(tmp_path: Path, limit: int, count: int) -> None:
    with store(str(tmp_path), FILES) as index:
        assert len(found(index, "relay", limit)["hits"]) == count


def test_an_empty_scope_points_at_the_archive(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = found(index, "cap", tags=("gone",))
    assert (answer["hits"], answer["scopeEmpty"]) == ([], True)
    assert answer["archivedMatches"] == 1
    assert answer["archived"] == [{"path": OLD, "supersededBy": DEPTH}]


def test_the_pointer_lists_as_many_as_were_asked_for_and_counts_all(tmp_path: Path) -> None:
    files = {
        f"archive/2026/areas/inbox/{n}.html": memory(f"Old {n}.", head=meta("tag", "old"))
        for n in range(5)
    }
    with store(str(tmp_path), files) as index:
        answers = [found(index, "old", limit, tags=("old",)) for limit in (0, 1, 3, 500)]
    assert [len(answer["archived"]) for answer in answers] == [1, 1, 3, 5]
    assert {answer["archivedMatches"] for answer in answers} == {5}
    assert [each["path"] for each in answers[-1]["archived"]] == sorted(files)


@pytest.mark.parametrize(
    ("wanted", "empty", "matches"),
    [
        ({"tags": ("none",)}, True, 0),
        ({"tags": ("gone",), "as_of": "2020-01-01"}, True, 0),
        ({"tags": ("gone",), "memory_types": ("verdict",)}, True, 0),
        ({"as_of": "2020-01-01"}, False, 0),
        ({"entity": " Service:INGEST "}, False, 0),
    ],
)
def test_a_scope_is_empty_when_it_narrowed_and_nothing_is_left(
    tmp_path: Path, wanted: dict[str, Any], empty: bool, matches: int
) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = found(index, "cap", **wanted)
    assert (answer["scopeEmpty"], answer["archivedMatches"]) == (empty, matches)
    assert answer["archived"] == []
    assert answer["entityScope"] == ("Service:INGEST" if "entity" in wanted else None)


def test_no_hits_of_limit_zero_are_an_empty_scope_when_it_narrowed(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        assert found(index, "cap", 0, tags=("caps",))["scopeEmpty"]
        assert not found(index, "cap", 0)["scopeEmpty"]


def test_an_empty_index_has_no_hits_and_nothing_to_cover(tmp_path: Path) -> None:
    with open_index(str(tmp_path)) as index:
        answer = found(index, "relay")
    assert (answer["hits"], answer["vectorCoverage"], answer["scopeEmpty"]) == ([], 1.0, False)


EMBEDDER = Fixed({"night shift": (1.0, 0.0)})
CHOSEN = {DEPTH: (0.0, 1.0), RELAY: (0.1, 1.0), PUMP: (1.0, 0.0), OLD: (1.0, 0.0)}


def test_the_vector_arm_finds_what_no_word_finds(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        answer = search(index, "night shift", Scope(), 1, embedder=EMBEDDER, now_s=NOW_S)
    assert paths(answer) == [PUMP]
    assert answer["arms"] == ["fts", "vector", "recency", "salience"]
    assert (answer["degraded"], answer["vectorCoverage"]) == (False, 1.0)


def test_another_space_than_the_configured_one_is_not_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with store(str(tmp_path), FILES) as index:
        give_vectors(index, "other@2", CHOSEN)
        answer = search(index, "night shift", Scope(), embedder=EMBEDDER, now_s=NOW_S)
    assert (answer["degraded"], answer["vectorCoverage"]) == (True, 0.0)
    assert "0.0% of the index has one of fixed@2" in capsys.readouterr().err


def test_a_floor_of_zero_searches_the_vectors_there_are(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        give_vectors(index, "fixed@2", {PUMP: (1.0, 0.0)})
        answer = search(index, "night shift", Scope(), embedder=EMBEDDER, now_s=NOW_S, floor=0.0)
    assert (answer["degraded"], answer["vectorCoverage"]) == (False, 0.25)
    assert paths(answer)[0] == PUMP


def test_the_snippet_is_the_nearest_chunk_and_without_a_query_vector_the_first(
    tmp_path: Path,
) -> None:
    many = "".join(f"<p>Sentence number {number} of many.</p>\n" for number in range(200))
    files = {**FILES, "areas/inbox/long.html": memory("Long.", more=many)}
    with store(str(tmp_path), files) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        long = [(0.0, 1.0), (0.0, 1.0), (1.0, 0.0)]
        give_vectors(index, "fixed@2", {"areas/inbox/long.html": long})
        chunks = dict(
            index.conn.execute(
                "SELECT ordinal, text FROM chunks WHERE path = 'areas/inbox/long.html'"
            ).fetchall()
        )
        assert len(chunks) >= 3
        answer = search(index, "night shift", Scope(), embedder=EMBEDDER, now_s=NOW_S, floor=0.5)
        plain = found(index, "night shift")
    snippets = [hit["snippet"] for hit in answer["hits"] if hit["path"].endswith("long.html")]
    assert snippets == [chunks[2][:699] + "…"]
    (first,) = [hit["snippet"] for hit in plain["hits"] if hit["path"].endswith("long.html")]
    assert first == chunks[0][:699] + "…"


def test_candidates_carry_what_the_last_steps_judge(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        near = plane(index.conn, "night shift", EMBEDDER, 0.95)
        pool = fused_pool(index, "night shift", Scope(), near, 60, now_s=NOW_S)
        words = fused_pool(index, "ingest", Scope(include_archived=True), near, 60, now_s=NOW_S)
    assert [each.position for each in pool.candidates] == [1, 2, 3]
    best = pool.candidates[0]
    assert (best.path, best.lexical is not None, best.cosine) == (PUMP, True, 1.0)
    assert best.vector is not None and best.vector.tolist() == [1.0, 0.0]
    by_path = {each.path: each for each in words.candidates}
    assert by_path[DEPTH].entities == ("concept:cap", "service:ingest")
    assert by_path[OLD].superseded_by == DEPTH
    assert by_path[PUMP].lexical is None
    lexical = by_path[DEPTH].lexical
    assert lexical is not None and lexical > 0


def test_a_long_body_is_cut_for_the_steps(tmp_path: Path) -> None:
    long = memory("Long.", more=f"<p>{'word ' * 1000}</p>\n")
    with store(str(tmp_path), {"areas/inbox/long.html": long}) as index:
        near = plane(index.conn, "long", None, 0.95)
        (only,) = fused_pool(index, "long", Scope(), near, 60, now_s=NOW_S).candidates
    assert len(only.body_text) == 2000


def test_a_search_moves_nothing(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        accessed(index, RELAY, count=3, at="2026-05-05T00:00:00Z")
        before = index.conn.execute("SELECT * FROM state.access").fetchall()
        changes = index.conn.total_changes
        found(index, "relay")
        recall(index, "relay", Scope(), now_s=NOW_S)
        assert index.conn.total_changes == changes
        assert not index.conn.in_transaction
        assert index.conn.execute("SELECT * FROM state.access").fetchall() == before


SCOPES = (
    Scope(),
    Scope(memory_types=("semantic", "task"), workspace="p", tags=("a",), entity="a:b"),
    Scope(facets=("a=b", "c=d"), include_archived=True),
    Scope(tags=("none",), as_of="2026-01-01"),
    Scope(tags=("gone",)),
)


@pytest.mark.parametrize("narrow", [-1, 1000])
def test_no_statement_names_a_table_of_traces(
    tmp_path: Path, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.retrieve import scope

    monkeypatch.setattr(scope, "NARROW", narrow)
    with store(str(tmp_path), FILES) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        with statements(index) as seen:
            for wanted, embedder, ask in itertools.product(
                SCOPES, (None, EMBEDDER), (search, recall)
            ):
                ask(index, '"night shift" relay', wanted, embedder=embedder, now_s=NOW_S)
    assert len(seen) > 100
    named = [sql for sql in seen for table in TRACE_TABLES if table in sql]
    assert named == []


def steps_of_a_search(root: Path, size: int, wanted: Scope) -> int:
    """How many steps of SQLite's machine a search takes over `size` files; ten have the word."""
    files = {
        f"areas/f{n % 10}/{n:04d}.html": memory(
            f"{'Relay' if n < 10 else 'Filler'} number {n}.",
            head=meta("tag", "few" if n < 30 else "many"),
            updated=f"2026-0{1 + n % 9}-01T00:00:{n % 60:02d}Z",
        )
        for n in range(size)
    }
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    (root / str(size)).mkdir()
    with store(str(root / str(size)), files) as index:
        accessed(index, "areas/f0/0000.html", count=1, at="2026-05-05T00:00:00Z")
        index.conn.set_progress_handler(count, 1)
        answer = search(index, "relay", wanted, now_s=NOW_S)
        index.conn.set_progress_handler(None, 0)
    assert len(answer["hits"]) == 10
    return steps


@pytest.mark.parametrize(
    "wanted",
    [Scope(), Scope(tags=("few",)), Scope(include_archived=True), Scope(as_of="2026-11-01")],
)
def test_a_search_takes_no_more_steps_in_a_larger_store(tmp_path: Path, wanted: Scope) -> None:
    small, large = (steps_of_a_search(tmp_path, size, wanted) for size in (100, 1000))
    assert large <= 1.1 * small


def test_a_damaged_index_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    from memhtml.errors import StorageError

    with store(str(tmp_path), FILES) as index:
        (page,) = index.conn.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'files_recency'"
        ).fetchone()
        index.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with open(tmp_path / ".memhtml" / "index.db", "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(StorageError) as caught, open_index(str(tmp_path)) as index:
        found(index, "relay")
    assert caught.value.reason == "index.open"
    assert "memhtml index rebuild" in caught.value.suggestions
    assert isinstance(caught.value.__cause__, sqlite3.Error)
