"""archive: a live record goes to its year's first free slot (spec `write-bar` §4.6)."""

from __future__ import annotations

from memhtml.bar.batch import Batch, Head, why_not_live
from memhtml.bar.places import obstacle
from memhtml_format.ops import Archive, Move
from memhtml_format.paths import archive_path, archive_slot
from memhtml_format.violations import Violation


def judge_archive(op: Archive, batch: Batch) -> list[Violation]:
    """All failures are one `format` violation at the source."""
    head = batch.live(op.path)
    reasons = [*_source_reasons(op, head, batch), *_slot_reasons(op, batch)]
    reasons.extend(article_reasons(op, head, batch))
    if reasons:
        return [Violation("format", op.path, tuple(reasons))]
    batch.archive(op)
    return []


def article_reasons(op: Archive | Move, head: Head | None, batch: Batch) -> list[str]:
    """`html` parses and names the article the source has now; the door rule P4 is not asked."""
    reasons = [f"html: {problem}" for problem in batch.readings.problems(op.html)]
    if head is not None and batch.readings.content_hash(op.html) != head.content_hash:
        reasons.append("html: holds another article than the source")
    return reasons


def _source_reasons(op: Archive, head: Head | None, batch: Batch) -> list[str]:
    if head is None:
        return [why_not_live(batch, op.path)]
    if head.origin == "move":
        return ["a record moved here by this batch is archived in the next session"]
    return []


def _slot_reasons(op: Archive, batch: Batch) -> list[str]:
    slot = archive_slot(op.to)
    if slot is None or slot.original != op.path:
        return [f"{op.to} is no archive slot of this path; one is archive/<YYYY>/{op.path}"]
    free = _first_free(op.path, slot.year, batch)
    if op.to != free:
        why = "is held" if batch.held(op.to) else "skips a free slot"
        return [f"{op.to} {why}; the first free slot of {slot.year:04d} is {free}"]
    blocked = obstacle(op.to, batch)
    return [] if blocked is None else [f"archive destination: {blocked}"]


def _first_free(path: str, year: int, batch: Batch) -> str:
    """The lowest slot that no record of the base and no earlier operation has."""
    slot = 1
    while batch.held(archive_path(path, year, slot)):
        slot += 1
    return archive_path(path, year, slot)
