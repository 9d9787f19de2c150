"""Ranks the words of a query over the live records, a delta included (spec `retrieval` §20).

The delta is written into the FTS table inside a transaction that is always rolled back, so that
its records are ranked by the same statistics as the rest. Fusion and words belong to `retrieve`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from memhtml import log
from memhtml.store import snapshot_open as opening
from memhtml.store.snapshot_open import Database
from memhtml.store.snapshot_schema import FTS_DELETE

if TYPE_CHECKING:
    from memhtml_format.record import Record

_ROWS_AT_ONCE = 500


class Match(NamedTuple):
    """One live record with a word of the query; `rank` is FTS5's bm25, lower is better."""

    rank: float
    path: str
    claim: str
    event_at: str | None
    updated_at: str


class Matcher:
    """Answers queries while its transaction is open; made by `matching`."""

    def __init__(self, conn: sqlite3.Connection, added: dict[int, Record], gone: set[int]) -> None:
        self._conn = conn
        self._added = added
        self._gone = gone

    def match(self, query: str, keep: int) -> list[Match]:
        """The best `keep` records by rank, then path. `query` is an FTS5 expression."""
        sql = "SELECT rowid, rank FROM fts WHERE fts MATCH ? ORDER BY rank"
        best: list[tuple[int, float]] = []
        for number, rank in self._conn.execute(sql, (query,)):
            # Equal ranks at the border are told apart by path, so all of them are looked at.
            if len(best) >= keep and rank != best[-1][1]:
                break
            if number not in self._gone:
                best.append((number, rank))
        return sorted(self._details(best))[:keep]

    def _details(self, best: Sequence[tuple[int, float]]) -> Iterator[Match]:
        stored = [number for number, _rank in best if number not in self._added]
        rows: dict[int, tuple[str, str, str | None, str]] = {}
        # Hundreds of records may share the last rank; one select each would cost 25 us a record.
        for start in range(0, len(stored), _ROWS_AT_ONCE):
            some = stored[start : start + _ROWS_AT_ONCE]
            marks = ",".join("?" * len(some))
            sql = "SELECT id, path, claim, event_at, updated_at FROM records WHERE id IN"
            for number, *row in self._conn.execute(f"{sql} ({marks})", some):
                rows[number] = (row[0], row[1], row[2], row[3])
        for number, rank in best:
            record = self._added.get(number)
            if record is None:
                yield Match(rank, *rows[number])
            else:
                yield Match(rank, record.path, record.claim, record.event_at, record.updated_at)


@contextmanager
def matching(
    database: Database, hidden: Collection[str], records: Sequence[Record]
) -> Iterator[Matcher]:
    """A matcher over the database without the `hidden` paths and with `records`.

    A database that stays busy for 250 ms, cannot be written, or was moved on meanwhile is
    searched without `records`, with a warning. Raises sqlite3.Error when it is damaged.
    """
    if not hidden:
        yield Matcher(database.conn, {}, set())
        return
    scratch = _begin(database)
    if scratch is None:
        log.warn("the search does without the records that are only in the session's view")
        yield Matcher(database.conn, {}, set(_ids(database.conn, hidden)))
        return
    try:
        added = _lay(scratch, hidden, records)
        yield Matcher(scratch, added, set())
    finally:
        if scratch is database.conn:
            scratch.execute("ROLLBACK TO search")
            scratch.execute("RELEASE search")
        else:
            scratch.close()


def _begin(database: Database) -> sqlite3.Connection | None:
    """A connection inside a write transaction over the same content, or None.

    A connection of its own, because the reader's could only become a writer while nobody else
    has written since it began, and would keep the write lock until it ends.
    """
    if database.path is None:
        database.conn.execute("SAVEPOINT search")
        return database.conn
    conn = None
    try:
        conn = opening.open_file(database.path)
        conn.execute("BEGIN IMMEDIATE")
        if opening.read_meta(conn) == database.meta:
            found, conn = conn, None
            return found
    except sqlite3.OperationalError:
        return None
    finally:
        if conn is not None:
            conn.close()
    return None


def _lay(
    conn: sqlite3.Connection, hidden: Collection[str], records: Sequence[Record]
) -> dict[int, Record]:
    """Write the delta into `fts` alone; the new row ids with their records."""
    sql = "SELECT title, claim, body FROM records WHERE id = ?"
    for number in sorted(_ids(conn, hidden)):
        conn.execute(FTS_DELETE, (number, *conn.execute(sql, (number,)).fetchone()))
    first = 1 + conn.execute("SELECT coalesce(max(id), 0) FROM records").fetchone()[0]
    added = {first + at: record for at, record in enumerate(records)}
    conn.executemany(
        "INSERT INTO fts(rowid, title, claim, body) VALUES(?,?,?,?)",
        ((number, r.title, r.claim, r.body_text) for number, r in added.items()),
    )
    return added


def _ids(conn: sqlite3.Connection, paths: Collection[str]) -> list[int]:
    sql = "SELECT id FROM records WHERE path = ? AND archived = 0"
    return [number for path in paths for (number,) in conn.execute(sql, (path,))]
