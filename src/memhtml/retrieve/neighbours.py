"""The neighbours of a new record, and head search: one lexical arm over a view.

Spec `retrieval` §20. No vectors are read here: the report says that no embedder is bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve.words import STOP_WORDS, words

if TYPE_CHECKING:
    from memhtml.corpus.layers import Layers
    from memhtml.store.snapshot_fts import Match

KEPT = 40
RANK_OFFSET = 60


class Hit(NamedTuple):
    """One record near a query; `arms` names what ranked it."""

    path: str
    score: float
    arms: tuple[str, ...]
    claim: str


def neighbours(view: Layers, title: str, claim: str, limit: int = 3) -> list[Hit]:
    """The records of the view nearest to a new one, by its title and claim."""
    return search_all(view, [f"{title} {claim}"], limit)[0]


def search_all(
    view: Layers, queries: Iterable[str], limit: int, *, now: str | None = None
) -> list[list[Hit]]:
    """The hits of each query; the view is prepared once for all of them.

    `now` (isoSecond) caps the instants that tell equal scores apart. A limit below 0 counts as 0.
    Raises sqlite3.Error when the database is damaged.
    """
    with view.matching() as matcher:
        found = []
        for query in queries:
            expression = match_expression(query)
            matches = matcher.match(expression, KEPT) if expression else []
            found.append(fuse(matches, now=now)[: max(limit, 0)])
        return found


def match_expression(query: str) -> str:
    """The FTS5 expression: any of the query's distinct words, stop words left out if others stay.

    Every word is quoted, because FTS5 has words of its own.
    """
    distinct = list(dict.fromkeys(words(query)))
    telling = [word for word in distinct if word not in STOP_WORDS]
    return " OR ".join(f'"{word}"' for word in telling or distinct)


def fuse(matches: list[Match], *, now: str | None = None) -> list[Hit]:
    """Scores from shared ranks; equal scores are told apart by recency, then by path."""
    ranked = []
    rank = 0
    for at, match in enumerate(matches):
        if at == 0 or match.rank != matches[at - 1].rank:
            rank = at + 1
        ranked.append((1 / (RANK_OFFSET + rank), match))
    scores = [score for score, _match in ranked]
    # Path order stands already; the sorts are stable, so the last key goes first.
    ranked.sort(key=lambda pair: _instant(pair[1], now), reverse=True)
    ranked.sort(key=lambda pair: -pair[0])
    return [
        Hit(
            match.path,
            score,
            ("lexical", "recency") if scores.count(score) > 1 else ("lexical",),
            match.claim,
        )
        for score, match in ranked
    ]


def vector_off() -> dict[str, Any]:
    """The `vector` report without an embedder (spec `retrieval` §20.1)."""
    return {
        "used": False,
        "reason": "embedder-off",
        "detail": None,
        "cached": None,
        "coverage": None,
        "loadMs": None,
        "embedMs": None,
    }


def _instant(match: Match, now: str | None) -> str:
    instant = match.event_at or match.updated_at
    return instant if now is None else min(instant, now)
