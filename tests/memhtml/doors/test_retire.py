"""`archive` and `task status`: a memory moves to its slot, and nothing is lost on the way."""

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
from tests.support.session import checkout_state, git, page

from memhtml.doors.archive import archive
from memhtml.doors.task import set_status
from memhtml.index.database import open_index
from memhtml.index.state import bump

A = "areas/inbox/relay-limit.html"
RELAY = draft("Relay limit", "The relay limit is 12.")
TASK = "areas/inbox/tasks/rotate.html"
YEAR = time.gmtime().tm_year


def add_task(store: str, status: str = "todo") -> str:
    return put(store, draft("Rotate", "Rotate.", "task", status=status))[0]


def test_a_memory_moves_to_the_archive_as_a_rename(store: str) -> None:
    put(store, RELAY)
    before = detail(store, A)
    made = archive(store, f"/{A}/", "no longer true")
    slot = f"archive/{YEAR}/{A}"
    assert made == {"path": A, "archivePath": slot, "commitSha": head(store)}
    assert changes(store) == [f"R {A} {slot}"]
    assert git(store, "log", "--follow", "--format=%s", "--", slot).splitlines() == [
        f"memhtml(archive): {A} — no longer true",
        "memhtml(batch): Relay limit",
    ]
    found = detail(store, slot)
    assert found.record.status == "archived"
    assert found.archived_at == found.record.updated_at
    assert found.record.content_hash == before.record.content_hash
    assert checkout_state(store) == ""
    assert indexed(store) == committed(store)
    assert not Path(store, A).exists()


def test_every_retirement_finds_the_first_free_slot(store: str) -> None:
    for expected in (f"archive/{YEAR}", f"archive/{YEAR}.2", f"archive/{YEAR}.3"):
        put(store, RELAY)
        assert archive(store, A, "again")["archivePath"] == f"{expected}/{A}"
    Path(store, f"archive/{YEAR}.2/{A}").unlink()
    put(store, RELAY)
    # Deleted by hand, but the last commit still holds it.
    assert archive(store, A, "again")["archivePath"] == f"archive/{YEAR}.4/{A}"
    Path(store, f"archive/{YEAR}.5/{A}").mkdir(parents=True)
    put(store, RELAY)
    assert archive(store, A, "again")["archivePath"] == f"archive/{YEAR}.6/{A}"


def test_an_uncommitted_edit_of_the_file_goes_along_and_no_other(store: str) -> None:
    put(store, RELAY, draft("Other", "Other."))
    for path in (A, "areas/inbox/other.html"):
        text = Path(store, path).read_text()
        Path(store, path).write_text(text.replace("</article>", "<p>By hand.</p>\n</article>"))
    slot = archive(store, A, "gone")["archivePath"]
    assert "By hand." in git(store, "show", f"HEAD:{slot}")
    assert checkout_state(store) == " M areas/inbox/other.html"


def test_an_untracked_file_can_be_retired(store: str) -> None:
    Path(store, A).write_text(page("By hand."))
    slot = archive(store, A, "gone")["archivePath"]
    assert changes(store) == [f"A {slot}"]
    assert checkout_state(store) == ""


def test_accesses_follow_the_file(store: str) -> None:
    put(store, RELAY)
    with open_index(store) as index:
        bump(index.conn, [A], "positive", time.time())
    slot = archive(store, A, "gone")["archivePath"]
    with open_index(store) as index:
        query = "SELECT path, access_count FROM state.access"
        assert index.conn.execute(query).fetchall() == [(slot, 1)]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("areas/inbox/none.html", "ERR_PATH_NOT_FOUND"),
        ("areas/inbox", "ERR_PATH_NOT_FOUND"),
        ("areas/inbox/folder.html", "ERR_PATH_NOT_FOUND"),
        ("areas/inbox/link.html", "ERR_PATH_NOT_FOUND"),
        ("areas/inbox/index.html", "ERR_PATH_NOT_FOUND"),
        ("../store/areas/inbox/relay-limit.html", "ERR_PATH_NOT_FOUND"),
        ("README.html", "ERR_PATH_NOT_FOUND"),
        ("", "ERR_PATH_NOT_FOUND"),
        ("areas/inbox/broken.html", "ERR_INVALID_MEMORY"),
        ("archive/2025/areas/inbox/old.html", "ERR_INVALID_MEMORY"),
    ],
)
def test_what_cannot_be_retired_stays(store: str, path: str, code: str) -> None:
    put(store, RELAY)
    inbox = Path(store, "areas/inbox")
    (inbox / "folder.html").mkdir()
    (inbox / "link.html").symlink_to("relay-limit.html")
    (inbox / "broken.html").write_text("<p>no memory")
    (inbox / "index.html").write_text(page("A listing."))
    old = Path(store, "archive/2025/areas/inbox/old.html")
    old.parent.mkdir(parents=True)
    old.write_text(page("Old."))
    before = state(store)
    assert refused(lambda: archive(store, path, "gone"))[0] == code
    assert state(store) == before


