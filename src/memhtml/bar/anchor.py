"""requireAnchor: a record says what it is about (spec `write-bar` §5.2).

Puts are judged by their own bytes in `put`; records that a move or an `unlabel` touched are judged
here, as they stand at the end of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from memhtml.bar.batch import Batch
from memhtml_format.text import is_blank
from memhtml_format.violations import Violation

ANCHOR_REASON = (
    "it names nothing it is about: give it a memhtml-entity (a meta in the head, the entity field "
    "of a write line, or a label operation), or write it under projects/<slug>/"
)


def anchored(path: str, entities: Iterable[str]) -> bool:
    """Whether one entity value is not blank, or the path is below a folder of `projects/`."""
    return _in_project(path) or any(not is_blank(value) for value in entities)


def unanchored_at_the_end(batch: Batch) -> list[Violation]:
    """`write-bar` for moved records at their destinations, then for unlabelled ones."""
    if not batch.policy.require_anchor:
        return []
    moved = [to for to in batch.moves.values() if _still_moved(batch, to)]
    at_home = [path for path in batch.unlabelled if path not in moved]
    return [
        Violation("write-bar", path, (ANCHOR_REASON,))
        for path in (*moved, *at_home)
        if not _anchored_now(batch, path)
    ]


def _in_project(path: str) -> bool:
    return path.startswith("projects/") and path.count("/") >= 2


def _still_moved(batch: Batch, path: str) -> bool:
    """A later put at the destination was judged by itself."""
    head = batch.live(path)
    return head is not None and head.origin == "move"


def _anchored_now(batch: Batch, path: str) -> bool:
    """A record that left is judged nowhere, or where it moved to."""
    head = batch.live(path)
    return head is None or anchored(path, head.entities)
