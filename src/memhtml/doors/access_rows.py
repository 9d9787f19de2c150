"""Access rows as JSON lines, in and out (spec `cli` §11 `state export`).

The file may come from anywhere: a line that is no row is counted, never an exception.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from memhtml.errors import StorageError
from memhtml_format import paths
from memhtml_format.instants import is_instant
from memhtml_format.text import is_blank

LONGEST_LINE = 1 << 16
"""Bytes of a line; a path of 4,096 bytes, escaped, fits."""
MOST_COUNTED = 2**53
_SECOND_CHARS = len("2026-01-01T00:00:00Z")
_DECIMALS = 4


class Row(NamedTuple):
    """One row of `state.access`; the fields are its columns."""

    path: str
    access_count: int
    reinforcement_count: int
    outcome_score: float
    last_accessed_at: str | None
    last_reinforced_at: str | None
    updated_at: str | None


class _NoRow(ValueError):
    """A line that says no row."""


def of_columns(values: Sequence[Any]) -> Row | None:
    """A row of `state.access`; None for one that no line could bring back. Never raises.

    SQLite keeps any kind of value in any column, and the table may be another program's.
    """
    path, accesses, reinforcements, score, *stamps = values
    try:
        return Row(
            _path(path),
            _count(accesses or 0),
            _count(reinforcements or 0),
            _score(score or 0),
            *stamps,
        )
    except _NoRow:
        return None


def line(row: Row) -> bytes:
    """The row as one line: the score in four decimals, a stamp that is no isoSecond null."""
    score = round(float(row.outcome_score), _DECIMALS)
    fields = {
        "path": row.path,
        "accessCount": row.access_count,
        "reinforcementCount": row.reinforcement_count,
        "outcomeScore": int(score) if score == int(score) else score,
        "lastAccessedAt": _iso_second(row.last_accessed_at),
        "lastReinforcedAt": _iso_second(row.last_reinforced_at),
        "updatedAt": _iso_second(row.updated_at),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


@contextmanager
def of_file(root: str, path: str) -> Iterator[Iterator[Row | None]]:
    """The rows of a file of the store as `of_lines` has them; no file has no rows.

    Links are not followed. Raises `StorageError` `read`, before the first row or at one.
    """
    file = _opened(root, path)
    if file is None:
        yield iter(())
        return
    with file:
        yield of_lines(_lines(file, path))


def of_lines(lines: Iterable[bytes]) -> Iterator[Row | None]:
    """The rows of lines, None for each that is none; blank lines are left out. Never raises."""
    for data in lines:
        if data.strip():
            try:
                yield _row(data)
            except _NoRow:
                yield None


def _opened(root: str, path: str) -> BinaryIO | None:
    folder, _, name = path.rpartition("/")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        place = os.open(f"{root}/{folder}", flags | os.O_DIRECTORY)
        try:
            # O_NONBLOCK: a pipe in its place must be refused, not waited for.
            fd = os.open(name, flags | os.O_NONBLOCK, dir_fd=place)
        finally:
            os.close(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StorageError("read", f"{path}: is no regular file")
    return open(fd, "rb")


def _unreadable(path: str, error: OSError) -> StorageError:
    text = "is a link" if error.errno == errno.ELOOP else error.strerror
    return StorageError("read", f"{path}: {text}")


def _lines(file: BinaryIO, path: str) -> Iterator[bytes]:
    """The lines of a file; of one that is too long only so much that it cannot be a row."""
    try:
        while data := file.readline(LONGEST_LINE):
            if len(data) == LONGEST_LINE and not data.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                data = b"{"
            yield data
    except OSError as error:
        raise _unreadable(path, error) from error


def _row(data: bytes) -> Row:
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _NoRow from None
    if not isinstance(value, dict):
        raise _NoRow
    return Row(
        _path(value.get("path")),
        _count(value.get("accessCount", 0)),
        _count(value.get("reinforcementCount", 0)),
        _score(value.get("outcomeScore", 0)),
        *(_stamp(value.get(name)) for name in ("lastAccessedAt", "lastReinforcedAt", "updatedAt")),
    )


def _path(value: Any) -> str:
    if not isinstance(value, str) or is_blank(value) or paths.problem(value):
        raise _NoRow
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_COUNTED:
        raise _NoRow
    return value


def _score(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -1 <= value <= 1:
        raise _NoRow
    return float(value)


def _stamp(value: Any) -> str | None:
    if value is None or _iso_second(value) is not None:
        return None if value is None else str(value)
    raise _NoRow


def _iso_second(value: Any) -> str | None:
    """The value when it is an isoSecond, else None."""
    sound = isinstance(value, str) and len(value) == _SECOND_CHARS and is_instant(value)
    return value if sound else None
