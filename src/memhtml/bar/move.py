"""move: a live record goes to a new live path, bytes unchanged (spec `write-bar` §4.7)."""

from __future__ import annotations

from memhtml.bar.archive import article_reasons
from memhtml.bar.batch import Batch, Head, why_not_live
from memhtml.bar.places import obstacle
from memhtml_format.ops import Move
from memhtml_format.paths import is_archived
from memhtml_format.paths import problem as path_problem
from memhtml_format.violations import Violation


def judge_move(op: Move, batch: Batch) -> list[Violation]:
    """All failures are one `format` violation at the source."""
    head = batch.live(op.path)
    reasons = _source_reasons(op, head, batch)
    problem = _destination_problem(op, batch)
    if problem is not None:
        reasons.append(f"move destination: {problem}")
    reasons.extend(article_reasons(op, head, batch))
    if reasons:
        return [Violation("format", op.path, tuple(reasons))]
    batch.move(op)
    return []


def _source_reasons(op: Move, head: Head | None, batch: Batch) -> list[str]:
    if head is None:
        return [why_not_live(batch, op.path)]
    if head.origin == "put":
        return ["this batch put the file here, and only a record of the base moves"]
    if head.origin == "move":
        return ["its record was moved here earlier in this batch"]
    return []


def _destination_problem(op: Move, batch: Batch) -> str | None:
    problem = path_problem(op.to)
    if problem is not None:
        return problem
    if is_archived(op.to):
        return "is under archive/; retire the record with an archive"
    if op.to == op.path:
        return "is the source itself"
    if op.to in batch.written:
        return f"{op.to} was written earlier in this batch"
    if batch.base.record(op.to) is not None:
        return f"{op.to} holds a record already"
    return obstacle(op.to, batch)
