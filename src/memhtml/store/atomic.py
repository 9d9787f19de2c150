"""Replaces whole files so that a reader or a crash sees the old bytes or the new, never a mix."""

from __future__ import annotations

import os

_PREFIX = "."
_SUFFIX = ".memhtml-tmp"


def write_atomic(path: str, data: bytes, *, mode: int = 0o644) -> None:
    """Replace `path` by `data`: write beside it, flush, rename over it, flush the folder.

    `mode` is subject to the umask. Raises OSError; the old file is then as it was and nothing is
    left beside it. A crash may leave one file that `is_temporary_name` knows (spec `sessions`
    §1.2).
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, temporary_name(name))
    try:
        _write_new(temporary, data, mode)
        os.replace(temporary, path)
    except BaseException:
        _remove_quietly(temporary)
        raise
    _flush_folder(folder or ".")


def temporary_name(name: str) -> str:
    """A fresh name for a file that is to become `name`, short enough for any `name`."""
    return f"{_PREFIX}{name[:40]}.{os.urandom(8).hex()}{_SUFFIX}"


def is_temporary_name(name: str) -> bool:
    """Whether a file of this name was left by a write that never finished."""
    if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
        return False
    token = name.removesuffix(_SUFFIX).rpartition(".")[2]
    return len(token) == 16 and all(char in "0123456789abcdef" for char in token)


def stands_for(name: str, path: str) -> bool:
    """Whether a file name in a failure is `path` itself, or the file that was to become it."""
    last = path.rpartition("/")[2]
    return name == path or (is_temporary_name(name) and name.startswith(f".{last[:40]}."))


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte; a short write is continued. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _write_new(path: str, data: bytes, mode: int) -> None:
    # O_EXCL and O_NOFOLLOW: whatever else has the name, it is not ours to write into.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: str) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # Not readable: the rename is done and stands, only its durability is unknown.
    try:
        os.fsync(descriptor)
    except OSError:
        return  # Some file systems refuse to flush a folder.
    finally:
        os.close(descriptor)


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
