"""What the walk over a log has done so far: who is live where, and what each head holds.

Only operations without a `format` violation are registered here (spec `write-bar` §4). Look-ups
are by path or hash, so their number grows with the operations and never with the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from memhtml.bar.readings import Readings
from memhtml.corpus.interface import Corpus
from memhtml.policy import Policy
from memhtml_format.ops import Archive, Move, Op, Put
from memhtml_format.paths import is_archived, parents
from memhtml_format.record import Link, Record

Origin: TypeAlias = Literal["base", "put", "move"]
Left: TypeAlias = Literal["archived", "moved"]


class Head:
    """Article, edges and entities of a live record as the batch left them.

    Edges and entities are sets in document order: adding one that is there changes nothing, and
    dropping one takes every copy, as the head editors do. A base record's are fetched when asked.
    """

    __slots__ = ("_base", "_entities", "_home", "_links", "content_hash", "origin")

    def __init__(self, base: Corpus, home: str, content_hash: str) -> None:
        self._base = base
        self._home = home
        self._links: dict[Link, None] | None = None
        self._entities: dict[str, None] | None = None
        self.origin: Origin = "base"
        self.content_hash = content_hash

    @classmethod
    def of_put(cls, base: Corpus, path: str, record: Record) -> Head:
        """The head of a file this batch wrote."""
        head = cls(base, path, record.content_hash)
        head.origin = "put"
        head._links = dict.fromkeys(record.links)
        head._entities = dict.fromkeys(record.entities)
        return head

    @property
    def links(self) -> dict[Link, None]:
        """The edges, in document order."""
        if self._links is None:
            self._links = dict.fromkeys(self._base.links(self._home))
        return self._links

    @property
    def entities(self) -> dict[str, None]:
        """The entity values as written, in document order."""
        if self._entities is None:
            self._entities = dict.fromkeys(self._base.entities(self._home))
        return self._entities


class Batch:
    """The state of one judgement. Rules read it; each kind of operation registers itself once."""

    def __init__(
        self, ops: Sequence[Op], base: Corpus, policy: Policy, scope: str, readings: Readings
    ) -> None:
        self.base = base
        self.policy = policy
        self.scope = scope
        self.readings = readings
        self.named = _destinations(ops)
        """Every path a put, an archive or a move of the log names as its destination."""
        self.written: dict[str, str] = {}
        """Destination → kind of the operation that wrote there last."""
        self.landed: set[str] = set()
        """Destinations of archives and moves."""
        self.folders: dict[str, str] = {}
        """Folder → the first destination written below it."""
        self.hashes: dict[str, str] = {}
        """Article → the earliest put that has it."""
        self.heads: dict[str, Head | None] = {}
        """Path → the live record there now, None when it left; absent: as in the base."""
        self.left: dict[str, Left] = {}
        """Path → how a record last left it in this batch."""
        self.moves: dict[str, str] = {}
        """Source → destination, in log order."""
        self.unlabelled: dict[str, None] = {}
        """Paths an `unlabel` touched and no put replaced since, in log order."""
        self.kinds: dict[str, str | None] = {}
        """Folder of the base's tree → what is there, as far as it was asked."""

    def live(self, path: str) -> Head | None:
        """The live source at `path` at this point of the walk (spec `write-bar` §4.4)."""
        if is_archived(path):
            return None
        if path not in self.heads:
            row = self.base.record(path)
            self.heads[path] = None if row is None else Head(self.base, path, row.content_hash)
        return self.heads[path]

    def held(self, path: str) -> bool:
        """Whether a record of the base or an earlier operation has `path`."""
        return path in self.written or self.base.record(path) is not None

    def put(self, op: Put, record: Record) -> None:
        """Register a put: it replaces what was there."""
        self._write(op.path, op.kind)
        self.heads[op.path] = Head.of_put(self.base, op.path, record)
        self.hashes.setdefault(record.content_hash, op.path)
        self.unlabelled.pop(op.path, None)

    def archive(self, op: Archive) -> None:
        """Register an archive: the source is history from here on."""
        self._leave(op, "archived")

    def move(self, op: Move) -> None:
        """Register a move: edges and entities continue at the destination."""
        head = self.live(op.path)
        self._leave(op, "moved")
        if head is not None:
            head.origin = "move"
            self.heads[op.to] = head
        self.moves[op.path] = op.to

    def _leave(self, op: Archive | Move, how: Left) -> None:
        self.heads[op.path] = None
        self.left[op.path] = how
        self._write(op.to, op.kind)
        self.landed.add(op.to)

    def _write(self, path: str, kind: str) -> None:
        self.written[path] = kind
        for folder in parents(path):
            self.folders.setdefault(folder, path)


def _destinations(ops: Sequence[Op]) -> frozenset[str]:
    return frozenset(
        op.to if isinstance(op, Archive | Move) else op.path
        for op in ops
        if isinstance(op, Put | Archive | Move)
    )


def why_not_live(batch: Batch, path: str) -> str:
    """The reason of an operation whose source is no live source, in words after the path."""
    if path in batch.left:
        return f"its record was {batch.left[path]} earlier in this batch"
    if is_archived(path):
        return "archived records are history and take no more edits"
    return "no live record is at this path"
