"""The candidates of the index path: what the steps after the fusion see of a file.

Owns the value only. Who fills it is `memhtml.retrieve.candidates`; who orders it are the steps of
spec `retrieval` §9–§11.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# How much of a body the steps after the fusion read (spec `retrieval` §10), in characters.
BODY_CHARS = 2_000


class Candidate(NamedTuple):
    """One file of the fused pool.

    `body_text` is at most the first `BODY_CHARS` characters. `position` is 1 for the first of the
    fused order and `fused` its sum. `lexical` is BM25 as a positive number, higher is better, and
    None when the `fts` arm did not rank the file. `cosine` is the one of the file's nearest chunk,
    None without a query vector or a vector of the file. `vector` is that of chunk 0, a 1-d float32
    numpy array, or None. `superseded_by` is the source of the newest authored `supersedes` edge.
    """

    path: str
    title: str
    gist: str
    body_text: str
    memory_type: str
    position: int
    fused: float
    lexical: float | None
    cosine: float | None
    vector: Any | None
    entities: tuple[str, ...]
    superseded_by: str | None
    updated_at: str
    event_at: str | None
