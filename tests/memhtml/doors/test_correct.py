"""`correct`: the replacement comes and the old memory retires, in one commit."""

from __future__ import annotations

import time
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
    refused,
    rows,
    said,
    state,
)
from tests.support.session import checkout_state

from memhtml.doors.archive import archive
from memhtml.doors.correct import correct
from memhtml.index.database import open_index
from memhtml.index.state import bump
from memhtml_format.record import Link
from memhtml_format.render import Draft

A = "areas/inbox/relay-limit.html"
YEAR = time.gmtime().tm_year
SLOT = f"archive/{YEAR}/{A}"
OLD = draft("Relay limit", "The relay limit is 12.", entities=("service:relay",))
NEW = draft("Relay limit", "The relay limit is 16.", "")


@pytest.fixture
def filled(store: str) -> str:
    put(store, OLD)
    return store


def test_a_replacement_with_the_same_title_takes_the_same_path(filled: str) -> None:
    given = NEW._replace(session_id="s1", prompt_id="p1")
    made = correct(filled, f"/{A}", given, "measured again")
    new, old = detail(filled, A), detail(filled, SLOT)
    assert made == {
        "path": A,
        "archivedPath": SLOT,
        "commitSha": head(filled),
        "contentHash": new.record.content_hash,
    }
    assert changes(filled) == [f"M {A}", f"A {SLOT}"] or changes(filled) == [f"A {SLOT}", f"M {A}"]
    assert said(filled) == (
        "memhtml(correct): Relay limit\n\nmeasured again\n\nMemhtml-Session: s1\nMemhtml-Prompt: p1"
    )
    assert checkout_state(filled) == ""
    assert indexed(filled) == committed(filled)
    assert new.record.links == (Link("supersedes", f"/{SLOT}"),)
    assert (new.record.tags, new.record.entities) == ((), ())
    assert new.record.memory_type == "semantic"
    assert new.valid_from == new.record.created_at == old.archived_at == old.valid_until
    assert (old.record.status, old.superseded_by) == ("archived", f"/{A}")
    assert old.record.claim == "The relay limit is 12."
    assert rows(filled, "SELECT path, session_id, link_kind FROM memory_session_links") == [
        (A, "s1", "corrected")
    ]


def test_another_title_leads_to_another_path_and_the_old_one_is_free(filled: str) -> None:
    made = correct(filled, A, NEW._replace(title="Relay cap"), None)
    assert made["path"] == "areas/inbox/relay-cap.html"
    assert said(filled) == "memhtml(correct): Relay cap"
    assert not Path(filled, A).exists()
    assert f"R {A} {SLOT}" in changes(filled)
    assert detail(filled, SLOT).superseded_by == "/areas/inbox/relay-cap.html"


def test_placement_runs_afresh_and_avoids_what_is_there(filled: str) -> None:
    put(filled, draft("Relay cap", "Something else."))
    put(filled, draft("Tagged", "Tagged.", tags=("queue",)))
    made = correct(filled, "resources/queue/tagged.html", draft("Relay cap", "Third.", ""), None)
    assert made["path"] == "areas/inbox/relay-cap-2.html"


def test_the_type_may_change(filled: str) -> None:
    correct(filled, A, NEW._replace(memory_type="procedural"), None)
    assert detail(filled, A).record.memory_type == "procedural"


def test_the_boundary_is_the_event_of_the_new_memory(filled: str) -> None:
    markup = '<p>On <time datetime="2026-02-03">a day</time> <mark>the limit fell.</mark></p>'
    correct(filled, A, Draft("Relay limit", "", article_html=markup), None)
    assert detail(filled, A).valid_from == "2026-02-03"
    assert detail(filled, SLOT).valid_until == "2026-02-03"


@pytest.mark.parametrize(("known", "kept"), [("2020-01-01", True), ("2999-01-01T00:00:00Z", False)])
def test_an_earlier_end_of_the_old_memory_is_kept(store: str, known: str, kept: bool) -> None:
    put(store, OLD._replace(valid_until=known))
    correct(store, A, NEW, None)
    until = detail(store, SLOT).valid_until
    assert until == (known if kept else detail(store, A).valid_from)


