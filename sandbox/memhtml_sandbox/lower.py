"""What a run is seeded with: read-only layers on disk, and the session's own layer over them.

Reads answer in the kernel's order, top layer first, with whiteouts and opaque folders respected
(spec `sandbox` §3.3). Every step is an `openat` that follows no link, so a tree that another
process of the same user tampered with cannot lead a read outside. Nothing here writes.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

OPAQUE = b"user.overlay.opaque"
WHITEOUT = b"user.overlay.whiteout"

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Source(Protocol):
    """Where the records of a commit come from; the caller has git and the head database.

    Paths are relative, `/` between segments. Raises `LookupError` for a commit it does not have.
    """

    def files(self, sha: str) -> Iterable[tuple[str, bytes]]:
        """Every record of the commit with its bytes."""
        ...

    def difference(self, old: str, new: str) -> Iterable[tuple[str, bytes | None]]:
        """Records that differ from `old` in `new`, with the new bytes; None where it is gone."""
        ...


class SessionLayer(NamedTuple):
    """The session's log folded over its base: files it holds, and base paths it has removed."""

    files: Mapping[str, bytes]
    gone: frozenset[str]


NO_LAYER = SessionLayer({}, frozenset())


def segments(path: str) -> list[bytes] | None:
    """The path's segments as bytes, or None for a path that no tree can hold."""
    try:
        parts = path.encode("utf-8").split(b"/")
    except UnicodeEncodeError:
        return None
    if b"\0" in path.encode("utf-8") or any(part in (b"", b".", b"..") for part in parts):
        return None
    return parts


def parents(path: str) -> Iterator[str]:
    """Proper parent folders of a path, the longest first."""
    cut = path.rfind("/")
    while cut > 0:
        yield path[:cut]
        cut = path.rfind("/", 0, cut)


