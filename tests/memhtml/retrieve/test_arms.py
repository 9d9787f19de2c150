"""The orders of the four arms, and what they cost (spec `retrieval` §7)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.support.embed import Fixed
from tests.support.retrieve import (
    NOW_S,
    accessed,
    give_vectors,
    happened,
    memory,
    plan_of,
    statements,
    store,
)

from memhtml.index.database import Index
from memhtml.retrieve import arms, fuse, vectors
from memhtml.retrieve.query import match_of
from memhtml.retrieve.scope import Filter, Scope, make_filter
from memhtml.retrieve.vectors import Plane, cosines_with, nearest, plane


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Where a test's index lies."""
    return str(tmp_path)


def words(index: Index, query: str, wanted: Scope | None = None) -> list[str]:
    """The paths of the `fts` arm, in order."""
    match = match_of(query)
    assert match is not None
    found = arms.lexical(index.conn, match, make_filter(index.conn, wanted or Scope()))
    assert all(each.bm25 > 0 for each in found)
    assert [each.bm25 for each in found] == sorted((each.bm25 for each in found), reverse=True)
    return [paths(index)[each.id] for each in found]


def paths(index: Index) -> dict[int, str]:
    """File id → path."""
    return dict(index.conn.execute("SELECT id, path FROM files").fetchall())


def ordered(index: Index, select: str) -> list[str]:
    """The paths of an arm that is a select, in the order of its ranks, which count from 1."""
    rows = index.conn.execute(f"SELECT * FROM ({select}) ORDER BY rank", {"now": NOW_S}).fetchall()
    assert [row[1] for row in rows] == list(range(1, len(rows) + 1))
    return [paths(index)[row[0]] for row in rows]


def everything(index: Index) -> Filter:
    """No scope."""
    return make_filter(index.conn, Scope())


def test_every_term_comes_before_any_term(root: str) -> None:
    files = {
        "areas/inbox/both.html": memory("The relay has a batch limit.", title="Both"),
        "areas/inbox/one.html": memory("The relay relay relay is new.", title="One"),
    }
    with store(root, files) as index:
        assert words(index, "relay limit") == ["areas/inbox/both.html"]
        assert set(words(index, "relay pump")) == set(files)
        assert words(index, "pump") == []


def test_every_term_is_looked_for_in_the_scope_alone(root: str) -> None:
    files = {
        "archive/2026/areas/inbox/both.html": memory("The relay has a limit.", title="Both"),
        "areas/inbox/one.html": memory("The relay is new.", title="One"),
    }
    with store(root, files) as index:
        assert words(index, "relay limit") == ["areas/inbox/one.html"]


def test_a_phrase_is_found_in_its_order(root: str) -> None:
    files = {
        "areas/inbox/a.html": memory("The batch limit is 11.", title="A"),
        "areas/inbox/b.html": memory("The limit of a batch is 11.", title="B"),
    }
    with store(root, files) as index:
        assert words(index, '"batch limit"') == ["areas/inbox/a.html"]
        assert words(index, '"limits batches"') == []


def test_equal_words_are_told_apart_by_path_at_the_cut_too(root: str) -> None:
    # Rows are written from the last path to the first, so the order of rows would be wrong.
    files = {
        f"areas/inbox/{number:03d}.html": memory(f"Relay {number:03d}.", title="Same")
        for number in reversed(range(90))
    }
    with store(root, files) as index:
        assert words(index, "relay") == sorted(files)[: arms.CUT]


def test_the_newest_come_first_an_episode_by_when_it_happened(root: str) -> None:
    files = {
        "areas/inbox/new.html": memory("New.", updated="2026-06-01T00:00:00Z"),
        "areas/inbox/old.html": memory("Old.", updated="2026-01-01T00:00:00Z"),
        "areas/inbox/past.html": memory(
            "Past.", kind="episodic", updated="2026-07-01T00:00:00Z", more=happened("2026-03-01")
        ),
        "areas/inbox/same.html": memory("Same.", updated="2026-06-01T00:00:00Z"),
    }
    with store(root, files) as index:
        found = ordered(index, arms.recency(everything(index)))
    names = [path.removeprefix("areas/inbox/").removesuffix(".html") for path in found]
    assert names == ["new", "same", "past", "old"]


