"""Stores, details and whole-index comparisons for the index tests."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.support.session import git, page

from memhtml.index import follow
from memhtml.index.database import open_index
from memhtml.index.follow import RebuildReport, UpdateReport
from memhtml.index.state import IndexState, read_state
from memhtml.store.repo import Repo
from memhtml_format.record import Detail, read_detail

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder

AT = "2026-05-04T09:00:00Z"
A, B, C = "areas/inbox/a.html", "areas/inbox/b.html", "areas/inbox/c.html"
OLD_A = "archive/2026/areas/inbox/a.html"

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


def write_file(root: str, path: str, text: str) -> None:
    """A file of the working tree, its folders made."""
    full = f"{root}/{path}"
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def refresh(root: str, embedder: Embedder | None = None, *, embed: bool = True) -> UpdateReport:
    """`index update` in this process."""
    return follow.update(root, repo=Repo(root), embedder=embedder, embed=embed)


def forward(root: str, embedder: Embedder | None = None, repo: Repo | None = None) -> None:
    """The pass after a door's commit."""
    follow.bring_forward(root, repo or Repo(root), embedder)


def anew(
    root: str, embedder: Embedder | None = None, *, embed: bool = True, force: bool = False
) -> RebuildReport:
    """`index rebuild` in this process."""
    return follow.rebuild(root, repo=Repo(root), embedder=embedder, embed=embed, force=force)


def claims(root: str) -> dict[str, str]:
    """Path → claim of every indexed file."""
    with open_index(root, state=False) as index:
        return dict(index.conn.execute("SELECT path, gist FROM files ORDER BY path"))


def index_paths(root: str) -> list[str]:
    """Every indexed path, sorted."""
    return list(claims(root))


def state_of(root: str) -> IndexState:
    """Where the index says it stands."""
    with open_index(root, state=False) as index:
        state = read_state(index.conn)
    assert state is not None
    return state


def commit(root: str) -> None:
    """Everything in the working tree as one commit."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a change")


def counts(done: UpdateReport) -> tuple[int, ...]:
    """Added, modified, removed, renamed, dirty."""
    return done.added, done.modified, done.removed, done.renamed, done.dirty
