"""What one memory file becomes in `index.db` (spec `retrieval` §2.1, §4.2).

Works inside the caller's transaction. Which files are projected, and which of two equal ones, is
`follow`'s matter; nothing here reads git or a disk.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memhtml.index.chunking import Chunk, chunks_of
from memhtml_format import paths, vocab
from memhtml_format.text import split_entity, trim

if TYPE_CHECKING:
    from memhtml_format.record import Detail, Record

__all__ = ["Chunk", "chunks_of", "is_indexable", "move", "place", "remove", "write_detail"]

TASK = "task"
DEFAULT_CONFIDENCE = 1.0
DEFAULT_IMPORTANCE = 5
DEFAULT_AUTHOR = "agent"

# Wider than the grammar of slots that are written: every archive folder counts.
_ORIGIN = re.compile(r"archive/[0-9]{4,}(?:\.[0-9]+)?/(.+)", re.DOTALL)

COLUMNS = (
    "path",
    "blob_sha",
    "content_hash",
    "memory_type",
    "title",
    "gist",
    "para",
    "workspace",
    "confidence",
    "importance",
    "archived",
    "origin_path",
    "word_count",
    "char_count",
    "created_at",
    "updated_at",
    "archived_at",
    "valid_from",
    "valid_until",
    "event_at",
    "reprieves",
    "needs_revision",
    "author",
    "session_id",
    "prompt_id",
    "turn_uuid",
    "task_status",
    "due_at",
    "frame_key",
    "indexed_at",
    "disclosure_text",
    "body_text",
    "fts_text",
)
_FILES = f"INSERT INTO files({', '.join(COLUMNS)}) VALUES({', '.join('?' * len(COLUMNS))})"
_UPSERT = f"{_FILES} ON CONFLICT(path) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in COLUMNS[1:]
)
_CHILDREN = {
    "file_tags": "INSERT OR IGNORE INTO file_tags VALUES(?, ?)",
    "file_entities": "INSERT OR IGNORE INTO file_entities VALUES(?, ?, ?)",
    "file_facets": "INSERT INTO file_facets VALUES(?, ?, ?, ?)",
    "file_citations": "INSERT INTO file_citations VALUES(?, ?, ?)",
    "chunks": "INSERT OR IGNORE INTO chunks VALUES(?, ?, ?, ?, ?, ?)",
    "edges": "INSERT INTO edges(src_path, rel, dst_path, edge_class, derived, strength,"
    " provenance, created_at) VALUES(?, ?, ?, ?, 0, 1.0, 'authored', ?)"
    # What a person wrote down takes the place of what was mined.
    " ON CONFLICT(src_path, rel, dst_path) DO UPDATE SET derived = 0, strength = 1.0,"
    " provenance = 'authored', src_hash = NULL, dst_hash = NULL, created_at = excluded.created_at",
}


_TRIGGER = "files_fts_insert"


class Place(NamedTuple):
    """What the path alone says about a file."""

    para: str
    workspace: str | None
    archived: bool
    origin_path: str | None


def is_indexable(path: str) -> bool:
    """Whether a file at a repository path belongs in the index (spec `retrieval` §4)."""
    return paths.is_record_path(path)


def place(path: str) -> Place:
    """Bucket, workspace and archive state of a path."""
    parts = path.split("/", 2)
    workspace = parts[1] if parts[0] == "projects" and len(parts) == 3 else None
    origin = _ORIGIN.fullmatch(path)
    return Place(parts[0], workspace, parts[0] == "archive", origin[1] if origin else None)


def write_detail(
    conn: sqlite3.Connection, detail: Detail, *, blob_sha: str | None = None, at: str
) -> None:
    """Write a file's row and all that hangs on it, over what was there; its row id is kept.

    `blob_sha` is of the bytes projected, by default the record's; `at` is the whole-second stamp
    of the writing. Derived edges of the file stay. Raises sqlite3.Error.
    """
    record = detail.record
    _drop_children(conn, record.path, record.content_hash)
    conn.execute(_UPSERT, _row(detail, blob_sha or record.blob_sha, at))
    for table, rows in _children(detail):
        if rows:
            conn.executemany(_CHILDREN[table], rows)


def insert_fresh(conn: sqlite3.Connection, details: Sequence[Detail], at: str) -> None:
    """Write many files at paths that have no row yet; `write_detail` of each, in half the time.

    Table by table, and past the trigger of the full-text table, which is back before the caller's
    transaction ends. Raises sqlite3.Error.
    """
    last = conn.execute("SELECT max(id) FROM files").fetchone()[0] or 0
    rows = Rows(at, last + 1)
    for detail in details:
        rows.add(detail)
    found = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", (_TRIGGER,)).fetchone()
    if found is None:
        raise sqlite3.DatabaseError(f"the trigger {_TRIGGER} is missing")
    conn.execute(f"DROP TRIGGER {_TRIGGER}")
    rows.insert(conn)
    conn.execute(found[0])


class Rows:
    """Rows of many files for tables without triggers; their paths and their ids are free.

    `at` is the stamp of the writing, `next_id` the row number of the next file. Ids ascend, which
    the full-text table likes.
    """

    def __init__(self, at: str, next_id: int = 1) -> None:
        self._at = at
        self.next_id = next_id
        self._files: list[tuple[object, ...]] = []
        self._texts: list[tuple[object, ...]] = []
        self._duplicates: list[tuple[str, ...]] = []
        self._children: dict[str, list[tuple[object, ...]]] = {table: [] for table in _CHILDREN}

    def add(self, detail: Detail) -> None:
        """Queue a file; its path must be free."""
        row = _row(detail, detail.record.blob_sha, self._at)
        self._files.append((self.next_id, *row))
        self._texts.append((self.next_id, row[-1]))
        self.next_id += 1
        for table, rows in _children(detail):
            self._children[table] += rows

    def add_duplicate(self, record: Record) -> None:
        """Queue a file whose article another one already brought."""
        self._duplicates.append((record.path, record.content_hash, record.blob_sha))

    def insert(self, conn: sqlite3.Connection) -> None:
        """Write what is queued. Raises sqlite3.Error."""
        names = f"id, {', '.join(COLUMNS)}"
        places = ", ".join("?" * (len(COLUMNS) + 1))
        conn.executemany(f"INSERT INTO files({names}) VALUES({places})", self._files)
        conn.executemany("INSERT INTO files_fts(rowid, fts_text) VALUES(?, ?)", self._texts)
        conn.executemany("INSERT INTO duplicates VALUES(?, ?, ?)", self._duplicates)
        for table, rows in self._children.items():
            conn.executemany(_CHILDREN[table], rows)
            rows.clear()
        for queue in (self._files, self._texts, self._duplicates):
            queue.clear()


def remove(conn: sqlite3.Connection, path: str) -> None:
    """Delete a file's row, its children and its outgoing edges; a path without one is fine."""
    conn.execute("DELETE FROM files WHERE path = ?", (path,))
    conn.execute("DELETE FROM edges WHERE src_path = ?", (path,))


