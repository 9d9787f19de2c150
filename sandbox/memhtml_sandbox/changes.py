"""Reads what a script left behind, as changed and vanished paths against the seed.

Works on descriptors alone and follows no link: every step is an `openat` of one name, and nothing
but a regular file is ever opened (spec `sandbox` §10). Call it only when every process of the run
is dead. What a change means is not decided here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.lower import (
    FILE_FLAGS,
    FOLDER_FLAGS,
    WHITEOUT,
    Folder,
    Lower,
    Seed,
    SessionLayer,
    is_opaque,
    read_all,
)

Kind = Literal["file", "link", "pipe", "socket", "device", "too-deep"]

_SPECIAL: dict[int, Kind] = {
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class WalkLimits(Protocol):
    """The two caps of the walk; `Limits` has them."""

    @property
    def walk_entries(self) -> int:
        """Entries read at most; more is `exec.harvest`."""
        ...

    @property
    def walk_depth(self) -> int:
        """Path segments of the deepest entry that is looked at."""
        ...


class _Tree:
    """The root descriptor that entries are read through; after `close` nothing can be read."""

    __slots__ = ("_folder", "_folder_fd", "fd")

    def __init__(self, fd: int) -> None:
        self.fd: int | None = fd
        # Entries are read in path order, so the next one is mostly in the folder of the last.
        self._folder = b""
        self._folder_fd: int | None = None

    def close(self) -> None:
        self._leave()
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def read(self, path: bytes, limit: int) -> bytes:
        folder, _, name = path.rpartition(b"/")
        fd = _open_file(self._enter(folder), name)
        try:
            return read_all(fd, limit)
        finally:
            os.close(fd)

    def _leave(self) -> None:
        fd, self._folder_fd = self._folder_fd, None
        if fd is not None:
            os.close(fd)

    def _enter(self, folder: bytes) -> int:
        if self.fd is None:
            raise OSError(errno.EBADF, "the run is over and its tree is gone")
        if self._folder_fd is None or folder != self._folder:
            self._leave()
            fd = os.dup(self.fd)
            for part in folder.split(b"/") if folder else ():
                try:
                    below = os.open(part, FOLDER_FLAGS, dir_fd=fd)
                finally:
                    os.close(fd)
                fd = below
            self._folder, self._folder_fd = folder, fd
        return self._folder_fd


class Entry:
    """What is at a changed path: its kind, its size in bytes (0 unless a file), its bytes."""

    __slots__ = ("_path", "_tree", "kind", "size")

    def __init__(self, kind: Kind, size: int, tree: _Tree, path: bytes) -> None:
        self.kind = kind
        self.size = size
        self._tree = tree
        self._path = path

    def __repr__(self) -> str:
        return f"Entry({self.kind!r}, {self.size})"

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes of a file, while the run is open. Raises `OSError`."""
        if self.kind != "file":
            raise OSError(errno.EINVAL, f"a {self.kind} is never opened", self._path)
        return self._tree.read(self._path, limit)


class ChangeSet:
    """`changed` by path in byte order, and the seeded paths that hold no regular file now."""

    __slots__ = ("_tree", "changed", "vanished")

    def __init__(
        self, changed: Mapping[bytes, Entry], vanished: frozenset[str], tree: _Tree | None = None
    ) -> None:
        self.changed = changed
        self.vanished = vanished
        self._tree = tree

    def close(self) -> None:
        """Let go of the tree; entries cannot be read any more. A second call does nothing."""
        if self._tree is not None:
            self._tree.close()


class _Frame(NamedTuple):
    """A folder being read: its descriptor, the names still to do, and the seed at the same path.

    `covered` says that everything seeded below is already counted as vanished, so that a file that
    is here takes itself out again. `text` is None below a name that is not UTF-8: nothing is
    seeded there.
    """

    fd: int
    path: bytes
    text: str | None
    depth: int
    names: list[bytes]
    seed: Folder | None
    covered: bool


def read_overlay(upper_fd: int, lower: Lower, layer: SessionLayer, limits: WalkLimits) -> ChangeSet:
    """The change set of an overlay's upper layer. Raises `SandboxFailed("exec.harvest", …)`.

    The descriptor stays the caller's; the result holds one of its own until it is closed.
    """
    return _Walk(Seed(lower, layer), limits, overlay=True).read(upper_fd)


