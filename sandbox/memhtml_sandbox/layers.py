"""Writes one layer of an overlay: files, and marks for what the layers below must not show.

Used for the trees of the cache and, inside a run's own tmpfs, for the session's layer. Works on a
descriptor of an empty folder and follows no link. It knows nothing of commits or markers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from memhtml_sandbox.lower import (
    FOLDER_FLAGS,
    OPAQUE,
    Folder,
    Lower,
    SessionLayer,
    parents,
    segments,
)

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE = 0o644
_FOLDER_MODE = 0o755


class LayerSize(NamedTuple):
    """What a layer holds: `files` counts the marks for removed paths too."""

    files: int
    size_bytes: int


class LayerWriter:
    """Fills the folder behind `root_fd`; `owner` is (uid, gid) when files need another owner.

    Files become 0644 and folders 0755 whatever the umask is. A path that no tree can hold is a
    `ValueError`; what the disk refuses is an `OSError`. Call `close` when done.
    """

    def __init__(self, root_fd: int, owner: tuple[int, int] | None = None) -> None:
        self._root_fd = root_fd
        self._owner = owner
        self._folder: tuple[bytes, ...] = ()
        self._folder_fd = root_fd
        self._fix_mode: bool | None = None
        self._files = 0
        self._size_bytes = 0

    def close(self) -> None:
        """Let go of the folder last written to; the root descriptor stays the caller's."""
        self._leave()

    @property
    def size(self) -> LayerSize:
        """How much was written so far."""
        return LayerSize(self._files, self._size_bytes)

    def write(self, path: str, data: bytes) -> None:
        """Add a file, and the folders on the way."""
        *folder, name = _parts(path)
        self._enter(tuple(folder))
        fd = os.open(name, _CREATE, _FILE_MODE, dir_fd=self._folder_fd)
        try:
            view = data
            while view:
                view = view[os.write(fd, view) :]
            self._settle(fd)
        finally:
            os.close(fd)
        self._files += 1
        self._size_bytes += len(data)

    def hide(self, path: str) -> None:
        """Mark a path as gone: a whiteout, or an opaque folder where files were put below it.

        Hide after every write. A path below a file of this layer is hidden by that file.
        """
        *folder, name = _parts(path)
        try:
            self._enter(tuple(folder))
        except NotADirectoryError:
            return
        self._files += 1
        try:
            os.mknod(name, stat.S_IFCHR | 0o600, os.makedev(0, 0), dir_fd=self._folder_fd)
        except FileExistsError:
            self._make_opaque(name)

    def _make_opaque(self, name: bytes) -> None:
        try:
            fd = os.open(name, FOLDER_FLAGS, dir_fd=self._folder_fd)
        except NotADirectoryError:
            return
        try:
            os.setxattr(fd, OPAQUE, b"y")
        except OSError as error:
            # A folder over a file hides it in any case; the mark matters with three layers only.
            if error.errno != errno.EOPNOTSUPP:
                raise
        finally:
            os.close(fd)

    def _leave(self) -> None:
        if self._folder_fd != self._root_fd:
            os.close(self._folder_fd)
        self._folder, self._folder_fd = (), self._root_fd

    def _enter(self, folder: tuple[bytes, ...]) -> None:
        """Stand in a folder, making it; paths come in order, so most calls find it open."""
        if folder == self._folder:
            return
        self._leave()
        fd = self._root_fd
        try:
            for part in folder:
                below = self._open_or_make(fd, part)
                if fd != self._root_fd:
                    os.close(fd)
                fd = below
        except OSError:
            if fd != self._root_fd:
                os.close(fd)
            raise
        self._folder, self._folder_fd = folder, fd

    def _open_or_make(self, parent: int, name: bytes) -> int:
        try:
            return os.open(name, FOLDER_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            os.mkdir(name, _FOLDER_MODE, dir_fd=parent)
        fd = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        if stat.S_IMODE(os.fstat(fd).st_mode) != _FOLDER_MODE:
            os.fchmod(fd, _FOLDER_MODE)
        if self._owner is not None:
            os.fchown(fd, *self._owner)
        return fd

    def _settle(self, fd: int) -> None:
        """Mode and owner of a new file; whether the umask interferes is asked once."""
        if self._fix_mode is None:
            self._fix_mode = stat.S_IMODE(os.fstat(fd).st_mode) != _FILE_MODE
        if self._fix_mode:
            os.fchmod(fd, _FILE_MODE)
        if self._owner is not None:
            os.fchown(fd, *self._owner)


def _parts(path: str) -> list[bytes]:
    parts = segments(path)
    if parts is None:
        raise ValueError(f"not a path a tree can hold: {path!r}")
    return parts


def write_changes(
    root_fd: int,
    changes: Iterable[tuple[str, bytes | None]],
    below: Lower,
    owner: tuple[int, int] | None = None,
) -> LayerSize:
    """Write a layer of changes over `below`; None means the path is gone.

    A folder with nothing left in it is hidden as a whole: folders are there only where a record
    needs them (spec `harvest` §2.1).
    """
    writer = LayerWriter(root_fd, owner)
    gone: list[str] = []
    try:
        for path, data in changes:
            if data is None:
                gone.append(path)
            else:
                writer.write(path, data)
        for path in gone:
            writer.hide(path)
    finally:
        writer.close()
    _hide_empty_folders(root_fd, gone, below)
    return writer.size


def write_session_layer(root_fd: int, layer: SessionLayer, below: Lower) -> LayerSize:
    """Write the session's layer into an empty folder of a run's tmpfs (spec `sandbox` §3.2)."""
    changes: list[tuple[str, bytes | None]] = sorted(layer.files.items())
    changes.extend((path, None) for path in sorted(layer.gone) if path not in layer.files)
    return write_changes(root_fd, changes, below)


def _hide_empty_folders(root_fd: int, gone: Iterable[str], below: Lower) -> None:
    touched = {parent for path in gone for parent in parents(path)}
    if not touched:
        return
    top = below.open_root()
    top.fds.insert(0, os.dup(root_fd))
    try:
        for path in sorted(touched, key=lambda folder: folder.count("/"), reverse=True):
            _hide_if_empty(top, _parts(path))
    finally:
        top.close()


def _hide_if_empty(top: Folder, parts: list[bytes]) -> None:
    """Replace a folder of the top layer by a whiteout when the merged folder shows no file."""
    chain = [top]
    try:
        for part in parts:
            below = chain[-1].folder(part)
            if below is None:
                return
            chain.append(below)
        if _shows_a_file(chain[-1]):
            return
        own, parent = chain[-1].fds[0], chain[-2].fds[0]
        for name in os.listdir(own):
            os.unlink(name, dir_fd=own)
        os.rmdir(parts[-1], dir_fd=parent)
        os.mknod(parts[-1], stat.S_IFCHR | 0o600, os.makedev(0, 0), dir_fd=parent)
    finally:
        for folder in chain[1:]:
            folder.close()


def _shows_a_file(folder: Folder) -> bool:
    """Whether any file shows below; stops at the first, so a full folder costs one entry."""
    seen: set[str] = set()
    folders: list[str] = []
    for fd in folder.fds:
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.name in seen:
                    continue
                seen.add(entry.name)
                if entry.is_file(follow_symlinks=False):
                    return True
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    for name in folders:
        below = folder.folder(os.fsencode(name))
        if below is None:
            continue
        with contextlib.closing(below):
            if _shows_a_file(below):
                return True
    return False