def move(conn: sqlite3.Connection, old: str, new: str) -> None:
    """Give the row at `old` the path `new`, its id, children and outgoing edges with it.

    What was at `new` goes. Without a row at `old` nothing moves. Raises sqlite3.Error.
    """
    if conn.execute("SELECT 1 FROM files WHERE path = ?", (old,)).fetchone() is None:
        return
    remove(conn, new)
    conn.execute(
        "UPDATE files SET path = ?, para = ?, workspace = ?, archived = ?, origin_path = ?"
        " WHERE path = ?",
        (new, *place(new), old),
    )
    conn.execute("DELETE FROM edges WHERE src_path = ? AND dst_path = ?", (old, new))
    conn.execute("UPDATE edges SET src_path = ? WHERE src_path = ?", (new, old))


def _drop_children(conn: sqlite3.Connection, path: str, content_hash: str) -> None:
    for table in ("file_tags", "file_entities", "file_facets", "file_citations"):
        conn.execute(f"DELETE FROM {table} WHERE path = ?", (path,))
    conn.execute("DELETE FROM edges WHERE src_path = ? AND derived = 0", (path,))
    conn.execute("DELETE FROM chunks WHERE path = ? AND content_hash <> ?", (path, content_hash))


def _row(detail: Detail, blob_sha: str, at: str) -> tuple[object, ...]:
    record = detail.record
    where = place(record.path)
    texts = (record.title, record.claim, record.body_text)
    return (
        record.path,
        blob_sha,
        record.content_hash,
        record.memory_type,
        record.title,
        record.claim,
        where.para,
        where.workspace,
        DEFAULT_CONFIDENCE if record.confidence is None else record.confidence,
        DEFAULT_IMPORTANCE if record.importance is None else record.importance,
        int(where.archived),
        where.origin_path,
        len(record.body_text.split()),
        len(record.body_text),
        record.created_at,
        record.updated_at,
        detail.archived_at,
        detail.valid_from,
        detail.valid_until,
        record.event_at,
        detail.reprieves or 0,
        int(detail.needs_revision),
        detail.author or DEFAULT_AUTHOR,
        detail.session_id,
        detail.prompt_id,
        detail.turn_uuid,
        detail.task_status,
        detail.due_at,
        record.frame_key,
        at,
        record.disclosure_text,
        record.body_text,
        "\n".join(filter(None, texts)),
    )


def _children(detail: Detail) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """The rows of each child table, and the authored edges."""
    record = detail.record
    path, content_hash = record.path, record.content_hash
    yield "file_tags", [(path, tag) for tag in map(trim, record.tags) if tag]
    yield "file_entities", [(path, *pair) for pair in _entities(detail)]
    yield "file_facets", [(path, f.name, f.value, f.number) for f in record.facets]
    yield "file_citations", [(path, text, href) for text, href in detail.citations]
    yield "edges", _edges(detail)
    yield (
        "chunks",
        [
            (path, chunk.ordinal, chunk.id, content_hash, chunk.text, len(chunk.text))
            for chunk in chunks_of(content_hash, record.body_text)
        ],
    )


def _entities(detail: Detail) -> list[tuple[str, str]]:
    """Type and name of each entity; one that does not split has the type `unknown`."""
    record = detail.record
    values = map(trim, (*record.entities, *record.derived_entities))
    return [split_entity(value) or ("unknown", value) for value in values if value]


def _edges(detail: Detail) -> list[tuple[object, ...]]:
    """The authored edges; one that points at its own file is none.

    They are as old as the file's last change, which is what a rebuild can know as well.
    """
    record = detail.record
    targets = [(link.rel, paths.href_target(link.href)) for link in record.links]
    return [
        (record.path, rel, target, vocab.RELS[rel], record.updated_at)
        for rel, target in targets
        if target and target != record.path and rel in vocab.RELS
    ]
