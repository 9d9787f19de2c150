"""Builds a new tree from a version and the paths that change; reads and writes only their folders.

No index file takes part. Blobs get the bytes as they are, mode 100644 (spec `sessions` §9.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError
from memhtml.store.entries import TREE_MODE, Tree, encode_tree, is_tree
from memhtml.store.pack import ObjectKind, object_id
from memhtml_format.paths import segment_problem

if TYPE_CHECKING:
    from memhtml.store.repo import Repo

_FILE_MODE = b"100644"


class _Folder:
    """What changes inside one folder: new entries, removed names, and folders further down."""

    __slots__ = ("folders", "removed", "written")

    def __init__(self) -> None:
        self.written: dict[bytes, bytes] = {}
        self.removed: set[bytes] = set()
        self.folders: dict[bytes, _Folder] = {}


class _Open:
    """A folder that is being rebuilt: its entries so far, and the folders still to be gone into."""

    __slots__ = ("entries", "name", "path", "plan", "rest")

    def __init__(self, plan: _Folder, name: bytes, path: bytes, entries: Tree) -> None:
        self.plan = plan
        self.name = name
        self.path = path
        self.entries = entries
        self.rest: Iterator[tuple[bytes, _Folder]] = iter(plan.folders.items())
        for removed in plan.removed:
            if removed in entries and not is_tree(entries[removed][0]):
                del entries[removed]

    def folder(self, name: bytes) -> bytes | None:
        """The id of the folder at `name`, or None when there is none."""
        found = self.entries.get(name)
        return found[1] if found is not None and is_tree(found[0]) else None

    def write(self) -> None:
        """Set the new files."""
        for name, blob in self.plan.written.items():
            if self.folder(name) is not None:
                raise _collision(self.path + name, "a folder that holds other files is there")
            self.entries[name] = (_FILE_MODE, blob)

    def attach(self, name: bytes, tree: bytes | None) -> None:
        """Set the rebuilt folder `name`; None when nothing is left in it."""
        inside = self.folder(name)
        if tree is not None:
            if name in self.entries and inside is None:
                raise _collision(self.path + name, "a file is in the way of a folder")
            self.entries[name] = (TREE_MODE, tree)
        elif inside is not None:
            del self.entries[name]


class _Objects(dict[str, tuple[ObjectKind, bytes]]):
    """New objects by their ids, stored together in the end: a failure leaves none behind."""

    def add(self, kind: ObjectKind, data: bytes) -> bytes:
        oid = object_id(kind, data)
        self[oid] = kind, data
        return bytes.fromhex(oid)


def build_tree(
    repo: Repo, base_commit: str | None, writes: Mapping[str, bytes], removals: Collection[str]
) -> str:
    """The id of `base_commit`'s tree with `writes` set and `removals` gone (None: an empty base).

    A folder that becomes empty disappears. A file may take a folder's place, or a folder a file's,
    only when the removals empty it first: nothing vanishes that the caller did not name. Removing
    what is not there is no error. Raises `MemhtmlError` `ERR_GIT` on a path git refuses, on two
    writes of which one would lie inside the other, and when an object cannot be written.
    """
    plan, objects = _Folder(), _Objects()
    for path in removals:
        if path not in writes:
            folder, name = _place(plan, path)
            folder.removed.add(name)
    for path, data in writes.items():
        refuse_bad_path(path)
        folder, name = _place(plan, path)
        folder.written[name] = objects.add("blob", data)
    base = repo.root_tree(base_commit) if base_commit is not None else None
    built = _rebuild(repo, objects, base, plan)
    tree = objects.add("tree", b"") if built is None else built
    repo.write_objects(objects)
    return tree.hex()


def _place(plan: _Folder, path: str) -> tuple[_Folder, bytes]:
    *parents, name = path.encode("utf-8", "surrogateescape").split(b"/")
    for parent in parents:
        plan = plan.folders.setdefault(parent, _Folder())
    return plan, name


def _rebuild(repo: Repo, objects: _Objects, base: str | None, plan: _Folder) -> bytes | None:
    """The new tree's id, None when nothing is left in it; the folders from the inside out."""
    opened = [_Open(plan, b"", b"", _entries(repo, base))]
    while True:
        here = opened[-1]
        step = next(here.rest, None)
        if step is not None:
            name, below = step
            inside = here.folder(name)
            entries = _entries(repo, None if inside is None else inside.hex())
            opened.append(_Open(below, name, here.path + name + b"/", entries))
            continue
        here.write()
        tree = objects.add("tree", encode_tree(here.entries)) if here.entries else None
        opened.pop()
        if not opened:
            return tree
        opened[-1].attach(here.name, tree)


def _entries(repo: Repo, oid: str | None) -> Tree:
    """A copy of a tree's entries, to be changed; none for a folder that is not there."""
    return dict(repo.tree_entries(oid)) if oid is not None else {}


def _collision(path: bytes, why: str) -> MemhtmlError:
    return MemhtmlError(
        "ERR_GIT", f"cannot build the tree at {path.decode(errors='replace')}: {why}"
    )


def refuse_bad_path(path: str) -> None:
    """Refuse what git's own index and checkout refuse, on every system it may be cloned to."""
    for part in path.split("/"):
        if part in ("", ".", "..") or "\0" in part or segment_problem(part):
            raise MemhtmlError("ERR_GIT", f"git refuses the path {path!r}")
