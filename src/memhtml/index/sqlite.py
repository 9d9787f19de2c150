"""The SQLite habits of both databases: connecting, waiting for a lock, numbered migrations, and
what an error code means (spec `retrieval` §2).

No table is named here but `schema_migrations`.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`: 2 ms of every read.
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from memhtml.errors import StorageError
from memhtml_format.instants import second

T = TypeVar("T")
Migrations = Sequence[tuple[str, Sequence[str]]]

BUSY_S = 5.0
RETRY_S = 20.0
FIRST_WAIT_S = 0.015
"""What a busy database is given: SQLite's own wait, then ours; tests shorten them."""

_LONGEST_WAIT_S = 0.5
BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
UNREACHABLE = frozenset(
    (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    )
)


class Damaged(sqlite3.DatabaseError):
    """A database that SQLite's own check finds fault with."""


def connect(path: str, options: str) -> sqlite3.Connection:
    """Open the file with URI `options` such as `mode=rwc`; no transaction begins by itself."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    conn = sqlite3.connect(
        f"file:{quoted}?{options}", uri=True, timeout=BUSY_S, isolation_level=None
    )
    conn.execute("PRAGMA foreign_keys = ON")
    return conn


def uri(path: str, options: str) -> str:
    """The name of a file for ATTACH."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{options}"


def code_of(error: BaseException) -> int:
    """The primary result code behind an exception; errors of Python's own are SQLITE_MISUSE."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    return code & 0xFF


def patiently(act: Callable[[], T], reason: str, *, retry: bool = True) -> T:
    """Run `act`, again and again while the database is busy, for at most 20 s after the first try.

    Without `retry` the first try is the only one; the connection itself waits as long as it was
    told to.

    Raises `StorageError` `reason` (`index.locked`, `state.locked`) when that was not enough.
    """
    deadline, wait_s = None, FIRST_WAIT_S
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if code_of(error) not in BUSY:
                raise
            now = time.monotonic()
            deadline = now + RETRY_S if deadline is None else deadline
            if now >= deadline or not retry:
                raise StorageError(reason, "another process keeps it locked") from error
        time.sleep(min(wait_s * random.uniform(0.5, 1.5), max(0.0, deadline - now)))
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


@contextmanager
def writing(conn: sqlite3.Connection, reason: str = "index.locked") -> Iterator[None]:
    """One write transaction: all of it is committed, or nothing. Raises as `patiently` does."""
    patiently(lambda: conn.execute("BEGIN IMMEDIATE"), reason)
    try:
        yield
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def keep_log(conn: sqlite3.Connection, schema: str, reason: str) -> None:
    """Set the journal and sync modes of spec `retrieval` §2."""
    patiently(lambda: conn.execute(f"PRAGMA {schema}.journal_mode = WAL").fetchone(), reason)
    conn.execute(f"PRAGMA {schema}.synchronous = NORMAL")


def applied(conn: sqlite3.Connection, schema: str = "main") -> set[str] | None:
    """The names of the migrations a database has had, or None when it never had any."""
    try:
        return {name for (name,) in conn.execute(f"SELECT name FROM {schema}.schema_migrations")}
    except sqlite3.OperationalError as error:
        if code_of(error) != sqlite3.SQLITE_ERROR:
            raise
        return None


def migrate(conn: sqlite3.Connection, migrations: Migrations, now_s: float, locked: str) -> None:
    """Apply what is missing, each migration in one transaction, in order.

    `locked` is the reason when it stays busy. Raises sqlite3.Error.
    """
    for name, statements in migrations:
        with writing(conn, locked):
            conn.execute(
                "CREATE TABLE IF NOT EXISTS"
                " schema_migrations(name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)"
            )
            if name in (applied(conn) or ()):
                continue  # Another process was first.
            for statement in statements:
                conn.execute(statement)
            row = (name, second(now_s))
            conn.execute("INSERT INTO schema_migrations(name, applied_at) VALUES(?, ?)", row)


def require_sound(conn: sqlite3.Connection) -> None:
    """Have SQLite look at every page. Raises `Damaged` and sqlite3.Error."""
    said = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise Damaged(str(said))


def complete_functions(conn: sqlite3.Connection) -> None:
    """Give the connection `exp`, `ln` and `unixepoch` where SQLite was built without them."""
    try:
        conn.execute("SELECT exp(0.0), ln(1.0), unixepoch('2000-01-01')")
    except sqlite3.OperationalError:
        from math import exp

        # Built-in ones of these names are replaced too, which does no harm.
        conn.create_function("exp", 1, exp, deterministic=True)
        conn.create_function("ln", 1, _ln, deterministic=True)
        conn.create_function("unixepoch", 1, _unix_epoch, deterministic=True)


def _ln(value: float | None) -> float | None:
    import math

    return math.log(value) if value is not None and value > 0 else None


def _unix_epoch(text: object) -> int | None:
    """The seconds since 1970 of an instant as we write it; None for what is no instant."""
    from calendar import timegm

    spelled = str(text)[:19].replace("T", " ")
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d"):
        try:
            return timegm(time.strptime(spelled, form))
        except ValueError:
            continue
    return None
