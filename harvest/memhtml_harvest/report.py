"""The outcome of a harvest: operations in their fixed order, and everything that became none.

Owns the reason codes and the two orders of spec `harvest` §3.2 and §3.6. It decides nothing: the
other modules file their findings here, and `finish` sorts them.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Literal, NamedTuple, TypeAlias, get_args

from memhtml_format import paths
from memhtml_format.ops import Archive, Move, Op, Put

Code: TypeAlias = Literal[
    "git-internal",
    "not-a-regular-file",
    "not-html",
    "reserved-path",
    "not-a-memory-path",
    "path-under-record",
    "too-large",
    "not-utf8",
    "unreadable",
    "archived-record",
    "head-edit",
    "twin-differs",
    "deleted",
]

CODES: tuple[Code, ...] = get_args(Code)

REJECTED_CAP = 1_000
"""Rejections that are listed one by one; one more stands for the rest."""
SHOWN_PATH_CHARS = 1_024
"""A longer name is cut in `rejected`. No memory path that git can commit is near it."""
SHOWN_REASON_CHARS = 4_096
"""A longer explanation is cut."""


class Rejected(NamedTuple):
    """A change that is no operation; `reason` is `<code>: <explanation>`. Both may be cut."""

    path: str
    reason: str

    @property
    def code(self) -> str:
        """The part of the reason that callers may branch on."""
        return code_of(self.reason)


class Harvest(NamedTuple):
    """What one tree of changes means, in the orders of spec `harvest` §3.6.

    `rejected` lists the first 1,000 changes, and as its last entry the next one, whose reason says
    how many more there are: the codes are a closed list, so the rest has no code of its own.
    """

    ops: tuple[Op, ...]
    rejected: tuple[Rejected, ...]


class Refusal(NamedTuple):
    """A code and its explanation, before it is tied to a path."""

    code: Code
    text: str


class Candidate(NamedTuple):
    """A file that becomes a put unless a vanished record claims it; `new` when never seeded."""

    data: bytes
    """UTF-8. Text may take four times as much memory, so only what is an operation is decoded."""
    new: bool

    @property
    def html(self) -> str:
        """The file's text."""
        return self.data.decode()


def code_of(reason: str) -> str:
    """The code of a reason: what stands before the first colon."""
    return reason.partition(":")[0]


def shown(raw: bytes) -> str:
    """A name as reports spell it: each undecodable sequence is one U+FFFD (§3.3 row 3)."""
    return raw.decode("utf-8", "replace")


def cut(text: str, chars: int) -> str:
    """`text` in at most so many characters and one that says that there were more."""
    return text if len(text) <= chars else f"{text[:chars]}…"


class Findings:
    """The growing result. Rejections are kept by raw name, since two names may show alike."""

    __slots__ = ("_rejected", "archives", "head_ops", "moves", "puts")

    def __init__(self) -> None:
        self.puts: dict[str, Candidate] = {}
        self.head_ops: dict[str, list[Op]] = {}
        self.archives: list[Archive] = []
        self.moves: list[Move] = []
        self._rejected: dict[bytes, Refusal] = {}

    def reject(self, raw: bytes, refusal: Refusal) -> None:
        """List a change; a name that is listed already keeps its first entry (§3.2)."""
        self._rejected.setdefault(raw, refusal._replace(text=cut(refusal.text, SHOWN_REASON_CHARS)))

    def reject_path(self, path: str, refusal: Refusal) -> None:
        """`reject` for a path that is known to be UTF-8."""
        self.reject(path.encode(), refusal)

    def finish(self, scope: str) -> Harvest:
        """The harvest. The findings must not be used afterwards."""
        ops: list[Op] = []
        for path in sorted(self.puts):
            html = self.puts.pop(path).html
            reserved = paths.reserved(path, scope)
            if reserved:
                # Only a slot of a reserved record comes this far. The bar would refuse the put,
                # and a reserved path is listed, never a reason to hold the rest back
                # (spec `write-bar` §2.1).
                self.reject_path(path, Refusal("reserved-path", reserved.text))
                continue
            ops.append(Put(path, html))
        for path in sorted(self.head_ops):
            ops.extend(self.head_ops[path])
        ops.extend(sorted(self.archives, key=lambda op: op.path))
        ops.extend(sorted(self.moves, key=lambda op: op.path))
        return Harvest(tuple(ops), self._sorted_rejections())

    def _sorted_rejections(self) -> tuple[Rejected, ...]:
        # Names may be long and many, so no more of them are decoded at a time than are listed.
        listed = nsmallest(REJECTED_CAP + 1, self._rejected, key=lambda raw: (shown(raw), raw))
        more = len(self._rejected) - len(listed)
        return tuple(
            self._rejection(raw, more if place == REJECTED_CAP else 0)
            for place, raw in enumerate(listed)
        )

    def _rejection(self, raw: bytes, more: int) -> Rejected:
        code, text = self._rejected[raw]
        if more:
            text = f"{text} (and {more} more rejected changes, which are not listed)"
        return Rejected(cut(shown(raw), SHOWN_PATH_CHARS), f"{code}: {text}")
