"""The shared harvest cases: read them, and compare a run with what a case expects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"


def shared_cases(name: str) -> list[dict[str, Any]]:
    """The cases of one shared file, none when `shared/` is not beside the project."""
    path = SHARED / name
    if not path.is_file():
        return []
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def parameters(name: str) -> list[Any]:
    """pytest parameters, one a case; one visible skip when there are none."""
    cases = shared_cases(name)
    if not cases:
        skip = pytest.mark.skip(reason="the shared cases are not here")
        return [pytest.param({}, id=f"no-{name}", marks=skip)]
    return [pytest.param(case, id=case["name"]) for case in cases]


def seed_of(case: Mapping[str, Any]) -> dict[str, str]:
    """The committed records."""
    return {item["path"]: item["html"] for item in case["seed"]}


def without_html(ops: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Operations as the cases list them."""
    return [{key: value for key, value in op.items() if key != "html"} for op in ops]


def codes(rejected: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Rejections with the code alone for a reason."""
    return [{"path": r["path"], "reason": r["reason"].partition(":")[0]} for r in rejected]


def kinds(violations: Iterable[Mapping[str, Any]]) -> list[str]:
    """Violation kinds, sorted, for a comparison as multisets."""
    return sorted(v["kind"] for v in violations)


def check(
    case: Mapping[str, Any], got: Mapping[str, Any], ops: Sequence[Mapping[str, str]]
) -> None:
    """Compare a report and its whole operations with everything the case expects but a commit."""
    expect = case["expect"]
    for field in ("exitCode", "timedOut", "appended"):
        assert got[field] == expect[field], field
    listed = without_html(ops)
    if "harvested" in expect:
        assert listed == expect["harvested"]
    if "harvestedCount" in expect:
        assert len(listed) == expect["harvestedCount"]
    for kind, count in expect.get("harvestedKinds", {}).items():
        assert sum(op["kind"] == kind for op in listed) == count
    if "rejected" in expect:
        assert codes(got["rejected"]) == expect["rejected"]
    if "violations" in expect:
        assert kinds(got["violations"]) == sorted(expect["violations"])
    if "blocking" in expect:
        assert len(got["blocking"]) == len(expect["blocking"]), got["blocking"]
    for text in expect.get("blockingMentions", ()):
        assert any(text in sentence for sentence in got["blocking"]), text
    if "stdout" in expect:
        assert got["stdout"] == expect["stdout"]
    if "stdoutMaxBytes" in expect:
        assert len(got["stdout"].encode()) <= expect["stdoutMaxBytes"]
