"""Answers questions about versions: what a path holds, which files there are, what differs.

Trees are read as raw bytes and decoded by `entries`, so that an unchanged folder costs nothing,
names stay exact and one pass needs no object per entry. Where the bytes come from is `objects`'
matter; refs, the index and the checkout belong to other modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from memhtml.errors import MemhtmlError
from memhtml.store.entries import Raw, Tree, differing_entries, is_tree, parse_tree

if TYPE_CHECKING:
    from memhtml.store.objects import Objects
    from memhtml.store.pack import ObjectKind

Kind = Literal["blob", "tree", "link", "commit"]

MODE_FILE = 0o100644
MODE_EXECUTABLE = 0o100755
MODE_LINK = 0o120000
MODE_SUBMODULE = 0o160000
FILE_MODES = frozenset({MODE_FILE, MODE_EXECUTABLE})

_KEPT_TREES_BYTES = 1 << 20
_LARGE_TREE_BYTES = _KEPT_TREES_BYTES // 4
_KEPT_ROOTS = 32
_WALKED_COMMITS = 64
"""A longer history is git's to search: it may have a commit graph."""


class Entry(NamedTuple):
    """What one path of a version holds; `oid` is 40 lower-case hex digits."""

    kind: Kind
    mode: int
    oid: str


class Change(NamedTuple):
    """One path that differs between two versions; a side is None where the path is absent."""

    path: str
    old: tuple[int, str] | None
    new: tuple[int, str] | None


def kind_of(mode: int) -> Kind:
    """The kind that a git file mode stands for."""
    if mode == 0o040000:
        return "tree"
    if mode == MODE_LINK:
        return "link"
    return "commit" if mode == MODE_SUBMODULE else "blob"


