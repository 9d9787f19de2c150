"""Look-ups over a database with deltas laid on top, the topmost first (`design.md` §4).

A delta hides the rows below it at every path it covers; its own records are asked by the same
question. No look-up walks the corpus.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from memhtml.corpus.delta import Delta, row_of
from memhtml.corpus.interface import FileKind, RecordRow
from memhtml.store import snapshot_query

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memhtml.store.snapshot_fts import Matcher
    from memhtml.store.snapshot_open import Database
    from memhtml_format.record import Link, Record

T = TypeVar("T")


class Layers(ABC):
    """The look-ups of `Corpus`; a subclass says which deltas lie over which database."""

    @abstractmethod
    def deltas(self) -> Sequence[Delta]:
        """The deltas, topmost first."""

    @abstractmethod
    def ask(self, question: Callable[..., T], *values: object) -> T:
        """Put a question of `snapshot_query` to the database."""

    @abstractmethod
    def database(self) -> Database:
        """The database that `ask` asks."""

    def record(self, path: str) -> RecordRow | None:
        """The record at exactly this path."""
        delta = self._decider(path)
        if delta is not None:
            found = delta.record(path)
            return None if found is None else row_of(found)
        row = self.ask(snapshot_query.record, path)
        return None if row is None else _row(row)

    def live_with_hash(self, content_hash: str) -> str | None:
        """The lowest path of a live record with this article."""
        held = self.ask(snapshot_query.lowest_live, content_hash, self._hidden)
        paths = [] if held is None else [held]
        for at, delta in enumerate(self.deltas()):
            paths += [p for p in delta.with_hash(content_hash) if self._visible(at, p)]
        return min(paths, default=None)

    def all_with_hash(self, content_hash: str) -> list[str]:
        """Every live record with this article, in path order."""
        stored = self.ask(snapshot_query.live_with_hash, content_hash)
        found = [path for path in stored if not self._hidden(path)]
        for at, delta in enumerate(self.deltas()):
            found += [path for path in delta.with_hash(content_hash) if self._visible(at, path)]
        return sorted(found)

    def live_hashes(self) -> bytes:
        """The article hashes of all live records, 32 bytes each, end to end, in no order.

        Walks the corpus: 30 ms at 100,000 records, for who reads all their vectors as well.
        """
        hidden = self._hidden if any(delta.kinds for delta in self.deltas()) else None
        laid = [_digest(record) for record in self.laid_records() if not record.archived]
        return self.ask(snapshot_query.live_hashes, hidden) + b"".join(laid)

    def rivals(self, frame_key: str) -> list[RecordRow]:
        """The live records with this frame key, in path order."""
        rows = [_row(row) for row in self.ask(snapshot_query.rivals, frame_key)]
        found = [row for row in rows if not self._hidden(row.path)]
        for at, delta in enumerate(self.deltas()):
            own = delta.with_frame(frame_key)
            found += [row_of(record) for record in own if self._visible(at, record.path)]
        return sorted(found)

    def links(self, path: str) -> list[Link]:
        """The record's head links in document order."""
        delta = self._decider(path)
        if delta is None:
            return _links(self.ask(snapshot_query.links, path))
        found = delta.record(path)
        return [] if found is None else list(found.links)

    def entities(self, path: str) -> list[str]:
        """The record's authored entity values, in order."""
        delta = self._decider(path)
        if delta is None:
            return self.ask(snapshot_query.entities, path)
        found = delta.record(path)
        return [] if found is None else list(found.entities)

    def holders(self, target: str) -> list[tuple[str, Link]]:
        """Live records that link to this target: path order, then document order."""
        rows = [row for row in self.ask(snapshot_query.holders, target) if not self._hidden(row[0])]
        links = _links([row[2:] for row in rows])
        found = [(row[0], row[1], link) for row, link in zip(rows, links, strict=True)]
        for at, delta in enumerate(self.deltas()):
            found += [held for held in delta.holding(target) if self._visible(at, held[0])]
        return [(path, link) for path, _order, link in sorted(found)]

    def linking(self, target: str, rel: str) -> list[str]:
        """Live records with a link of this relation to this path, in path order."""
        stored = self.ask(snapshot_query.linking, target, rel)
        found = {path for path in stored if not self._hidden(path)}
        for at, delta in enumerate(self.deltas()):
            held = (path for path, _order, link in delta.holding(target) if link.rel == rel)
            found.update(path for path in held if self._visible(at, path))
        return sorted(found)

    def record_under(self, folder: str) -> bool:
        """Whether any record lies below this folder."""
        for at, delta in enumerate(self.deltas()):
            if any(self._visible(at, path) for path in delta.under(folder)):
                return True
        return self.ask(snapshot_query.first_under, folder, self._hidden) is not None

    def paths_under(self, folder: str) -> list[str]:
        """The records below this folder, in path order."""
        found = [p for p in self.ask(snapshot_query.under, folder) if not self._hidden(p)]
        for at, delta in enumerate(self.deltas()):
            found += [path for path in delta.under(folder) if self._visible(at, path)]
        return sorted(found)

    def file_kind(self, path: str) -> FileKind | None:
        """What the tree holds at this path, files that are no records included.

        A folder is there when something is below it; names that are not UTF-8 do not count.
        """
        delta = self._decider(path)
        kind = delta.kinds[path] if delta else self.ask(snapshot_query.file_kind, path)
        if kind is not None:
            return kind
        for at, delta in enumerate(self.deltas()):
            if any(self._visible(at, name) for name in delta.files_under(path)):
                return "folder"
        below = self.ask(snapshot_query.file_under, path, self._hidden)
        return "folder" if below else None

    def record_paths(self) -> Iterator[str]:
        """Every record's path, in path order."""
        return (path for path, _blob in self.record_blobs())

    def record_blobs(self) -> Iterator[tuple[str, str]]:
        """Every record's path and git blob, in path order; a few hundred in memory at a time."""
        from heapq import merge

        return merge(self._stored_blobs(), ((r.path, r.blob_sha) for r in self.laid_records()))

    def laid_records(self) -> list[Record]:
        """The records that the deltas add or change, in path order."""
        found = [
            record
            for at, delta in enumerate(self.deltas())
            for record in delta.records()
            if self._visible(at, record.path)
        ]
        return sorted(found, key=lambda record: record.path)

    def live_texts(self, after: str, characters: int) -> list[tuple[str, bytes, str]]:
        """The next live records behind a path: (path, 32 hash bytes, text), in path order.

        The text is the article's, cut at so many characters. A few hundred records at a time, none
        at the end. Start with no path.
        """
        while True:
            stored = self.ask(snapshot_query.live_texts, after, characters)
            last = stored[-1][0] if stored else "\U0010ffff"
            found = [row for row in stored if not self._hidden(row[0])]
            found += [
                (r.path, _digest(r), r.body_text[:characters])
                for r in self.laid_records()
                if not r.archived and after < r.path <= last
            ]
            if found or not stored:
                return sorted(found)
            after = last

    def matching(self) -> AbstractContextManager[Matcher]:
        """Full-text queries over the live records of this version (spec `retrieval` §20)."""
        from memhtml.store import snapshot_fts

        hidden = frozenset[str]().union(*(delta.paths for delta in self.deltas()))
        live = [record for record in self.laid_records() if not record.archived]
        return snapshot_fts.matching(self.database(), hidden, live)

    def _stored_blobs(self) -> Iterator[tuple[str, str]]:
        after = ""
        while found := self.ask(snapshot_query.page, after):
            after = found[-1][0]
            yield from (pair for pair in found if not self._hidden(pair[0]))

    def _decider(self, path: str) -> Delta | None:
        return next((delta for delta in self.deltas() if delta.covers(path)), None)

    def _hidden(self, path: str) -> bool:
        return any(delta.covers(path) for delta in self.deltas())

    def _visible(self, at: int, path: str) -> bool:
        """Whether the delta at this place is the topmost that covers the path."""
        return not any(delta.covers(path) for delta in self.deltas()[:at])


class Base(Layers):
    """A version that stands on its own, so that a view can be laid over it."""

    sha: str

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The bytes of the record at this path."""


def _digest(record: Record) -> bytes:
    return bytes.fromhex(record.content_hash.removeprefix("sha256:"))


def _links(rows: Sequence[snapshot_query.Row]) -> list[Link]:
    if not rows:
        return []
    from memhtml_format.record import Link  # 6 ms with the parser's tables.

    return [Link(*row) for row in rows]


def _row(row: snapshot_query.Row) -> RecordRow:
    return RecordRow._make((*row[:3], bool(row[3]), *row[4:]))