def test_live_and_archived_files_are_one_order(root: str) -> None:
    files = {
        f"{'archive/2026/' if n % 2 else ''}areas/inbox/{n:02d}.html": memory(
            f"Number {n}.", updated=f"2026-05-{1 + n // 2:02d}T00:00:00Z"
        )
        for n in range(60)
    }
    newest = sorted(files, key=lambda path: (-(int(path[-7:-5]) // 2), path))[: arms.CUT]
    with store(root, files) as index:
        wanted = make_filter(index.conn, Scope(include_archived=True))
        assert ordered(index, arms.recency(wanted)) == newest
        assert ordered(index, arms.salience(wanted)) == newest


SALIENT = {
    "areas/inbox/fresh.html": memory("Fresh.", updated="2026-11-30T20:00:00Z"),
    "areas/inbox/opened.html": memory("Opened.", updated="2025-01-01T00:00:00Z"),
    "areas/inbox/praised.html": memory("Praised.", updated="2025-01-01T00:00:00Z"),
    "areas/inbox/blamed.html": memory("Blamed.", updated="2025-01-01T00:00:00Z"),
    "areas/inbox/unseen.html": memory("Unseen.", updated="2025-01-01T00:00:00Z"),
    "projects/p/tasks/task.html": memory("Task.", kind="task", updated="2026-11-30T00:00:00Z"),
    "resources/people/ada.html": memory("Ada.", updated="2026-11-30T00:00:00Z"),
    "resources/peoples/x.html": memory("X.", updated="2024-01-01T00:00:00Z"),
}


def test_salience_is_how_often_how_lately_and_how_well(root: str) -> None:
    with store(root, SALIENT) as index:
        accessed(index, "areas/inbox/opened.html", count=3, at="2026-11-30T00:00:00Z")
        accessed(index, "areas/inbox/praised.html", count=3, at="2026-11-30T00:00:00Z", outcome=1)
        accessed(index, "areas/inbox/blamed.html", count=3, at="2026-11-01T00:00:00Z", outcome=-1)
        accessed(index, "resources/people/ada.html", count=99, at="2026-11-30T00:00:00Z")
        accessed(index, "projects/p/tasks/task.html", count=99, at="2026-11-30T00:00:00Z")
        accessed(index, "areas/inbox/gone.html", count=99, at="2026-11-30T00:00:00Z")
        found = ordered(index, arms.salience(everything(index)))
    names = [path.rsplit("/", 1)[1].removesuffix(".html") for path in found]
    assert names == ["praised", "opened", "blamed", "fresh", "unseen", "x"]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 4000),
            st.none()
            | st.tuples(st.integers(0, 4), st.floats(-1, 1), st.none() | st.integers(0, 4000)),
        ),
        min_size=1,
        max_size=70,
    )
)
def test_salience_equals_a_score_of_every_file(
    salient_index: Index, rows: list[tuple[int, tuple[int, float, int | None] | None]]
) -> None:
    conn = salient_index.conn
    conn.execute("BEGIN")
    try:
        conn.execute("UPDATE files SET archived = 1")
        scores = {}
        for place, (age, access) in enumerate(rows):
            path = f"areas/inbox/{place:03d}.html"
            conn.execute(
                "UPDATE files SET archived = 0, updated_at = ? WHERE path = ?", (before(age), path)
            )
            last = age
            count, outcome = 0, 0.0
            if access is not None:
                count, outcome, seen = access
                last = age if seen is None else seen
                at = None if seen is None else before(seen)
                accessed(salient_index, path, count=count, at=at, outcome=outcome)
            scores[path] = math.exp(-0.01 * last) + math.log(1 + count) + max(outcome, 0.0)
        found = ordered(salient_index, arms.salience(everything(salient_index)))
    finally:
        conn.execute("ROLLBACK")
    assert len(found) == min(len(rows), arms.CUT)
    best = sorted(scores.values(), reverse=True)[: arms.CUT]
    # Scores and not paths: the last digit of a logarithm is nobody's contract.
    assert [scores[path] for path in found] == pytest.approx(best)


