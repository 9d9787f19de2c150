"""The walk of the write bar over a log (spec `write-bar` §3–5).

Order of the findings: the log's; within one operation reserved-path, then format, or duplicate or
claim-edit, then write-bar. After the walk come the edges that moves left dangling, then records
without an anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memhtml.bar.anchor import unanchored_at_the_end
from memhtml.bar.archive import judge_archive
from memhtml.bar.batch import Batch
from memhtml.bar.dangling import dangling_edges
from memhtml.bar.heads import judge_label, judge_link, judge_unlabel, judge_unlink
from memhtml.bar.move import judge_move
from memhtml.bar.places import misspelt
from memhtml.bar.put import judge_put
from memhtml.bar.readings import Readings
from memhtml.bar.reserved import reserved_paths
from memhtml.corpus.interface import Corpus
from memhtml.policy import Policy
from memhtml_format.ops import Op, Put
from memhtml_format.violations import BATCH_CAP, Violation

_RULES: dict[str, Callable[[Any, Batch], list[Violation]]] = {
    "put": judge_put,
    "link": judge_link,
    "unlink": judge_unlink,
    "label": judge_label,
    "unlabel": judge_unlabel,
    "archive": judge_archive,
    "move": judge_move,
}


REASONS_CAP = 50
"""Reasons that one violation lists; one more says how many there are besides."""
REASON_CHARS = 1_024
"""A longer reason is cut: it quotes what a file says, and files are large."""


def judge(
    ops: Sequence[Op],
    base: Corpus,
    policy: Policy,
    scope: str,
    *,
    readings: Readings | None = None,
    check: Callable[[], None] | None = None,
) -> list[Violation]:
    """Every violation of the whole log against the session's base; never raises on any log.

    `scope` is "session" or "curate" (§2.2). Hand the same `readings` to `compare` to parse no text
    twice. More operations than the cap are one `batch-cap` and nothing else is asked (§4.2).
    `check` is called before each operation, and what it raises goes through: a caller's deadline.
    """
    if len(ops) > BATCH_CAP:
        return [Violation("batch-cap", held=len(ops), cap=BATCH_CAP)]
    batch = Batch(ops, base, policy, scope, readings or Readings())
    found = walk(ops, batch, check)
    found.extend(dangling_edges(batch))
    found.extend(unanchored_at_the_end(batch))
    return [shortened(violation) for violation in found]


def shortened(violation: Violation) -> Violation:
    """The violation with no more and no longer reasons than a report can hold."""
    reasons = violation.reasons
    if len(reasons) <= REASONS_CAP and all(len(reason) <= REASON_CHARS for reason in reasons):
        return violation
    listed = [
        reason if len(reason) <= REASON_CHARS else f"{reason[:REASON_CHARS]}…"
        for reason in reasons[:REASONS_CAP]
    ]
    if len(reasons) > REASONS_CAP:
        listed.append(f"and {len(reasons) - REASONS_CAP} more reasons")
    return violation._replace(reasons=tuple(listed))


def walk(
    ops: Sequence[Op], batch: Batch, check: Callable[[], None] | None = None
) -> list[Violation]:
    """The findings of each operation in log order; `batch` is left as the log leaves it."""
    found: list[Violation] = []
    for op in ops:
        if check is not None:
            check()
        found.extend(reserved_paths(op, batch.scope))
        found.extend(_judge_one(op, batch))
    return found


def _judge_one(op: Op, batch: Batch) -> list[Violation]:
    wrong = [] if isinstance(op, Put) else misspelt(op)
    if wrong:
        return [Violation("format", op.path, tuple(wrong))]
    return _RULES[op.kind](op, batch)
