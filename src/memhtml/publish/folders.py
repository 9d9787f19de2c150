"""The folders that have a listing, each complete once its last memory has gone by.

One pass over rows in path order: all that lies below a folder is one run of them, so only the
folders on the way to the current row are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memhtml_format.paths import BUCKETS

if TYPE_CHECKING:
    from memhtml.publish.rows import Row

ROOT = ""
LISTING = "index.html"


class Child(NamedTuple):
    """A folder as its parent lists it, with the number of memories anywhere below it."""

    name: str
    total: int


class Folder:
    """One folder: its own memories, the folders in it, and what lies below it in all.

    `path` has no slash at either end; that of the store itself is empty. `newest` is the latest
    update anywhere below, empty when there is none.
    """

    __slots__ = ("children", "newest", "path", "rows", "total")

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: list[Row] = []
        self.children: list[Child] = []
        self.total = 0
        self.newest = ""

    @property
    def archived(self) -> bool:
        """Whether it holds what no longer does."""
        return self.path == "archive" or self.path.startswith("archive/")

    @property
    def listing(self) -> str:
        """The path of its page."""
        return f"{self.path}/{LISTING}" if self.path else LISTING

    def add(self, row: Row) -> None:
        """Take in one of its own memories."""
        self.rows.append(row)
        self.total += 1
        self.newest = max(self.newest, row.updated_at)

    def close(self, child: Folder) -> None:
        """Take in a folder that is complete."""
        self.children.append(Child(child.path.rpartition("/")[2], child.total))
        self.total += child.total
        self.newest = max(self.newest, child.newest)


def newest_first(rows: Iterable[Row]) -> list[Row]:
    """The rows by their last update, the latest first, equal ones by path."""
    ordered = sorted(rows, key=lambda row: row.path)
    ordered.sort(key=lambda row: row.updated_at, reverse=True)
    return ordered


def slot_order(name: str) -> tuple[int, int, str]:
    """Where a folder of the archive stands among the others: by year, then by slot as a number."""
    year, _, slot = name.partition(".")
    numbers = [int(part) if part.isdecimal() and part.isascii() else 0 for part in (year, slot)]
    return numbers[0], numbers[1], name


def folders_of(rows: Iterable[Row]) -> Iterator[Folder]:
    """Every folder that has a listing, a folder after those in it and the store itself last.

    `rows` come in path order. The four buckets are there also when they are empty.
    """
    open_folders = [Folder(ROOT)]
    for row in rows:
        path = row.path.rpartition("/")[0]
        while not _holds(open_folders[-1].path, path):
            yield _closed(open_folders)
        while open_folders[-1].path != path:
            open_folders.append(Folder(_next(open_folders[-1].path, path)))
        open_folders[-1].add(row)
    while len(open_folders) > 1:
        yield _closed(open_folders)
    yield from _completed(open_folders[0])


def _closed(open_folders: list[Folder]) -> Folder:
    folder = open_folders.pop()
    open_folders[-1].close(folder)
    return folder


def _completed(root: Folder) -> Iterator[Folder]:
    """The buckets that have nothing in them, and the store, its buckets in their own order."""
    there = {child.name for child in root.children}
    for bucket in BUCKETS:
        if bucket not in there:
            empty = Folder(bucket)
            root.close(empty)
            yield empty
    root.children.sort(key=lambda child: BUCKETS.index(child.name))
    yield root


def _holds(folder: str, path: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _next(folder: str, path: str) -> str:
    """The folder one step from `folder` towards `path`."""
    start = len(folder) + 1 if folder else 0
    end = path.find("/", start)
    return path if end < 0 else path[:end]