def read_all(fd: int, limit: int | None = None) -> bytes:
    """The bytes of an open regular file from its start, at most `limit` of them."""
    # Asking for no more than there is spares a buffer of the limit's size for every file.
    size = os.fstat(fd).st_size
    wanted = size if limit is None else min(limit, size)
    chunks: list[bytes] = []
    while wanted > 0:
        chunk = os.read(fd, min(wanted, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        wanted -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def is_opaque(fd: int) -> bool:
    """Whether a folder of a layer hides what layers below it hold."""
    try:
        return os.getxattr(fd, OPAQUE) == b"y"
    except OSError:
        return False


class Folder:
    """One folder as the layers merge it: a descriptor for each layer that adds to it, top first.

    Whoever opened it closes it.
    """

    __slots__ = ("fds",)

    def __init__(self, fds: list[int]) -> None:
        self.fds = fds

    def close(self) -> None:
        """Close the descriptors; a second call does nothing."""
        fds, self.fds = self.fds, []
        for fd in fds:
            os.close(fd)

    def folder(self, name: bytes) -> Folder | None:
        """The sub-folder of that name, or None when it is a file, hidden, or not there."""
        found: list[int] = []
        last = len(self.fds) - 1
        for index, parent in enumerate(self.fds):
            try:
                fd = os.open(name, FOLDER_FLAGS, dir_fd=parent)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    break
                Folder(found).close()
                raise
            found.append(fd)
            if index < last and is_opaque(fd):
                break
        return Folder(found) if found else None

    def open_file(self, name: bytes) -> int | None:
        """A descriptor of the regular file of that name, or None; the caller closes it."""
        for parent in self.fds:
            try:
                fd = os.open(name, FILE_FLAGS, dir_fd=parent)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno in (errno.ENXIO, errno.ELOOP, errno.ENOTDIR):
                    return None
                if _is_whiteout_at(parent, name):
                    return None
                raise
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return fd
            os.close(fd)
            return None
        return None

    def names(self) -> dict[bytes, bool]:
        """Names present here, each with whether it is a folder; in no order."""
        merged: dict[bytes, bool | None] = {}
        for fd in self.fds:
            with os.scandir(fd) as entries:
                for entry in entries:
                    name = os.fsencode(entry.name)
                    if name not in merged:
                        merged[name] = _kind(entry)
        return {name: kind for name, kind in merged.items() if kind is not None}


def _kind(entry: os.DirEntry[str]) -> bool | None:
    """True for a folder, False for a regular file, None for what hides a name."""
    if entry.is_dir(follow_symlinks=False):
        return True
    return False if entry.is_file(follow_symlinks=False) else None


def _is_whiteout_at(parent: int, name: bytes) -> bool:
    """A whiteout cannot be opened on a mount without devices; its type still shows."""
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


class Lower:
    """The immutable layers of one commit, bottom to top: a base, and at most one delta.

    `layers` are absolute folders on disk. Raises `OSError` when one of them cannot be read.
    """

    __slots__ = ("layers", "sha")

    def __init__(self, sha: str, layers: tuple[str, ...]) -> None:
        self.sha = sha
        self.layers = layers

    def open_root(self) -> Folder:
        """The merged top folder; the caller closes it."""
        fds: list[int] = []
        try:
            for layer in reversed(self.layers):
                fds.append(os.open(layer, FOLDER_FLAGS))
        except OSError:
            Folder(fds).close()
            raise
        return Folder(fds)

    def open_folder(self, path: str) -> Folder | None:
        """The merged folder at a path ("" is the top), or None; the caller closes it."""
        parts = segments(path) if path else []
        if parts is None:
            return None
        folder = self.open_root()
        for part in parts:
            below = folder.folder(part)
            folder.close()
            if below is None:
                return None
            folder = below
        return folder

    def read(self, path: str) -> bytes | None:
        """The seeded bytes at a path, or None when there is no file."""
        fd = self._open(path)
        if fd is None:
            return None
        try:
            return read_all(fd)
        finally:
            os.close(fd)

    def holds(self, path: str) -> bool:
        """Whether a file is seeded at the path."""
        fd = self._open(path)
        if fd is None:
            return False
        os.close(fd)
        return True

    def _open(self, path: str) -> int | None:
        parts = segments(path)
        if parts is None:
            return None
        folder = self.open_folder(path[: path.rfind("/")] if len(parts) > 1 else "")
        if folder is None:
            return None
        try:
            return folder.open_file(parts[-1])
        finally:
            folder.close()

    def under(self, prefix: str) -> Iterator[str]:
        """Seeded paths below a folder ("" for all) in code-point order; not the folder itself."""
        top = self.open_folder(prefix)
        if top is None:
            return
        stack = [(top, f"{prefix}/" if prefix else "", _ordered(top))]
        try:
            while stack:
                folder, path, names = stack[-1]
                if not names:
                    stack.pop()[0].close()
                    continue
                name, is_folder = names.pop()
                shown = path + name.decode("utf-8", "surrogateescape")
                if not is_folder:
                    yield shown
                    continue
                below = folder.folder(name)
                if below is not None:
                    stack.append((below, f"{shown}/", _ordered(below)))
        finally:
            for folder, _, _ in stack:
                folder.close()


def _ordered(folder: Folder) -> list[tuple[bytes, bool]]:
    """Names so that popping from the end gives paths in order: a folder sorts with its `/`."""
    names = folder.names().items()
    return sorted(names, key=lambda item: item[0] + b"/" if item[1] else item[0], reverse=True)


class Seed:
    """The session's layer over the lower layers: exactly the files a run starts with."""

    __slots__ = ("folders", "layer", "lower")

    def __init__(self, lower: Lower, layer: SessionLayer = NO_LAYER) -> None:
        self.lower = lower
        self.layer = layer
        self.folders = frozenset(parent for path in layer.files for parent in parents(path))

    def covered(self, path: str) -> bool:
        """Whether the session's layer decides about this path, so that the layers below do not."""
        layer = self.layer
        return path in layer.files or path in layer.gone or path in self.folders

    def read(self, path: str) -> bytes | None:
        """The seeded bytes at a path, or None when there is no file."""
        if path in self.layer.files:
            return self.layer.files[path]
        return None if self._hidden(path) else self.lower.read(path)

    def holds(self, path: str) -> bool:
        """Whether a file is seeded at the path."""
        if path in self.layer.files:
            return True
        return not self._hidden(path) and self.lower.holds(path)

    def _hidden(self, path: str) -> bool:
        if not self.layer.files and not self.layer.gone:
            return False
        return self.covered(path) or any(self._cuts(parent) for parent in parents(path))

    def _cuts(self, folder: str) -> bool:
        """A file or a whiteout of the session's layer where the layers below have a folder."""
        return folder in self.layer.files or folder in self.layer.gone

    def under(self, prefix: str) -> Iterator[str]:
        """Seeded paths below a folder ("" for all) in code-point order."""
        start = f"{prefix}/" if prefix else ""
        own = sorted(path for path in self.layer.files if path.startswith(start))
        if prefix and (self._cuts(prefix) or any(self._cuts(up) for up in parents(prefix))):
            yield from own
            return
        done = 0
        for path in self.lower.under(prefix):
            if self._hidden(path):
                continue
            upto = bisect_left(own, path, done)
            yield from own[done:upto]
            done = upto
            yield path
        yield from own[done:]

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every seeded file with its bytes, in code-point order; what a copy is filled with."""
        for path in self.under(""):
            data = self.read(path)
            if data is not None:
                yield path, data
