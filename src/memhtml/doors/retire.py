"""Retiring a memory: its archive slot and the stamps of an automatic archive (`format` §2.6, §7.1).

Shared by `archive`, `correct` and `task status … done`. Nothing is ever deleted or overwritten.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from memhtml.errors import StorageError
from memhtml_format import paths

if TYPE_CHECKING:
    from memhtml.store.land import Landing

ARCHIVE = "archive"
Metas = list[tuple[str, str]]


def free_slot(path: str, at: str, land: Landing) -> str:
    """The first slot of the year of the instant `at` that is free in working tree and last commit.

    Raises `StorageError` `write` when the archive can be no folder.
    """
    year = int(at[:4])
    slots = (paths.archive_path(path, year, slot) for slot in count(1))
    if land.blocker(paths.archive_path(path, year)) == ARCHIVE:
        raise StorageError("write", f"{ARCHIVE} is in the way: it is no folder")
    return next(slot for slot in slots if not land.held(slot))


def archive_stamps(at: str) -> Metas:
    """The metas of a memory that is retired at `at`."""
    return [("status", "archived"), ("updated", at), ("archived", at)]


def superseded_stamps(at: str, by_href: str, until: str, known_until: str | None) -> Metas:
    """The metas of a memory that another one replaces.

    It held until the instant `until`, or until `known_until` when that is stated and earlier.
    """
    ended = until if known_until is None else min(until, known_until)
    return [*archive_stamps(at), ("valid-until", ended), ("superseded-by", by_href)]
