"""The `vector` arm of the index path, and the query vector it needs (spec `retrieval` §7, §8).

Vectors are read in slices and never held as a whole; what stays of one is a number. numpy is
imported by a call that has a vector, and by no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log
from memhtml.retrieve.arms import CUT

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from memhtml.embed.port import Embedder, Vector
    from memhtml.retrieve.scope import Filter

    Floats = npt.NDArray[np.float32]
    Integers = npt.NDArray[np.int64]

# A slice this small stays in the processor's cache, which halves the scan; far under 16 MiB.
_SLICE_BYTES = 768 * 1024
_FIRST_LOOK = 256


class Plane(NamedTuple):
    """What vectors a call may use. `space` is None without an embedder that can be asked.

    `coverage`: the share of chunks with a vector of the space. `query`: a 1-d float32 vector of
    `dim` numbers, or None when the vector arm does not fire.
    """

    space: str | None
    dim: int
    coverage: float
    query: Vector | None


NO_VECTORS = Plane(None, 0, 0.0, None)


class Near(NamedTuple):
    """One file that the vectors rank, by its nearest chunk."""

    id: int
    cosine: float


def plane(conn: sqlite3.Connection, query: str, embedder: Embedder | None, floor: float) -> Plane:
    """Read the coverage and, at the floor or above it, embed the query.

    A blank query has no vector (decided here). A failing embedder and a coverage below the floor
    are warnings, never failures. Raises `StorageError` `index_state.decode` and sqlite3.Error.
    """
    if embedder is None:
        return Plane(None, 0, _uncovered(conn), None)
    from memhtml.embed.port import ModelUnavailable, space
    from memhtml.index.vectors import coverage, share

    found = Plane(None, 0, _uncovered(conn), None)
    try:
        name = space(embedder)
        found = Plane(name, embedder.dim, share(*coverage(conn, name)), None)
        if found.coverage >= floor and query.strip():
            return found._replace(query=_checked(embedder.embed_query(query), embedder))
    except ModelUnavailable as error:
        log.warn(f"the search does without vectors: {error}")
        return found
    if found.coverage < floor:
        log.warn(
            f"the search does without vectors: {found.coverage:.1%} of the index has one of"
            f" {name}, and {floor:.1%} is the least; run `{_remedy(conn, embedder)}`"
        )
    return found


def _remedy(conn: sqlite3.Connection, embedder: Embedder) -> str:
    """What gives the index vectors of this space: a fill, unless it is bound to another space."""
    from memhtml.embed.port import may_be_space
    from memhtml.index.state import read_state

    state = read_state(conn)
    stored = None if state is None else state.embed_model
    if stored is not None and not may_be_space(embedder, stored):
        return "memhtml index rebuild --embed"
    return "memhtml index embed"


def _uncovered(conn: sqlite3.Connection) -> float:
    """The coverage of no space at all: nothing, unless there is nothing to cover."""
    return 0.0 if conn.execute("SELECT EXISTS (SELECT 1 FROM chunks)").fetchone()[0] else 1.0


def _checked(vector: Vector, embedder: Embedder) -> Vector:
    """The vector when it has the space's width and only finite numbers."""
    import numpy as np

    from memhtml.embed.port import ModelUnavailable

    if vector.shape != (embedder.dim,) or not np.isfinite(vector).all():
        raise ModelUnavailable(embedder.model_id, "its query vector is not of its own space")
    return vector


def nearest(conn: sqlite3.Connection, near: Plane, scope: Filter) -> list[Near]:
    """The `vector` arm: the 40 files in scope with the nearest chunk, nearest first, then by path.

    `near` has a query vector. Raises sqlite3.Error.
    """
    numbers, cosines = _scanned(conn, near, scope)
    best: dict[int, tuple[float, str]] = {}
    for some in _descending(cosines):
        found = {int(numbers[place]): float(cosines[place]) for place in some}
        for number, path, vector in _files(conn, found, scope):
            if number not in best or found[vector] > best[number][0]:
                best[number] = (found[vector], path)
        if len(best) >= CUT:
            break
    order = sorted((-cosine, path, number) for number, (cosine, path) in best.items())
    return [Near(number, -cosine) for cosine, _path, number in order[:CUT]]


