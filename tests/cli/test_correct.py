"""`correct` at the command line: whole envelopes (spec `cli` §10 `correct`)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.cli import check_lines
from tests.support.command import memhtml
from tests.support.doors import committed, detail, draft, head, indexed, put, said, state
from tests.support.session import make_store

from memhtml.doors.archive import archive
from memhtml.schema.envelope import validate_envelope

YEAR = time.gmtime().tm_year
A, OTHER = "areas/inbox/relay-limit.html", "areas/inbox/other.html"
NEW = ("--title", "Relay limit", "--claim", "The relay limit is 16.")


def filled(root: str) -> str:
    make_store(root)
    put(root, draft("Relay limit", "The relay limit is 12."), draft("Other", "Another fact."))
    put(root, draft("Gone", "Gone."))
    archive(root, "areas/inbox/gone.html", "gone")
    Path(root, "areas/inbox/broken.html").write_text("<p>no memory")
    return root


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store for calls that change nothing."""
    return filled(str(tmp_path_factory.mktemp("correct") / "store"))


def test_a_correction_is_one_commit(tmp_path: Path) -> None:
    root = filled(str(tmp_path / "store"))
    done = memhtml(
        *("correct", "--repo", root, f"/{A}", *NEW, "--body", "It grew.", "--type", "verdict"),
        *("--reason", "measured again", "--session-id", "s1"),
        env={"MEMHTML_EMBED": "off"},
    )
    assert (done.status, done.stderr) == (0, "")
    validate_envelope(done.envelope)
    found, slot = detail(root, A), f"archive/{YEAR}/{A}"
    assert done.envelope == {
        "apiVersion": "1",
        "type": "memory.corrected",
        "data": {
            "path": A,
            "archivedPath": slot,
            "commitSha": head(root),
            "contentHash": found.record.content_hash,
        },
    }
    assert (found.record.memory_type, found.session_id) == ("verdict", "s1")
    assert found.record.body_text == "The relay limit is 16. It grew."
    assert detail(root, slot).superseded_by == f"/{A}"
    assert said(root) == ("memhtml(correct): Relay limit\n\nmeasured again\n\nMemhtml-Session: s1")
    assert indexed(root) == committed(root)


FAILURES = [
    (NEW, 2, "ERR_MISSING_ARGUMENT", "correct needs <target>"),
    ((A, "--claim", "B."), 2, "ERR_MISSING_ARGUMENT", "correct needs --title"),
    ((A, "--title", "T"), 2, "ERR_MISSING_ARGUMENT", "correct needs --claim or --article-html"),
    ((A, *NEW, "--article-html", "<p>"), 2, "ERR_INVALID_FLAG", "--article-html excludes --claim"),
    ((A, *NEW, "--type", "essay"), 2, "ERR_INVALID_FLAG", "allowed are episodic"),
    ((A, *NEW, "--tag", "x"), 2, "ERR_INVALID_FLAG", "correct has no flag --tag"),
    ((A, OTHER, *NEW), 2, "ERR_UNEXPECTED_ARGUMENT", OTHER),
    (("areas/inbox/none.html", *NEW), 1, "ERR_PATH_NOT_FOUND", "areas/inbox/none.html"),
    (("areas/../../x.html", *NEW), 1, "ERR_PATH_NOT_FOUND", "areas/../../x.html"),
    (("areas/inbox", *NEW), 1, "ERR_PATH_NOT_FOUND", "areas/inbox"),
    (("areas/inbox/broken.html", *NEW), 1, "ERR_INVALID_MEMORY", "broken.html: exactly one title"),
    (
        (f"archive/{YEAR}/areas/inbox/gone.html", *NEW),
        *(1, "ERR_INVALID_MEMORY", "is archived already and is not corrected"),
    ),
    (
        (A, "--title", "T", "--claim", "The relay limit is 12."),
        *(1, "ERR_INVALID_MEMORY", "says exactly this already"),
    ),
    (
        (A, "--title", "T", "--claim", "Another fact."),
        *(1, "ERR_DUPLICATE_CONTENT", f"{OTHER} holds the same content already"),
    ),
    ((A, "--title", " ", "--claim", "B."), 1, "ERR_INVALID_MEMORY", "the title is blank"),
]


@pytest.mark.parametrize(("words", "status", "code", "text"), FAILURES)
def test_a_failure_says_why_and_changes_nothing(
    still: str, words: tuple[str, ...], status: int, code: str, text: str
) -> None:
    before = state(still)
    done = memhtml("correct", "--repo", still, *words)
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (status, code), done.stdout
    assert text in done.envelope["error"]
    check_lines(done.envelope["suggestions"])
    assert state(still) == before


def test_a_missing_target_suggests_to_resolve_to_search_and_to_list(still: str) -> None:
    root = {"MEMHTML_ROOT": still}
    done = memhtml("correct", "areas/inbox/it's-gone.html", *NEW, env=root)
    assert done.envelope["suggestions"] == [
        "memhtml resolve 'areas/inbox/it'\"'\"'s-gone.html'",
        "memhtml search 'it s gone'",
        "memhtml list",
    ]
    done = memhtml("correct", *NEW, "--", "--dry-run", env=root)
    assert done.envelope["suggestions"][0] == "memhtml resolve /--dry-run"
    check_lines(done.envelope["suggestions"])


def test_a_bound_run_is_sent_to_its_session(still: str) -> None:
    done = memhtml("correct", env={"MEMHTML_ROOT": still, "MEMHTML_SESSION": "s1"})
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (2, "ERR_SESSION_BOUND")
