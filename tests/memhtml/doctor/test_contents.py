"""What files themselves say is wrong, each read as the working tree has it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.session import git, make_store, page

from memhtml.doctor.contents import FileFindings, read_all
from memhtml.store.repo import Repo
from memhtml.store.worktree import WorkTree

A, OLD = "areas/inbox/a.html", "archive/2026/areas/inbox/old.html"
ODD = page("A <blink>fact</blink>.")
FRAMED = page("A fact.").replace("</head>", '<link rel="stylesheet" href="/x.css">\n</head>')


def read(root: str, dirty: Sequence[str] = ()) -> FileFindings:
    """Everything at HEAD, and `dirty` from the disk."""
    with closing(Repo(root)) as repo, WorkTree(root) as files:
        return read_all(repo, files, git(root, "rev-parse", "HEAD"), dirty)


def test_warnings_are_of_active_files_in_path_order(tmp_path: Path) -> None:
    files = {"resources/z.html": ODD, A: ODD, OLD: ODD, "areas/fine.html": page("Fine.")}
    found = read(make_store(str(tmp_path), files))
    said = ["blink is outside the element vocabulary"]
    assert found.warnings == [
        {"path": A, "warnings": said},
        {"path": "resources/z.html", "warnings": said},
    ]
    assert found.unparseable == []


def test_active_content_is_a_warning_wherever_it_lies(tmp_path: Path) -> None:
    found = read(make_store(str(tmp_path), {A: FRAMED, OLD: FRAMED}))
    assert [entry["path"] for entry in found.warnings] == [OLD, A]
    assert all("stylesheet" in entry["warnings"][0] for entry in found.warnings)


def test_file_that_is_no_memory_is_unparseable_and_other_files_are_not_asked(
    tmp_path: Path,
) -> None:
    others = {
        "areas/inbox/index.html": "<p>listing</p>",
        "areas/notes.txt": "text",
        "elsewhere/x.html": "<p>no memory</p>",
    }
    broken = "<p>no memory</p>"
    root = make_store(str(tmp_path), {A: broken, "areas/b.html": page("B."), **others})
    Path(root, "areas/link.html").symlink_to("b.html")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a link")
    assert read(root).unparseable == [A]


def test_edited_file_is_read_from_the_disk(tmp_path: Path) -> None:
    gone, new = "areas/gone.html", "areas/new.html"
    root = make_store(str(tmp_path), {A: page("A."), gone: ODD, "areas/b.html": page("B.")})
    Path(root, A).write_text("<p>half an edit</p>")
    Path(root, new).write_text(ODD)
    Path(root, gone).unlink()
    found = read(root, [A, new, gone, "README.html"])
    assert found.unparseable == [A]
    assert [entry["path"] for entry in found.warnings] == [new]


def test_bytes_that_are_no_text_are_told_apart_from_an_exception(tmp_path: Path) -> None:
    root = make_store(str(tmp_path), {A: page("A.")})
    Path(root, A).write_bytes(b"\xff\xfe\x00")
    assert read(root, [A]).unparseable == [A]


def test_store_without_a_commit_has_nothing_to_read(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    with closing(Repo(str(tmp_path))) as repo, WorkTree(str(tmp_path)) as files:
        assert read_all(repo, files, None, []) == FileFindings([], [])


def test_file_that_cannot_be_read_is_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_store(str(tmp_path), {A: page("A.")})

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied", A)

    monkeypatch.setattr(WorkTree, "read", refuse)
    with pytest.raises(PermissionError):
        read(root, [A])
