"""A replaced record never ranks above the live record that replaces it (spec `retrieval` §9).

`settled` is the pure ordering, for either path; `settle` looks the links up in the index. What is
archived, or out of the caller's scope, replaces nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memhtml.retrieve.pool import Candidate
    from memhtml.retrieve.scope import Filter

_LIVE_ONLY = (0,)


def settled(order: Sequence[str], later: Mapping[str, Collection[str]]) -> list[str]:
    """The paths with every replaced one directly below what replaces it, else in their order.

    `later` names, for a path, the records that supersede it. They come in above it when they are
    not in `order`; links of links count, and a circle of links orders nothing.
    """
    rank = {path: place for place, path in enumerate(order)}
    above: dict[str, frozenset[str]] = {}
    found: dict[str, None] = {}
    for path in order:
        if path in found:
            continue
        newer = [
            each
            for each in _all_later(path, later, above)
            if each not in found and path not in _all_later(each, later, above)
        ]
        # Where one replaces another, fewer others are above the newer of the two.
        newer.sort(key=lambda each: (len(above[each] - {each}), rank.get(each, len(rank)), each))
        found.update(dict.fromkeys(newer))
        found[path] = None
    return list(found)


def settle(
    conn: sqlite3.Connection, scored: Sequence[tuple[Candidate, float]], scope: Filter
) -> list[tuple[Candidate, float]]:
    """The scored candidates in settled order; a record that moves up or comes in has the score of
    the one it replaces, if that is higher.

    Nothing changes where archived records or a moment in the past are in scope: there the caller
    asks for what was. Raises sqlite3.Error.
    """
    if scope.archived != _LIVE_ONLY or not scored:
        return list(scored)
    later, ids = _later(conn, [each.path for each, _score in scored], scope)
    if not later:
        return list(scored)
    # The head path uses the pure part alone, and should not pay for the index's.
    from memhtml.retrieve.candidates import load
    from memhtml.retrieve.fuse import Fused
    from memhtml.retrieve.vectors import Plane

    known = {each.path: (each, score) for each, score in scored}
    order = settled(list(known), later)
    missing = [Fused(ids[path], path, 0.0) for path in order if path not in known]
    no_vectors = Plane(None, 0, 0.0, None)
    known.update((each.path, (each, 0.0)) for each in load(conn, missing, no_vectors))
    rank = {path: place for place, path in enumerate(known)}
    found: list[tuple[Candidate, float]] = []
    # From the last up: what was lifted stands above the one it was lifted over.
    replaced, replaced_score = len(rank), 0.0
    for path in reversed(order):
        each, score = known[path]
        if rank[path] > replaced:
            score = max(score, replaced_score)
        else:
            replaced, replaced_score = rank[path], score
        found.append((each, score))
    return found[::-1]


def _all_later(
    path: str, later: Mapping[str, Collection[str]], known: dict[str, frozenset[str]]
) -> frozenset[str]:
    """Everything that supersedes a path, directly or by way of others; kept in `known`."""
    if path not in known:
        found: set[str] = set()
        waiting = list(later.get(path, ()))
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += later.get(each, ())
        known[path] = frozenset(found)
    return known[path]


def _later(
    conn: sqlite3.Connection, paths: Iterable[str], scope: Filter
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Which records in scope supersede these, and those in turn; and the ids of the new ones."""
    sql = (
        "SELECT e.dst_path, e.src_path, f.id FROM json_each(:paths) v"
        " CROSS JOIN files o ON o.path = v.value CROSS JOIN edges e ON e.dst_path = o.path"
        " CROSS JOIN files f ON f.path = e.src_path WHERE o.archived = 0"
        f" AND e.edge_class = 'memory' AND e.rel = 'supersedes' AND e.derived = 0 AND {scope.whole}"
        " ORDER BY e.dst_path, e.src_path"
    )
    later: dict[str, list[str]] = {}
    ids: dict[str, int] = {}
    seen = set(paths)
    fresh = seen
    while fresh:
        rows = conn.execute(sql, {**scope.parameters, "paths": _text_list(fresh)}).fetchall()
        for old, new, number in rows:
            later.setdefault(old, []).append(new)
            ids[new] = number
        fresh = {new for _old, new, _number in rows} - seen
        seen |= fresh
    return later, ids


def _text_list(texts: Iterable[str]) -> str:
    import json

    return json.dumps(sorted(texts))
