"""Builds a new tree from a version and the paths that change; reads and writes only their folders.

No index file takes part. Blobs get the bytes as they are, mode 100644 (spec `sessions` §9.1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal

from memhtml.errors import MemhtmlError
from memhtml.store.pack import WORTH_A_PACK, ObjectKind, install_pack, object_id
from memhtml.store.repo import TREE_MODE, Raw, Tree, is_tree
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


class _Storage:
    """Where new objects go: at once and one by one, or together when there are many."""

    def __init__(self, repo: Repo, *, together: bool) -> None:
        self._repo = repo
        self._waiting: dict[str, tuple[ObjectKind, bytes]] | None = {} if together else None

    def add(self, kind: Literal["blob", "tree"], data: bytes) -> bytes:
        if self._waiting is None:
            return bytes.fromhex(self._repo.write_object(kind, data))
        oid = object_id(kind, data)
        self._waiting[oid] = (kind, data)
        return bytes.fromhex(oid)

    def finish(self) -> None:
        if self._waiting:
            install_pack(self._repo.root, self._waiting)


def build_tree(
    repo: Repo, base_commit: str | None, writes: Mapping[str, bytes], removals: Collection[str]
) -> str:
    """The id of `base_commit`'s tree with `writes` set and `removals` gone (None: an empty base).

    A folder that becomes empty disappears. A file may take a folder's place, or a folder a file's,
    only when the removals empty it first: nothing vanishes that the caller did not name. Removing
    what is not there is no error. Raises `MemhtmlError` `ERR_GIT` on a path git refuses, on two
    writes of which one would lie inside the other, and when an object cannot be written.
    """
    plan = _Folder()
    storage = _Storage(repo, together=len(writes) >= WORTH_A_PACK)
    for path in removals:
        if path not in writes:
            folder, name = _place(plan, path)
            folder.removed.add(name)
    for path, data in writes.items():
        refuse_bad_path(path)
        folder, name = _place(plan, path)
        folder.written[name] = storage.add("blob", data)
    base = bytes.fromhex(repo.root_tree(base_commit)) if base_commit is not None else None
    built = _rebuild(repo, storage, base, plan, b"")
    tree = storage.add("tree", b"") if built is None else built
    storage.finish()
    return tree.hex()


def encode_tree(entries: Tree) -> bytes:
    """A tree object's bytes; git sorts a folder as if its name ended in a slash."""

    def order(item: tuple[bytes, Raw]) -> bytes:
        name, (mode, _oid) = item
        return name + b"/" if is_tree(mode) else name

    return b"".join(
        mode + b" " + name + b"\0" + oid for name, (mode, oid) in sorted(entries.items(), key=order)
    )


def _place(plan: _Folder, path: str) -> tuple[_Folder, bytes]:
    *parents, name = path.encode("utf-8", "surrogateescape").split(b"/")
    for parent in parents:
        plan = plan.folders.setdefault(parent, _Folder())
    return plan, name


def _rebuild(
    repo: Repo, storage: _Storage, base: bytes | None, plan: _Folder, prefix: bytes
) -> bytes | None:
    """The new tree's id, None when nothing is left in it."""
    entries = dict(repo.tree_entries(base.hex())) if base is not None else {}
    for name in plan.removed:
        if name in entries and not is_tree(entries[name][0]):
            del entries[name]
    for name, below in plan.folders.items():
        _rebuild_below(repo, storage, entries, name, below, prefix + name)
    for name, blob in plan.written.items():
        if name in entries and is_tree(entries[name][0]):
            raise _collision(prefix + name, "a folder that holds other files is there")
        entries[name] = (_FILE_MODE, blob)
    if not entries:
        return None
    return storage.add("tree", encode_tree(entries))


def _rebuild_below(
    repo: Repo, storage: _Storage, entries: Tree, name: bytes, below: _Folder, path: bytes
) -> None:
    found = entries.get(name)
    inside = found[1] if found is not None and is_tree(found[0]) else None
    tree = _rebuild(repo, storage, inside, below, path + b"/")
    if tree is None:
        if inside is not None:
            del entries[name]
        return
    if found is not None and inside is None:
        raise _collision(path, "a file is in the way of a folder")
    entries[name] = (TREE_MODE, tree)


def _collision(path: bytes, why: str) -> MemhtmlError:
    return MemhtmlError(
        "ERR_GIT", f"cannot build the tree at {path.decode(errors='replace')}: {why}"
    )


def refuse_bad_path(path: str) -> None:
    """Refuse what git's own index and checkout refuse, on every system it may be cloned to."""
    for part in path.split("/"):
        if part in ("", ".", "..") or "\0" in part or segment_problem(part):
            raise MemhtmlError("ERR_GIT", f"git refuses the path {path!r}")
