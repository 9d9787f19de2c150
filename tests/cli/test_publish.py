"""`publish` as a caller meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import check_lines, here
from tests.support.command import Said, memhtml
from tests.support.health import indexed_store
from tests.support.session import git, page

from memhtml.schema.envelope import validate_envelope

A = "areas/inbox/a.html"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A store with one memory."""
    return indexed_store(str(tmp_path / "store"), {A: page("Fact a.")})


def call(root: str, *words: str, env: dict[str, str] | None = None) -> Said:
    """A `publish`; its envelope has the published shape, and its suggestions parse."""
    said = memhtml("publish", *words, "--repo", root, env={"MEMHTML_EMBED": "off", **(env or {})})
    validate_envelope(said.envelope)
    check_lines(said.envelope.get("suggestions", []))
    return said


def test_publish_writes_once_and_then_nothing(root: str) -> None:
    said = call(root)
    assert (said.status, said.stderr) == (0, "")
    assert said.envelope == {
        "apiVersion": "1",
        "type": "publish.report",
        "data": {
            "root": root,
            "artifacts": 7,
            "written": 7,
            "paths": [
                "archive/index.html",
                "areas/inbox/index.html",
                "areas/index.html",
                "index.html",
                "projects/index.html",
                "resources/index.html",
                "sitemap.xml",
            ],
            "commitSha": git(root, "rev-parse", "HEAD"),
        },
    }
    subject = "memhtml(publish): regenerate 7 generated artifacts"
    assert git(root, "log", "-1", "--format=%s") == subject
    again = call(root)
    assert again.data == {
        "root": root,
        "artifacts": 7,
        "written": 0,
        "paths": [],
        "commitSha": None,
    }
    assert git(root, "status", "--porcelain") == ""


def test_page_written_by_hand_is_told_on_standard_error(root: str) -> None:
    Path(root, "index.html").write_text("<h1>Mine</h1>")
    said = call(root)
    assert said.status == 0
    assert "index.html" not in said.data["paths"]
    assert "WARN: index.html was not generated" in said.stderr


def test_damaged_index_is_an_error_with_a_remedy(root: str) -> None:
    for side in Path(root, ".memhtml").glob("index.db-*"):
        side.unlink()
    Path(root, ".memhtml/index.db").write_bytes(b"damaged" * 1000)
    said = call(root)
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert "index.open" in said.envelope["error"]
    assert said.envelope["suggestions"] == [f"memhtml index rebuild --repo {root}"]
    assert not Path(root, "index.html").exists()


def test_disk_that_takes_no_page_is_a_write_failure(root: str) -> None:
    # Where a write notes what it is about to do.
    Path(root, ".memhtml/sessions").write_text("a file where a folder has to be")
    said = call(root)
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert "publish.write" in said.envelope["error"]
    assert git(root, "rev-list", "--count", "HEAD") == "2"
    assert not Path(root, "index.html").exists()


def test_root_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    said = call(str(tmp_path))
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code"), [(("--all",), "ERR_INVALID_FLAG"), (("areas",), "ERR_UNEXPECTED_ARGUMENT")]
)
def test_wrong_call_is_refused(root: str, words: tuple[str, ...], code: str) -> None:
    ran = here("publish", *words, "--repo", root)
    assert (ran.status, ran.code) == (2, code)
    assert ran.suggestions[-1] == "memhtml help publish"
