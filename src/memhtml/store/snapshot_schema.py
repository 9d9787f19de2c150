"""The tables of a head database and how one record is written into them (`design.md` §4).

The only place that knows columns for writing. Hashes are stored as bytes, which makes the file 6 %
smaller than hex text. Nothing here opens a file, asks git or parses HTML.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`: 2 ms of every exec.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from memhtml import __version__

if TYPE_CHECKING:
    from memhtml.store.repo import Change
    from memhtml_format.record import Record

OtherKind: TypeAlias = Literal["file", "other"]

SCHEMA_VERSION = 2
PROGRAM = f"memhtml {__version__} schema {SCHEMA_VERSION}"
"""Written into every database; one with another mark is rebuilt from git."""

REGULAR_FILES = frozenset((0o100644, 0o100755))
BUCKETS = frozenset(("projects", "areas", "resources", "archive"))

TABLES = (
    "CREATE TABLE meta(program TEXT NOT NULL, ref TEXT NOT NULL, sha TEXT NOT NULL,"
    " records INTEGER NOT NULL, live INTEGER NOT NULL, skipped INTEGER NOT NULL)",
    # The long texts come last, so that a look-up need not walk their overflow pages.
    "CREATE TABLE records(id INTEGER PRIMARY KEY, path TEXT NOT NULL, blob BLOB NOT NULL,"
    " content_hash BLOB NOT NULL, archived INTEGER NOT NULL, memory_type TEXT NOT NULL,"
    " status TEXT NOT NULL, title TEXT NOT NULL, claim TEXT NOT NULL, frame_key TEXT,"
    " frame_value TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, event_at TEXT,"
    " confidence REAL, importance INTEGER, disclosure TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE links(record INTEGER NOT NULL, ord INTEGER NOT NULL, rel TEXT NOT NULL,"
    " target TEXT NOT NULL, href TEXT NOT NULL, PRIMARY KEY(record, ord)) WITHOUT ROWID",
    # `derived` marks the concept: and lang: entities, which only search sees.
    "CREATE TABLE entities(record INTEGER NOT NULL, ord INTEGER NOT NULL, value TEXT NOT NULL,"
    " derived INTEGER NOT NULL, PRIMARY KEY(record, ord)) WITHOUT ROWID",
    "CREATE TABLE tags(record INTEGER NOT NULL, ord INTEGER NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(record, ord)) WITHOUT ROWID",
    "CREATE TABLE facets(record INTEGER NOT NULL, ord INTEGER NOT NULL, name TEXT NOT NULL,"
    " value TEXT NOT NULL, number REAL, PRIMARY KEY(record, ord)) WITHOUT ROWID",
    # Every entry of the tree that is no record and no folder: `kind` is file, or other for a link
    # or a submodule.
    "CREATE TABLE others(path TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID",
    # Contentless: the texts are in `records` already, and deletions hand them over.
    "CREATE VIRTUAL TABLE fts USING"
    " fts5(title, claim, body, content='', tokenize='porter unicode61')",
)
INDEXES = (
    "CREATE UNIQUE INDEX records_path ON records(path)",
    "CREATE INDEX records_hash ON records(content_hash, path) WHERE archived = 0",
    "CREATE INDEX records_frame ON records(frame_key, path)"
    " WHERE archived = 0 AND frame_key IS NOT NULL",
    "CREATE INDEX links_target ON links(target, rel)",
)
CHILDREN = ("links", "entities", "tags", "facets")

_INSERTS = {
    "records": "INSERT INTO records VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    "links": "INSERT INTO links VALUES(?,?,?,?,?)",
    "entities": "INSERT INTO entities VALUES(?,?,?,?)",
    "tags": "INSERT INTO tags VALUES(?,?,?)",
    "facets": "INSERT INTO facets VALUES(?,?,?,?,?)",
    "others": "INSERT INTO others VALUES(?,?)",
    "fts": "INSERT INTO fts(rowid, title, claim, body) VALUES(?,?,?,?)",
}
FTS_DELETE = "INSERT INTO fts(fts, rowid, title, claim, body) VALUES('delete',?,?,?,?)"
_BATCH_RECORDS = 500
_BATCH_OTHERS = 2000


class Meta(NamedTuple):
    """The one row that says what a database holds; `skipped` counts files that do not parse."""

    program: str
    ref: str
    sha: str
    records: int
    live: int
    skipped: int


class Counts:
    """Running totals of a build or an advance."""

    __slots__ = ("live", "records", "skipped")

    def __init__(self, records: int = 0, live: int = 0, skipped: int = 0) -> None:
        self.records = records
        self.live = live
        self.skipped = skipped


def may_be_record(path: str) -> bool:
    """Whether a regular file at `path` becomes a record when it parses (spec `format` §1.2)."""
    bucket, slash, rest = path.partition("/")
    if not slash or bucket not in BUCKETS or not path.endswith(".html"):
        return False
    return rest.rpartition("/")[2] != "index.html"


def is_candidate(path: str) -> bool:
    """Whether a regular file at `path` is counted: as a record, or else as skipped.

    The root `README.html` counts, and never becomes a record.
    """
    return path == "README.html" or may_be_record(path)


def touches_memory(change: Change) -> bool:
    """Whether a change gives or takes a regular file where a record may be (`sessions` §4.1)."""
    return may_be_record(change.path) and any(
        side is not None and side[0] in REGULAR_FILES for side in (change.old, change.new)
    )


def is_archived(path: str) -> bool:
    """`archived` is decided by the first segment alone."""
    return path.startswith("archive/")


def kind_of(mode: int) -> OtherKind:
    """What a tree entry that is no folder is: a regular file, or else a link or a submodule."""
    return "file" if mode in REGULAR_FILES else "other"


def create(conn: sqlite3.Connection, *, indexes: bool = True) -> None:
    """The empty tables; a build adds the indexes when the rows are in, which is faster."""
    for statement in TABLES + (INDEXES if indexes else ()):
        conn.execute(statement)


def clear(conn: sqlite3.Connection) -> None:
    """Drop everything, whatever it is, within the caller's transaction."""
    drops = "SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'"
    tables = sorted(conn.execute(drops).fetchall(), key=lambda row: not row[1])
    for name, _virtual in tables:
        # Dropping a virtual table takes its shadow tables along, hence IF EXISTS.
        if not name.startswith("sqlite_"):
            conn.execute(f'DROP TABLE IF EXISTS "{name.replace(chr(34), chr(34) * 2)}"')


