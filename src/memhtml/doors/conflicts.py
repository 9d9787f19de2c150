"""`apply --detect-conflicts`: who claims another value for the same frame (spec `retrieval` §17).

A report only: it never changes what is written, and a look-up that fails is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from memhtml_format.frame import values_agree


class Claim(NamedTuple):
    """What one claim puts into its frame, and where it is: at a path, or earlier in the batch."""

    value: str
    claim: str
    path: str | None = None
    batch_index: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The `conflict` of a result."""
        return {"path": self.path, "batch_index": self.batch_index, "claim": self.claim}


class _Slot:
    """The claims of one frame, in order, as far as they can matter: of two values the first each.

    Whatever value is asked about, the first claim that differs from it is one of these.
    """

    __slots__ = ("first", "other")

    def __init__(self) -> None:
        self.first: Claim | None = None
        self.other: Claim | None = None

    def add(self, claim: Claim) -> None:
        if self.first is None:
            self.first = claim
        elif self.other is None and not values_agree(self.first.value, claim.value):
            self.other = claim

    def against(self, value: str) -> Claim | None:
        if self.first is None or not values_agree(self.first.value, value):
            return self.first
        return self.other


class Conflicts:
    """The claims of a batch as they come. `stored` gives a frame's active claims, lowest first."""

    def __init__(self, stored: Callable[[str], Sequence[Claim]]) -> None:
        self._stored = stored
        self._slots: dict[str, tuple[_Slot, _Slot]] = {}

    def check(self, index: int, key: str, value: str, claim: str) -> Claim | None:
        """The conflict of the batch's op `index`, which earlier ones are then known by.

        A stored one goes before one of the batch. Raises what `stored` raises.
        """
        if key not in self._slots:
            self._slots[key] = (_Slot(), _Slot())
            for each in self._stored(key):
                self._slots[key][0].add(each)
        stored, batch = self._slots[key]
        found = stored.against(value) or batch.against(value)
        batch.add(Claim(value, claim, batch_index=index))
        return found
