"""`search`: from a query to the hits of `memory.hits` (spec `retrieval` §6 to §9).

Reads the index as it stands, in one transaction. It never moves the access plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve import arms, fuse, query, vectors
from memhtml.retrieve.candidates import SUPERSEDED_BY, load
from memhtml.retrieve.hits import hits
from memhtml.retrieve.order import pool_size, ranked
from memhtml.retrieve.scope import Filter, Scope, archive_listing, make_filter, narrows, settled

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

    from memhtml.embed.port import Embedder
    from memhtml.index.database import Index
    from memhtml.retrieve.pool import Candidate
    from memhtml.retrieve.vectors import Plane

LARGEST = 500
DEFAULT_FLOOR = 0.95


class Pool(NamedTuple):
    """The fused candidates of a query in their order, the arms that fired, and what narrowed it."""

    candidates: list[Candidate]
    arms: list[str]
    scope: Filter


def search(
    index: Index,
    text: str,
    scope: Scope,
    limit: int = 10,
    *,
    embedder: Embedder | None = None,
    now_s: float,
    floor: float = DEFAULT_FLOOR,
) -> dict[str, Any]:
    """The payload of `memory.hits`. `limit` is brought into 0 to 500; `floor` is a coverage.

    Raises `StorageError` and sqlite3.Error.
    """
    size = max(0, min(LARGEST, limit))
    near = vectors.plane(index.conn, text, embedder, floor)
    with reading(index.conn):
        pool = fused_pool(index, text, scope, near, pool_size(size), now_s=now_s)
        chosen = ranked(index.conn, text, pool.candidates, pool.scope, size)
        found = hits(index.conn, chosen, near)
        empty = not found and narrows(scope)
        pointer = _archived(index.conn, scope, size) if empty else (0, [])
    return {
        "hits": found,
        "degraded": near.query is None,
        "vectorCoverage": near.coverage,
        "arms": pool.arms,
        "entityScope": settled(scope).entity,
        "scopeEmpty": empty,
        "archivedMatches": pointer[0],
        "archived": pointer[1],
    }


def fused_pool(
    index: Index, text: str, scope: Scope, near: Plane, size: int, *, now_s: float
) -> Pool:
    """Run the arms inside the scope and fuse them into at most `size` candidates.

    Raises sqlite3.Error.
    """
    conn = index.conn
    filter_ = make_filter(conn, scope)
    match = query.match_of(text)
    words = None if match is None else arms.lexical(conn, match, filter_)
    nearest = None if near.query is None else vectors.nearest(conn, near, filter_)
    given = fuse.Orderings(_ids(words), _ids(nearest))
    best, fired = fuse.fused(conn, given, filter_, size, now_s=now_s, has_state=index.has_state)
    lexical = {each.id: each.bm25 for each in words or ()}
    return Pool(load(conn, best, near, lexical), fired, filter_)


@contextmanager
def reading(conn: sqlite3.Connection) -> Iterator[None]:
    """One view of the index for several statements, whatever another process writes meanwhile."""
    if conn.in_transaction:
        yield
        return
    conn.execute("BEGIN")
    try:
        yield
    finally:
        _leave(conn)


def _leave(conn: sqlite3.Connection) -> None:
    if conn.in_transaction:  # A damaged file ends the transaction by itself.
        conn.execute("ROLLBACK")


def _ids(found: Sequence[arms.Lexical] | Sequence[vectors.Near] | None) -> list[int] | None:
    return None if found is None else [each.id for each in found]


def _archived(
    conn: sqlite3.Connection, scope: Scope, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many archived files the scope matches, and the first of them by path (§6).

    Nothing with `as_of`, which looks at the archive itself.
    """
    if settled(scope).as_of is not None:
        return 0, []
    sql, values = archive_listing(conn, scope)
    count = conn.execute(f"SELECT count(*) FROM ({sql})", values).fetchone()[0]
    rows = conn.execute(
        f"SELECT f.path, {SUPERSEDED_BY} FROM ({sql}) l CROSS JOIN files f ON f.id = l.id"
        f" ORDER BY f.path LIMIT {max(1, limit)}",
        values,
    )
    return count, [{"path": path, "supersededBy": by} for path, by in rows]
