"""Where `index.db` and `state.db` lie, and the file locks around opening, replacing and filling
them. No SQL here.

Every opener of `index.db` holds a shared lock; moving it aside takes it exclusively, because a name
that changes under an open WAL database corrupts it. A second lock admits one writer at a time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable

from memhtml.store.snapshot_files import Guard, remove

FOLDER = ".memhtml"
OPEN_LOCK = "index.db-lock"
WRITE_LOCK = "index.db-writer"
"""Git ignores both names, by the pattern `index.db-*`."""
OPEN_WAIT_S = 5.0
COMPANIONS = ("", "-wal", "-shm", "-journal")

_POLL_S = 0.01


class Planted(Exception):
    """Something other than a plain file or folder of our own is at the name; `str()` says what."""


def folder(root: str) -> str:
    """The store's local folder."""
    return f"{root}/{FOLDER}"


def index_path(root: str) -> str:
    """The index database."""
    return f"{root}/{FOLDER}/index.db"


def state_path(root: str) -> str:
    """The access database, which nothing but its own export can bring back."""
    return f"{root}/{FOLDER}/state.db"


def make_folder(root: str) -> bool:
    """See that the local folder is there; whether it can be written.

    Raises `Planted` when a link or a file is in its place.
    """
    place = folder(root)
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        try:
            os.mkdir(place)
        except FileExistsError:
            return make_folder(root)
        except OSError:
            return False
        return True
    if not stat.S_ISDIR(found.st_mode):
        raise Planted(f"{FOLDER} is no folder")
    return os.access(place, os.W_OK | os.X_OK)


def require_plain(path: str) -> None:
    """Refuse a database, or a companion of it, that is a link, a folder or a pipe.

    SQLite follows links, so one that came with a copied store would have it write elsewhere.
    """
    for suffix in COMPANIONS:
        try:
            found = os.lstat(path + suffix)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise Planted(f"{FOLDER}/{os.path.basename(path)}{suffix} is no plain file")


def hold(root: str, name: str, *, exclusive: bool, wait_s: float) -> Guard | None:
    """Take the lock file `name` of the local folder; None when others kept it for `wait_s`.

    Raises OSError when the file cannot be made, and `Planted` when a link has its name.
    """
    path = f"{folder(root)}/{name}"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            raise Planted(f"{FOLDER}/{name} is no plain file") from error
        raise
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    deadline = time.monotonic() + wait_s
    try:
        while not _locked(fd, kind):
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(_POLL_S)
    except BaseException:
        os.close(fd)
        raise
    return Guard(fd, exclusive=exclusive)


def _locked(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
            raise
        return False
    return True


def aside_path(root: str) -> str:
    """Where a bad index is kept, for whoever wants to look; git ignores the name."""
    return index_path(root) + "-bad"


def move_aside(root: str, is_bad: Callable[[], bool]) -> bool:
    """Rename `index.db` and its companions, over the last one kept; False when others have it open.

    `is_bad` is asked once nobody has it open: another process may have been first. Raises OSError.
    """
    guard = hold(root, OPEN_LOCK, exclusive=True, wait_s=OPEN_WAIT_S)
    if guard is None:
        return False
    with guard:
        if is_bad():
            # All of them: a journal that stays would be played into the new file.
            for suffix in COMPANIONS:
                _rename(index_path(root) + suffix, aside_path(root) + suffix)
    return True


def _rename(path: str, kept: str) -> None:
    remove(kept)
    try:
        os.rename(path, kept)
    except FileNotFoundError:
        return
