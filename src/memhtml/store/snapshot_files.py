"""The folder of head databases: file names, the lock around replacing them, putting files aside.

Every opener holds the lock shared. Removing, replacing or building a file takes it exclusively,
because renaming over a live WAL database corrupts it (`design.md` §4). No SQL here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

PLAIN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
LOCK_WAIT_S = 5.0
_POLL_S = 0.01
_COMPANIONS = ("-wal", "-shm", "-journal")
ASIDE = ".bad"
BUILDING = ".new"


def folder(root: str) -> str:
    """Where the databases of a store lie, as an absolute path."""
    return os.path.join(os.path.abspath(root), ".memhtml", "snapshots")


def file_name(ref: str) -> str:
    """The database's name: the ref without `refs/heads/`, odd bytes as `%XX`, and `.db`."""
    name = ref.removeprefix("refs/heads/").encode("utf-8", "surrogateescape")
    safe = "".join(chr(byte) if byte in PLAIN_BYTES else f"%{byte:02X}" for byte in name)
    return safe + ".db"


def database_path(root: str, ref: str) -> str:
    """Where the database of `ref` lies, as an absolute path."""
    return os.path.join(folder(root), file_name(ref))


class Guard:
    """A held `flock` on `snapshots/lock`; closing it lets go. Usable as a context manager."""

    __slots__ = ("_fd", "exclusive")

    def __init__(self, fd: int, *, exclusive: bool) -> None:
        self._fd = fd
        self.exclusive = exclusive

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def hold(root: str, *, exclusive: bool, wait_s: float | None = None) -> Guard | None:
    """Take the folder's lock, or None when others kept it for `wait_s` (5) seconds.

    Taken exclusively it makes the folder; shared, a missing one is FileNotFoundError. Raises
    OSError when the folder cannot be made or written (a read-only mount).
    """
    deadline = time.monotonic() + (LOCK_WAIT_S if wait_s is None else wait_s)
    place = folder(root)
    while True:
        fd = _open_lock(place, exclusive=exclusive)
        try:
            taken = _flock(fd, exclusive=exclusive, deadline=deadline)
            if taken and _still_there(fd, place):
                guard = Guard(fd, exclusive=exclusive)
                fd = -1
                return guard
        finally:
            if fd >= 0:
                os.close(fd)
        if not taken:
            return None


def _open_lock(place: str, *, exclusive: bool) -> int:
    path = os.path.join(place, "lock")
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        if not exclusive:
            raise
        os.makedirs(place, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        # A reader of somebody else's store, or of a read-only mount, can still lock.
        if exclusive:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _flock(fd: int, *, exclusive: bool, deadline: float) -> bool:
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                raise
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)


def _still_there(fd: int, place: str) -> bool:
    """Somebody may have deleted the folder while we waited: then the lock guards nothing."""
    try:
        found = os.stat(os.path.join(place, "lock"))
    except FileNotFoundError:
        return False
    ours = os.fstat(fd)
    return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)


def put_aside(path: str) -> None:
    """Move a database that does not open out of the way, with its `-wal` and `-shm`.

    The names end in `.bad`; one generation is kept, for whoever wants to look. Needs the
    exclusive lock. Raises OSError.
    """
    for suffix in ("", *_COMPANIONS):
        kept = f"{path}{suffix}{ASIDE}"
        remove(kept)
        try:
            os.rename(path + suffix, kept)
        except FileNotFoundError:
            continue


def publish(built: str, path: str) -> None:
    """Rename a finished database to its name. Needs the exclusive lock. Raises OSError.

    A `-wal` without its database is a left-over, and would be replayed into the new file.
    """
    for suffix in _COMPANIONS:
        remove(path + suffix)
    os.rename(built, path)


def remove_database(path: str) -> None:
    """Delete a database, its companions and what was put aside for it."""
    for suffix in ("", *_COMPANIONS):
        remove(path + suffix)
        remove(f"{path}{suffix}{ASIDE}")


def remove(path: str) -> None:
    """Delete a file, or a folder somebody put in its place; a missing one is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.EPERM):
            raise
        os.rmdir(path)


def databases(root: str) -> list[str]:
    """The databases of a store, by name, as absolute paths."""
    place = folder(root)
    try:
        names = os.listdir(place)
    except FileNotFoundError:
        return []
    return [os.path.join(place, name) for name in sorted(names) if name.endswith(".db")]


def left_overs(root: str) -> list[str]:
    """Half-built files and files put aside; garbage to whoever holds the lock exclusively."""
    place = folder(root)
    return [
        os.path.join(place, name) for name in os.listdir(place) if name.endswith((BUILDING, ASIDE))
    ]