def write_meta(conn: sqlite3.Connection, ref: str, sha: str, counts: Counts) -> None:
    """Replace the meta row."""
    conn.execute("DELETE FROM meta")
    conn.execute(
        "INSERT INTO meta VALUES(?,?,?,?,?,?)",
        (PROGRAM, ref, sha, counts.records, counts.live, counts.skipped),
    )


class RowWriter:
    """Adds and removes records inside the caller's transaction, batching the statements."""

    def __init__(self, conn: sqlite3.Connection, counts: Counts) -> None:
        self._conn = conn
        self.counts = counts
        self._next_id = 1 + conn.execute("SELECT coalesce(max(id), 0) FROM records").fetchone()[0]
        self._rows: dict[str, list[Sequence[object]]] = {table: [] for table in _INSERTS}

    def add(self, record: Record) -> None:
        """Queue one record; its path must be free."""
        from memhtml_format.paths import href_target  # A warm exec does without it: 2 ms.

        number = self._next_id
        self._next_id += 1
        rows = self._rows
        rows["records"].append(_record_row(number, record))
        for at, link in enumerate(record.links):
            rows["links"].append((number, at, link.rel, href_target(link.href), link.href))
        entities = [(value, 0) for value in record.entities]
        entities += [(value, 1) for value in record.derived_entities]
        for at, (value, derived) in enumerate(entities):
            rows["entities"].append((number, at, value, derived))
        for at, tag in enumerate(record.tags):
            rows["tags"].append((number, at, tag))
        for at, facet in enumerate(record.facets):
            rows["facets"].append((number, at, facet.name, facet.value, facet.number))
        self.counts.records += 1
        if not record.archived:
            self.counts.live += 1
            rows["fts"].append((number, record.title, record.claim, record.body_text))
        if len(rows["records"]) >= _BATCH_RECORDS:
            self.flush()

    def add_other(self, path: str, kind: OtherKind) -> None:
        """Queue an entry that is no record; its path must be free."""
        rows = self._rows["others"]
        rows.append((path, kind))
        if len(rows) >= _BATCH_OTHERS:
            self.flush()

    def flush(self) -> None:
        """Write what is queued."""
        for table, rows in self._rows.items():
            if rows:
                self._conn.executemany(_INSERTS[table], rows)
                rows.clear()

    def remove(self, paths: Sequence[str]) -> set[str]:
        """Delete the records at these paths; the answer names those that were there.

        Ids go in ascending order: FTS5 flushes its pending terms whenever a row id steps back.
        """
        find = "SELECT id, path, archived, title, claim, body FROM records WHERE path = ?"
        found = [row for path in paths for row in self._conn.execute(find, (path,))]
        found.sort()
        ids = [(row[0],) for row in found]
        live = [(row[0], *row[3:]) for row in found if not row[2]]
        self._conn.executemany(FTS_DELETE, live)
        for table in CHILDREN:
            self._conn.executemany(f"DELETE FROM {table} WHERE record = ?", ids)
        self._conn.executemany("DELETE FROM records WHERE id = ?", ids)
        self.counts.records -= len(found)
        self.counts.live -= len(live)
        return {row[1] for row in found}

    def remove_others(self, paths: Sequence[str]) -> None:
        """Delete the entries at these paths that are no records."""
        self._conn.executemany("DELETE FROM others WHERE path = ?", ((path,) for path in paths))


def _record_row(number: int, record: Record) -> Sequence[object]:
    return (
        number,
        record.path,
        bytes.fromhex(record.blob_sha),
        bytes.fromhex(record.content_hash.removeprefix("sha256:")),
        int(record.archived),
        record.memory_type,
        record.status,
        record.title,
        record.claim,
        record.frame_key,
        record.frame_value,
        record.created_at,
        record.updated_at,
        record.event_at,
        record.confidence,
        record.importance,
        record.disclosure_text,
        record.body_text,
    )