class Repo:
    """One repository's objects. `root` is the top of its work tree.

    Every method raises `MemhtmlError` `ERR_GIT` when the repository cannot be opened or an object
    it needs is missing or damaged, unless it says otherwise.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._objects: Objects | None = None
        self._trees: dict[bytes, Tree] = {}
        self._trees_bytes = 0
        self._large: dict[bytes, Tree] = {}
        """The large folder that was read last."""
        self._roots: dict[str, bytes] = {}
        self._trusts_file_mode: bool | None = None
        self.index_seen: tuple[int, int, int] | None = None
        """The index file that `checkout.dirty` looked at last."""

    @property
    def objects(self) -> Objects:
        """The objects behind it."""
        if self._objects is None:
            from memhtml.store.objects import Objects  # A call over a warm database needs none.

            self._objects = Objects(self.root)
        return self._objects

    @property
    def trusts_file_mode(self) -> bool:
        """Whether the executable bit means something here (`core.fileMode`)."""
        if self._trusts_file_mode is None:
            from memhtml.store.child import run_git

            run = run_git(self.root, "config", "--type=bool", "--get", "core.fileMode")
            self._trusts_file_mode = run.stdout.strip() != b"false"
        return self._trusts_file_mode

    def close(self) -> None:
        """End what stays open between questions; another question opens it again."""
        if self._objects is not None:
            self._objects.close()

    def entry(self, commit: str, path: str) -> Entry | None:
        """What `path` is in `commit`, or None."""
        oid = self._root_tree(commit)
        parts = path.encode("utf-8", "surrogateescape").split(b"/")
        for depth, part in enumerate(parts):
            found = self._tree(oid).get(part)
            if found is None:
                return None
            if depth == len(parts) - 1:
                mode = int(found[0], 8)
                return Entry(kind_of(mode), mode, found[1].hex())
            if not is_tree(found[0]):
                return None
            oid = found[1]
        return None

    def blob(self, commit: str, path: str) -> bytes | None:
        """The bytes of the regular file at `path`, or None when there is no such file."""
        found = self.entry(commit, path)
        if found is None or found.kind != "blob":
            return None
        return self.data(found.oid)

    def data(self, oid: str) -> bytes:
        """The bytes of the object `oid`, whatever its type."""
        return self._read(bytes.fromhex(oid))

    def files(self, commit: str) -> Iterator[tuple[str, int, str]]:
        """Every path that is no folder, as (path, mode, oid) in git's order.

        Links and submodules are included: tell them by their mode. A name that is not UTF-8 is
        skipped, with all below it.
        """
        for name, (mode, oid) in self._walk(self._root_tree(commit), b""):
            yield name, int(mode, 8), oid.hex()

    def difference(self, old: str, new: str) -> Iterator[Change]:
        """The paths whose entry differs between two commits, each once, in no promised order.

        Folders with the same tree on both sides are not opened. There is no rename detection.
        """
        yield from self._difference(self._root_tree(old), self._root_tree(new))

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether `descendant` is `ancestor` or comes after it; False when either is missing."""
        if not (self.commit_exists(ancestor) and self.commit_exists(descendant)):
            return False
        if ancestor == descendant:
            return True
        waiting, seen = [descendant], {descendant}
        for sha in waiting:  # Grows as it goes: the nearest commits first.
            if len(seen) > _WALKED_COMMITS:
                return self._asks_git(ancestor, descendant)
            found = self._known_parents(sha)
            if ancestor in found:
                return True
            waiting += [parent for parent in found if parent not in seen]
            seen.update(found)
        return False

    def commit_exists(self, sha: str) -> bool:
        """Whether `sha` names a commit that is in the object store."""
        try:
            return self._read_typed(bytes.fromhex(sha))[0] == "commit"
        except (MemhtmlError, ValueError):
            return False

    def commit_time(self, sha: str) -> int:
        """The committer's time of a commit, in seconds since 1970."""
        for line in self._header(sha):
            if line.startswith(b"committer "):
                stamp = line.rsplit(b"> ", 1)[-1].split(b" ")[0]
                return int(stamp) if stamp.isdigit() else 0
        return 0

    def parents(self, sha: str) -> list[str]:
        """The ids of a commit's parents, in order."""
        lines = (line for line in self._header(sha) if line.startswith(b"parent "))
        return [line[7:].decode("ascii") for line in lines]

    def first_parent(self, sha: str) -> str | None:
        """The commit that `sha` follows on its own line, None at the start of a history."""
        return next(iter(self.parents(sha)), None)

    def tree_entries(self, oid: str) -> Tree:
        """The entries of the tree object `oid`; the caller must not change the answer."""
        return self._tree(bytes.fromhex(oid))

    def root_tree(self, commit: str) -> str:
        """The id of a commit's tree."""
        return self._root_tree(commit).hex()

    def write_object(self, kind: ObjectKind, data: bytes) -> str:
        """Store one object and answer its id; storing the same bytes again costs a look-up."""
        from memhtml.store.pack import object_id

        oid = object_id(kind, data)
        self.write_objects({oid: (kind, data)})
        return oid

    def write_objects(self, objects: Mapping[str, tuple[ObjectKind, bytes]]) -> None:
        """Store objects given by their ids."""
        self.objects.store(objects)

    def _known_parents(self, sha: str) -> list[str]:
        """The parents of a commit; none where the history was cut off."""
        from memhtml.store.objects import ObjectMissing

        try:
            return self.parents(sha)
        except ObjectMissing:
            return []

    def _asks_git(self, ancestor: str, descendant: str) -> bool:
        from memhtml.store.child import git_failed, run_git

        run = run_git(self.root, "merge-base", "--is-ancestor", ancestor, descendant)
        if run.status not in (0, 1):
            raise git_failed("merge-base", run)
        return run.status == 0

    def _header(self, commit: str) -> list[bytes]:
        kind, data = self._read_typed(bytes.fromhex(commit))
        if kind != "commit":
            raise MemhtmlError("ERR_GIT", f"git object {commit} is not a commit")
        return data.partition(b"\n\n")[0].split(b"\n")

    def _root_tree(self, commit: str) -> bytes:
        known = self._roots.get(commit)
        if known is None:
            if len(self._roots) >= _KEPT_ROOTS:
                self._roots.clear()
            known = bytes.fromhex(self._header(commit)[0].removeprefix(b"tree ").decode("ascii"))
            self._roots[commit] = known
        return known

    def _tree(self, oid: bytes) -> Tree:
        known = self._large.get(oid) or self._trees.get(oid)
        if known is not None:
            return known
        data = self._read(oid)
        entries = _decoded(oid, data)
        if len(data) > _LARGE_TREE_BYTES:
            # It would push out the folders above it, and they it, at each of its files.
            self._large = {oid: entries}
            return entries
        if self._trees_bytes + len(data) > _KEPT_TREES_BYTES:
            self._trees.clear()
            self._trees_bytes = 0
        self._trees[oid] = entries
        self._trees_bytes += len(data)
        return entries

    def _read(self, oid: bytes) -> bytes:
        return self._read_typed(oid)[1]

    def _read_typed(self, oid: bytes) -> tuple[str, bytes]:
        return self.objects.read(oid)

    def _walk(self, oid: bytes, prefix: bytes) -> Iterator[tuple[str, Raw]]:
        # Not through the kept trees: one pass over a whole version would push out what is wanted.
        open_folders = [(prefix, self._listing(oid))]
        while open_folders:
            prefix, entries = open_folders[-1]
            for name, entry in entries:
                text = _text(prefix + name)
                if text is None:
                    continue
                if is_tree(entry[0]):
                    open_folders.append((prefix + name + b"/", self._listing(entry[1])))
                    break
                yield text, entry
            else:
                open_folders.pop()

    def _listing(self, oid: bytes) -> Iterator[tuple[bytes, Raw]]:
        return iter(_decoded(oid, self._read(oid)).items())

    def _difference(self, old: bytes, new: bytes) -> Iterator[Change]:
        waiting = [(b"", old, new)]
        while waiting:
            prefix, old, new = waiting.pop()
            if old == new:
                continue
            try:
                before, after = differing_entries(self._read(old), self._read(new))
            except ValueError:
                raise MemhtmlError(
                    "ERR_GIT", f"git tree {old.hex()} or {new.hex()} is damaged"
                ) from None
            for name in sorted({*before, *after}):
                if _text(name) is None:
                    continue
                one, other = before.get(name), after.get(name)
                if one and other and is_tree(one[0]) and is_tree(other[0]):
                    waiting.append((prefix + name + b"/", one[1], other[1]))
                else:
                    yield from self._changed(one, other, prefix + name)

    def _changed(self, old: Raw | None, new: Raw | None, path: bytes) -> Iterator[Change]:
        """The changes at one path and, where one side has a folder there, below it."""
        old_tree = old is not None and is_tree(old[0])
        new_tree = new is not None and is_tree(new[0])
        before, after = None if old_tree else _side(old), None if new_tree else _side(new)
        if before != after:
            yield Change(path.decode("utf-8"), before, after)
        if old is not None and old_tree:
            for name, entry in self._walk(old[1], path + b"/"):
                yield Change(name, _side(entry), None)
        if new is not None and new_tree:
            for name, entry in self._walk(new[1], path + b"/"):
                yield Change(name, None, _side(entry))


def _decoded(oid: bytes, data: bytes) -> Tree:
    try:
        return parse_tree(data)
    except ValueError:
        raise MemhtmlError("ERR_GIT", f"git tree {oid.hex()} is damaged") from None


def _side(entry: Raw | None) -> tuple[int, str] | None:
    return None if entry is None else (int(entry[0], 8), entry[1].hex())


def _text(name: bytes) -> str | None:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return None
