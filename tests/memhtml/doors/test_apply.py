"""`apply`: one commit, one pass of the index, and the two reports."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.support.doors import (
    changes,
    committed,
    detail,
    draft,
    head,
    indexed,
    put,
    rows,
    said,
    state,
)
from tests.support.session import checkout_state, git

from memhtml.doors.apply import Wishes, apply
from memhtml.doors.lookups import Lookups
from memhtml.doors.provenance import Provenance
from memhtml.index.follow import rebuild
from memhtml.index.writer import WORTH_A_BATCH
from memhtml.store.repo import Repo
from memhtml_format.render import Draft

FILES = (
    "SELECT path, blob_sha, content_hash, memory_type, title, gist, body_text, disclosure_text,"
    " fts_text, char_count, frame_key, workspace, created_at, event_at FROM files ORDER BY path"
)
CHILDREN = (
    "SELECT * FROM file_tags ORDER BY 1, 2",
    "SELECT * FROM file_entities ORDER BY 1, 2, 3",
    "SELECT * FROM file_facets ORDER BY 1, 2",
    "SELECT * FROM chunks ORDER BY 1, 2",
)
MARKUP = (
    '<p>On <time datetime="2026-02-03">a day</time> <mark>the limit is 7.</mark></p>'
    '<dl><dt>Limit</dt><dd><data value="7">seven</data></dd></dl>'
)


def prose(number: int, **fields: object) -> Draft:
    given = Draft(f"Fact {number}", "semantic", body=f"The fact {number} holds. More of it.")
    return given._replace(**fields)  # type: ignore[arg-type]


def run(
    store: str, *drafts: Draft, ids: Provenance | None = None, **wishes: bool
) -> dict[str, object]:
    return apply(store, iter(drafts), Wishes(**wishes), ids or Provenance())


def conflicts(answer: dict[str, object]) -> list[object]:
    """Of each op the path or the batch index it conflicts with, or None."""
    results = answer["results"]
    assert isinstance(results, list)
    found = [each["conflict"] or {} for each in results]
    return [each.get("path") or each.get("batch_index") for each in found]


def test_a_batch_is_one_commit_and_one_instant(store: str) -> None:
    before = head(store)
    answer = run(store, prose(1), prose(2, workspace="p"), prose(3, memory_type="episodic"))
    paths = [each["path"] for each in answer["results"]]  # type: ignore[attr-defined]
    assert answer["commit_sha"] == head(store)
    assert git(store, "rev-parse", "HEAD^") == before
    assert sorted(changes(store)) == sorted(f"A {path}" for path in paths)
    assert said(store) == "memhtml(batch): 3 memories"
    assert checkout_state(store) == ""
    stamps = {detail(store, path).record.created_at for path in paths}
    assert len(stamps) == 1
    assert paths[2] == f"areas/inbox/{stamps.pop()[:10].replace('-', '')}-fact-3.html"


def test_a_batch_of_one_file_carries_its_title(store: str) -> None:
    run(store, prose(1), prose(1), Draft("None", "semantic"), atomic=False)
    assert said(store) == "memhtml(batch): Fact 1"


def test_the_index_is_what_a_rebuild_makes_of_the_commit(store: str) -> None:
    run(
        store,
        prose(1, tags=("x", "y"), entities=("service:relay", "odd")),
        Draft("Seven", "semantic", article_html=MARKUP),
        Draft("Long", "procedural", body="A sentence of many. " * 300, tags=("q",)),
        Draft("Task", "task", body="Do it.", due="2026-12-24"),
        prose(2, workspace="p", importance=7, confidence=0.25),
    )
    assert indexed(store) == committed(store)
    followed = [rows(store, query) for query in (FILES, *CHILDREN)]
    rebuild(store, repo=Repo(store), embedder=None)
    assert [rows(store, query) for query in (FILES, *CHILDREN)] == followed


def test_a_large_batch_is_indexed_as_each_file_alone_would_be(store: str) -> None:
    many = [
        prose(number, tags=("x", f"t{number % 7}"), entities=("service:relay",))
        for number in range(3 * WORTH_A_BATCH)
    ]
    put(store, draft("Before", "Before."))
    run(store, *many, Draft("Seven", "semantic", article_html=MARKUP))
    followed = [rows(store, query) for query in (FILES, *CHILDREN)]
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    assert [name for name, _sql in rows(store, triggers)] == [
        *("files_fts_delete", "files_fts_insert", "files_fts_update"),
    ]
    conn = sqlite3.connect(Path(store, ".memhtml/index.db"))
    conn.execute("INSERT INTO files_fts(files_fts, rank) VALUES('integrity-check', 1)")
    query = "SELECT count(*) FROM files_fts WHERE files_fts MATCH 'holds'"
    assert conn.execute(query).fetchone() == (len(many),)
    conn.close()
    before = rows(store, triggers)
    rebuild(store, repo=Repo(store), embedder=None)
    assert [rows(store, query) for query in (FILES, *CHILDREN)] == followed
    assert rows(store, triggers) == before


def test_the_same_batch_again_writes_nothing(store: str) -> None:
    drafts = [prose(number) for number in range(5)]
    run(store, *drafts)
    before = state(store)
    answer = run(store, *drafts)
    assert answer["summary"] == {
        "total": 5,
        "written": 0,
        "deduped": 5,
        "failed": 0,
        "skipped": 0,
    }
    assert answer["commit_sha"] is None
    assert state(store) == before


def test_a_refused_batch_changes_nothing(store: str) -> None:
    before = state(store)
    answer = run(store, prose(1), Draft("None", "semantic"))
    assert answer["commit_sha"] is None
    assert state(store) == before


def test_conversations_come_from_each_op_and_the_trailers_from_the_first(store: str) -> None:
    ids = Provenance("call", "call-p", None)
    run(
        store,
        prose(1, session_id="own"),
        prose(2),
        prose(3, session_id="last", prompt_id="last-p", turn_uuid="t"),
        ids=ids,
    )
    assert said(store).splitlines()[-2:] == ["Memhtml-Session: own", "Memhtml-Prompt: call-p"]
    query = "SELECT session_id, prompt_id, turn_uuid FROM memory_session_links ORDER BY path"
    assert rows(store, query) == [
        ("own", "call-p", None),
        ("call", "call-p", None),
        ("last", "last-p", "t"),
    ]


def test_a_turn_alone_is_no_conversation_for_the_trailers(store: str) -> None:
    run(store, prose(1, turn_uuid="t"), prose(2, prompt_id="p"))
    assert said(store).splitlines()[2:] == ["Memhtml-Prompt: p"]


def test_what_a_person_did_meanwhile_stays_theirs(store: str) -> None:
    put(store, draft("Mine", "Mine."))
    mine = Path(store, "areas/inbox/mine.html")
    mine.write_text(mine.read_text().replace("</article>", "<p>More.</p></article>"))
    Path(store, "notes.txt").write_text("staged")
    git(store, "add", "notes.txt")
    run(store, prose(1), prose(2))
    assert checkout_state(store).splitlines() == [" M areas/inbox/mine.html", "A  notes.txt"]


def test_equal_titles_fill_a_gap_first(store: str) -> None:
    def same(number: int) -> Draft:
        return Draft("Same", "semantic", body=f"Number {number}.")

    run(store, *(same(number) for number in range(4)))
    git(store, "rm", "-q", "areas/inbox/same-2.html")
    git(store, "commit", "-qm", "a gap")
    answer = run(store, same(10), same(11))
    assert [each["path"] for each in answer["results"]] == [  # type: ignore[attr-defined]
        "areas/inbox/same-2.html",
        "areas/inbox/same-5.html",
    ]


def test_other_values_for_one_frame_are_named(store: str) -> None:
    put(store, draft("B", "The relay limit is 5."), draft("A", "The relay limit is 7."))
    answer = run(
        store,
        Draft("1", "semantic", body="The relay limit is 7. Really."),
        Draft("2", "semantic", body="The relay limit is 8. Really."),
        Draft("3", "semantic", body="The queue limit is 1."),
        Draft("4", "semantic", body="The queue limit is 2."),
        Draft("5", "semantic", body="The queue limit is  2! No."),
        conflicts=True,
    )
    assert conflicts(answer) == ["areas/inbox/b.html", "areas/inbox/a.html", None, 2, 2]
    assert answer["results"][3]["conflict"] == {  # type: ignore[index]
        "path": None,
        "batch_index": 2,
        "claim": "The queue limit is 1.",
    }


def test_markup_tasks_and_what_is_not_written_are_not_compared(store: str) -> None:
    put(store, draft("A", "The relay limit is 5."), draft("T", "The key id is 5.", "task"))
    answer = run(
        store,
        Draft("1", "semantic", article_html="<p><mark>The relay limit is 6.</mark></p>"),
        Draft("2", "task", body="The relay limit is 6."),
        Draft("3", "semantic", body="The relay limit is 5."),
        Draft("4", "semantic", body="The key id is 6."),
        conflicts=True,
    )
    assert conflicts(answer) == [None, None, None, None]


def test_retired_claims_conflict_with_nothing(store: str) -> None:
    from memhtml.doors.archive import archive

    [path] = put(store, draft("A", "The relay limit is 5."))
    archive(store, path, "gone")
    answer = run(store, Draft("1", "semantic", body="The relay limit is 6."), conflicts=True)
    assert conflicts(answer) == [None]


def test_a_look_up_that_fails_is_a_warning_and_no_findings(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Lookups, frame_key: str) -> None:
        raise sqlite3.OperationalError("no such table: files")

    monkeypatch.setattr(Lookups, "claims", fail)
    answer = run(store, Draft("1", "semantic", body="The relay limit is 6."), conflicts=True)
    assert conflicts(answer) == [None]
    assert answer["commit_sha"] == head(store)
    assert "WARN: conflicts were not looked for" in capsys.readouterr().err


def test_without_an_embedder_near_duplicates_are_unchecked(store: str) -> None:
    answer = run(store, prose(1), near_duplicates=True)
    assert answer["near_duplicates_degraded"] is True
    assert answer["results"][0]["near_duplicates"] is None  # type: ignore[index]
    assert run(store, prose(2))["near_duplicates_degraded"] is False