def cosines_with(matrix: Floats, query: Vector) -> Floats:
    """The cosine of each row with the query, in [-1, 1]: 0 for a zero vector, -inf for a NaN."""
    import numpy as np

    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) * np.sqrt(query @ query)
        cosines = np.clip(matrix @ query / np.where(lengths == 0, 1, lengths), -1.0, 1.0)
    cosines[np.isnan(cosines)] = -np.inf
    return cosines.astype(np.float32, copy=False)


def _scanned(conn: sqlite3.Connection, near: Plane, scope: Filter) -> tuple[Integers, Floats]:
    """The row numbers of the space's vectors and their cosines; of a listed scope only its own."""
    import numpy as np

    assert near.query is not None
    numbers: list[int] = []
    parts = [np.zeros(0, dtype=np.float32)]
    for some, matrix in _slices(conn, near, scope):
        numbers += some
        parts.append(cosines_with(matrix, near.query))
    return np.array(numbers, dtype=np.int64), np.concatenate(parts)


def _slices(
    conn: sqlite3.Connection, near: Plane, scope: Filter
) -> Iterator[tuple[list[int], Floats]]:
    import numpy as np

    where = "e.model = :space AND length(e.vec) = :bytes"
    # Rows in the order of the table: by an index every vector would be a page of its own.
    sql = f"SELECT e.rowid, e.vec FROM embeddings e NOT INDEXED WHERE {where}"
    if scope.listed is not None:
        sql = (
            "SELECT DISTINCT e.rowid, e.vec FROM json_each(:listed) s"
            " CROSS JOIN files f ON f.id = s.value CROSS JOIN chunks c ON c.path = f.path"
            f" CROSS JOIN embeddings e ON e.chunk_id = c.chunk_id WHERE {where}"
        )
    values = {**scope.parameters, "space": near.space, "bytes": 4 * near.dim}
    rows = conn.execute(sql, values)
    while some := rows.fetchmany(max(1, _SLICE_BYTES // (4 * near.dim))):
        joined = b"".join([row[1] for row in some])
        matrix = np.frombuffer(joined, dtype="<f4").reshape(-1, near.dim)
        yield [row[0] for row in some], matrix


def _descending(cosines: Floats) -> Iterator[Integers]:
    """The places of all cosines but -inf, highest first, in steps that grow: few are wanted.

    Equal cosines are in one step, so what comes later is lower than all before it.
    """
    import numpy as np

    above, taken, total = np.float32(np.inf), 0, len(cosines)
    while taken < total and above > -np.inf:
        taken = min(max(_FIRST_LOOK, taken * 4), total)
        least = np.partition(cosines, total - taken)[total - taken]
        (places,) = np.nonzero((cosines >= least) & (cosines < above) & (cosines > -np.inf))
        above = least
        yield places


def _files(
    conn: sqlite3.Connection, vectors: dict[int, float], scope: Filter
) -> Sequence[tuple[int, str, int]]:
    """`(file id, path, vector row)` of the chunks in scope that have one of the vectors."""
    sql = (
        "SELECT f.id, f.path, e.rowid FROM json_each(:vectors) v"
        " CROSS JOIN embeddings e ON e.rowid = v.value"
        " CROSS JOIN chunks c ON c.chunk_id = e.chunk_id"
        f" CROSS JOIN files f ON f.path = c.path WHERE {scope.whole}"
    )
    values: dict[str, Any] = {**scope.parameters, "vectors": f"[{','.join(map(str, vectors))}]"}
    return conn.execute(sql, values).fetchall()
