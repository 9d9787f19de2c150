"""`index embed`: the vectors that are missing, and how many still are (spec `retrieval` §4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml import log
from memhtml.embed.port import ModelUnavailable, space
from memhtml.index import vectors
from memhtml.index.database import open_index
from memhtml.index.follow import require_space
from memhtml.index.state import read_state

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder


def embed(
    root: str,
    embedder: Embedder | None,
    *,
    dry_run: bool = False,
    progress: vectors.Progress | None = None,
) -> dict[str, Any]:
    """Fill in the vectors and answer the payload of `index.report`.

    Without an embedder, or with one that fails, `embeddingsRemaining` says what is left. Raises
    `MemhtmlError` `ERR_EMBED_MODEL_MISMATCH` and what `open_index` raises.
    """
    with open_index(root, state=False) as index:
        conn = index.conn
        state = read_state(conn)
        stored = state.embed_model if state else None
        require_space(embedder, stored)
        written = 0
        if embedder is not None and not dry_run:
            written = vectors.fill(conn, embedder, None, progress)
        name = _space(embedder) or stored
        return {
            "mode": "embed",
            "headSha": state.head_sha if state else None,
            "chunks": int(conn.execute("SELECT count(*) FROM chunks").fetchone()[0]),
            "embeddings": int(conn.execute("SELECT count(*) FROM embeddings").fetchone()[0]),
            "embeddingsWritten": written,
            "embeddingsRemaining": vectors.missing(conn, name),
        }


def _space(embedder: Embedder | None) -> str | None:
    if embedder is None:
        return None
    try:
        return space(embedder)
    except ModelUnavailable as error:
        log.warn(str(error))
        return None
