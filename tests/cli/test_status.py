"""`status` at the command line: whole envelopes, for success and for each way to fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import check_lines, here
from tests.support.command import memhtml
from tests.support.session import git, make_store, page

from memhtml.schema.envelope import validate_envelope

A = "areas/inbox/a.html"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A store of one record that nothing has indexed."""
    return make_store(str(tmp_path / "store"), {A: page("Fact a.")})


def test_status_answers_every_field_and_warns_of_a_stale_index(root: str) -> None:
    Path(root, "notes.txt").write_text("mine")
    said = memhtml("status", "--repo", root, env={"MEMHTML_EMBED": "off"})
    assert said.status == 0
    validate_envelope(said.envelope)
    head = git(root, "rev-parse", "HEAD")
    assert said.envelope == {
        "apiVersion": "1",
        "type": "status.health",
        "data": {
            "root": root,
            "headSha": head,
            "dirty": True,
            "dirtyPaths": ["notes.txt"],
            "countsByType": {},
            "archivedCount": 0,
            "edges": 0,
            "derivedEdges": 0,
            "chunks": 0,
            "embeddings": 0,
            "traces": 0,
            "indexFresh": False,
            "indexHeadSha": None,
            "embedModel": None,
            "embedderUp": False,
            "vectorCoverage": 1,
            "vectorCoverageFloor": 0.95,
            "hasState": True,
        },
    }
    (warning,) = said.stderr.splitlines()
    assert warning.endswith("run `memhtml index update`")
    assert " WARN: " in warning


@pytest.mark.parametrize(
    ("name", "reason", "remedy"),
    [
        ("index.db", "index.open", "memhtml index rebuild"),
        ("state.db", "state.open", "memhtml state import"),
    ],
)
def test_a_damaged_database_names_its_remedy(
    root: str, name: str, reason: str, remedy: str
) -> None:
    Path(root, ".memhtml", name).write_bytes(b"no database " * 500)
    ran = here("status", "--repo", root)
    validate_envelope(ran.envelope)
    check_lines(ran.suggestions)
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    assert ran.envelope["error"].startswith(f"storage operation failed: {reason}: ")
    assert ran.suggestions == [f"{remedy} --repo {root}"]


def test_a_root_that_is_no_store_is_refused(tmp_path: Path) -> None:
    ran = here("status", "--repo", str(tmp_path))
    assert (ran.status, ran.code) == (1, "ERR_GIT")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_embedder_variable_is_named(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "cloud")
    ran = here("status", "--repo", root)
    assert (ran.status, ran.code) == (2, "ERR_INVALID_FLAG")
    assert "MEMHTML_EMBED" in ran.envelope["error"]
