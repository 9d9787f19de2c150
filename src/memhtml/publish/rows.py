"""What a listing says about each memory, in path order, as the last commit has it.

Read from the index. An uncommitted edit that the index shows is left out: a page that is committed
must not name what is not.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from _sqlite3 import Connection

    from memhtml.store.repo import Repo

_REPLACED_BY = (
    "(SELECT min(e.src_path) FROM edges AS e"
    " WHERE e.dst_path = f.path AND e.rel = 'supersedes' AND e.derived = 0)"
)
_ROWS = (
    "SELECT f.path, f.title, f.gist, f.memory_type, f.updated_at, f.task_status, f.due_at,"
    f" {_REPLACED_BY} FROM files AS f ORDER BY f.path"
)


class Row(NamedTuple):
    """One memory of a listing; `replaced_by` is the path of one that supersedes it."""

    path: str
    title: str
    claim: str
    kind: str
    updated_at: str
    task_status: str | None
    due_at: str | None
    replaced_by: str | None


def committed_rows(
    conn: Connection, repo: Repo, head: str | None, dirty: Sequence[str]
) -> Iterator[Row]:
    """The rows of the index in path order, those of `dirty` paths as the commit `head` has them.

    Raises sqlite3.Error and `MemhtmlError` `ERR_GIT`.
    """
    edited = frozenset(dirty)
    stored = (Row(*row) for row in conn.execute(_ROWS) if row[0] not in edited)
    if not edited:
        return stored
    restored = (_committed(conn, repo, head, path) for path in sorted(edited))
    return heapq.merge(stored, filter(None, restored), key=lambda row: row.path)


def _committed(conn: Connection, repo: Repo, head: str | None, path: str) -> Row | None:
    """The row of the commit's own version; None where it has no memory there."""
    from memhtml_format.record import read_detail

    data = None if head is None else repo.blob(head, path)
    detail = None if data is None else read_detail(path, data).detail
    if detail is None:
        return None
    record = detail.record
    found = conn.execute(f"SELECT {_REPLACED_BY} FROM (SELECT ? AS path) AS f", (path,)).fetchone()
    return Row(
        path,
        record.title,
        record.claim,
        record.memory_type,
        record.updated_at,
        detail.task_status,
        detail.due_at,
        found[0],
    )
