"""A set of changed paths laid over another version: what hides below it, and its own records.

Indexed the way the database is, so that every look-up asks it first at the same cost. Records are
read on demand, and only the index questions need all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from memhtml.corpus.interface import RecordRow

if TYPE_CHECKING:
    from memhtml.store.snapshot_schema import OtherKind
    from memhtml_format.record import Link, Record

    Load = Callable[[str], Record | None]


def row_of(record: Record) -> RecordRow:
    """The look-up row of a record; the fields of both stand in the same order."""
    return RecordRow._make(record[: len(RecordRow._fields)])


class _Index:
    """The delta's live records by article, by frame key and by link target."""

    __slots__ = ("frames", "hashes", "targets")

    def __init__(self, records: Collection[Record]) -> None:
        from memhtml_format.paths import href_target  # A warm exec does without it: 2 ms.

        self.hashes: dict[str, list[str]] = {}
        self.frames: dict[str, list[Record]] = {}
        self.targets: dict[str, list[tuple[str, int, Link]]] = {}
        for record in records:
            if record.archived:
                continue
            self.hashes.setdefault(record.content_hash, []).append(record.path)
            if record.frame_key is not None:
                self.frames.setdefault(record.frame_key, []).append(record)
            for order, link in enumerate(record.links):
                held = (record.path, order, link)
                self.targets.setdefault(href_target(link.href), []).append(held)


class Delta:
    """Changed paths, each with what is there now.

    `kinds` has every changed path, None where nothing is left. `paths` are those that held or hold
    a regular file where a record may be; `load` reads the record of such a file and may raise.
    """

    __slots__ = ("_found", "_index", "_load", "_names", "_sorted", "kinds", "paths")

    def __init__(
        self, kinds: Mapping[str, OtherKind | None], paths: Collection[str], load: Load
    ) -> None:
        self.kinds = kinds
        self.paths = frozenset(paths)
        self._load = load
        self._names: list[str] | None = None
        self._found: dict[str, Record | None] = {}
        self._sorted: list[Record] | None = None
        self._index: _Index | None = None

    def covers(self, path: str) -> bool:
        """Whether the delta decides what is at `path`."""
        return path in self.kinds

    def record(self, path: str) -> Record | None:
        """The delta's own record at a covered path."""
        if path not in self._found:
            there = path in self.paths and self.kinds[path] == "file"
            self._found[path] = self._load(path) if there else None
        return self._found[path]

    def records(self) -> list[Record]:
        """All records of the delta, in path order."""
        if self._sorted is None:
            found = (self.record(path) for path in sorted(self.paths))
            self._sorted = [record for record in found if record is not None]
        return self._sorted

    def with_hash(self, content_hash: str) -> list[str]:
        """Paths of live records with this article, in path order."""
        return self._indexed().hashes.get(content_hash, [])

    def with_frame(self, frame_key: str) -> list[Record]:
        """Live records with this frame key, in path order."""
        return self._indexed().frames.get(frame_key, [])

    def holding(self, target: str) -> list[tuple[str, int, Link]]:
        """(path, order, link) of live records that link to this target."""
        return self._indexed().targets.get(target, [])

    def under(self, folder: str) -> Iterator[str]:
        """Paths of records below a folder, in path order; no folder means everything."""
        return (path for path in self.files_under(folder) if self.record(path) is not None)

    def files_under(self, folder: str) -> Iterator[str]:
        """Paths of all that is left below a folder, records or not, in path order."""
        from bisect import bisect_left

        if self._names is None:
            self._names = sorted(path for path, kind in self.kinds.items() if kind is not None)
        prefix = f"{folder}/" if folder else ""
        for at in range(bisect_left(self._names, prefix), len(self._names)):
            if not self._names[at].startswith(prefix):
                return
            yield self._names[at]

    def _indexed(self) -> _Index:
        if self._index is None:
            self._index = _Index(self.records())
        return self._index
