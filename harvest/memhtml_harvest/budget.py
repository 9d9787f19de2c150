"""What one harvest may take in all, so that no script decides how much memory its reader needs.

The caps of spec `harvest` §2.2 are for one file. Sparse files and hard links state far more bytes
than they take up in a run's upper layer, so the sum is bounded here.
"""

from __future__ import annotations

from memhtml_harvest.report import Refusal

HARVEST_BYTES_CAP = 64 << 20
"""Bytes that one harvest reads at most, by the sizes that the files state: an upper layer's."""

HEAD_OPS_CAP = 20_000
"""Links and entities that the head edits of one harvest change at most."""


class Budget:
    """What may still be taken. A file past it is rejected; smaller ones after it are not."""

    __slots__ = ("_bytes_cap", "_bytes_left", "_head_ops_left")

    def __init__(self, bytes_cap: int = HARVEST_BYTES_CAP) -> None:
        self._bytes_cap = bytes_cap
        self._bytes_left = bytes_cap
        self._head_ops_left = HEAD_OPS_CAP

    def take_file(self, size_bytes: int) -> Refusal | None:
        """Charge a file before it is read, or say why it cannot be taken any more."""
        if size_bytes > self._bytes_left:
            text = f"{size_bytes} bytes, and one harvest takes {self._bytes_cap} bytes in total"
            return Refusal("too-large", text)
        self._bytes_left -= size_bytes
        return None

    def take_head_ops(self, count: int) -> Refusal | None:
        """Charge the links and entities of a head edit."""
        if count > self._head_ops_left:
            text = f"{count} links and entities, and one harvest takes {HEAD_OPS_CAP} in total"
            return Refusal("too-large", text)
        self._head_ops_left -= count
        return None
