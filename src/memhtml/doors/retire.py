"""Retiring a memory: its archive slot and the stamps of an automatic archive (`format` §2.6, §7.1).

Shared by `archive`, `correct` and `task status … done`. Nothing is ever deleted or overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from memhtml_format import paths

Metas = list[tuple[str, str]]


def free_slot(path: str, at: str, held: Callable[[str], bool]) -> str:
    """The first free archive slot of the year of the instant `at`.

    `held` says whether the working tree or the last commit has anything at a path.
    """
    year = int(at[:4])
    slots = (paths.archive_path(path, year, slot) for slot in count(1))
    return next(slot for slot in slots if not held(slot))


def archive_stamps(at: str) -> Metas:
    """The metas of a memory that is retired at `at`."""
    return [("status", "archived"), ("updated", at), ("archived", at)]


def superseded_stamps(at: str, by_href: str, until: str, known_until: str | None) -> Metas:
    """The metas of a memory that another one replaces.

    It held until the instant `until`, or until `known_until` when that is stated and earlier.
    """
    ended = until if known_until is None else min(until, known_until)
    return [*archive_stamps(at), ("valid-until", ended), ("superseded-by", by_href)]
