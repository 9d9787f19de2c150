"""`doctor` as a caller meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import check_lines, here
from tests.support.command import Said, memhtml
from tests.support.health import accessed, indexed_store
from tests.support.reads import link
from tests.support.session import git, page

from memhtml.schema.envelope import validate_envelope

A, B = "areas/inbox/a.html", "areas/inbox/b.html"
OFF = {"MEMHTML_EMBED": "off"}


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A store with one dangling link and one orphan access row."""
    files = {A: page("Fact a.", head=link("supports", B)), f"archive/2026/{B}": page("Fact b.")}
    return accessed(indexed_store(str(tmp_path / "store"), files), "areas/gone.html")


def call(root: str, *words: str, env: dict[str, str] | None = None) -> Said:
    """A `doctor`; its envelope has the published shape, and its suggestions parse."""
    said = memhtml("doctor", *words, "--repo", root, env={**OFF, **(env or {})})
    validate_envelope(said.envelope)
    lines = said.envelope.get("suggestions", [])
    check_lines([line for line in lines if line.startswith("memhtml")])
    return said


def test_doctor_reports_repairs_and_is_content(root: str) -> None:
    head = git(root, "rev-parse", "HEAD")
    edge = {"srcPath": A, "rel": "supports", "dstPath": B, "rewriteTo": f"archive/2026/{B}"}
    found = {
        "root": root,
        "healthy": False,
        "dangling": [edge],
        "orphanAccessRows": ["areas/gone.html"],
        "inboxDepth": 1,
        "inboxCrowded": False,
        "inboxTaskDepth": 0,
        "inboxTasksCrowded": False,
        "overdueTasks": [],
        "staleBlockers": [],
        "untypedEntities": [],
        "untypedEntityTotal": 0,
        "warnings": [],
        "unparseable": [],
        "supersededLive": [],
        "indexFresh": True,
        "indexHeadSha": head,
        "headSha": head,
        "embedModelMatches": True,
        "storedEmbedModel": None,
        "configuredEmbedModel": None,
        "vectorCoverage": 0,
        "vectorCoverageFloor": 0.95,
        "vectorCoverageLow": False,
        "vectorCoverageRemedy": None,
        "chunks": 2,
        "embeddings": 0,
        "dirty": [],
        "policy": {"ok": True, "error": None},
        "hooks": {"ok": True, "error": None},
        "repaired": None,
    }
    said = call(root)
    assert (said.status, said.stderr) == (0, "")
    assert said.envelope == {"apiVersion": "1", "type": "doctor.report", "data": found}
    fixed = call(root, "--fix")
    repaired = {
        "rewritten": 1,
        "dropped": 0,
        "failedWrites": [],
        "prunedAccessRows": 1,
        "commitSha": git(root, "rev-parse", "HEAD"),
    }
    assert (fixed.status, fixed.data) == (0, {**found, "repaired": repaired})
    assert git(root, "log", "-1", "--format=%s") == "memhtml(link): repair 1 dangling links"
    assert git(root, "rev-parse", "HEAD~1") == head
    assert call(root).data["healthy"] is True


@pytest.mark.parametrize(
    ("name", "reason", "suggestion"),
    [
        ("index.db", "index.open", "memhtml index rebuild"),
        ("state.db", "state.open", "memhtml state import"),
    ],
)
def test_damaged_database_is_an_error_with_a_remedy(
    root: str, name: str, reason: str, suggestion: str
) -> None:
    for side in Path(root, ".memhtml").glob(f"{name}-*"):
        side.unlink()
    Path(root, ".memhtml", name).write_bytes(b"damaged" * 1000)
    said = call(root, "--fix")
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert f"storage operation failed: {reason}" in said.envelope["error"]
    assert said.envelope["suggestions"][0].startswith(suggestion)


def test_bad_variable_is_a_usage_error(root: str) -> None:
    for name in ("MEMHTML_EMBED", "MEMHTML_VECTOR_COVERAGE_FLOOR"):
        said = call(root, env={name: "bogus"})
        assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
        assert name in said.envelope["error"]


def test_root_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    said = call(str(tmp_path))
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")
    assert said.envelope["suggestions"] == [f"memhtml init --repo {tmp_path}"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--fix=perhaps",), "ERR_INVALID_FLAG"),
        (("--all",), "ERR_INVALID_FLAG"),
        (("now",), "ERR_UNEXPECTED_ARGUMENT"),
    ],
)
def test_wrong_call_is_refused(root: str, words: tuple[str, ...], code: str) -> None:
    ran = here("doctor", *words, "--repo", root)
    assert (ran.status, ran.code) == (2, code)
    assert ran.suggestions[-1] == "memhtml help doctor"
