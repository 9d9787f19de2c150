"""The cache's folders and notes, read and emptied without following a link.

What lies in the cache of a store may have come with somebody's repository. So a folder that is a
link is refused, what is removed is reached by descriptors, and a note counts only when it is a
small file of our own. Nothing here knows what a note means.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.lower import FILE_FLAGS, FOLDER_FLAGS

NOTE_BYTES = 1 << 16


def require_plain(root: str, *names: str) -> None:
    """Refuse a cache whose folder, or one of those named in it, is a symbolic link.

    One that is not there is fine. Raises `SandboxFailed("exec.seed", …)`.
    """
    for path in (root, *(f"{root}/{name}" for name in names)):
        if is_link(path):
            raise SandboxFailed("exec.seed", f"{path} is a symbolic link; {LINK_REMEDY}")


LINK_REMEDY = "delete the link, or set MEMHTML_SANDBOX_CACHE to a folder"


def is_link(path: str) -> bool:
    """Whether the path itself is a symbolic link; what is not there is none."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


@contextmanager
def opened(root: str, *names: str) -> Iterator[int]:
    """A descriptor of the folder, going down by name from `root`; raises `OSError` at a link."""
    fd = os.open(root, FOLDER_FLAGS)
    try:
        for name in names:
            below = os.open(name, FOLDER_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def remove(parent_fd: int, name: str) -> None:
    """Delete a tree or a file by its name in a folder, whatever of it is still there."""
    import shutil  # 8 ms, and only for what is rare.

    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=parent_fd)
        else:
            os.unlink(name, dir_fd=parent_fd)


def modified_s(name: str, parent_fd: int | None = None) -> float:
    """The modification time of an entry itself, 0 when it is not there."""
    try:
        return os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return 0.0


def read_note(path: str) -> Any:
    """The JSON value of a note; None when there is none, or none that we can have written.

    That is a regular file of ours below 64 KiB. Never waits, also not for a pipe.
    """
    try:
        fd = os.open(path, FILE_FLAGS)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        data = os.read(fd, NOTE_BYTES)
        return json.loads(data) if len(data) < NOTE_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(fd)
