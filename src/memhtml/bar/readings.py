"""Each HTML text of a batch parsed once (spec `format` §3.6–3.7).

The same text is asked about by several rules (constraints, hash, type, links), and a commit asks
again when it compares claims. Held for one call; nothing is kept between calls.
"""

from __future__ import annotations

from memhtml_format.record import Reading, Record

WHOLE_CHARS = 4 << 20
"""How much HTML may be held with all its texts."""


class Readings:
    """A cache of what `memhtml_format.record` says about HTML texts."""

    __slots__ = ("_doors", "_hashes", "_readings", "_whole_chars", "whole")

    def __init__(self) -> None:
        self.whole: dict[str, Record] = {}
        """Records with all their texts by the blob of their bytes, as far as a few MiB hold them;
        their `path` is meaningless. A commit indexes them without reading its files again."""
        self._whole_chars = 0
        self._readings: dict[str, Reading] = {}
        self._hashes: dict[str, str | None] = {}
        self._doors: dict[str, tuple[str, ...]] = {}

    def problems(self, html: str) -> tuple[str, ...]:
        """The constraints of spec `format` §3.6 that the text breaks, as sentences."""
        return tuple(problem.text for problem in self._reading(html).problems)

    def door_problems(self, html: str) -> tuple[str, ...]:
        """`problems`, then what the door rule P4 refuses in newly written files (§3.7)."""
        found = self._doors.get(html)
        if found is None:
            from memhtml_format.record import read_at_door

            reading, active = read_at_door("", _bytes(html))
            self._readings.setdefault(html, self._slim(html, reading))
            found = self._doors[html] = tuple(p.text for p in (*reading.problems, *active))
        return found

    def record(self, html: str) -> Record | None:
        """What the text says, None when it breaks a constraint.

        Its `path` is meaningless, and claim, body and disclosure are left out (see `whole`).
        """
        return self._reading(html).record

    def content_hash(self, html: str) -> str | None:
        """The article's hash, also of a text that breaks a constraint."""
        record = self.record(html)
        if record is not None:
            return record.content_hash
        if html not in self._hashes:
            from memhtml_format.record import content_hash

            self._hashes[html] = content_hash(_bytes(html))
        return self._hashes[html]

    def _reading(self, html: str) -> Reading:
        found = self._readings.get(html)
        if found is None:
            from memhtml_format.record import read

            found = self._readings[html] = self._slim(html, read("", _bytes(html)))
        return found

    def _slim(self, html: str, reading: Reading) -> Reading:
        """The reading without the long texts no rule asks for: a batch may hold 64 MiB of HTML."""
        record = reading.record
        if record is None:
            return reading
        if self._whole_chars + len(html) <= WHOLE_CHARS:
            self._whole_chars += len(html)
            self.whole[record.blob_sha] = record
        slim = record._replace(claim="", body_text="", disclosure_text="")
        return reading._replace(record=slim)


def _bytes(html: str) -> bytes:
    """UTF-8; a lone surrogate becomes bytes that are none, which the reader reports."""
    return html.encode("utf-8", "surrogatepass")
