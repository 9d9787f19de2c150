"""What the index holds, in numbers: for `index status`, `status` and `doctor`.

Reads only. Whether a number is good or bad is the caller's to say.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log
from memhtml.index import vectors
from memhtml.index.state import read_state

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder
    from memhtml.index.database import Index


class Health(NamedTuple):
    """Counts of rows, and where the index stands.

    `edges` are the authored and `derived_edges` the mined ones. `stored_space` and
    `configured_space` are `<model>@<dim>` or None; they match unless both are known and differ.
    `vector_coverage` is of the configured space and, while none is, of the stored one.
    """

    head_sha: str | None
    unfinished: bool
    rebuilt_at: str | None
    updated_at: str | None
    stored_space: str | None
    stored_dim: int | None
    configured_space: str | None
    spaces_match: bool
    files: int
    active_files: int
    archived_count: int
    counts_by_type: dict[str, int]
    chunks: int
    embeddings: int
    vector_coverage: float
    edges: int
    derived_edges: int
    tags: int
    entities: int
    traces: int
    has_state: bool


def health(index: Index, embedder: Embedder | None) -> Health:
    """Count everything. Raises `StorageError` `index_state.decode` and sqlite3.Error."""
    conn = index.conn
    state = read_state(conn)
    stored = state.embed_model if state else None
    configured = _space(embedder)
    chunks, embedded = vectors.coverage(conn, configured or stored)
    active, archived = _files(conn)
    edges, derived = _edges(conn)
    return Health(
        head_sha=state.head_sha if state else None,
        unfinished=bool(state and (state.unfinished or state.head_sha is None)),
        rebuilt_at=state.rebuilt_at if state else None,
        updated_at=state.updated_at if state else None,
        stored_space=stored,
        stored_dim=state.embed_dim if state else None,
        configured_space=configured,
        spaces_match=not (stored and configured) or stored == configured,
        files=sum(active.values()) + archived,
        active_files=sum(active.values()),
        archived_count=archived,
        counts_by_type=dict(sorted(active.items())),
        chunks=chunks,
        embeddings=_count(conn, "embeddings"),
        vector_coverage=vectors.share(chunks, embedded),
        edges=edges,
        derived_edges=derived,
        tags=_count(conn, "file_tags"),
        entities=_count(conn, "file_entities"),
        traces=0,  # Their tables come with the commands that fill them.
        has_state=index.has_state,
    )


def embedder_answers(embedder: Embedder | None) -> bool:
    """Whether an embedder is bound and embeds a word. Loads its model."""
    if embedder is None:
        return False
    from memhtml.embed.port import ModelUnavailable

    try:
        embedder.embed_query("memory")
    except ModelUnavailable as error:
        log.warn(str(error))
        return False
    return True


def status_json(found: Health, floor: float) -> dict[str, Any]:
    """The payload of `index status` (spec `cli` §11); `floor` is the configured one."""
    return {
        "mode": "status",
        "headSha": found.head_sha,
        "embedModel": found.stored_space,
        "embedDim": found.stored_dim,
        "embedModelMatches": found.spaces_match,
        "configuredEmbedModel": found.configured_space,
        "rebuiltAt": found.rebuilt_at,
        "updatedAt": found.updated_at,
        "files": found.files,
        "activeFiles": found.active_files,
        "chunks": found.chunks,
        "embeddings": found.embeddings,
        "vectorCoverage": found.vector_coverage,
        "vectorCoverageFloor": floor,
        "edges": found.edges,
        "derivedEdges": found.derived_edges,
        "tags": found.tags,
        "entities": found.entities,
        "traces": found.traces,
        "hasState": found.has_state,
    }


def _space(embedder: Embedder | None) -> str | None:
    """The embedder's space; None also while it cannot say how wide its vectors are."""
    if embedder is None:
        return None
    from memhtml.embed.port import ModelUnavailable, space

    try:
        return space(embedder)
    except ModelUnavailable as error:
        log.warn(str(error))
        return None


def _files(conn: sqlite3.Connection) -> tuple[dict[str, int], int]:
    """Live files by type, and how many are archived."""
    query = "SELECT memory_type, count(*) FROM files WHERE archived = 0 GROUP BY memory_type"
    archived = "SELECT count(*) FROM files WHERE archived = 1"
    return dict(conn.execute(query).fetchall()), int(conn.execute(archived).fetchone()[0])


def _edges(conn: sqlite3.Connection) -> tuple[int, int]:
    query = "SELECT count(*), coalesce(sum(derived <> 0), 0) FROM edges"
    total, derived = conn.execute(query).fetchone()
    return total - derived, derived


def _count(conn: sqlite3.Connection, table: str) -> int:
    return int(conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
