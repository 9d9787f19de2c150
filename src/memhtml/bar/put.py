"""put: format, then duplicate or claim-edit, then the store policy (spec `write-bar` §4.3, §5)."""

from __future__ import annotations

from memhtml.bar.anchor import ANCHOR_REASON, anchored
from memhtml.bar.batch import Batch
from memhtml.bar.places import misspelt, obstacle, put_problem
from memhtml_format.ops import Put
from memhtml_format.paths import is_archived
from memhtml_format.record import Record
from memhtml_format.violations import Violation

_TYPE_REASONS = {
    "episodic": "an episodic memory narrates one run, and runs belong in the trace index",
    "verdict": "a verdict is review output and not a memory",
}


def judge_put(op: Put, batch: Batch) -> list[Violation]:
    """The findings of one put; one without `format` is registered, whatever else it breaks."""
    reasons = [*_path_reasons(op, batch), *batch.readings.door_problems(op.html)]
    record = batch.readings.record(op.html)
    if reasons or record is None:
        return [Violation("format", op.path, tuple(reasons))]
    found = _occupied(op, record, batch)
    below = _policy_reasons(op, record, batch)
    if below:
        found.append(Violation("write-bar", op.path, tuple(below)))
    batch.put(op, record)
    return found


def _path_reasons(op: Put, batch: Batch) -> list[str]:
    wrong = misspelt(op)
    if wrong:
        return wrong
    problem = put_problem(op) or obstacle(op.path, batch)
    return [] if problem is None else [f"path: {problem}"]


def _occupied(op: Put, record: Record, batch: Batch) -> list[Violation]:
    """`duplicate` of a live record or of an earlier put, else `claim-edit` of what is there."""
    existing = batch.base.live_with_hash(record.content_hash)
    if existing is None:
        existing = batch.hashes.get(record.content_hash)
    if existing is not None:
        return [Violation("duplicate", op.path, existing=existing)]
    if op.path in batch.landed or batch.base.record(op.path) is not None:
        return [Violation("claim-edit", op.path)]
    return []


def _policy_reasons(op: Put, record: Record, batch: Batch) -> list[str]:
    """The configurable half, for puts outside `archive/` (§5.1, §5.2)."""
    if is_archived(op.path):
        return []
    policy, kind = batch.policy, record.memory_type
    reasons = []
    if kind in policy.refuse_types:
        reasons.append(_TYPE_REASONS.get(kind, f"the store's policy refuses the type {kind}"))
    if policy.require_anchor and not anchored(op.path, record.entities):
        reasons.append(ANCHOR_REASON)
    return reasons
