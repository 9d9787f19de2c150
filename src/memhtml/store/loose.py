"""Objects that are a file each: read and written without git, in git's own way.

Only for a plain repository of ours (`refs.plain_git_dir`): what else a repository may ask for,
shared permissions for one, is git's to do.
"""

from __future__ import annotations

import os
import zlib

from memhtml.errors import MemhtmlError
from memhtml.store.atomic import write_all

_TEMPORARY = "tmp_obj_"
"""What `git gc` knows for a left-over."""
_FASTEST = 1


class Damaged(Exception):
    """A loose object that is not whole; a pack may have it too."""


def read(git_dir: str, oid: bytes) -> tuple[str, bytes] | None:
    """A loose object's type and bytes, None when there is none. Raises `Damaged`."""
    try:
        with open(_path(git_dir, oid), "rb") as file:
            stored = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged from error
    try:
        head, _, data = zlib.decompress(stored).partition(b"\0")
        kind, size_text = head.decode("ascii").split(" ")
        whole = int(size_text) == len(data)
    except (ValueError, zlib.error) as error:
        raise Damaged from error
    if not whole:
        raise Damaged
    return kind, data


def write(git_dir: str, oid: bytes, kind: str, data: bytes) -> None:
    """Store one object under its id. Raises `MemhtmlError` `ERR_GIT`."""
    path = _path(git_dir, oid)
    try:
        os.utime(path)  # There already: young again, so that no `git gc` takes it away.
        return
    except FileNotFoundError:
        pass
    except OSError:
        return  # Another user's: there all the same.
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f"{_TEMPORARY}{os.urandom(6).hex()}")
    content = zlib.compress(f"{kind} {len(data)}\0".encode() + data, _FASTEST)
    try:
        _write_new(folder, temporary, content)
        os.rename(temporary, path)
    except BaseException as error:
        _remove_quietly(temporary)
        if isinstance(error, OSError):
            raise _failed(kind, error) from error
        raise


def _path(git_dir: str, oid: bytes) -> str:
    name = oid.hex()
    return os.path.join(git_dir, "objects", name[:2], name[2:])


def _write_new(folder: str, path: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o444)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(path, flags, 0o444)
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _failed(kind: str, error: OSError) -> MemhtmlError:
    return MemhtmlError("ERR_GIT", f"writing a {kind} failed: {error.strerror}")
