"""`archive` at the command line: whole envelopes (spec `cli` §10 `archive`)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.cli import check_lines
from tests.support.command import memhtml
from tests.support.doors import changes, draft, head, put, said, state
from tests.support.session import checkout_state, make_store

from memhtml.schema.envelope import validate_envelope

A = "areas/inbox/relay-limit.html"
YEAR = time.gmtime().tm_year


def filled(root: str) -> str:
    make_store(root)
    put(root, draft("Relay limit", "The relay limit is 12."))
    return root


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store for calls that change nothing."""
    return filled(str(tmp_path_factory.mktemp("archive") / "store"))


def test_a_memory_is_retired(tmp_path: Path) -> None:
    root = filled(str(tmp_path / "store"))
    # In a bound run as well: archive is no door that a policy closes.
    env = {"MEMHTML_EMBED": "off", "MEMHTML_SESSION": "s1", "MEMHTML_ROOT": root}
    done = memhtml("archive", A, "--reason", "no longer\ntrue", env=env)
    assert (done.status, done.stderr) == (0, "")
    validate_envelope(done.envelope)
    slot = f"archive/{YEAR}/{A}"
    assert done.envelope == {
        "apiVersion": "1",
        "type": "memory.archived",
        "data": {"path": A, "archivePath": slot, "commitSha": head(root)},
    }
    assert said(root) == f"memhtml(archive): {A} — no longer true"
    assert changes(root) == [f"R {A} {slot}"]
    assert checkout_state(root) == ""
    again = memhtml("archive", slot, "--reason", "again", env=env)
    assert (again.status, again.envelope["code"]) == (1, "ERR_INVALID_MEMORY")
    assert again.envelope["error"] == f"{slot} is archived already and stays where it is"


@pytest.mark.parametrize(
    ("words", "status", "code", "text"),
    [
        (("--reason", "x"), 2, "ERR_MISSING_ARGUMENT", "archive needs <path>"),
        ((A,), 2, "ERR_MISSING_ARGUMENT", "archive needs --reason"),
        ((A, "--reason", " "), 2, "ERR_INVALID_FLAG", "--reason is blank"),
        ((A, "--reason"), 2, "ERR_INVALID_FLAG", "--reason needs a value"),
        ((A, A, "--reason", "x"), 2, "ERR_UNEXPECTED_ARGUMENT", A),
        (("areas/none.html", "--reason", "x"), 1, "ERR_PATH_NOT_FOUND", "areas/none.html"),
        (("", "--reason", "x"), 1, "ERR_PATH_NOT_FOUND", "there is no memory at"),
        (("README.html", "--reason", "x"), 1, "ERR_PATH_NOT_FOUND", "README.html"),
    ],
)
def test_a_failure_says_why_and_changes_nothing(
    still: str, words: tuple[str, ...], status: int, code: str, text: str
) -> None:
    before = state(still)
    done = memhtml("archive", "--repo", still, *words)
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (status, code), done.stdout
    assert text in done.envelope["error"]
    check_lines(done.envelope["suggestions"])
    assert state(still) == before
