"""The steps between the fold and the hits, in their order (spec `retrieval` §9).

Which step does what is its own module's matter; `search` and `recall` share the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memhtml.retrieve.exact import settle_copies
from memhtml.retrieve.mmr import pick
from memhtml.retrieve.polarity import demote
from memhtml.retrieve.rerank import rerank
from memhtml.retrieve.supersede import settle

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

    from memhtml.retrieve.pool import Candidate
    from memhtml.retrieve.scope import Filter

# The last step over the fused pool judges more files than are asked for (decided here): what it
# lifts must be in the pool first. The arms cut at 40 each, so there are never more than 160.
# More than 100 finds no more (docs/retrieval.md).
LEAST_POOL = 100
POOL_PER_HIT = 3


def pool_size(limit: int) -> int:
    """How many fused files the steps see for `limit` hits."""
    return max(LEAST_POOL, POOL_PER_HIT * limit) if limit > 0 else 0


def scored(query: str, pool: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
    """The pool reordered, the n-th place worth `1 / n`, and demoted where polarity disagrees."""
    order = settle_copies(query, rerank(query, pool))
    return demote(query, [(each, 1 / place) for place, each in enumerate(order, 1)])


def ranked(
    conn: sqlite3.Connection, query: str, pool: Sequence[Candidate], scope: Filter, limit: int
) -> list[tuple[str, float]]:
    """The hits of a search as `(path, score)`: varied, settled, at most `limit`.

    Raises sqlite3.Error.
    """
    picked = pick(scored(query, pool), limit)
    return [(each.path, score) for each, score in settle(conn, picked, scope)][:limit]


def settled_order(
    conn: sqlite3.Connection, query: str, pool: Sequence[Candidate], scope: Filter
) -> list[str]:
    """The paths of the pool in the order of a pack. Raises sqlite3.Error."""
    return [each.path for each, _score in settle(conn, scored(query, pool), scope)]
