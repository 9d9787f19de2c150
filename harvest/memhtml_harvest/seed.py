"""What the harvest is given: entries of the changed tree, and the seed they are compared with.

Both are protocols of plain values, so neither a sandbox nor git is needed to judge a difference.
`MapSeed` and `FileEntry` are the in-memory forms that tests, fixtures and tree diffs use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Protocol

from memhtml_format import paths


class Entry(Protocol):
    """One thing found under the mount, or met there and not opened."""

    @property
    def kind(self) -> str:
        """`file`, `link`, `pipe`, `socket`, `device` or `too-deep`."""

    @property
    def size(self) -> int:
        """Size in bytes as the file system states it; meaningful for files."""

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes from the start of a file; raises `OSError`."""


class Seed(Protocol):
    """The records of the view as they were put into the mount (spec `harvest` §2.1)."""

    def read(self, path: str) -> bytes | None:
        """The seeded bytes, None when nothing was seeded at `path`."""

    def holds(self, path: str) -> bool:
        """Whether a record was seeded at exactly `path`."""

    def holds_under(self, folder: str) -> bool:
        """Whether a record was seeded below `folder/`."""

    def content_hash(self, path: str) -> str | None:
        """The content hash of the record seeded at `path` (spec `format` §5)."""


class FileEntry:
    """An entry held in memory. `size_bytes` may state more than `data` holds, as a sparse file."""

    __slots__ = ("data", "kind", "size")

    def __init__(
        self, data: bytes = b"", *, kind: str = "file", size_bytes: int | None = None
    ) -> None:
        self.data = data
        self.kind = kind
        self.size = len(data) if size_bytes is None else size_bytes

    def read(self, limit: int) -> bytes:
        """The first `limit` bytes; what is stated beyond `data` reads as zeros."""
        if self.kind != "file":
            raise OSError(f"a {self.kind} is never opened")
        padding = min(limit, self.size) - len(self.data)
        return (self.data + bytes(max(padding, 0)))[:limit]


class MapSeed:
    """A seed over a mapping from path to bytes. Hashes are worked out once, when asked."""

    __slots__ = ("_files", "_hashes", "_sorted")

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._hashes: dict[str, str | None] = {}
        self._sorted: list[str] | None = None

    def read(self, path: str) -> bytes | None:
        """The seeded bytes, None when nothing was seeded at `path`."""
        return self._files.get(path)

    def holds(self, path: str) -> bool:
        """Whether a record was seeded at exactly `path`."""
        return path in self._files

    def holds_under(self, folder: str) -> bool:
        """Whether a record was seeded below `folder/`."""
        if self._sorted is None:
            self._sorted = sorted(self._files)
        prefix = f"{folder}/"
        at = bisect_left(self._sorted, prefix)
        return at < len(self._sorted) and self._sorted[at].startswith(prefix)

    def content_hash(self, path: str) -> str | None:
        """The content hash of the record seeded at `path`."""
        from memhtml_format.record import content_hash

        if path not in self._hashes:
            data = self._files.get(path)
            self._hashes[path] = None if data is None else content_hash(data)
        return self._hashes[path]


def record_above(seed: Seed, path: str) -> str | None:
    """The first proper parent of `path` that is a seeded record, None when there is none."""
    return next((parent for parent in paths.parents(path) if seed.holds(parent)), None)


def holds_exactly(entry: Entry, seeded: bytes) -> bool:
    """Whether the entry is a regular file with these bytes; an unreadable one is not."""
    if entry.kind != "file" or entry.size != len(seeded):
        return False
    try:
        return entry.read(len(seeded) + 1) == seeded
    except OSError:
        return False