def read_copy(tree_fd: int, lower: Lower, layer: SessionLayer, limits: WalkLimits) -> ChangeSet:
    """The same for a copy of the whole view: every file is read and compared (spec `sandbox` §9).

    A whole tree is an upper layer whose top folder is opaque: what is not in it is gone.
    """
    return _Walk(Seed(lower, layer), limits, overlay=False).read(tree_fd)


class _Walk:
    def __init__(self, seed: Seed, limits: WalkLimits, *, overlay: bool) -> None:
        self.seed = seed
        self.entries_left = limits.walk_entries
        self.depth_max = limits.walk_depth
        self.entries_max = limits.walk_entries
        self.overlay = overlay
        self.changed: dict[bytes, Entry] = {}
        self.vanished: set[str] = set()
        self.stack: list[_Frame] = []
        self.tree: _Tree

    def read(self, given_fd: int) -> ChangeSet:
        try:
            self.tree = _Tree(_reopen(given_fd))
            try:
                self._walk()
            except BaseException:
                self.tree.close()
                raise
        except OSError as error:
            raise SandboxFailed("exec.harvest", f"the tree cannot be read: {error}") from error
        changed = dict(sorted(self.changed.items()))
        return ChangeSet(changed, frozenset(self.vanished), self.tree)

    def _walk(self) -> None:
        covered = not self.overlay
        if covered:
            self.vanished.update(self.seed.under(""))
            # A copy's tmpfs has room for a third more than the view: what it let in is read.
            self.entries_left += len(self.vanished) // 2
        assert self.tree.fd is not None
        try:
            self._push(_reopen(self.tree.fd), b"", "", self.seed.lower.open_root(), covered)
            while self.stack:
                frame = self.stack[-1]
                if frame.names:
                    self._entry(frame, frame.names.pop())
                else:
                    _close(self.stack.pop())
        finally:
            for frame in self.stack:
                _close(frame)

    def _push(
        self, fd: int, path: bytes, text: str | None, seed: Folder | None, covered: bool
    ) -> None:
        """Start on a folder; takes over the descriptors."""
        depth = self.stack[-1].depth + 1 if self.stack else 0
        frame = _Frame(fd, path, text, depth, [], seed, covered)
        self.stack.append(frame)
        frame.names.extend(os.fsencode(name) for name in os.listdir(fd))
        # Names are taken from the end.
        frame.names.sort(reverse=True)

    def _count(self, *, as_seeded: bool = False) -> None:
        """Count an entry. What a copy holds as it was seeded is not the script's and is free."""
        if as_seeded and not self.overlay:
            return
        self.entries_left -= 1
        if self.entries_left < 0:
            raise SandboxFailed(
                "exec.harvest", f"the script left more than {self.entries_max} entries"
            )

    def _entry(self, frame: _Frame, name: bytes) -> None:
        path = frame.path + b"/" + name if frame.path else name
        text = _text(frame.text, name)
        found = os.stat(name, dir_fd=frame.fd, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            self._folder(frame, name, path, text, found)
        elif self.overlay and self._is_whiteout(frame, name, found):
            self._count()
            self._vanish(frame, text)
        elif stat.S_ISREG(found.st_mode):
            self._file(frame, name, path, text, found)
        else:
            self._count()
            self._vanish(frame, text)
            kind = _SPECIAL[stat.S_IFMT(found.st_mode)]
            self._add(frame, path, kind, 0)

    def _add(self, frame: _Frame, path: bytes, kind: Kind, size: int) -> None:
        if frame.depth >= self.depth_max:
            kind, size = "too-deep", 0
        self.changed[path] = Entry(kind, size, self.tree, path)

    def _vanish(self, frame: _Frame, text: str | None) -> None:
        """What was seeded at the path and below it is gone."""
        if text is None or frame.covered:
            return
        if self.seed.holds(text):
            self.vanished.add(text)
        else:
            self.vanished.update(self.seed.under(text))

    def _is_whiteout(self, frame: _Frame, name: bytes, found: os.stat_result) -> bool:
        if stat.S_ISCHR(found.st_mode):
            return found.st_rdev == 0
        if not stat.S_ISREG(found.st_mode) or found.st_size:
            return False
        fd = _open_path(frame.fd, name)
        try:
            # `getxattr` refuses an `O_PATH` descriptor, but not its link, which is no lookup.
            os.getxattr(_link(fd), WHITEOUT)
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    # Folders.

    def _folder(
        self, frame: _Frame, name: bytes, path: bytes, text: str | None, found: os.stat_result
    ) -> None:
        seed = self._seed_folder(frame, name, text)
        known = seed is not None or (text is not None and text in self.seed.folders)
        try:
            self._count(as_seeded=known)
            if frame.depth >= self.depth_max and not known:
                self._vanish(frame, text)
                self._add(frame, path, "too-deep", 0)
                return
            if not known:
                self._vanish(frame, text)
            fd = _open_folder(frame.fd, name, found.st_mode)
            covered = frame.covered
            if self.overlay and not covered and is_opaque(fd):
                self._vanish(frame, text)
                covered = True
        except BaseException:
            if seed is not None:
                seed.close()
            raise
        self._push(fd, path, text, seed, covered)

    def _seed_folder(self, frame: _Frame, name: bytes, text: str | None) -> Folder | None:
        if frame.seed is None or text is None:
            return None
        if text in self.seed.layer.files or text in self.seed.layer.gone:
            return None
        return frame.seed.folder(name)

    # Files.

    def _file(
        self, frame: _Frame, name: bytes, path: bytes, text: str | None, found: os.stat_result
    ) -> None:
        same = self._compare(frame, name, text, found)
        self._count(as_seeded=bool(same))
        if same is None:
            # The seed has no file here, but it may have a folder: no whiteout is written then.
            self._vanish_below(frame, name, text)
        elif text is not None:
            self.vanished.discard(text)
        if not same:
            self._add(frame, path, "file", found.st_size)

    def _vanish_below(self, frame: _Frame, name: bytes, text: str | None) -> None:
        if text is None or frame.covered:
            return
        below = self._seed_folder(frame, name, text)
        if below is not None:
            below.close()
        if below is not None or text in self.seed.folders:
            self.vanished.update(self.seed.under(text))

    def _compare(
        self, frame: _Frame, name: bytes, text: str | None, found: os.stat_result
    ) -> bool | None:
        """Whether the file has its seed's bytes; None when no file is seeded at its path.

        Sizes are compared first, so a sparse giant is not read.
        """
        if text is None:
            return None
        own = self.seed.layer.files.get(text)
        if own is not None:
            return len(own) == found.st_size and _bytes_at(frame.fd, name, found) == own
        if frame.seed is None or self.seed.covered(text):
            return None
        seed_fd = frame.seed.open_file(name)
        if seed_fd is None:
            return None
        try:
            if os.fstat(seed_fd).st_size != found.st_size:
                return False
            return _bytes_at(frame.fd, name, found) == read_all(seed_fd)
        finally:
            os.close(seed_fd)


def _text(parent: str | None, name: bytes) -> str | None:
    if parent is None:
        return None
    try:
        return f"{parent}/{name.decode()}" if parent else name.decode()
    except UnicodeDecodeError:
        return None


def _close(frame: _Frame) -> None:
    os.close(frame.fd)
    if frame.seed is not None:
        frame.seed.close()


def _link(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _reopen(fd: int) -> int:
    """A readable descriptor of the same folder, whatever the script did to the folder's mode."""
    mode = os.fstat(fd).st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(_link(fd), stat.S_IRWXU)
    return os.open(".", FOLDER_FLAGS, dir_fd=fd)


def _open_path(parent: int, name: bytes) -> int:
    return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def _unlock(parent: int, name: bytes, kind: int, mode: int) -> None:
    """Give an entry a mode that lets its owner read it; the tree is thrown away anyway."""
    fd = _open_path(parent, name)
    try:
        if stat.S_IFMT(os.fstat(fd).st_mode) == kind:
            os.chmod(_link(fd), mode)
    finally:
        os.close(fd)


def _open_folder(parent: int, name: bytes, mode: int) -> int:
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        _unlock(parent, name, stat.S_IFDIR, stat.S_IRWXU)
    return os.open(name, FOLDER_FLAGS, dir_fd=parent)


def _open_file(parent: int, name: bytes) -> int:
    """A descriptor of a regular file; anything else is an `OSError` and stays unread."""
    try:
        fd = os.open(name, FILE_FLAGS, dir_fd=parent)
    except PermissionError:
        _unlock(parent, name, stat.S_IFREG, stat.S_IRUSR | stat.S_IWUSR)
        fd = os.open(name, FILE_FLAGS, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", name)
    return fd


def _bytes_at(parent: int, name: bytes, found: os.stat_result) -> bytes | None:
    """A file's bytes up to its size, or None when it cannot be read and so counts as changed."""
    try:
        fd = _open_file(parent, name)
    except OSError:
        return None
    try:
        return read_all(fd, found.st_size)
    except OSError:
        return None
    finally:
        os.close(fd)
