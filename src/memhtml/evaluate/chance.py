"""A stream of choices that a number decides: the same everywhere, on every version of Python.

`random` promises that for its floats alone, and not for what is drawn from a list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


class Chance:
    """Draws from the SHA-256 of a seed and a counter."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1; `bound` is at least 1."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._seed}:{self._drawn}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % bound

    def pick(self, items: Sequence[_Item]) -> _Item:
        """One of the items."""
        return items[self.below(len(items))]

    def percent(self, share: int) -> bool:
        """True in `share` of 100 draws."""
        return self.below(100) < share
