"""The agents document as a file: compare it with the table, and write it (spec `cli` §10).

Knows nothing of what the document says; opens no store.
"""

from __future__ import annotations

import errno
import os
import stat

from memhtml.errors import MemhtmlError, StorageError

WRITE_FAILED = "agents-doc.write"
PLAIN_MODE = 0o644

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def settle(out: str, data: bytes, *, check: bool) -> dict[str, object]:
    """Make the file at `out` hold `data`, or only look; the payload of `agents.doc`.

    A symbolic link is followed, as an editor would: `AGENTS.md` often is one, and it stays one.
    The file is replaced in one step. Errors raised: `ERR_INVALID_MEMORY` when `check` finds other
    bytes or none, `agents-doc.write` when the file cannot be written.
    """
    shown = out.removeprefix("./") or out
    in_sync = _holds(out, data)
    if check and not in_sync:
        raise MemhtmlError(
            "ERR_INVALID_MEMORY",
            f"{shown} is not what `memhtml agents-doc` writes"
            if os.path.lexists(out)
            else f"there is no {shown}",
            suggestions=(_again(out),),
        )
    if not in_sync:
        _write(out, shown, data)
    return {"path": shown, "bytes": len(data), "inSync": in_sync, "written": not in_sync}


def _holds(out: str, data: bytes) -> bool:
    """Whether the file has these bytes; one that cannot be read has not."""
    try:
        # Not blocking: a pipe of this name would hold the call for ever.
        descriptor = os.open(out, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)  # `open` below would refuse a folder with an error of its own.
        return False
    with open(descriptor, "rb") as file:
        return found.st_size == len(data) and file.read(len(data) + 1) == data


def _write(out: str, shown: str, data: bytes) -> None:
    from memhtml.store.atomic import write_atomic

    try:
        target = os.path.realpath(out)
        try:
            mode = os.lstat(target).st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG | PLAIN_MODE
        if not stat.S_ISREG(mode) or out.endswith("/"):
            # A link here is one of a ring, which leads to no file.
            ring = stat.S_ISLNK(mode)
            raise OSError(errno.ELOOP if ring else errno.EISDIR, "is no regular file")
        write_atomic(target, data, mode=stat.S_IMODE(mode))
    except OSError as failure:
        _refuse(shown, failure)


def _refuse(shown: str, failure: OSError) -> NoReturn:
    way = "memhtml agents-doc --out <file>"
    raise StorageError(
        WRITE_FAILED, f"{shown}: {failure.strerror}", suggestions=(way,)
    ) from failure


def _again(out: str) -> str:
    from memhtml.cli import suggest

    return f"memhtml agents-doc --out={suggest.quoted(out)}"
