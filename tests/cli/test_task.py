"""`task add` and `task status` at the command line: whole envelopes (spec `cli` §10)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.cli import check_lines
from tests.support.command import memhtml
from tests.support.doors import changes, detail, draft, head, put, said, state
from tests.support.session import make_store

from memhtml.schema.envelope import validate_envelope

TASK, A = "areas/inbox/tasks/rotate.html", "areas/inbox/a.html"
YEAR = time.gmtime().tm_year
OFF = {"MEMHTML_EMBED": "off"}


def filled(root: str) -> str:
    make_store(root)
    put(root, draft("Rotate", "Rotate.", "task", status="todo"), draft("A", "A."))
    return root


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store for calls that change nothing."""
    return filled(str(tmp_path_factory.mktemp("task") / "store"))


def test_a_task_is_written_with_its_title_as_its_claim(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    done = memhtml(
        *("task", "add", "--repo", root, "--title", "Rotate the relay key", "--due", "2026-12-24"),
        *("--workspace", "payments", "--status", "doing", "--tag", "key", "--entity", "team:net"),
        *("--body", "Both of them.", "--session-id", "s1"),
        env=OFF,
    )
    assert (done.status, done.stderr) == (0, "")
    validate_envelope(done.envelope)
    path = "projects/payments/tasks/rotate-the-relay-key.html"
    assert done.envelope == {
        "apiVersion": "1",
        "type": "task.written",
        "data": {
            "path": path,
            "created": True,
            "deduped": False,
            "existingPath": None,
            "taskStatus": "doing",
            "dueAt": "2026-12-24",
            "commitSha": head(root),
        },
    }
    found = detail(root, path)
    assert found.record.claim == "Rotate the relay key"
    assert (found.task_status, found.due_at, found.session_id) == ("doing", "2026-12-24", "s1")
    assert (found.record.tags, found.record.entities) == (("key",), ("team:net",))
    assert said(root).splitlines()[0] == "memhtml(write): Rotate the relay key"
    plain = memhtml("task", "add", "--repo", root, "--title", "Plain", "--due", "", env=OFF)
    assert (plain.data["taskStatus"], plain.data["dueAt"]) == ("todo", None)


def test_a_task_moves_on_and_is_archived_when_it_is_done(tmp_path: Path) -> None:
    root = filled(str(tmp_path / "store"))
    # In a bound run as well: task status is no door that a policy closes.
    env = {**OFF, "MEMHTML_SESSION": "s1", "MEMHTML_ROOT": root}
    doing = memhtml("task", "status", TASK, "doing", env=env)
    validate_envelope(doing.envelope)
    expected = {
        "path": TASK,
        "taskStatus": "doing",
        "archived": False,
        "archivePath": None,
        "commitSha": head(root),
        "unchanged": False,
    }
    assert (doing.status, doing.stderr) == (0, "")
    assert doing.envelope == {"apiVersion": "1", "type": "task.updated", "data": expected}
    again = memhtml("task", "status", TASK, "doing", env=env)
    validate_envelope(again.envelope)
    assert again.data == {**expected, "commitSha": None, "unchanged": True}
    done = memhtml("task", "status", f"/{TASK}", "done", "--reason", "key is new", env=env)
    validate_envelope(done.envelope)
    slot = f"archive/{YEAR}/{TASK}"
    assert done.data == {
        "path": TASK,
        "taskStatus": "done",
        "archived": True,
        "archivePath": slot,
        "commitSha": head(root),
        "unchanged": False,
    }
    assert changes(root) == [f"R {TASK} {slot}"]
    assert said(root) == f"memhtml(archive): {TASK} — key is new"


@pytest.mark.parametrize(
    ("words", "status", "code", "text"),
    [
        (("add",), 2, "ERR_MISSING_ARGUMENT", "task add needs --title"),
        (("add", "--title", "T", "--status", "later"), 2, "ERR_INVALID_FLAG", "todo, doing"),
        (("add", "--title", "T", "--type", "task"), 2, "ERR_INVALID_FLAG", "no flag --type"),
        (("add", "--title", "T", "x"), 2, "ERR_UNEXPECTED_ARGUMENT", "'x'"),
        (("add", "--title", "T", "--due", "soon"), 1, "ERR_INVALID_MEMORY", "memhtml-due"),
        (("add", "--title", "T", "--due", "2026-02-30"), 1, "ERR_INVALID_MEMORY", "memhtml-due"),
        (("add", "--title", " "), 1, "ERR_INVALID_MEMORY", "the title is blank"),
        (("status", TASK), 2, "ERR_MISSING_ARGUMENT", "task status needs <status>"),
        (("status", TASK, "later"), 1, "ERR_INVALID_MEMORY", "'later' is no task status"),
        (("status", A, "done"), 1, "ERR_INVALID_MEMORY", f"{A} is no task but semantic"),
        (("status", "areas/none.html", "done"), 1, "ERR_PATH_NOT_FOUND", "areas/none.html"),
    ],
)
def test_a_failure_says_why_and_changes_nothing(
    still: str, words: tuple[str, ...], status: int, code: str, text: str
) -> None:
    before = state(still)
    done = memhtml("task", *words, "--repo", still, env=OFF)
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (status, code), done.stdout
    assert text in done.envelope["error"]
    check_lines(done.envelope["suggestions"])
    assert state(still) == before


def test_a_bound_run_is_sent_to_its_session(still: str) -> None:
    done = memhtml("task", "add", env={"MEMHTML_ROOT": still, "MEMHTML_SESSION": "s1"})
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (2, "ERR_SESSION_BOUND")
