"""Files of a working tree by their path in the repository, never through a link in the way.

Every folder on the way is opened without following links, so no name can lead out of the tree.
Nothing here decides what may be changed: that is `checkout`.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from types import TracebackType
from typing import Literal, NamedTuple

from memhtml.store.atomic import is_temporary_name, temporary_name, write_all

Kind = Literal["absent", "file", "link", "folder", "other", "blocked"]

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
"""What a file system without hard links answers, or one that guards another user's files."""
_STAGING = (".memhtml", "sessions")
_KEPT_FOLDERS = 128
_KEPT_DEPTHS = 64
"""Of folders deeper than may all stay open, these do: the way to another is short then."""


class Look(NamedTuple):
    """What is at a path: its kind, size and executable bit; `blocker` is the path of the first
    thing on the way that is no folder."""

    kind: Kind
    size_bytes: int = 0
    executable: bool = False
    blocker: str = ""


class Stamp(NamedTuple):
    """What tells a file that was written once from every later state of its path."""

    inode: int
    mtime_ns: int
    size_bytes: int


class Spare(NamedTuple):
    """A file that waits, under a name of its own, to be moved to its place or back.

    `stamp` is set for a file that was written just now.
    """

    folder: tuple[str, ...]
    name: str
    stamp: Stamp | None = None


