"""Puts the stat data of files just written into their index entries, where git left it empty.

Without it plumbing such as `git diff-files` takes the files for edited until git itself has looked
at each of them, as `git status` does. A second rewrite by git would double the cost of the first,
and one that looks at every file more; this only overwrites the stat fields of single entries. Best
effort: an index of another form, a very large one (25 ms over 100,000 entries), or one that
somebody else is writing, stays as it is.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from hashlib import sha1
from typing import TYPE_CHECKING

from memhtml.store.atomic import is_temporary_name, temporary_name, write_all

if TYPE_CHECKING:
    from memhtml.store.entries import Side

LARGEST_BYTES = 4 << 20
"""About 40,000 entries and 8 ms."""

_HEADER_BYTES = 12
_VERSIONS = (2, 3)
_ID_BYTES = 20
_STAT_BYTES = 40
"""Ten numbers of 32 bits in front of an entry's id: times, place, mode, owner and size."""
_MODE_AT = 24
_LONGEST_NAME = 0xFFF
_SAME = ("st_ino", "st_mtime_ns", "st_size")


def fill_in(git_dir: str, files: Mapping[str, tuple[Side, os.stat_result]]) -> bool:
    """Set the stat data of the entries that hold exactly these sides; False when nothing was set.

    `git_dir` is the work tree's own git folder. The caller holds the checkout lock, and knows that
    each file has had that content since it was looked at. The index keeps its time, by which git
    tells entries that may have changed in the same tick.
    """
    path = os.path.join(git_dir, "index")
    remove_left_overs(git_dir)
    aside = os.path.join(git_dir, temporary_name("index"))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            info = os.fstat(descriptor)
            if info.st_size > LARGEST_BYTES:
                return False
            # Mapped and private: only the pages that are changed are copied.
            content = mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE)
        finally:
            os.close(descriptor)
        if not _set_fields(content, files):
            return False
        _write_like(aside, content, info)
        return _replace(aside, path, info)
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped.
        return False
    finally:
        _remove_quietly(aside)


def remove_left_overs(git_dir: str) -> None:
    """Remove what a killed `fill_in` left, `index.lock` when it is one of its files."""
    lock = os.path.join(git_dir, "index.lock")
    try:
        every = os.listdir(git_dir)
        for name in every:
            if is_temporary_name(name.removesuffix(".lock")) and name.endswith(".lock"):
                os.unlink(os.path.join(git_dir, name))  # Of a git child that wrote a new index.
        names = [name for name in every if is_temporary_name(name)]
        for name in names:
            aside = os.path.join(git_dir, name)
            if os.path.exists(lock) and os.path.samefile(aside, lock):
                os.unlink(lock)
            os.unlink(aside)
    except OSError:
        return


def _set_fields(content: mmap.mmap, files: Mapping[str, tuple[Side, os.stat_result]]) -> bool:
    """Set the stat data inside an index; False when it is of another form or has no such entry."""
    if content[:4] != b"DIRC" or int.from_bytes(content[4:8], "big") not in _VERSIONS:
        return False
    unchecked = content[-_ID_BYTES:] == bytes(_ID_BYTES)  # `index.skipHash`
    found, at = False, _HEADER_BYTES
    for name, side, info in sorted((os.fsencode(path), *value) for path, value in files.items()):
        flags = min(len(name), _LONGEST_NAME).to_bytes(2, "big")
        # Entries are sorted by name, so one pass finds them all.
        place = content.find(bytes.fromhex(side[1]) + flags + name + b"\0", at)
        fields = _stat_fields(side[0], info)
        mode = fields[_MODE_AT : _MODE_AT + 4]
        start = place - _STAT_BYTES
        if place >= 0 and content[start + _MODE_AT : start + _MODE_AT + 4] == mode:
            content[start:place] = fields
            found, at = True, place
    if found and not unchecked:
        checked = memoryview(content)[:-_ID_BYTES]
        content[-_ID_BYTES:] = sha1(checked, usedforsecurity=False).digest()
    return found


def _stat_fields(mode: int, info: os.stat_result) -> bytes:
    seconds_ns = 1_000_000_000
    numbers = (
        *divmod(info.st_ctime_ns, seconds_ns),
        *divmod(info.st_mtime_ns, seconds_ns),
        info.st_dev,
        info.st_ino,
        mode,
        info.st_uid,
        info.st_gid,
        info.st_size,
    )
    return b"".join((number & 0xFFFFFFFF).to_bytes(4, "big") for number in numbers)


def _write_like(path: str, content: mmap.mmap, info: os.stat_result) -> None:
    """A new file with the permissions and the time of another."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.fchmod(descriptor, info.st_mode & 0o777)
        write_all(descriptor, memoryview(content))
        os.utime(descriptor, ns=(info.st_atime_ns, info.st_mtime_ns))
    finally:
        os.close(descriptor)


def _replace(aside: str, path: str, read: os.stat_result) -> bool:
    """Put `aside` in the index's place under git's lock, unless it was written since `read`.

    The lock is a second name of the finished file: it is held for two calls only, and one that a
    kill leaves behind can be told from git's.
    """
    lock = f"{path}.lock"
    os.link(aside, lock)
    try:
        now = os.stat(path, follow_symlinks=False)
        same = all(getattr(now, name) == getattr(read, name) for name in _SAME)
        if same and os.path.samefile(aside, lock):
            os.rename(lock, path)
            return True
    except BaseException:
        _remove_quietly(lock)
        raise
    os.unlink(lock)
    return False


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
