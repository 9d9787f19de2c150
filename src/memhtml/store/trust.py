"""Whether a store's local state is this machine's own: what a repository brings along is refused.

A cloned repository may have committed below `.memhtml/`, whatever `.gitignore` says, and what lies
there is believed: programs to execute, files to mount, databases. Git sorts its index, so the
answer is in the first bytes of it; only an unusual index is asked of a git child. Nothing is
deleted here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from memhtml.errors import StorageError
from memhtml.store import refs
from memhtml.store.child import git_failed, run_git

LOCAL = b".memhtml"
SHARED = (b".memhtml/state/", b".memhtml/sleep/")
"""What a store does commit (spec `format` §1)."""
LINKS_REFUSED = ("", "/sandbox", "/snapshots", "/sessions", "/vectors")

# No name from here on is of interest: `0` follows `/`.
_BEHIND = LOCAL + b"0"

_CHUNK_BYTES = 1 << 14
_HEAD_BYTES = 12
_FIXED_BYTES = 62  # Times, ids, sizes and the object id; two bytes of flags are its last.
_VERSIONS = (2, 3, 4)
_EXTENDED = 0x4000
_LENGTH = 0x0FFF
_FOLDER_MODE = 0o040000


class _Unusual(Exception):
    """An index that is better asked of git."""


class _Entry(NamedTuple):
    name: bytes
    mode: int


def require_local_state(root: str) -> None:
    """Refuse a store whose local state came, or may have come, with the repository.

    Raises `StorageError` `store.tracked-state` when git tracks anything at or below `.memhtml` but
    `state/` and `sleep/`, or when the folder or one of those that are written to is a symbolic
    link; `MemhtmlError` `ERR_GIT` when git had to be asked and failed.
    """
    for below in LINKS_REFUSED:
        path = f"{root}/.memhtml{below}"
        try:
            if stat.S_ISLNK(os.lstat(path).st_mode):
                raise _refusal(root, f".memhtml{below}", "is a symbolic link")
        except (FileNotFoundError, NotADirectoryError):
            continue
    name = _first_tracked(root)
    if name is not None:
        raise _refusal(root, name.decode("utf-8", "replace"), "is tracked by git")


def _refusal(root: str, path: str, what: str) -> StorageError:
    import shlex  # 2 ms, and only here.

    top = "/".join(path.split("/")[:2])
    untrack = f"git -C {shlex.quote(root)} rm -r --cached --ignore-unmatch -- {shlex.quote(top)}"
    return StorageError(
        "store.tracked-state",
        f"{path} {what}; it is local state that a repository must not bring along: untrack it with"
        f" `{untrack}`, look at it, and delete it",
        suggestions=(untrack,),
    )


def _first_tracked(root: str) -> bytes | None:
    """The first path of the index that must not be there, or None."""
    own, common = refs.git_dirs(root)
    try:
        if any(_has_shared_index(folder) for folder in {own, common}):
            raise _Unusual
        return next(filter(_is_local, map(_usual_name, _entries(f"{own}/index"))), None)
    except FileNotFoundError:
        return None
    except (OSError, _Unusual):
        return _ask(root)


def _has_shared_index(git_dir: str) -> bool:
    """A split index keeps most entries in a second file, and says so only at its end."""
    return any(name.startswith("sharedindex.") for name in os.listdir(git_dir))


def _usual_name(entry: _Entry) -> bytes:
    """The entry's path; one that stands for a whole folder does not say what is in it."""
    if entry.mode == _FOLDER_MODE and _is_local(entry.name):
        raise _Unusual
    return entry.name


def _is_local(name: bytes) -> bool:
    """Whether a path lies in the local state, also where a file system ignores case.

    Capitals sort before small letters, so such names come before `.memhtml` itself.
    """
    folded = name.lower()
    if folded != LOCAL and not folded.startswith(LOCAL + b"/"):
        return False
    return not name.startswith(SHARED)


def _ask(root: str) -> bytes | None:
    run = run_git(root, "ls-files", "-z", "--", LOCAL.decode())
    if run.status != 0:
        raise git_failed("ls-files", run)
    return next(filter(_is_local, run.stdout.split(b"\0")), None)


def _entries(path: str) -> Iterator[_Entry]:
    """Entries of an index in its order, up to the last that can be of interest."""
    with open(path, "rb", buffering=0) as file:
        data = _Window(file.fileno())
        data.need(_HEAD_BYTES)
        version, count = data.number(4, 4), data.number(8, 4)
        if data.take(0, 4) != b"DIRC" or version not in _VERSIONS:
            raise _Unusual
        at, name = _HEAD_BYTES, b""
        for _ in range(count):
            data.need(at + _FIXED_BYTES)
            mode, flags = data.number(at + 24, 4), data.number(at + 60, 2)
            start = at + _FIXED_BYTES + (2 if flags & _EXTENDED else 0)
            if version == 4:
                kept, start = _cut(data, start)
                if kept > len(name):
                    raise _Unusual
                end = data.find_nul(start)
                name, at = name[: len(name) - kept] + data.take(start, end), end + 1
            else:
                end = start + (flags & _LENGTH)
                if flags & _LENGTH == _LENGTH:
                    end = data.find_nul(start)
                data.need(end)
                name, at = data.take(start, end), at + (end - at + 8) // 8 * 8
            if not name:
                raise _Unusual
            if name >= _BEHIND:
                return
            yield _Entry(name, mode)


def _cut(data: _Window, at: int) -> tuple[int, int]:
    """How many bytes of the name before are left out, and where the rest of this one begins."""
    data.need(at + 1)
    byte = data.number(at, 1)
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        data.need(at + 1)
        byte = data.number(at, 1)
        value = ((value + 1) << 7) + (byte & 0x7F)
        if value > 1 << 20:
            raise _Unusual
    return value, at + 1


class _Window:
    """The start of a file, read on as it is asked for; the file's end is `_Unusual`."""

    __slots__ = ("_data", "_fd")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = bytearray()

    def need(self, size_bytes: int) -> None:
        while len(self._data) < size_bytes:
            chunk = os.read(self._fd, _CHUNK_BYTES)
            if not chunk:
                raise _Unusual
            self._data += chunk

    def number(self, at: int, size_bytes: int) -> int:
        return int.from_bytes(self._data[at : at + size_bytes], "big")

    def take(self, start: int, end: int) -> bytes:
        return bytes(self._data[start:end])

    def find_nul(self, start: int) -> int:
        self.need(start + 1)
        while (found := self._data.find(b"\0", start)) < 0:
            self.need(len(self._data) + 1)
        return found