class WorkTree:
    """The working tree at `root`. A context manager: it keeps folders open while it is used.

    Paths are relative, with slashes. Every method may raise OSError.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._open: dict[tuple[str, ...], int] = {}

    def __enter__(self) -> WorkTree:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.forget_folders()

    def forget_folders(self) -> None:
        """Close the folders kept open; needed after folders were removed."""
        while self._open:
            os.close(self._open.popitem()[1])

    def look(self, path: str) -> Look:
        """What is at `path`."""
        self._trim()
        *folder, name = path.split("/")
        try:
            info = os.stat(name, dir_fd=self._folder(tuple(folder)), follow_symlinks=False)
        except FileNotFoundError:
            return Look("absent")
        except NotADirectoryError as error:
            return Look("blocked", blocker=str(error.filename))
        kinds: dict[int, Kind] = {
            stat.S_IFREG: "file",
            stat.S_IFLNK: "link",
            stat.S_IFDIR: "folder",
        }
        kind = kinds.get(stat.S_IFMT(info.st_mode), "other")
        return Look(kind, info.st_size, bool(info.st_mode & stat.S_IXUSR))

    def unchanged(self, path: str, stamp: Stamp) -> os.stat_result | None:
        """The stat data of the file at `path` while it is as it was written, else None."""
        self._trim()
        *folder, name = path.split("/")
        try:
            info = os.stat(name, dir_fd=self._folder(tuple(folder)), follow_symlinks=False)
        except OSError:
            return None
        return info if _stamp(info) == stamp else None

    def read(self, path: str) -> bytes:
        """The bytes of the regular file at `path`."""
        *folder, name = path.split("/")
        return self._read(tuple(folder), name)

    def target(self, path: str) -> bytes:
        """Where the link at `path` points."""
        *folder, name = path.split("/")
        return os.fsencode(os.readlink(name, dir_fd=self._folder(tuple(folder))))

    def everything_below(self, path: str) -> tuple[list[str], list[str]]:
        """All that is no folder below the folder `path`, and all folders, as paths."""
        others: list[str] = []
        folders: list[str] = []
        waiting = [path]
        while waiting:
            here = waiting.pop()
            self._trim()
            with os.scandir(self._folder(tuple(here.split("/")))) as entries:
                for entry in entries:
                    below = f"{here}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(below)
                        waiting.append(below)
                    else:
                        others.append(below)
        return others, folders

    def spare_file(self, data: bytes, near: str, *, executable: bool = False) -> Spare:
        """Write `data` beside `near`, for `place` to move there in one step; folders are made.

        Beside it because a disk keeps the files of one folder together: elsewhere, making a file
        was seen to cost twenty times as much.
        """
        self._trim()
        *parts, name = near.split("/")
        spare = Spare(tuple(parts), temporary_name(name))
        folder = self._make_folders(spare.folder)
        try:
            stamp = self._write_new(folder, spare.name, data, 0o777 if executable else 0o666)
        except BaseException as error:
            self.discard(spare)
            if isinstance(error, OSError):
                error.filename = near  # The name people know.
            raise
        return spare._replace(stamp=stamp)

    def spare_link(self, target: bytes, near: str) -> Spare:
        """Like `spare_file`, for a symbolic link."""
        self._trim()
        *parts, name = near.split("/")
        spare = Spare(tuple(parts), temporary_name(name))
        folder = self._make_folders(spare.folder)
        os.symlink(os.fsdecode(target), spare.name, dir_fd=folder)
        return spare

    def sweep(self, folder: str) -> None:
        """Remove the spares that a killed process left in `folder`; the caller holds the lock."""
        self._trim()
        try:
            opened = self._folder(tuple(folder.split("/")) if folder else ())
            with os.scandir(opened) as entries:
                names = [entry.name for entry in entries if is_temporary_name(entry.name)]
            for name in names:
                os.unlink(name, dir_fd=opened)
        except OSError:
            return  # Gone, or no folder any more: nothing of ours is in it.

    def place(self, spare: Spare, path: str, *, replace: bool) -> None:
        """Move a spare to `path`. Without `replace` raises FileExistsError when it is taken."""
        self._trim()
        *parts, name = path.split("/")
        source, folder = self._folder(spare.folder), self._make_folders(tuple(parts))
        if not replace:
            try:
                os.link(
                    spare.name, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False
                )
            except OSError as error:
                if error.errno not in NO_HARD_LINKS:
                    raise
                if self.look(path).kind != "absent":
                    raise FileExistsError(errno.EEXIST, "in the way", path) from error
            else:
                os.unlink(spare.name, dir_fd=source)
                return
        os.rename(spare.name, name, src_dir_fd=source, dst_dir_fd=folder)

    def keep_copy(self, path: str) -> Spare | None:
        """A second name for the file at `path`, or None where the disk has no hard links."""
        self._trim()
        *parts, name = path.split("/")
        spare = Spare(self._staging(tuple(parts)), temporary_name(name))
        source, folder = self._folder(tuple(parts)), self._folder(spare.folder)
        try:
            os.link(name, spare.name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            return None
        return spare

    def take_away(self, path: str) -> Spare:
        """Move the file or link at `path` out of the tree; the folder stays."""
        self._trim()
        *parts, name = path.split("/")
        spare = Spare(self._staging(tuple(parts)), temporary_name(name))
        source, folder = self._folder(tuple(parts)), self._folder(spare.folder)
        os.rename(name, spare.name, src_dir_fd=source, dst_dir_fd=folder)
        return spare

    def read_spare(self, spare: Spare) -> bytes:
        """The bytes of a spare file, or the target of a spare link."""
        folder = self._folder(spare.folder)
        if stat.S_ISLNK(os.stat(spare.name, dir_fd=folder, follow_symlinks=False).st_mode):
            return os.fsencode(os.readlink(spare.name, dir_fd=folder))
        return self._read(spare.folder, spare.name)

    def discard(self, spare: Spare) -> None:
        """Remove a spare; one that is gone or cannot be removed is no matter."""
        try:
            os.unlink(spare.name, dir_fd=self._folder(spare.folder))
        except OSError:
            return

    def remove_empty_folders(self, path: str) -> None:
        """Remove the folders `path` lies in, from the inside out, as long as they are empty."""
        self.forget_folders()
        parts = path.split("/")[:-1]
        while parts:
            try:
                os.rmdir(parts[-1], dir_fd=self._folder(tuple(parts[:-1])))
            except OSError:
                break
            parts.pop()
            self._trim()
        self.forget_folders()

    def _write_new(self, folder: int, name: str, data: bytes, mode: int) -> Stamp:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, mode, dir_fd=folder)
        try:
            write_all(descriptor, data)
            return _stamp(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _trim(self) -> None:
        # Only between steps: a step may hold the descriptors of two folders.
        if len(self._open) > _KEPT_FOLDERS:
            self.forget_folders()

    def _read(self, folder: tuple[str, ...], name: str) -> bytes:
        # O_NONBLOCK: a pipe that took the file's place must not be waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(name, flags, dir_fd=self._folder(folder)), "rb") as file:
            return file.read()

    def _staging(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """A folder on the same disk as `parts`: the one git ignores, or `parts` itself."""
        try:
            device = os.fstat(self._make_folders(_STAGING)).st_dev
        except OSError:
            return parts
        return _STAGING if device == os.fstat(self._folder(parts)).st_dev else parts

    def _make_folders(self, parts: tuple[str, ...]) -> int:
        return self._folder(parts, make=True)

    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> int:
        """A descriptor of the folder; NotADirectoryError names what is no folder on the way.

        The folders on the way stay open too, but not without end: paths may be deep.
        """
        depth = len(parts)
        while depth and parts[:depth] not in self._open:
            depth -= 1
        if not depth and () not in self._open:
            self._open[()] = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened, passing = self._open[parts[:depth]], -1
        try:
            while depth < len(parts):
                depth += 1
                opened = self._enter(opened, parts[:depth], make=make)
                if passing >= 0:
                    os.close(passing)
                    passing = -1
                few = len(self._open) < _KEPT_FOLDERS
                if few or depth == len(parts) or depth % _KEPT_DEPTHS == 0:
                    self._open[parts[:depth]] = opened
                else:
                    passing = opened
        finally:
            if passing >= 0:
                os.close(passing)
        return opened

    def _enter(self, above: int, parts: tuple[str, ...], *, make: bool) -> int:
        try:
            return os.open(parts[-1], _FOLDER_FLAGS, dir_fd=above)
        except FileNotFoundError:
            if not make:
                raise
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
                name = "/".join(parts)
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", name) from error
            raise
        with suppress(FileExistsError):  # Somebody may be faster.
            os.mkdir(parts[-1], dir_fd=above)
        return self._enter(above, parts, make=False)


def _stamp(info: os.stat_result) -> Stamp:
    return Stamp(info.st_ino, info.st_mtime_ns, info.st_size)
