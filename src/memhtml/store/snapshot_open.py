"""Opens one head database for reading, or says why it cannot be used (`design.md` §4).

Imports nothing but sqlite3 and fcntl on purpose: every `session exec` passes here.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`: 2 ms of every exec.
import os

from memhtml.store import snapshot_files as files
from memhtml.store.snapshot_schema import PROGRAM, Meta

BUSY_S = 0.25
_CACHE_KIB = 1024
DAMAGE = frozenset((sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
"""Primary codes of a file whose content is wrong, not merely out of reach for now."""


class Database:
    """An open database inside one read transaction; `path` is None when it is private.

    Close it before a script runs or a person is asked: an open reader keeps the WAL from being
    folded back.
    """

    __slots__ = ("_guard", "conn", "meta", "path")

    def __init__(
        self, conn: sqlite3.Connection, meta: Meta, path: str | None, guard: files.Guard | None
    ) -> None:
        self.conn = conn
        self.meta = meta
        self.path = path
        self._guard = guard

    def close(self) -> None:
        self.conn.close()
        if self._guard is not None:
            self._guard.close()


class Unusable(Exception):
    """A file that must be replaced: in place when it `opens`, else by moving it aside.

    `absent` means there was no file, so one that appears meanwhile is as good.
    """

    def __init__(self, why: str, *, opens: bool = True, absent: bool = False) -> None:
        super().__init__(why)
        self.opens = opens
        self.absent = absent


class Unreachable(Exception):
    """Nothing can be read or written there now: build privately."""


def connect(root: str, ref: str) -> Database:
    """Open the file of `ref` and begin to read. Raises `Unusable` or `Unreachable`."""
    path = files.database_path(root, ref)
    try:
        guard = files.hold(root, exclusive=False)
    except FileNotFoundError:
        raise Unusable("there is none", absent=True) from None
    except OSError as error:
        raise Unreachable(str(error)) from error
    if guard is None:
        raise Unreachable("another process is building one")
    conn = None
    try:
        conn = open_file(path)
        meta = begin(conn)
        _check(meta, ref)
        assert meta is not None
        database = Database(conn, meta, path, guard)
    except sqlite3.Error as error:
        raise _classified(error, path) from error
    else:
        guard = conn = None
        return database
    finally:
        if conn is not None:
            conn.close()
        if guard is not None:
            guard.close()


def _check(meta: Meta | None, ref: str) -> None:
    if meta is None:
        raise Unusable("it was never finished", opens=True)
    if meta.program != PROGRAM:
        raise Unusable(f"it is of another version ({meta.program})", opens=True)
    if meta.ref != ref:
        raise Unusable(f"it belongs to {meta.ref}", opens=True)


def open_file(path: str) -> sqlite3.Connection:
    """Connect without creating. `mode=rw` falls back to reading on a read-only mount."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    conn = sqlite3.connect(f"file:{quoted}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None)
    conn.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    conn.execute("PRAGMA synchronous = NORMAL")
    return conn


def begin(conn: sqlite3.Connection) -> Meta | None:
    conn.execute("BEGIN")
    return read_meta(conn)


def _classified(error: sqlite3.Error, path: str) -> Exception:
    code = primary_code(error)
    if not os.path.lexists(path):
        return Unusable("there is none", absent=True)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY):
        return Unreachable(str(error))
    return Unusable(str(error), opens=code == sqlite3.SQLITE_ERROR)


def read_meta_of(path: str) -> Meta | None:
    """What a database says about itself, or None when it does not say. Takes no lock."""
    try:
        conn = open_file(path)
    except (sqlite3.Error, OSError):
        return None
    try:
        return read_meta(conn)
    except sqlite3.Error:
        return None
    finally:
        conn.close()


def open_second(database: Database) -> sqlite3.Connection:
    """Another connection to the same file, for a transaction that will be rolled back."""
    assert database.path is not None
    return open_file(database.path)


def read_meta(conn: sqlite3.Connection) -> Meta | None:
    """The meta row, or None when there is none. Raises sqlite3.Error without the table."""
    row = conn.execute("SELECT program, ref, sha, records, live, skipped FROM meta").fetchone()
    return None if row is None else Meta(*row)


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code behind an exception; errors of Python's own are SQLITE_MISUSE."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    return code & 0xFF
