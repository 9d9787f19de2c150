"""Reads and writes git objects by their ids, with little memory and work bound by what is touched.

Trees are read as raw bytes and decoded here, so that an unchanged folder costs nothing, names stay
exact and one pass needs no object per entry. Refs, the index and the checkout belong to other
modules. Loading pygit2 costs 60 ms, so nothing here loads it before the first object is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

from memhtml.errors import MemhtmlError

if TYPE_CHECKING:
    import pygit2

Kind = Literal["blob", "tree", "link", "commit"]

MODE_FILE = 0o100644
MODE_EXECUTABLE = 0o100755
MODE_LINK = 0o120000
MODE_SUBMODULE = 0o160000
FILE_MODES = frozenset({MODE_FILE, MODE_EXECUTABLE})

_WINDOW_BYTES = 1 << 20
_MAPPED_BYTES = 24 << 20
_KEPT_TREES_BYTES = 1 << 20
_KEPT_ROOTS = 32
_COMMIT_TYPE = 1
_TREE_TYPE = 2
_EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


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


# One entry of a tree object: mode as octal text, 20-byte id. A tree: name to entry, as stored.
Raw = tuple[bytes, bytes]
Tree = dict[bytes, Raw]
TREE_MODE = b"40000"
# Not compiled here: a call over a warm head database reads no tree. `re` keeps them compiled.
_ENTRY = rb"(?s)([0-7]+) ([^\0]*)\0(.{20})"
_ENTRIES = rb"(?s)(?:[0-7]+ [^\0]*\0.{20})*+"
_ENTRY_EXTRA_BYTES = 22
"""What an entry takes beside its mode and its name."""

# One entry as the expression captures it: mode, name, id.
Part = tuple[bytes, bytes, bytes]


def parse_tree(data: bytes) -> Tree:
    """The entries of a tree object in stored order. Raises ValueError when it is damaged."""
    return _as_tree(_parts(data))


def differing_entries(old: bytes, new: bytes) -> tuple[Tree, Tree]:
    """The entries of each of two tree objects that the other does not have.

    Only what follows the entries they begin with in common is decoded. Raises ValueError when
    one is damaged.
    """
    common = re.compile(_ENTRIES).match(old, 0, _common_start(old, new))
    start = common.end() if common is not None else 0
    before, after = set(_parts(old[start:])), set(_parts(new[start:]))
    return _as_tree(before - after), _as_tree(after - before)


def _common_start(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with in common: by halves, each compared in C."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _parts(data: bytes) -> list[Part]:
    """One pass in C: an advance spends most of its time on folders of hundreds of entries."""
    found: list[Part] = re.findall(_ENTRY, data)
    modes, names, _oids = zip(*found, strict=True) if found else ((), (), ())
    # Entries never overlap, so they are the whole object exactly when their sizes add up to it.
    size = sum(map(len, modes)) + sum(map(len, names)) + _ENTRY_EXTRA_BYTES * len(found)
    if size != len(data):
        raise ValueError("tree object is damaged")
    return found


def _as_tree(parts: Iterable[Part]) -> Tree:
    return {name: (mode, oid) for mode, name, oid in parts}


def is_tree(mode: bytes) -> bool:
    """Whether an entry's stored mode is a folder's; old tools wrote a leading zero."""
    return mode in (TREE_MODE, b"040000")


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
        self._handle: pygit2.Repository | None = None
        self._trees: dict[bytes, Tree] = {}
        self._trees_bytes = 0
        self._roots: dict[str, bytes] = {}
        self._trusts_file_mode: bool | None = None
        self.index_seen: tuple[int, int, int] | None = None
        """The index file that `checkout.dirty` looked at last."""

    @property
    def handle(self) -> pygit2.Repository:
        """The open pygit2 repository."""
        if self._handle is None:
            self._handle = _open(self.root)
        return self._handle

    @property
    def trusts_file_mode(self) -> bool:
        """Whether the executable bit means something here (`core.fileMode`)."""
        if self._trusts_file_mode is None:
            with _git_errors("reading core.fileMode"):
                try:
                    self._trusts_file_mode = self.handle.config.get_bool("core.filemode")
                except KeyError:
                    self._trusts_file_mode = True
        return self._trusts_file_mode

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
        yield from self._difference(self._root_tree(old), self._root_tree(new), b"")

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether `descendant` is `ancestor` or comes after it; False when either is missing."""
        if not (self.commit_exists(ancestor) and self.commit_exists(descendant)):
            return False
        if ancestor == descendant:
            return True
        with _git_errors("reading the history"):
            return bool(self.handle.descendant_of(descendant, ancestor))

    def commit_exists(self, sha: str) -> bool:
        """Whether `sha` names a commit that is in the object store."""
        try:
            return self._read_typed(bytes.fromhex(sha))[0] == _COMMIT_TYPE
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

    def write_object(self, kind: Literal["blob", "tree", "commit"], data: bytes) -> str:
        """Store one object and answer its id; storing the same bytes again costs a look-up."""
        import pygit2

        number = {
            "blob": pygit2.enums.ObjectType.BLOB,
            "tree": pygit2.enums.ObjectType.TREE,
            "commit": pygit2.enums.ObjectType.COMMIT,
        }[kind]
        with _git_errors(f"writing a {kind}"):
            return str(self.handle.write(number, data))

    def _header(self, commit: str) -> list[bytes]:
        kind, data = self._read_typed(bytes.fromhex(commit))
        if kind != _COMMIT_TYPE:
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
        known = self._trees.get(oid)
        if known is not None:
            return known
        data = self._read(oid)
        entries = _decoded(oid, data)
        if self._trees_bytes + len(data) > _KEPT_TREES_BYTES:
            self._trees.clear()
            self._trees_bytes = 0
        self._trees[oid] = entries
        self._trees_bytes += len(data)
        return entries

    def _read(self, oid: bytes) -> bytes:
        return self._read_typed(oid)[1]

    def _read_typed(self, oid: bytes) -> tuple[int, bytes]:
        import pygit2

        with _git_errors(f"reading object {oid.hex()}"):
            try:
                return self.handle.read(pygit2.Oid(raw=oid))
            except KeyError:
                if oid == _EMPTY_TREE:
                    return _TREE_TYPE, b""  # git knows it without storing it.
                raise MemhtmlError("ERR_GIT", f"git object {oid.hex()} is missing") from None

    def _walk(self, oid: bytes, prefix: bytes) -> Iterator[tuple[str, Raw]]:
        # Not through the kept trees: one pass over a whole version would push out what is wanted.
        for name, entry in _decoded(oid, self._read(oid)).items():
            text = _text(prefix + name)
            if text is None:
                continue
            if is_tree(entry[0]):
                yield from self._walk(entry[1], prefix + name + b"/")
            else:
                yield text, entry

    def _difference(self, old: bytes, new: bytes, prefix: bytes) -> Iterator[Change]:
        if old == new:
            return
        try:
            before, after = differing_entries(self._read(old), self._read(new))
        except ValueError:
            raise MemhtmlError(
                "ERR_GIT", f"git tree {old.hex()} or {new.hex()} is damaged"
            ) from None
        for name in sorted({*before, *after}):
            if _text(name) is not None:
                yield from self._changed(before.get(name), after.get(name), prefix + name)

    def _changed(self, old: Raw | None, new: Raw | None, path: bytes) -> Iterator[Change]:
        old_tree = old is not None and is_tree(old[0])
        new_tree = new is not None and is_tree(new[0])
        if old is not None and new is not None and old_tree and new_tree:
            yield from self._difference(old[1], new[1], path + b"/")
            return
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


