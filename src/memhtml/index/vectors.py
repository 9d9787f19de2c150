"""Vectors of chunks: filling in what is missing, and how much is there (spec `retrieval` §4.3, §8).

A vector belongs to a chunk's id, so it outlives the row. A model that fails stops a run and loses
nothing.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from memhtml import log
from memhtml.embed.port import ModelUnavailable, space
from memhtml.index import sqlite
from memhtml_format.instants import second

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder, Vector

Progress = Callable[[int, int], None]
"""Called with how many chunks are embedded and how many there are to embed."""

SLICE_CHUNKS = 960
"""What is embedded before anything of it is stored."""

_CALL_TEXTS = 96
_STORED_ROWS = 480
_PATHS = 500
_WITHOUT = (
    " NOT EXISTS(SELECT 1 FROM embeddings AS e WHERE e.model = :space AND e.chunk_id = c.chunk_id)"
)
_INSERT = (
    "INSERT INTO embeddings(chunk_id, model, dim, vec, created_at) VALUES(?, ?, ?, ?, ?)"
    " ON CONFLICT(chunk_id) DO UPDATE SET model = excluded.model, dim = excluded.dim,"
    " vec = excluded.vec, created_at = excluded.created_at"
)


def fill(
    conn: sqlite3.Connection,
    embedder: Embedder,
    paths: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Embed every chunk without a vector in the embedder's space, or those of `paths` alone.

    Each slice of 960 is stored before the next begins, so a run that is cut short goes on where it
    was. A failing model is a warning. Answers how many vectors were stored. Raises `StorageError`
    `index.locked` and sqlite3.Error.
    """
    written = 0
    try:
        name = space(embedder)
        total = missing(conn, name, paths)
        for wanted in _slices(conn, name, paths):
            found = _embedded(embedder, wanted, progress or _no_progress, written, total)
            if not _store(conn, name, embedder.dim, wanted[: len(found)], found):
                log.warn("embedding stopped: the index now belongs to another model")
                break
            written += len(found)
            if len(found) < len(wanted):
                break
    except ModelUnavailable as error:
        log.warn(f"embedding stopped: {error}")
    return written


def missing(conn: sqlite3.Connection, name: str | None, paths: Sequence[str] | None = None) -> int:
    """How many different chunks have no vector in the space `name`; None has none at all."""
    count = f"SELECT count(DISTINCT c.chunk_id) FROM chunks AS c WHERE {_WITHOUT}"
    if paths is None:
        return int(conn.execute(count, {"space": name}).fetchone()[0])
    some = f"{count} AND c.path IN (SELECT value FROM json_each(:paths))"
    values = ({"space": name, "paths": batch} for batch in _path_lists(paths))
    return sum(int(conn.execute(some, each).fetchone()[0]) for each in values)


def coverage(conn: sqlite3.Connection, name: str | None) -> tuple[int, int]:
    """How many chunks there are, and how many have a vector in the space `name`."""
    chunks = int(conn.execute("SELECT count(*) FROM chunks").fetchone()[0])
    if name is None or not chunks:
        return chunks, 0
    # The side that is looked up is the shorter one; both are read from an index alone.
    with_vector = (
        "SELECT count(*) FROM embeddings AS e JOIN chunks AS c ON c.chunk_id = e.chunk_id"
        " WHERE e.model = ?"
    )
    return chunks, int(conn.execute(with_vector, (name,)).fetchone()[0])


def share(chunks: int, embedded: int) -> float:
    """Coverage as a number from 0 to 1; an index without chunks is covered."""
    return embedded / chunks if chunks else 1.0


def _no_progress(done: int, total: int) -> None:
    """Nobody watches."""


def _path_lists(paths: Sequence[str]) -> Iterator[str]:
    import json

    for start in range(0, len(paths), _PATHS):
        yield json.dumps(list(paths[start : start + _PATHS]))


def _slices(
    conn: sqlite3.Connection, name: str, paths: Sequence[str] | None
) -> Iterator[list[tuple[str, str]]]:
    """Id and text of what is missing, in the order of ids, a slice at a time."""
    rows = "SELECT c.chunk_id, c.text FROM chunks AS c WHERE"
    rest = f"{_WITHOUT} GROUP BY c.chunk_id ORDER BY c.chunk_id LIMIT {SLICE_CHUNKS}"
    if paths is None:
        after = ""
        query = f"{rows} c.chunk_id > :after AND {rest}"
        while found := conn.execute(query, {"space": name, "after": after}).fetchall():
            yield found
            after = found[-1][0]
        return
    query = f"{rows} c.path IN (SELECT value FROM json_each(:paths)) AND c.chunk_id > :after"
    for batch in _path_lists(paths):
        values = {"space": name, "paths": batch, "after": ""}
        while found := conn.execute(f"{query} AND {rest}", values).fetchall():
            yield found
            values["after"] = found[-1][0]


def _embedded(
    embedder: Embedder,
    wanted: Sequence[tuple[str, str]],
    progress: Progress,
    before: int,
    total: int,
) -> list[Vector]:
    """The vectors of a slice, as far as the model goes."""
    found: list[Vector] = []
    for start in range(0, len(wanted), _CALL_TEXTS):
        texts = [text for _id, text in wanted[start : start + _CALL_TEXTS]]
        try:
            vectors = embedder.embed(texts)
            if len(vectors) != len(texts) or any(len(each) != embedder.dim for each in vectors):
                raise ModelUnavailable(embedder.model_id, "vectors of another count or width")
        except ModelUnavailable as error:
            log.warn(f"embedding stopped: {error}")
            break
        found += vectors
        progress(before + len(found), total)
    return found


def _store(
    conn: sqlite3.Connection,
    name: str,
    dim: int,
    wanted: Sequence[tuple[str, str]],
    vectors: Sequence[Vector],
) -> bool:
    """Write a slice; False when the index has been given to another space meanwhile."""
    import numpy as np  # Whoever made vectors has loaded it.

    stamp = second(time.time())
    rows = [
        (chunk_id, name, dim, np.asarray(vector, dtype="<f4").tobytes(), stamp)
        for (chunk_id, _text), vector in zip(wanted, vectors, strict=True)
    ]
    for start in range(0, len(rows), _STORED_ROWS):
        with sqlite.writing(conn):
            if not _may_store(conn, name, dim):
                return False
            conn.executemany(_INSERT, rows[start : start + _STORED_ROWS])
    return True


def _may_store(conn: sqlite3.Connection, name: str, dim: int) -> bool:
    """Whether the index holds this space; one that never had a vector takes it."""
    row = conn.execute("SELECT embed_model FROM index_state WHERE id = 1").fetchone()
    if row is None or row[0] == name:
        return True
    if row[0] is None:
        conn.execute("UPDATE index_state SET embed_model = ?, embed_dim = ?", (name, dim))
    return row[0] is None
