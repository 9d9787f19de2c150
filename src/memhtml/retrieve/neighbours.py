"""The words of head search, and the fold of its two arms (spec `retrieval` §20).

Reads no vectors and loads no numpy: what the vector arm ranked is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def to_json(self) -> dict[str, Any]:
        """The four keys of the payload."""
        return {**self._asdict(), "arms": list(self.arms)}


def search_all(
    view: Layers,
    queries: Sequence[str],
    limit: int,
    *,
    near: Sequence[Sequence[Match]] | None = None,
    now: str | None = None,
) -> list[list[Hit]]:
    """The hits of each query; the view is prepared once for all of them.

    `near` is what the vector arm ranked for each query, None when it did not run. `now` (isoSecond)
    caps the instants that tell equal scores apart. A limit below 0 counts as 0. No record ranks
    above a live one that supersedes it. Raises sqlite3.Error when the database is damaged.
    """
    with view.matching() as matcher:
        found = []
        for at, query in enumerate(queries):
            expression = match_expression(query)
            matches = matcher.match(expression, KEPT) if expression else []
            hits = fuse(matches, near[at] if near else (), now=now)
            found.append(settle(view, hits, max(limit, 0)))
        return found


def settle(view: Layers, hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The first `limit` hits, each replaced record below the live ones that supersede it.

    One of those that no arm ranked comes in above it, with no arms; one that moves up or comes in
    has the score of the hit it replaces, if that is higher.
    """
    later: dict[str, list[str]] = {}
    # What is settled begins with these, so links of the others change nothing that is kept.
    waiting = [hit.path for hit in hits[:limit]]
    while waiting:
        path = waiting.pop()
        if path not in later:
            later[path] = view.linking(path, "supersedes")
            waiting += later[path]
    if not any(later.values()):
        return list(hits[:limit])
    from memhtml.retrieve.supersede import settled  # Modules of the other path, 5 ms.

    known = {hit.path: hit for hit in hits}
    scores: dict[str, float] = {}
    least = 0.0
    order = settled(list(known), later)
    for path in reversed(order):
        least = scores[path] = max(least, known[path].score if path in known else 0.0)
    return [
        (known.get(path) or _pulled_in(view, path))._replace(score=scores[path])
        for path in order[:limit]
    ]


def _pulled_in(view: Layers, path: str) -> Hit:
    row = view.record(path)
    return Hit(path, 0.0, (), row.claim if row else "")


def match_expression(query: str) -> str:
    """The FTS5 expression: any of the query's distinct words, stop words left out if others stay.

    Every word is quoted, because FTS5 has words of its own.
    """
    distinct = list(dict.fromkeys(words(query)))
    telling = [word for word in distinct if word not in STOP_WORDS]
    return " OR ".join(f'"{word}"' for word in telling or distinct)


def fuse(
    lexical: Sequence[Match], vector: Sequence[Match] = (), *, now: str | None = None
) -> list[Hit]:
    """The two arms by reciprocal rank; equal scores are told apart by recency, then by path.

    Each arm is in its order already; equal ranks share the best place (1, 1, 3).
    """
    scores: dict[str, float] = {}
    for arm in (lexical, vector):
        for match, place in zip(arm, _places(arm), strict=True):
            scores[match.path] = scores.get(match.path, 0.0) + 1 / (RANK_OFFSET + place)
    by_path = {match.path: match for match in (*lexical, *vector)}
    arms = {"lexical": {m.path for m in lexical}, "vector": {m.path for m in vector}}
    counts: dict[float, int] = {}
    for score in scores.values():
        counts[score] = counts.get(score, 0) + 1
    # Stable sorts, the last key first.
    ranked = sorted(scores)
    ranked.sort(key=lambda path: _instant(by_path[path], now), reverse=True)
    ranked.sort(key=lambda path: -scores[path])
    return [
        Hit(path, scores[path], _arms(path, arms, counts[scores[path]] > 1), by_path[path].claim)
        for path in ranked
    ]


def _places(arm: Sequence[Match]) -> Iterator[int]:
    place = 0
    for at, match in enumerate(arm):
        if at == 0 or match.rank != arm[at - 1].rank:
            place = at + 1
        yield place


def _arms(path: str, arms: dict[str, set[str]], tied: bool) -> tuple[str, ...]:
    """What ranked a hit, in the order of the alphabet; recency only where scores are equal."""
    ranked = {
        "lexical": path in arms["lexical"],
        "recency": tied,
        "vector": path in arms["vector"],
    }
    return tuple(name for name, did in ranked.items() if did)


def _instant(match: Match, now: str | None) -> str:
    instant = match.event_at or match.updated_at
    return instant if now is None else min(instant, now)