@contextmanager
def _git_errors(doing: str) -> Iterator[None]:
    """Turns pygit2's own exceptions into `ERR_GIT` that says what was being done."""
    import pygit2

    try:
        yield
    except (pygit2.GitError, KeyError, OSError) as error:
        raise MemhtmlError("ERR_GIT", f"{doing} failed: {error}") from error


def _open(root: str) -> pygit2.Repository:
    import pygit2  # 60 ms: only calls that need objects pay it.

    from memhtml.store.refs import git_accepts, refused_owner

    settings = pygit2.settings
    settings.enable_caching(False)
    settings.mwindow_size = _WINDOW_BYTES
    settings.mwindow_mapped_limit = _MAPPED_BYTES
    try:
        return pygit2.Repository(root, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
    except pygit2.GitError as error:
        if "owned by" not in str(error):
            raise MemhtmlError(
                "ERR_GIT",
                f"git cannot open the repository: {error}",
                suggestions=(f"memhtml init --repo {root}",),
            ) from error
    # git knows more forms of `safe.directory` than libgit2: ask it before refusing.
    if not git_accepts(root):
        raise refused_owner(root)
    settings.owner_validation = False
    try:
        return pygit2.Repository(root, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
    except pygit2.GitError as error:
        raise MemhtmlError("ERR_GIT", f"git cannot open the repository: {error}") from error
    finally:
        settings.owner_validation = True
