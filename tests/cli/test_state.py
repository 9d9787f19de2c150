"""`state export` and `state import` at the command line: whole envelopes and each way to fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import check_lines, here
from tests.support.command import memhtml
from tests.support.session import git, make_store, page

from memhtml.schema.envelope import validate_envelope

A = "areas/inbox/a.html"
FILE = ".memhtml/state/access.jsonl"
ENV = {"MEMHTML_EMBED": "off"}


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A store whose one record has been read once."""
    store = make_store(str(tmp_path / "store"), {A: page("Fact a.")})
    assert here("read", A, "--repo", store).status == 0
    return store


def test_what_was_exported_is_imported_into_a_clone(root: str, tmp_path: Path) -> None:
    exported = memhtml("state", "export", "--repo", root, env=ENV)
    assert (exported.status, exported.stderr) == (0, "")
    validate_envelope(exported.envelope)
    assert exported.envelope == {
        "apiVersion": "1",
        "type": "state.export",
        "data": {
            "path": FILE,
            "rows": 1,
            "bytes": Path(root, FILE).stat().st_size,
            "written": True,
            "commitSha": git(root, "rev-parse", "HEAD"),
        },
    }
    clone = str(tmp_path / "clone")
    git(root, "clone", "-q", root, clone)
    imported = memhtml("state", "import", "--repo", clone, env=ENV)
    assert (imported.status, imported.stderr) == (0, "")
    validate_envelope(imported.envelope)
    assert imported.envelope == {
        "apiVersion": "1",
        "type": "state.import",
        "data": {"path": FILE, "rows": 1, "restored": 1, "skipped": 0, "hasState": True},
    }
    again = memhtml("state", "export", "--repo", clone, env=ENV)
    assert (again.data["written"], again.data["commitSha"]) == (False, None)


def test_the_index_stands_at_the_commit_of_an_export(root: str) -> None:
    memhtml("index", "update", "--repo", root, env=ENV)
    memhtml("state", "export", "--repo", root, env=ENV)
    assert memhtml("status", "--repo", root, env=ENV).data["indexFresh"] is True


def test_a_damaged_state_names_the_import_and_the_import_works(root: str) -> None:
    memhtml("state", "export", "--repo", root, env=ENV)
    Path(root, ".memhtml/state.db").write_bytes(b"no database " * 500)
    ran = here("state", "export", "--repo", root)
    validate_envelope(ran.envelope)
    check_lines(ran.suggestions)
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    assert ran.envelope["error"].startswith("storage operation failed: state.open: ")
    assert ran.suggestions == [f"memhtml state import --repo {root}"]
    said = memhtml("state", "import", "--repo", root, env=ENV)
    assert (said.status, said.data["restored"], said.data["hasState"]) == (0, 1, True)
    (warning,) = said.stderr.splitlines()
    moved = warning.rpartition(" ")[2]
    assert Path(root, moved).read_bytes().startswith(b"no database")
    assert git(root, "status", "--porcelain") == ""


def test_a_file_that_cannot_be_written_is_a_state_write_failure(root: str) -> None:
    Path(root, FILE).mkdir()
    ran = here("state", "export", "--repo", root)
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    assert ran.envelope["error"] == f"storage operation failed: state.write: {FILE}"


def test_a_file_that_cannot_be_read_is_a_read_failure(root: str) -> None:
    Path(root, FILE).mkdir()
    ran = here("state", "import", "--repo", root)
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    error = f"storage operation failed: read: {FILE}: is no regular file"
    assert ran.envelope["error"] == error


@pytest.mark.parametrize("verb", ["export", "import"])
def test_a_root_that_is_no_store_is_refused(tmp_path: Path, verb: str) -> None:
    ran = here("state", verb, "--repo", str(tmp_path))
    assert (ran.status, ran.code) == (1, "ERR_GIT")
    assert list(tmp_path.iterdir()) == []
