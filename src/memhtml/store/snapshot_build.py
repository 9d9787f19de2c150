"""Fills a head database from git: whole, or by the difference to the commit it stands at.

Both stream: one blob in memory at a time and a few hundred rows waiting, whatever the corpus.
Both run in one transaction, so that a reader sees the old commit or the new one.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `snapshot_open`.
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from memhtml.store import snapshot_files as files
from memhtml.store import snapshot_open as opening
from memhtml.store import snapshot_schema as schema
from memhtml.store.snapshot_schema import Counts, RowWriter

if TYPE_CHECKING:
    from memhtml.store.repo import Change, Repo
    from memhtml_format.record import Record

_ADVANCE_BATCH = 500
_BUILD_CACHE_KIB = 8192
_FTS_PENDING_BYTES = 4 << 20


def fill(conn: sqlite3.Connection, ref: str, sha: str, repo: Repo) -> Counts:
    """Tables, rows, indexes and meta of one commit, inside the caller's transaction."""
    schema.create(conn, indexes=False)
    conn.execute("INSERT INTO fts(fts, rank) VALUES('hashsize', ?)", (_FTS_PENDING_BYTES,))
    counts = Counts()
    writer = RowWriter(conn, counts)
    for path, mode, oid in repo.files(sha):
        _add(writer, repo, path, (mode, oid))
    writer.flush()
    for statement in schema.INDEXES:
        conn.execute(statement)
    schema.write_meta(conn, ref, sha, counts)
    return counts


def read_record(
    repo: Repo, path: str, oid: str, known: Mapping[str, Record] | None = None
) -> Record | None:
    """The record in a blob, or None when the file does not parse.

    `known` holds records by their blob; nothing but the path and `archived` depends on the path.
    """
    if not schema.may_be_record(path):
        return None
    seen = known.get(oid) if known else None
    if seen is not None:
        return seen._replace(path=path, archived=schema.is_archived(path))
    from memhtml_format.record import read

    return read(path, repo.data(oid)).record


def build_file(path: str, ref: str, sha: str, repo: Repo) -> None:
    """Build a database aside and rename it to `path`, which must be free.

    Needs the exclusive lock. Without a journal, because nobody sees the file before the rename.
    Raises OSError, sqlite3.Error and what `repo` raises; nothing is left behind.
    """
    aside = path + files.BUILDING
    files.remove(aside)
    try:
        conn = sqlite3.connect(aside, isolation_level=None)
        try:
            for pragma in ("journal_mode = OFF", "synchronous = OFF"):
                conn.execute(f"PRAGMA {pragma}")
            conn.execute(f"PRAGMA cache_size = -{_BUILD_CACHE_KIB}")
            conn.execute("BEGIN")
            fill(conn, ref, sha, repo)
            conn.execute("COMMIT")
            conn.execute("PRAGMA journal_mode = WAL")
        finally:
            conn.close()
        _flush(aside)
        files.publish(aside, path)
    finally:
        files.remove(aside)


def rebuild_inside(conn: sqlite3.Connection, ref: str, sha: str, repo: Repo) -> None:
    """Replace everything in a database that opens, in one transaction. Raises sqlite3.Error."""
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute(f"PRAGMA cache_size = -{_BUILD_CACHE_KIB}")
    conn.execute("BEGIN IMMEDIATE")
    try:
        schema.clear(conn)
        fill(conn, ref, sha, repo)
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def build_private(ref: str, sha: str, repo: Repo) -> sqlite3.Connection:
    """A database of this process alone; SQLite spills it to a temporary file when it grows."""
    conn = sqlite3.connect("", isolation_level=None)
    try:
        conn.execute("PRAGMA journal_mode = OFF")
        conn.execute(f"PRAGMA cache_size = -{_BUILD_CACHE_KIB}")
        conn.execute("BEGIN")
        fill(conn, ref, sha, repo)
        conn.execute("COMMIT")
        # From here on a search writes and rolls back, which needs a journal.
        conn.execute("PRAGMA journal_mode = MEMORY")
    except BaseException:
        conn.close()
        raise
    return conn


def advance(
    conn: sqlite3.Connection,
    ref: str,
    old: str,
    new: str,
    repo: Repo,
    known: Mapping[str, Record] | None = None,
) -> int | None:
    """Move a database from commit `old` to `new` in one transaction over the paths that differ.

    Answers how many memory paths differed, or None when nothing was written: another process
    keeps the database busy for 250 ms, or moved it away from `old` first. `known` are records that
    need not be read again, by their blob. The connection must be outside a transaction. Raises
    sqlite3.DatabaseError when the file is damaged.
    """
    try:
        conn.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return None
    try:
        meta = opening.read_meta(conn)
        if meta is None or (meta.program, meta.ref, meta.sha) != (schema.PROGRAM, ref, old):
            conn.execute("ROLLBACK")
            return None
        counts = Counts(meta.records, meta.live, meta.skipped)
        differing = _apply(conn, repo, repo.difference(old, new), counts, known)
        schema.write_meta(conn, ref, new, counts)
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise
    return differing


def _apply(
    conn: sqlite3.Connection,
    repo: Repo,
    changes: Iterable[Change],
    counts: Counts,
    known: Mapping[str, Record] | None,
) -> int:
    writer = RowWriter(conn, counts)
    differing = 0
    for batch in _batches(changes):
        differing += sum(map(schema.touches_memory, batch))
        before = [change for change in batch if change.old is not None]
        held = writer.remove([c.path for c in before if schema.may_be_record(c.path)])
        others = [change for change in before if change.path not in held]
        writer.remove_others([change.path for change in others])
        counts.skipped -= sum(_counts(change.path, change.old) for change in others)
        for change in batch:
            if change.new is not None:
                _add(writer, repo, change.path, change.new, known)
        writer.flush()
    return differing


def _add(
    writer: RowWriter,
    repo: Repo,
    path: str,
    entry: tuple[int, str],
    known: Mapping[str, Record] | None = None,
) -> None:
    """One entry of a tree, as a record or else as a file that is none."""
    candidate = _counts(path, entry)
    record = read_record(repo, path, entry[1], known) if candidate else None
    if record is not None:
        writer.add(record)
        return
    writer.counts.skipped += candidate
    writer.add_other(path, schema.kind_of(entry[0]))


def _counts(path: str, entry: tuple[int, str] | None) -> bool:
    """Whether an entry counts as a record, or as skipped when it does not parse."""
    return entry is not None and entry[0] in schema.REGULAR_FILES and schema.is_candidate(path)


def _batches(changes: Iterable[Change]) -> Iterator[list[Change]]:
    batch: list[Change] = []
    for change in changes:
        batch.append(change)
        if len(batch) == _ADVANCE_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _flush(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
