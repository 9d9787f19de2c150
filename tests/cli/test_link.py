"""`link` at the command line: whole envelopes (spec `cli` §10 `link`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import check_lines
from tests.support.command import memhtml
from tests.support.doors import detail, draft, head, put, said, state
from tests.support.session import make_store

from memhtml.doors.archive import archive
from memhtml.schema.envelope import validate_envelope

A, B, T = "areas/inbox/a.html", "areas/inbox/b.html", "areas/inbox/tasks/t.html"


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store for calls that change nothing."""
    root = make_store(str(tmp_path_factory.mktemp("link") / "store"))
    put(root, draft("A", "A."), draft("B", "B."), draft("T", "T.", "task"), draft("C", "C."))
    archive(root, "areas/inbox/c.html", "gone")
    return root


def test_a_link_is_one_commit_and_a_second_call_is_none(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    put(root, draft("A", "A."), draft("B", "B."))
    # In a bound run as well: link is no door that a policy closes.
    env = {"MEMHTML_EMBED": "off", "MEMHTML_SESSION": "s1", "MEMHTML_ROOT": root}
    done = memhtml("link", A, "laterally_related", f"/{B}", env=env)
    assert (done.status, done.stderr) == (0, "")
    validate_envelope(done.envelope)
    expected = {
        "apiVersion": "1",
        "type": "memory.linked",
        "data": {
            "commitSha": head(root),
            "srcPath": A,
            "dstPath": B,
            "rel": "laterally_related",
        },
    }
    assert done.envelope == expected
    assert said(root) == f"memhtml(link): laterally_related {A} -> {B}"
    assert [tuple(each) for each in detail(root, A).record.links] == [
        ("laterally_related", f"/{B}")
    ]
    again = memhtml("link", A, "laterally_related", B, env=env)
    validate_envelope(again.envelope)
    assert again.data == {**done.data, "commitSha": None}


@pytest.mark.parametrize(
    ("words", "status", "code", "text"),
    [
        ((A, "supports"), 2, "ERR_MISSING_ARGUMENT", "link needs <dst>"),
        ((A, "supports", B, "x"), 2, "ERR_UNEXPECTED_ARGUMENT", "'x'"),
        ((A, "relates-to", B), 1, "ERR_INVALID_MEMORY", "'relates-to' is no rel"),
        ((A, "blocks", B), 1, "ERR_INVALID_MEMORY", "blocks links a task to a task"),
        ((A, "supports", T), 1, "ERR_INVALID_MEMORY", f"supports links no tasks, and {T} is one"),
        ((A, "supports", A), 1, "ERR_INVALID_MEMORY", f"{A} cannot be linked to itself"),
        ((A, "supports", "areas/none.html"), 1, "ERR_PATH_NOT_FOUND", "areas/none.html"),
        (("areas/none.html", "supports", B), 1, "ERR_PATH_NOT_FOUND", "areas/none.html"),
    ],
)
def test_a_failure_says_why_and_changes_nothing(
    still: str, words: tuple[str, ...], status: int, code: str, text: str
) -> None:
    before = state(still)
    done = memhtml("link", "--repo", still, *words)
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (status, code), done.stdout
    assert text in done.envelope["error"]
    check_lines(done.envelope["suggestions"])
    assert state(still) == before


def test_an_archived_source_is_refused(still: str) -> None:
    [slot] = [str(path) for path in Path(still, "archive").rglob("*.html")]
    path = slot.removeprefix(f"{still}/")
    done = memhtml("link", "--repo", still, path, "supports", B)
    assert (done.status, done.envelope["code"]) == (1, "ERR_INVALID_MEMORY")
    assert "is archived already and states no new links" in done.envelope["error"]
