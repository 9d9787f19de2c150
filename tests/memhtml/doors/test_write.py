"""`write` and `task add`: one memory, one commit, one row."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
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

from memhtml.doors import task
from memhtml.doors.write import write
from memhtml.errors import MemhtmlError
from memhtml.index import follow
from memhtml.store.repo import Repo

A = "areas/inbox/relay-limit.html"
RELAY = draft("Relay limit", "The relay limit is 12.")


def update_with_edits(root: str) -> None:
    """What `index update` does."""
    with closing(Repo(root)) as repo:
        follow.update(root, repo=repo, embedder=None)


def test_a_memory_is_one_commit_and_one_row(store: str) -> None:
    before = head(store)
    made = write(store, RELAY._replace(session_id="s1", prompt_id="p1", turn_uuid="t1"))
    assert made["path"] == A
    assert made["commitSha"] == head(store)
    assert git(store, "rev-parse", "HEAD^") == before
    assert changes(store) == [f"A {A}"]
    assert said(store) == (
        "memhtml(write): Relay limit\n\nMemhtml-Session: s1\nMemhtml-Prompt: p1\n"
    ).rstrip("\n")
    assert checkout_state(store) == ""
    assert indexed(store) == committed(store)
    assert rows(
        store, "SELECT path, session_id, prompt_id, turn_uuid, link_kind FROM memory_session_links"
    ) == [(A, "s1", "p1", "t1", "wrote")]
    found = detail(store, A)
    assert (found.session_id, found.prompt_id, found.turn_uuid) == ("s1", "p1", "t1")
    assert found.record.created_at == found.record.updated_at


def test_without_a_conversation_there_is_no_trailer_and_no_link(store: str) -> None:
    write(store, RELAY._replace(prompt_id="p1"))
    assert said(store) == "memhtml(write): Relay limit\n\nMemhtml-Prompt: p1"
    write(store, draft("Other", "Other."))
    assert said(store) == "memhtml(write): Other"
    assert rows(store, "SELECT * FROM memory_session_links") == []


def test_the_same_article_is_not_written_twice_whatever_its_title(store: str) -> None:
    first = write(store, RELAY)
    before = state(store)
    again = write(store, draft("Another title", "The relay limit is 12.", tags=("x",)))
    assert again == {
        "path": A,
        "created": False,
        "deduped": True,
        "existingPath": A,
        "commitSha": None,
        "contentHash": first["contentHash"],
    }
    assert state(store) == before


def test_a_fact_may_be_written_again_after_its_retirement(store: str) -> None:
    from memhtml.doors.archive import archive

    write(store, RELAY)
    archive(store, A, "gone")
    assert write(store, RELAY)["created"]


def test_a_task_is_never_a_duplicate(store: str) -> None:
    title = draft("Rotate the key", "Rotate the key.", "task", status="todo")
    write(store, draft("Rotate the key", "Rotate the key."))
    paths = [task.add(store, title)["path"] for _ in range(2)]
    assert paths == [
        "areas/inbox/tasks/rotate-the-key.html",
        "areas/inbox/tasks/rotate-the-key-2.html",
    ]
    assert not write(store, draft("Rotate", "Rotate the key."))["created"]


def test_what_a_commit_of_somebody_else_brought_is_known(store: str) -> None:
    path = "areas/inbox/theirs.html"
    Path(store, path).write_text(page("The relay limit is 12."))
    git(store, "add", path)
    git(store, "commit", "-qm", "theirs")
    made = write(store, RELAY)
    assert (made["deduped"], made["path"]) == (True, path)


def test_a_file_that_was_indexed_uncommitted_and_is_gone_holds_nothing(store: str) -> None:
    path = Path(store, "areas/inbox/theirs.html")
    write(store, draft("Other", "Other."))
    path.write_text(page("The relay limit is 12."))
    update_with_edits(store)
    assert write(store, RELAY)["path"] == "areas/inbox/theirs.html"
    path.write_text(page("Something else."))
    assert write(store, RELAY)["created"]
    path.write_text(page("The pump limit is 3."))
    update_with_edits(store)
    path.unlink()
    assert write(store, draft("Pump", "The pump limit is 3."))["created"]


def test_behind_a_file_that_is_gone_the_next_one_with_the_article_holds_it(store: str) -> None:
    write(store, RELAY)
    path = Path(store, "areas/inbox/a.html")
    path.write_bytes(Path(store, A).read_bytes())
    update_with_edits(store)
    path.unlink()
    made = write(store, RELAY)
    assert (made["deduped"], made["existingPath"]) == (True, A)


def test_a_task_says_how_far_it_is_and_when_it_is_due(store: str) -> None:
    given = draft(
        "Rotate", "Rotate.", "task", status="done", due="2026-12-24", workspace="Pay ments"
    )
    made = task.add(store, given)
    assert made == {
        "path": "projects/pay-ments/tasks/rotate.html",
        "created": True,
        "deduped": False,
        "existingPath": None,
        "taskStatus": "done",
        "dueAt": "2026-12-24",
        "commitSha": head(store),
    }
    assert detail(store, made["path"]).task_status == "done"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (draft("Rotate", "Rotate.", "task", status="todo", due="soon"), "ERR_INVALID_MEMORY"),
        (draft(" ", "A."), "ERR_INVALID_MEMORY"),
        (draft("T", "A.", path="notes/a.html", strict_path=True), "ERR_INVALID_MEMORY"),
        (draft("T", "A.", path=A), "ERR_WRITE_CONFLICT"),
        (draft("T", "A.", path=f"{A}/b.html"), "ERR_WRITE_CONFLICT"),
    ],
)
def test_a_refused_memory_leaves_everything_as_it_was(store: str, given: object, code: str) -> None:
    write(store, RELAY)
    before = state(store)
    assert refused(lambda: write(store, given))[0] == code  # type: ignore[arg-type]
    assert state(store) == before


@pytest.mark.parametrize("kind", ["file", "link"])
def test_something_where_a_folder_has_to_be_is_named(store: str, kind: str) -> None:
    place = Path(store, "projects/p")
    if kind == "file":
        place.write_text("in the way")
    else:
        place.symlink_to("/")
    before = state(store)
    code, text = refused(lambda: write(store, draft("T", "A.", workspace="p")))
    assert (code, text) == (
        "ERR_STORAGE",
        "storage operation failed: write: projects/p is in the way: it is no folder",
    )
    assert state(store) == before


def test_what_is_at_a_name_that_is_no_memory_is_left_alone(store: str) -> None:
    Path(store, A).symlink_to("/etc/hostname")
    Path(store, "areas/inbox/relay-limit-2.html").mkdir()
    assert write(store, RELAY)["path"] == "areas/inbox/relay-limit-3.html"
    assert os.readlink(Path(store, A)) == "/etc/hostname"


def test_a_damaged_index_is_an_error_before_anything_is_written(store: str) -> None:
    put(store, RELAY)
    Path(store, ".memhtml/index.db").write_bytes(b"no database" * 1000)
    before = state(store)
    with pytest.raises(MemhtmlError) as caught:
        write(store, draft("T", "A."))
    assert str(caught.value).startswith("storage operation failed: index.open: ")
    assert caught.value.suggestions == ("memhtml index rebuild",)
    assert state(store) == before


def test_an_index_that_was_deleted_is_built_before_twins_are_looked_for(store: str) -> None:
    put(store, RELAY)
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        Path(store, ".memhtml", name).unlink(missing_ok=True)
    assert write(store, RELAY)["deduped"]
    assert indexed(store) == committed(store)


def test_an_index_that_was_left_half_built_is_built_anew(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, RELAY)
    conn = sqlite3.connect(Path(store, ".memhtml/index.db"))
    conn.execute("UPDATE index_state SET head_sha = NULL")
    conn.execute("DELETE FROM files")
    conn.commit()
    conn.close()
    assert write(store, RELAY)["deduped"]
    assert indexed(store) == committed(store)
    assert "WARN: the index was left half built" in capsys.readouterr().err


def test_a_pass_that_fails_after_the_commit_is_a_warning(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memhtml.index import follow

    put(store, RELAY)

    def fail(*_words: object, **_options: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(follow.Pass, "run", fail)
    made = write(store, draft("T", "A."))
    assert made["commitSha"] == head(store)
    assert "WARN: the index was not brought forward" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    assert write(store, draft("T", "A."))["deduped"]