def test_a_held_slot_is_passed_over(filled: str) -> None:
    correct(filled, A, NEW, None)
    made = correct(filled, A, draft("Relay limit", "The relay limit is 20.", ""), None)
    assert made["archivedPath"] == f"archive/{YEAR}.2/{A}"
    assert detail(filled, A).record.links == (Link("supersedes", f"/archive/{YEAR}.2/{A}"),)


def test_an_uncommitted_edit_of_the_old_memory_is_archived_with_it(filled: str) -> None:
    text = Path(filled, A).read_text()
    Path(filled, A).write_text(text.replace("</article>", "<p>By hand.</p>\n</article>"))
    correct(filled, A, NEW, None)
    assert "By hand." in Path(filled, SLOT).read_text()
    assert checkout_state(filled) == ""


@pytest.mark.parametrize("title", ["Relay limit", "Relay cap"])
def test_accesses_go_with_the_memory_that_retires(filled: str, title: str) -> None:
    with open_index(filled) as index:
        bump(index.conn, [A], "positive", time.time())
    correct(filled, A, NEW._replace(title=title), None)
    with open_index(filled) as index:
        query = "SELECT path, access_count FROM state.access"
        assert index.conn.execute(query).fetchall() == [(SLOT, 1)]


def test_a_task_is_replaced_by_a_task_that_is_to_be_done(store: str) -> None:
    [path] = put(store, draft("Rotate", "Rotate.", "task", status="doing"))
    made = correct(store, path, draft("Rotate", "Rotate both.", ""), None)
    found = detail(store, made["path"])
    assert (made["path"], found.task_status) == (path, "todo")


def test_content_that_another_memory_holds_is_a_duplicate(filled: str) -> None:
    put(filled, draft("Other", "The relay limit is 16."))
    before = state(filled)
    assert refused(lambda: correct(filled, A, NEW, None)) == (
        "ERR_DUPLICATE_CONTENT",
        "areas/inbox/other.html holds the same content already",
    )
    assert state(filled) == before


@pytest.mark.parametrize("title", ["Relay limit", "Relay cap"])
def test_the_content_of_the_target_itself_is_refused(filled: str, title: str) -> None:
    before = state(filled)
    same = draft(title, "The relay limit is 12.", "")
    assert refused(lambda: correct(filled, A, same, None)) == (
        "ERR_INVALID_MEMORY",
        f"{A} says exactly this already",
    )
    assert state(filled) == before


def test_content_of_a_retired_memory_may_come_back(filled: str) -> None:
    correct(filled, A, NEW, None)
    back = draft("Relay limit", "The relay limit is 12.", "")
    assert correct(filled, A, back, None)["archivedPath"] == f"archive/{YEAR}.2/{A}"


def test_an_archived_memory_is_not_corrected(filled: str) -> None:
    archive(filled, A, "gone")
    before = state(filled)
    assert refused(lambda: correct(filled, SLOT, NEW, None))[0] == "ERR_INVALID_MEMORY"
    assert state(filled) == before


@pytest.mark.parametrize(
    ("target", "given", "code"),
    [
        ("areas/inbox/none.html", NEW, "ERR_PATH_NOT_FOUND"),
        ("../a.html", NEW, "ERR_PATH_NOT_FOUND"),
        (A, NEW._replace(title=" "), "ERR_INVALID_MEMORY"),
        (A, Draft("T", "", article_html="<p>no mark"), "ERR_INVALID_MEMORY"),
        (A, Draft("T", "", article_html="<p><mark>a</mark><iframe>"), "ERR_INVALID_MEMORY"),
    ],
)
def test_a_correction_that_cannot_be_made_changes_nothing(
    filled: str, target: str, given: Draft, code: str
) -> None:
    before = state(filled)
    assert refused(lambda: correct(filled, target, given, None))[0] == code
    assert state(filled) == before


def test_a_path_that_no_href_can_name_is_not_replaced(store: str) -> None:
    odd = "areas/inbox/what#.html"
    put(store, draft("Odd", "Odd.", path=odd))
    assert refused(lambda: correct(store, odd, NEW, None))[0] == "ERR_INVALID_MEMORY"
