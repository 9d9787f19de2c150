"""Violations of the write bar: shapes, sentences, which ones block (spec `write-bar` §2–3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

ViolationKind: TypeAlias = Literal[
    "format", "duplicate", "claim-edit", "reserved-path", "batch-cap", "write-bar"
]

BATCH_CAP = 200
"""Operations one commit holds at most (spec `write-bar` §4.2)."""

ALWAYS_BLOCKING: frozenset[str] = frozenset({"format", "write-bar", "batch-cap", "reserved-path"})
BOUND_BLOCKING: frozenset[str] = ALWAYS_BLOCKING | {"duplicate", "claim-edit"}


class Violation(NamedTuple):
    """One finding. Only the fields of its kind are set."""

    kind: ViolationKind
    path: str | None = None
    reasons: tuple[str, ...] = ()
    existing: str | None = None
    held: int | None = None
    cap: int | None = None


def encode(violation: Violation) -> dict[str, Any]:
    """The JSON object of spec `write-bar` §3."""
    kind = violation.kind
    if kind == "batch-cap":
        return {"kind": kind, "count": violation.held, "cap": violation.cap}
    shape: dict[str, Any] = {"kind": kind, "path": violation.path}
    if kind in ("format", "write-bar"):
        shape["reasons"] = list(violation.reasons)
    if kind == "duplicate":
        shape["existing"] = violation.existing
    return shape


def sentence(violation: Violation) -> str:
    """The sentence for people; starts with the path and holds the phrase callers search for."""
    kind, path = violation.kind, violation.path
    reasons = "; ".join(violation.reasons)
    if kind == "batch-cap":
        return (
            f"the session would hold {violation.held} operations, "
            f"and one commit holds at most {violation.cap}; commit what is there first"
        )
    if kind == "format":
        return f"{path}: {reasons}"
    if kind == "duplicate":
        return (
            f"{path}: duplicate of {violation.existing}; search first, "
            "then skip this fact or link to the record that states it"
        )
    if kind == "claim-edit":
        return (
            f"{path}: an active record holds this path, and a claim is never edited in place; "
            "write the new fact under its own title with a memhtml-supersedes link"
        )
    if kind == "reserved-path":
        return f"{path}: reserved path, no session writes it"
    return f"{path}: below the write bar: {reasons}"


def blocking(
    violations: Iterable[Violation], touched: Collection[str], *, run_bound: bool
) -> list[Violation]:
    """Those that refuse a put or block an exec (spec `write-bar` §2.1).

    A violation blocks when its kind does and its path is among `touched`, the paths of this call's
    own operations; `batch-cap` always blocks. A harvest never holds a reserved path, so the same
    rule serves both doors.
    """
    kinds = BOUND_BLOCKING if run_bound else ALWAYS_BLOCKING
    return [
        v for v in violations if v.kind in kinds and (v.kind == "batch-cap" or v.path in touched)
    ]
