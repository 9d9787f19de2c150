"""What becomes of a batch: which drafts are written where, which are duplicates, which are refused.

Pure but for the questions it is given. Nothing is written here (spec `cli` §10 `apply`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from memhtml.doors.drafts import Prepared
from memhtml.doors.places import Places
from memhtml.doors.refusals import EXHAUSTED
from memhtml.errors import MemhtmlError, StorageError

Op: TypeAlias = "Prepared | MemhtmlError"
"""A draft that could be rendered, or why it is refused."""


class Placed(NamedTuple):
    """An op of the batch that is written: its place in the batch, and where it goes."""

    number: int
    path: str
    prepared: Prepared


class Plan(NamedTuple):
    """The outcome of a batch: one result an op in input order, and the ops that are written."""

    results: list[dict[str, Any]]
    placed: list[Placed]


def plan(
    ops: Sequence[Op],
    at: str,
    places: Places,
    holder: Callable[[str], str | None],
    *,
    atomic: bool,
) -> Plan:
    """Decide on every op at the instant `at`; `holder` names the active memory with an article.

    With `atomic` the first refused op ends the batch: the others are skipped, nothing is placed.
    Raises what `holder` raises, and `StorageError` when the checkout cannot be looked at.
    """
    results: list[dict[str, Any]] = []
    placed: list[Placed] = []
    batch: dict[str, str] = {}
    for index, op in enumerate(ops):
        try:
            if isinstance(op, MemhtmlError):
                raise op
            existing = _existing(op, batch, holder)
            path = places.find(op.draft, at) if existing is None else existing
        except MemhtmlError as refused:
            if not _concerns_one(refused):
                raise
            if atomic:
                return aborted(len(ops), index, refused)
            results.append(result(index, refused=refused))
            continue
        results.append(result(index, ok=True, path=path, existing=existing))
        if existing is None:
            placed.append(Placed(index, path, op))
            if not op.is_task:
                batch[op.content_hash] = path
    return Plan(results, placed)


def _existing(
    op: Prepared, batch: dict[str, str], holder: Callable[[str], str | None]
) -> str | None:
    """Where the article is already, in the store or earlier in the batch; a task has no twin."""
    if op.is_task:
        return None
    return batch.get(op.content_hash) or holder(op.content_hash)


def _concerns_one(error: MemhtmlError) -> bool:
    """Whether it refuses one op; trouble with the disk concerns the whole call."""
    return not isinstance(error, StorageError) or error.reason == EXHAUSTED


def aborted(count: int, index: int, refused: MemhtmlError) -> Plan:
    """An atomic batch whose op `index` was refused."""
    results = [result(each, skipped=True) for each in range(count)]
    results[index] = result(index, refused=refused)
    return Plan(results, [])


def result(
    index: int,
    *,
    ok: bool = False,
    path: str | None = None,
    existing: str | None = None,
    refused: MemhtmlError | None = None,
    skipped: bool = False,
) -> dict[str, Any]:
    """One entry of `results`; both reports are filled in afterwards."""
    return {
        "index": index,
        "ok": ok,
        "path": path,
        "deduped": existing is not None,
        "existing_path": existing,
        "code": None if refused is None else refused.code,
        "error": None if refused is None else str(refused),
        "skipped": skipped,
        "conflict": None,
        "near_duplicates": None,
    }


def summary(results: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many ops there were and what became of them."""
    counts = {"total": 0, "written": 0, "deduped": 0, "failed": 0, "skipped": 0}
    for each in results:
        counts["total"] += 1
        if each["skipped"]:
            counts["skipped"] += 1
        elif not each["ok"]:
            counts["failed"] += 1
        else:
            counts["deduped" if each["deduped"] else "written"] += 1
    return counts
