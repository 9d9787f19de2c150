"""Fills the candidates of a pool (`memhtml.retrieve.pool`) with what the later steps read.

Reads by id, so it costs the pool and not the corpus. Vectors are read only where the caller has a
space to compare them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve.pool import BODY_CHARS, Candidate
from memhtml.retrieve.vectors import NO_VECTORS, Plane

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

    from memhtml.embed.port import Vector
    from memhtml.retrieve.fuse import Fused

# A record may be replaced more than once; the newest authored edge is the one that counts. Binds
# nothing; `f` is the replaced file.
SUPERSEDED_BY = (
    "(SELECT s.src_path FROM edges s WHERE s.dst_path = f.path AND s.edge_class = 'memory'"
    " AND s.rel = 'supersedes' AND s.derived = 0 ORDER BY s.created_at DESC, s.src_path LIMIT 1)"
)


class Nearest(NamedTuple):
    """What vectors say of a file: of its first chunk, and of the chunk nearest to the query."""

    first: Any | None = None
    cosine: float | None = None
    ordinal: int = 0


def load(
    conn: sqlite3.Connection,
    pool: Sequence[Fused],
    near: Plane = NO_VECTORS,
    lexical: Mapping[int, float] | None = None,
) -> list[Candidate]:
    """The candidates of a pool, in its order. `lexical` is BM25 by file id.

    Raises sqlite3.Error.
    """
    listed = id_list(each.id for each in pool)
    rows = _rows(conn, listed)
    entities = entities_of(conn, listed)
    vectors = vectors_of(conn, listed, near)
    found = []
    for place, each in enumerate(pool, 1):
        title, gist, body, kind, updated, event, superseded = rows[each.id]
        nearest = vectors.get(each.id, Nearest())
        found.append(
            Candidate(
                path=each.path,
                title=title,
                gist=gist,
                body_text=body,
                memory_type=kind,
                position=place,
                fused=each.score,
                lexical=(lexical or {}).get(each.id),
                cosine=nearest.cosine,
                vector=nearest.first,
                entities=entities.get(each.id, ()),
                superseded_by=superseded,
                updated_at=updated,
                event_at=event,
            )
        )
    return found


def id_list(ids: Iterable[int]) -> str:
    """Ids as a JSON array."""
    return f"[{','.join(map(str, ids))}]"


def _rows(conn: sqlite3.Connection, listed: str) -> dict[int, tuple[Any, ...]]:
    sql = (
        f"SELECT f.id, f.title, f.gist, substr(f.body_text, 1, {BODY_CHARS}), f.memory_type,"
        f" f.updated_at, f.event_at, {SUPERSEDED_BY}"
        " FROM json_each(?) v CROSS JOIN files f ON f.id = v.value"
    )
    return {row[0]: row[1:] for row in conn.execute(sql, (listed,))}


def entities_of(conn: sqlite3.Connection, listed: str) -> dict[int, tuple[str, ...]]:
    """Sorted `type:name` of each file that has any, derived ones included. Raises sqlite3.Error."""
    sql = (
        "SELECT f.id, e.entity_type || ':' || e.entity_name FROM json_each(?) v"
        " CROSS JOIN files f ON f.id = v.value CROSS JOIN file_entities e ON e.path = f.path"
    )
    found: dict[int, set[str]] = {}
    for number, entity in conn.execute(sql, (listed,)):
        found.setdefault(number, set()).add(entity)
    return {number: tuple(sorted(entities)) for number, entities in found.items()}


def vectors_of(conn: sqlite3.Connection, listed: str, near: Plane) -> dict[int, Nearest]:
    """What the vectors of the space say of each file; nothing without a space.

    Of chunks that are equally near the first counts. Raises sqlite3.Error.
    """
    if near.space is None or near.coverage == 0:
        return {}
    import numpy as np

    from memhtml.retrieve.vectors import cosines_with

    sql = (
        "SELECT f.id, c.ordinal, e.vec FROM json_each(:listed) v"
        " CROSS JOIN files f ON f.id = v.value CROSS JOIN chunks c ON c.path = f.path"
        " CROSS JOIN embeddings e ON e.chunk_id = c.chunk_id"
        " WHERE e.model = :space AND length(e.vec) = :bytes ORDER BY v.key, c.ordinal"
    )
    if near.query is None:
        sql = sql.replace(" ORDER BY", " AND c.ordinal = 0 ORDER BY")
    found: dict[int, Nearest] = {}
    values = {"listed": listed, "space": near.space, "bytes": 4 * near.dim}
    for number, ordinal, data in conn.execute(sql, values):
        vector: Vector = np.frombuffer(data, dtype="<f4")
        best = found.get(number, Nearest())
        if ordinal == 0:
            best = best._replace(first=vector)
        if near.query is not None:
            cosine = float(cosines_with(vector.reshape(1, -1), near.query)[0])
            if best.cosine is None or cosine > best.cosine:
                best = best._replace(cosine=cosine, ordinal=ordinal)
        found[number] = best
    return found
