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


def judge(
    ops: Sequence[Op],
    base: Corpus,
    policy: Policy,
    scope: str,
    *,
    readings: Readings | None = None,
) -> list[Violation]:
    """Every violation of the whole log against the session's base; never raises on any log.

    `scope` is "session" or "curate" (§2.2). Hand the same `readings` to `compare` to parse no text
    twice. More operations than the cap are one `batch-cap` and nothing else is asked (§4.2).
    """
    if len(ops) > BATCH_CAP:
        return [Violation("batch-cap", held=len(ops), cap=BATCH_CAP)]
    batch = Batch(ops, base, policy, scope, readings or Readings())
    found = walk(ops, batch)
    found.extend(dangling_edges(batch))
    found.extend(unanchored_at_the_end(batch))
    return found


def walk(ops: Sequence[Op], batch: Batch) -> list[Violation]:
    """The findings of each operation in log order; `batch` is left as the log leaves it."""
    found: list[Violation] = []
    for op in ops:
        found.extend(reserved_paths(op, batch.scope))
        found.extend(_judge_one(op, batch))
    return found


def _judge_one(op: Op, batch: Batch) -> list[Violation]:
    wrong = [] if isinstance(op, Put) else misspelt(op)
    if wrong:
        return [Violation("format", op.path, tuple(wrong))]
    return _RULES[op.kind](op, batch)
