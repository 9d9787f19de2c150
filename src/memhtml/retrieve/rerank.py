"""The last step over the fused pool: what arms only ranked is weighed (spec `retrieval` §9).

Reciprocal rank fusion decides who is in the pool; here its order only breaks ties, because ranks
forget by how much one hit beat the next, and because the arms that do not read the query (recency,
salience) have said all they can say by choosing. No model is called and no data set is known: how
the weights were chosen is in `docs/retrieval.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memhtml.retrieve.evidence import weigh
from memhtml.retrieve.words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memhtml.retrieve.pool import Candidate

CLOSENESS = 0.6
LEXICAL = 0.4
NAMES = 0.2
RUNS = 0.1
# Sums that differ by less are equal: the order must not hang on the last bit of a sum.
_DIGITS = 9


def rerank(query: str, pool: Sequence[Candidate]) -> list[Candidate]:
    """The pool, best first; equal ones in their fused order, which is unique.

    A candidate's value is a sum of: its closeness in the vector space; its BM25 as a share of the
    pool's best, times the share of the query's words it has (a best match that has one word of
    five is a weak one); the share of the query's names; the share of its pairs of words. A query
    without a word keeps the fused order. Without cosines no numpy is imported.
    """
    order = sorted(pool, key=lambda each: each.position)
    if len(order) < 2 or not words(query):
        return order
    evidence = weigh(query, order)
    best = max((each.lexical for each in order if each.lexical is not None), default=0.0)
    closeness = _closeness(order, [each.named for each in evidence])
    values = {}
    for each, said, near in zip(order, evidence, closeness, strict=True):
        lexical = each.lexical / best if each.lexical is not None and best > 0 else 0.0
        values[each.path] = round(
            CLOSENESS * near
            + LEXICAL * lexical * said.covered
            + NAMES * said.named
            + RUNS * said.runs,
            _DIGITS,
        )
    return sorted(order, key=lambda each: -values[each.path])


def _closeness(pool: Sequence[Candidate], named: Sequence[float]) -> list[float]:
    if all(each.cosine is None for each in pool):
        return [0.0] * len(pool)
    from memhtml.retrieve.feedback import closeness

    return closeness(pool, [share == max(named) for share in named])