@pytest.fixture(scope="module")
def salient_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Seventy files to be dated and opened."""
    files = {f"areas/inbox/{n:03d}.html": memory(f"Number {n}.") for n in range(70)}
    with store(str(tmp_path_factory.mktemp("salient")), files) as opened:
        yield opened


def before(hours: int) -> str:
    """The instant that many hours before now."""
    from memhtml_format.instants import second

    return second(NOW_S - 3600 * hours)


NEAR = {
    "areas/inbox/east.html": memory("East."),
    "areas/inbox/north.html": memory("North."),
    "areas/inbox/north-east.html": memory("North east."),
    "areas/inbox/void.html": memory("Void."),
    "areas/inbox/strange.html": memory("Strange."),
    "areas/inbox/bare.html": memory("Bare."),
    "projects/p/tasks/east.html": memory("East again.", kind="task"),
}
CHOSEN = {
    "areas/inbox/east.html": (5.0, 0.0),
    "areas/inbox/north.html": (0.0, 1.0),
    "areas/inbox/north-east.html": (1.0, 1.0),
    "areas/inbox/void.html": (0.0, 0.0),
    "areas/inbox/strange.html": (math.nan, 1.0),
    "projects/p/tasks/east.html": (1.0, 0.0),
}


def test_the_nearest_come_first_and_a_vector_that_is_none_comes_never(root: str) -> None:
    with store(root, NEAR) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        found = nearest(index.conn, looking(1.0, 0.1), everything(index))
        names = [paths(index)[each.id] for each in found]
    assert names == [f"areas/inbox/{name}.html" for name in ("east", "north-east", "north", "void")]
    assert found[0].cosine == pytest.approx(1 / math.sqrt(1.01))
    assert found[-1].cosine == 0.0


def looking(*query: float, name: str = "fixed@2") -> Plane:
    """A plane with this query vector."""
    return Plane(name, len(query), 1.0, np.array(query, dtype=np.float32))


def test_a_vector_of_another_space_or_width_is_not_compared(root: str) -> None:
    with store(root, NEAR) as index:
        give_vectors(index, "other@2", {"areas/inbox/east.html": (1.0, 0.0)})
        give_vectors(index, "fixed@2", {"areas/inbox/north.html": (1.0, 0.0, 0.0)})
        assert nearest(index.conn, looking(1.0, 0.0), everything(index)) == []


def test_a_file_is_as_near_as_its_nearest_chunk(root: str) -> None:
    long = "".join(f"<p>Sentence number {number} of many.</p>\n" for number in range(200))
    files = {
        "areas/inbox/long.html": memory("Long.", more=long),
        "areas/inbox/short.html": memory("Short."),
    }
    with store(root, files) as index:
        count = index.conn.execute("SELECT count(*) FROM chunks WHERE ordinal > 0").fetchone()[0]
        assert count >= 2
        give_vectors(
            index,
            "fixed@2",
            {
                "areas/inbox/long.html": [(0.0, 1.0), (1.0, 0.0), (0.0, 1.0)],
                "areas/inbox/short.html": (1.0, 1.0),
            },
        )
        found = nearest(index.conn, looking(1.0, 0.0), everything(index))
        names = [paths(index)[each.id] for each in found]
    assert names == ["areas/inbox/long.html", "areas/inbox/short.html"]


@pytest.mark.parametrize("listed", [True, False])
def test_equal_vectors_are_told_apart_by_path_at_the_cut_too(
    root: str, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_FIRST_LOOK", 7)
    monkeypatch.setattr(vectors, "_SLICE_BYTES", 64)
    files = {
        f"areas/inbox/{number:03d}.html": memory(f"Number {number}.")
        for number in reversed(range(90))
    }
    wanted = Scope(memory_types=("semantic",)) if listed else Scope()
    with store(root, files) as index:
        # The paths of even numbers are nearer, and every other thing is equal.
        chosen = {path: (1.0, float(int(path[12:15]) % 2)) for path in files}
        give_vectors(index, "fixed@2", chosen)
        scope = make_filter(index.conn, wanted)
        assert (scope.listed is not None) == listed
        found = nearest(index.conn, looking(1.0, 0.0), scope)
        names = [paths(index)[each.id] for each in found]
    assert names == sorted(files, key=lambda path: (chosen[path][1], path))[: arms.CUT]


def test_a_rare_scope_is_found_behind_many_nearer_vectors(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.retrieve import scope

    monkeypatch.setattr(scope, "NARROW", -1)
    monkeypatch.setattr(vectors, "_FIRST_LOOK", 4)
    files = {f"areas/inbox/{n:03d}.html": memory(f"Number {n}.") for n in range(50)}
    files["areas/inbox/last.html"] = memory("Last.", kind="verdict")
    with store(root, files) as index:
        chosen = {path: (1.0, 0.0) for path in files}
        chosen["areas/inbox/last.html"] = (-1.0, 0.0)
        give_vectors(index, "fixed@2", chosen)
        wanted = make_filter(index.conn, Scope(memory_types=("verdict",)))
        assert wanted.listed is None
        found = nearest(index.conn, looking(1.0, 0.0), wanted)
        assert [paths(index)[each.id] for each in found] == ["areas/inbox/last.html"]


@given(
    matrix=arrays.arrays(np.float32, (5, 3), elements=st.floats(-100, 100, width=32)),
    query=arrays.arrays(np.float32, 3, elements=st.floats(-100, 100, width=32)),
)
def test_a_cosine_is_between_minus_one_and_one_whatever_the_lengths(
    matrix: vectors.Floats, query: vectors.Floats
) -> None:
    found = cosines_with(matrix, query)
    assert found.dtype == np.float32
    assert ((found >= -1) & (found <= 1)).all()
    assert (found[~matrix.any(axis=1)] == 0).all()


def test_the_plane_without_an_embedder_costs_no_count(root: str) -> None:
    with store(root, NEAR) as index:
        assert plane(index.conn, "east", None, 0.95) == Plane(None, 0, 0.0, None)
    with store(f"{root}/empty", {}) as index:
        assert plane(index.conn, "east", None, 0.95) == Plane(None, 0, 1.0, None)


def test_the_query_is_embedded_at_the_floor_and_not_below(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    embedder = Fixed({"east": (1.0, 0.0)})
    with store(root, NEAR) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        at = plane(index.conn, "east", embedder, 6 / 7)
        assert at.coverage == 6 / 7
        assert at.query is not None and at.query.tolist() == [1.0, 0.0]
        assert capsys.readouterr().err == ""
        below = plane(index.conn, "east", embedder, 0.95)
    assert below == Plane("fixed@2", 2, 6 / 7, None)
    assert embedder.asked == [["east"]]
    assert re.search(
        r"WARN: .* 85\.7% of the index has one of fixed@2, and 95\.0% is the least; "
        r"run `memhtml index embed`\n",
        capsys.readouterr().err,
    )


def test_vectors_of_another_model_lead_to_a_rebuild_and_to_no_fill(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with store(root, NEAR) as index:
        index.conn.execute(
            "INSERT INTO index_state(id, embed_model, embed_dim) VALUES(1, 'other@3', 3)"
        )
        assert plane(index.conn, "east", Fixed({}), 0.95).query is None
    assert capsys.readouterr().err.endswith("run `memhtml index rebuild --embed`\n")


def test_a_failing_embedder_drops_the_arm_with_a_warning(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with store(root, NEAR) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        found = plane(index.conn, "east", Fixed(failing="the weights are gone"), 0.5)
    assert found == Plane("fixed@2", 2, 6 / 7, None)
    assert "the weights are gone" in capsys.readouterr().err


@pytest.mark.parametrize("query", [(1.0, 0.0, 0.0), (math.nan, 0.0), (math.inf, 0.0)])
def test_a_query_vector_that_is_none_of_its_space_drops_the_arm(
    root: str, query: tuple[float, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with store(root, NEAR) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        assert plane(index.conn, "east", Fixed({"east": query}), 0.5).query is None
    assert "WARN" in capsys.readouterr().err


def test_a_blank_query_is_not_embedded(root: str) -> None:
    embedder = Fixed()
    with store(root, NEAR) as index:
        give_vectors(index, "fixed@2", CHOSEN)
        assert plane(index.conn, "  ", embedder, 0.5).query is None
    assert embedder.asked == []


def test_no_arm_looks_at_every_file(root: str) -> None:
    with store(root, SALIENT) as index:
        everywhere = everything(index)
        given = fuse.Orderings([1], [1])
        sql, values = fuse.statement(given, everywhere, has_state=True)
        steps = plan_of(index.conn, sql, {**values, "now": 0, "pool": 60})
        with statements(index) as seen:
            assert words(index, "fresh opened")
        steps += [step for each in seen[:2] for step in plan_of(index.conn, each, {})]
    tables = re.compile(r"(SCAN|SEARCH) (f|c|o|chunks|files)\b")
    read = [step for step in steps if tables.match(step)]
    assert [step for step in read if step.startswith("SCAN")] == []
    assert "SEARCH f USING INDEX files_recency (archived=?)" in read
    assert "SEARCH f USING COVERING INDEX files_updated (archived=?)" in read
    # FTS5 sorts by rank itself: the rows come one by one.
    assert "SCAN files_fts VIRTUAL TABLE INDEX 32:M1" in steps