def test_a_file_in_the_place_of_the_archive_is_named(store: str) -> None:
    put(store, RELAY)
    git(store, "rm", "-rq", "archive")
    git(store, "commit", "-qm", "no archive")
    Path(store, "archive").write_text("in the way")
    assert refused(lambda: archive(store, A, "gone")) == (
        "ERR_STORAGE",
        "storage operation failed: write: archive is in the way: it is no folder",
    )
    assert Path(store, A).exists()


def test_a_head_that_no_edit_finds_its_way_in_is_not_half_stamped(store: str) -> None:
    # The head ends before its metas do, for the reader; the text holds them twice.
    text = page("By hand.").replace(
        '<meta name="memhtml-status" content="active">',
        '<template><meta name="memhtml-status" content="archived"></template>'
        '<meta name="memhtml-status" content="active">',
    )
    Path(store, A).write_text(text)
    slot = archive(store, A, "gone")["archivePath"]
    assert detail(store, slot).record.status == "archived"
    assert Path(store, slot).read_text().count("<template>") == 1


@pytest.mark.parametrize("status", ["doing", "blocked", "todo"])
def test_a_status_is_one_commit(store: str, status: str) -> None:
    add_task(store, "blocked" if status == "doing" else "doing")
    made = set_status(store, TASK, status, None)
    assert made == {
        "path": TASK,
        "taskStatus": status,
        "archived": False,
        "archivePath": None,
        "commitSha": head(store),
        "unchanged": False,
    }
    assert said(store) == f"memhtml(task): {status} {TASK}"
    assert changes(store) == [f"M {TASK}"]
    assert detail(store, TASK).task_status == status
    assert rows(store, "SELECT task_status FROM files WHERE path = ?", TASK) == [(status,)]


def test_the_same_status_again_changes_nothing(store: str) -> None:
    add_task(store)
    before = state(store)
    made = set_status(store, TASK, "todo", "why not")
    assert (made["unchanged"], made["commitSha"], made["archived"]) == (True, None, False)
    assert state(store) == before


@pytest.mark.parametrize("opened", ["todo", "done"])
@pytest.mark.parametrize("reason", [None, " ", "key is new"])
def test_done_archives_in_the_same_commit(store: str, opened: str, reason: str | None) -> None:
    add_task(store, opened)
    made = set_status(store, TASK, "done", reason)
    slot = f"archive/{YEAR}/{TASK}"
    assert made == {
        "path": TASK,
        "taskStatus": "done",
        "archived": True,
        "archivePath": slot,
        "commitSha": head(store),
        "unchanged": False,
    }
    why = "key is new" if reason == "key is new" else "task done"
    assert said(store) == f"memhtml(archive): {TASK} — {why}"
    assert changes(store) == [f"R {TASK} {slot}"]
    found = detail(store, slot)
    assert (found.task_status, found.record.status) == ("done", "archived")


def test_a_long_subject_is_cut(store: str) -> None:
    put(store, RELAY)
    archive(store, A, "x" * 100)
    text = f"{A} — {'x' * 100}"
    assert said(store) == f"memhtml(archive): {text[:71]}…"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (TASK, "later", "ERR_INVALID_MEMORY"),
        (A, "done", "ERR_INVALID_MEMORY"),
        ("areas/inbox/tasks/none.html", "done", "ERR_PATH_NOT_FOUND"),
        (f"archive/{YEAR}/areas/inbox/tasks/old.html", "done", "ERR_INVALID_MEMORY"),
        (f"archive/{YEAR}/areas/inbox/tasks/old.html", "todo", "ERR_INVALID_MEMORY"),
    ],
)
def test_a_status_that_cannot_be_set_is_refused(
    store: str, path: str, status: str, code: str
) -> None:
    add_task(store)
    put(store, RELAY, draft("Old", "Old.", "task"))
    set_status(store, "areas/inbox/tasks/old.html", "done", None)
    before = state(store)
    assert refused(lambda: set_status(store, path, status, None))[0] == code
    assert state(store) == before
