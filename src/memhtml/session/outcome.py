"""What a commit answers: one of four kinds and its fields (spec `sessions` §9.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from memhtml_format.violations import Violation, encode

Kind = Literal["committed", "rebase-needed", "refused", "worktree-dirty"]


class Outcome(NamedTuple):
    """The `kind` to branch on and the payload fields that belong to it."""

    kind: Kind
    fields: dict[str, Any]
    violations: tuple[Violation, ...] = ()
    recovered: bool = False


def refused(violations: Sequence[Violation]) -> Outcome:
    """An operation breaks a rule, or the log is empty."""
    return Outcome("refused", {"violations": [encode(v) for v in violations]}, tuple(violations))


def rebase_needed(main_sha: str, overlapping: Sequence[str]) -> Outcome:
    """The ref moved past the base."""
    return Outcome("rebase-needed", {"mainSha": main_sha, "overlapping": sorted(overlapping)})


def worktree_dirty(paths: Sequence[str]) -> Outcome:
    """Uncommitted state sits at paths the commit writes."""
    return Outcome("worktree-dirty", {"paths": sorted(paths)})


def committed(
    sha: str,
    paths: Sequence[str],
    *,
    contradictions: Sequence[dict[str, Any]] = (),
    restatements: Sequence[dict[str, Any]] = (),
    worktree_synced: bool,
    recovered: bool = False,
) -> Outcome:
    """The log landed."""
    fields = {
        "sha": sha,
        "paths": sorted(set(paths)),
        "contradictions": list(contradictions),
        "restatements": list(restatements),
        "worktreeSynced": worktree_synced,
        "recovered": recovered,
    }
    return Outcome("committed", fields, recovered=recovered)
