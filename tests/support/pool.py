"""Candidates of a pool, as the steps after the fusion see them, for their tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from memhtml.retrieve.pool import Candidate


def candidate(
    path: str,
    gist: str = "",
    *,
    position: int = 1,
    lexical: float | None = None,
    cosine: float | None = None,
    vector: Any = None,
    entities: Sequence[str] = (),
    title: str = "",
    body: str | None = None,
) -> Candidate:
    """One file of a pool; its body is its claim unless given. `vector` is a row of numbers."""
    return Candidate(
        path=path,
        title=title,
        gist=gist,
        body_text=gist if body is None else body,
        memory_type="semantic",
        position=position,
        fused=1 / (60 + position),
        lexical=lexical,
        cosine=cosine,
        vector=None if vector is None else np.array(vector, dtype=np.float32),
        entities=tuple(entities),
        superseded_by=None,
        updated_at="2026-05-04T09:00:00Z",
        event_at=None,
    )


def placed(pool: Iterable[Candidate]) -> list[Candidate]:
    """The candidates with their places in this order as their positions."""
    return [each._replace(position=place) for place, each in enumerate(pool, 1)]


def scored(pool: Iterable[Candidate]) -> list[tuple[Candidate, float]]:
    """The candidates, the n-th worth `1 / n`."""
    return [(each, 1 / place) for place, each in enumerate(pool, 1)]


def paths(pool: Iterable[Candidate]) -> list[str]:
    """Their paths."""
    return [each.path for each in pool]


def at_cosine(cosine: float) -> list[float]:
    """A unit vector that has this cosine with `[1, 0]`."""
    return [cosine, float(np.sqrt(1 - cosine * cosine))]
