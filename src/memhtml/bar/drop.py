"""`--drop-refused`: take every operation out that touches a refused path (spec `write-bar` §9).

Steps 1 and 2 only; writing the shorter log, the trail and the next round are the commit's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memhtml_format.ops import Op, touched
from memhtml_format.violations import Violation, sentence


class Dropped(NamedTuple):
    """One operation taken out of the log; `reasons` are the sentences of its refused paths."""

    kind: str
    path: str
    reasons: tuple[str, ...]


def drop_refused(
    ops: Sequence[Op], violations: Sequence[Violation]
) -> tuple[list[Op], list[Dropped]]:
    """The operations that stay and those that go, both in log order.

    Good operations on a refused path go as well. Nothing goes when no violation names a path.
    """
    refused: dict[str, list[str]] = {}
    for violation in violations:
        if violation.path is not None:
            refused.setdefault(violation.path, []).append(sentence(violation))
    kept: list[Op] = []
    dropped: list[Dropped] = []
    for op in ops:
        reasons = [text for path in touched(op) for text in refused.get(path, ())]
        if reasons:
            dropped.append(Dropped(op.kind, op.path, tuple(dict.fromkeys(reasons))))
        else:
            kept.append(op)
    return kept, dropped
