"""The last pick: a hit that nearly duplicates one above it is demoted (spec `retrieval` §11).

Decided here: the penalty is no plain cosine. In the spaces of today's models every two texts of one
subject have a cosine of 0.75 to 0.95, so `0.5 · score − 0.5 · cosine` over scores of 1, 1/2, 1/3 …
picks by unlikeness from the second hit on and loses right answers. What nearly duplicates is above
the threshold of §18, in any of these spaces; only the excess over it costs, and at most half of the
score, so that a hit which duplicates nothing keeps its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memhtml.retrieve.pool import Candidate

NEAR_DUPLICATE = 0.92
LAMBDA = 0.5


def pick(scored: Sequence[tuple[Candidate, float]], limit: int) -> list[tuple[Candidate, float]]:
    """At most `limit` candidates, each with the score it came with, which the penalty leaves alone.

    Greedy: next comes the one with the largest `score · (1 − LAMBDA · excess)`, where `excess` is
    0 up to a cosine of 0.92 with every one picked and 1 for a cosine of 1. Of equals the earlier
    one. Both must have vectors; without any, the order is kept and no numpy is imported.
    """
    if limit <= 0:
        return []
    if sum(each.vector is not None for each, _score in scored) < 2:
        return list(scored[:limit])
    from memhtml.retrieve.similarity import cosines

    near = cosines([each.vector for each, _score in scored])
    excess = ((near - NEAR_DUPLICATE) / (1.0 - NEAR_DUPLICATE)).clip(0.0, 1.0)
    waiting = list(range(len(scored)))
    most = [0.0] * len(scored)
    picked: list[int] = []
    while waiting and len(picked) < limit:
        best = max(waiting, key=lambda at: (scored[at][1] * (1.0 - LAMBDA * most[at]), -at))
        waiting.remove(best)
        picked.append(best)
        for at in waiting:
            most[at] = max(most[at], float(excess[best, at]))
    return [scored[at] for at in picked]
