"""Stores, details and whole-index comparisons for the index tests."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from tests.support.session import page

from memhtml_format.record import Detail, read_detail

AT = "2026-05-04T09:00:00Z"

TABLES: Mapping[str, str] = {
    "files": "path",
    "file_tags": "path, tag",
    "file_entities": "path, entity_type, entity_name",
    "file_facets": "path, name, value, numeric_value",
    "file_citations": "path, text, href",
    "chunks": "path, ordinal",
    "edges": "src_path, rel, dst_path",
    "duplicates": "path",
    "embeddings": "chunk_id",
}
_NOT_COMPARED = {"files": {"id", "indexed_at"}, "embeddings": {"created_at"}}


def detail(path: str, claim: str = "The limit is 11.", **page_parts: str) -> Detail:
    """A record read in full, as if from a file at `path`."""
    found = read_detail(path, page(claim, **page_parts).encode()).detail
    assert found is not None
    return found


def content(conn: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every projected table, without ids and times of indexing."""
    answer = {}
    for table, order in TABLES.items():
        columns = [row[1] for row in conn.execute(f"PRAGMA table_info({table})")]
        kept = [name for name in columns if name not in _NOT_COMPARED.get(table, ())]
        query = f"SELECT {', '.join(kept)} FROM {table} ORDER BY {order}"
        answer[table] = conn.execute(query).fetchall()
    return answer


def words_found(conn: sqlite3.Connection, word: str) -> list[str]:
    """The paths whose text has `word`, by the full-text table."""
    query = (
        "SELECT f.path FROM files_fts JOIN files AS f ON f.id = files_fts.rowid"
        " WHERE files_fts MATCH ? ORDER BY f.path"
    )
    return [path for (path,) in conn.execute(query, (f'"{word}"',))]


def full_text_is_whole(conn: sqlite3.Connection) -> bool:
    """Whether the full-text table agrees with the texts it points at."""
    try:
        conn.execute("INSERT INTO files_fts(files_fts, rank) VALUES('integrity-check', 1)")
    except sqlite3.DatabaseError:
        return False
    return True
