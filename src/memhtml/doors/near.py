"""`apply --detect-near-duplicates`: what says nearly the same (spec `retrieval` §18).

A report only, made after the commit from vectors that were stored before it. It refuses nothing;
whatever keeps it from being made is a warning and `near_duplicates_degraded`.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `memhtml.index.sqlite`.
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log
from memhtml.embed.port import ModelUnavailable, space
from memhtml.index.projection import chunks_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memhtml.doors.batch import Placed
    from memhtml.embed.port import Embedder

    Matrix = npt.NDArray[np.float32]

THRESHOLD = 0.92
MOST_FINDINGS = 3

_SLICE_BYTES = 16 << 20
_BLOCK_ROWS = 256
_STORED = (
    "SELECT f.path, f.gist, e.vec FROM files AS f"
    " JOIN chunks AS c ON c.path = f.path AND c.ordinal = 0"
    " JOIN embeddings AS e ON e.chunk_id = c.chunk_id"
    " WHERE f.archived = 0 AND f.memory_type NOT IN ('arc', 'task') AND e.model = ?"
    " ORDER BY f.path"
)


class Finding(NamedTuple):
    """Something that says nearly the same: an active memory, or an earlier op of the batch."""

    similarity: float
    claim: str
    path: str | None = None
    batch_index: int | None = None

    @property
    def rank(self) -> tuple[float, int, str, int]:
        """The best first; of equal ones a stored path, then path or index order."""
        stored = self.path is not None
        return -self.similarity, 0 if stored else 1, self.path or "", self.batch_index or 0

    def to_json(self) -> dict[str, Any]:
        """One entry of `near_duplicates`."""
        return {
            "path": self.path,
            "batch_index": self.batch_index,
            "claim": self.claim,
            "similarity": self.similarity,
        }


def report_near(
    results: Sequence[dict[str, Any]],
    placed: Sequence[Placed],
    conn: sqlite3.Connection,
    embedder: Embedder | None,
) -> bool:
    """Fill in `near_duplicates` of the ops that are written; True when it could not be done."""
    if embedder is None:
        return True
    try:
        found = near(placed, conn, embedder) if placed else {}
    except ModelUnavailable as error:
        log.warn(f"near duplicates were not looked for: {error}")
        return True
    except sqlite3.Error as error:
        log.warn(f"near duplicates were not looked for: {error}")
        return True
    for index, findings in found.items():
        results[index]["near_duplicates"] = [each.to_json() for each in findings]
    return False


def near(
    placed: Sequence[Placed], conn: sqlite3.Connection, embedder: Embedder
) -> dict[int, list[Finding]]:
    """Of each op, by its index, the findings, best first, at most three.

    Raises `ModelUnavailable` and sqlite3.Error.
    """
    vectors = _embedded(placed, embedder)
    found: list[list[Finding]] = [[] for _ in placed]
    own = {each.path for each in placed}
    for paths, claims, stored in _stored(conn, space(embedder), embedder.dim, own):
        for row, place, similarity in _alike(vectors, stored):
            found[row].append(Finding(similarity, claims[place], path=paths[place]))
    for row, place, similarity in _alike(vectors, vectors, earlier=True):
        other = placed[place]
        claim = other.prepared.detail.record.claim
        found[row].append(Finding(similarity, claim, batch_index=other.number))
    return {
        op.number: sorted(findings, key=lambda each: each.rank)[:MOST_FINDINGS]
        for op, findings in zip(placed, found, strict=True)
    }


def _embedded(placed: Sequence[Placed], embedder: Embedder) -> Matrix:
    """The vectors of the first chunks, of length 1."""
    records = [each.prepared.detail.record for each in placed]
    texts = [chunks_of(each.content_hash, each.body_text)[0].text for each in records]
    vectors = embedder.embed(texts)
    if len(vectors) != len(texts) or any(len(each) != embedder.dim for each in vectors):
        raise ModelUnavailable(embedder.model_id, "vectors of another count or width")
    import numpy as np  # Whoever made vectors has loaded it.

    return _normalised(np.stack(vectors).astype(np.float32))


def _stored(
    conn: sqlite3.Connection, name: str, dim: int, own: Collection[str]
) -> Iterator[tuple[list[str], list[str], Matrix]]:
    """Paths, claims and vectors of active memories in path order, slice by slice; none of `own`.

    Those may be in the index already, when another process brought it forward.
    """
    import numpy as np

    rows = (row for row in conn.execute(_STORED, (name,)) if len(row[2]) == 4 * dim)
    many = max(1, _SLICE_BYTES // (4 * dim))
    while True:
        part = list(islice(rows, many))
        if not part:
            return
        part = [row for row in part if row[0] not in own]
        data = b"".join(row[2] for row in part)
        matrix = np.frombuffer(data, dtype="<f4").reshape(len(part), dim).astype(np.float32)
        yield [row[0] for row in part], [row[1] for row in part], _normalised(matrix)


def _alike(
    wanted: Matrix, others: Matrix, *, earlier: bool = False
) -> Iterator[tuple[int, int, float]]:
    """The best pairs at or over the threshold: row of `wanted`, row of `others`, similarity.

    At most three a row; of equal ones the first. `earlier` compares with the rows before it alone.
    """
    import numpy as np

    for start in range(0, len(wanted), _BLOCK_ROWS):
        block = wanted[start : start + _BLOCK_ROWS]
        similar = np.clip(block @ others.T, -1.0, 1.0)
        for place, row in enumerate(similar, start):
            hits = np.nonzero((row[:place] if earlier else row) >= THRESHOLD)[0]
            best = hits[np.argsort(-row[hits], kind="stable")[:MOST_FINDINGS]]
            for other in best.tolist():
                yield place, other, round(float(row[other]), 6)


def _normalised(vectors: Matrix) -> Matrix:
    """Each row of length 1; a zero row stays, and is like nothing."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    lengths[lengths == 0] = 1
    normalised: Matrix = vectors / lengths
    return normalised
