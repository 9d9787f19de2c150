"""The arms that SQL ranks: full text, recency, salience (spec `retrieval` §7).

Each applies the scope before its cut of 40 and breaks ties by path. `recency` and `salience` are
select statements for `memhtml.retrieve.fuse`; `lexical` runs, because it stops where it has enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

    from memhtml.retrieve.query import Match
    from memhtml.retrieve.scope import Filter

CUT = 40
PEOPLE = "resources/people/"

_RECENCY_KEY = "coalesce(f.event_at, f.updated_at)"
# A stamp that is no instant counts as infinitely old.
_FRESHNESS = "coalesce(exp(-0.01 * (:now - unixepoch({})) / 3600.0), 0.0)"
# Tasks and people are never salient; that belongs to this arm alone.
_SALIENT = f"f.memory_type <> 'task' AND substr(f.path, 1, {len(PEOPLE)}) <> '{PEOPLE}'"


class Lexical(NamedTuple):
    """One file that the words of a query rank; `bm25` is positive, higher is better."""

    id: int
    bm25: float


def lexical(conn: sqlite3.Connection, match: Match, scope: Filter) -> list[Lexical]:
    """The `fts` arm: files with every term when one is in scope, else with any, best first.

    Raises sqlite3.Error.
    """
    if scope.is_empty:
        return []
    found = _matching(conn, match.every, scope)
    return found if found or match.any == match.every else _matching(conn, match.any, scope)


def _matching(conn: sqlite3.Connection, expression: str, scope: Filter) -> list[Lexical]:
    # FTS5 sorts by rank itself, and hands the rows out one by one: only as many files are looked
    # up as it takes to have 40 in scope, and those that share the last rank.
    # The plus sign keeps FTS5 from running the match anew for every listed id.
    where = scope.whole if scope.listed is None else f"+{scope.whole}"
    rows = conn.execute(
        "SELECT files_fts.rank, f.path, f.id FROM files_fts"
        " CROSS JOIN files f ON f.id = files_fts.rowid"
        f" WHERE files_fts MATCH :match AND {where} ORDER BY files_fts.rank",
        {**scope.parameters, "match": expression},
    )
    best: list[tuple[float, str, int]] = []
    for row in rows:
        if len(best) >= CUT and row[0] != best[-1][0]:
            break
        best.append(row)
    rows.close()
    return [Lexical(number, -rank) for rank, _path, number in sorted(best)[:CUT]]


def recency(scope: Filter) -> str:
    """A select of `(id, rank)`: the newest first, an episode by when it happened."""
    return _ranked(_walk(scope, "files_recency", _RECENCY_KEY))


def salience(scope: Filter) -> str:
    """A select of `(id, rank)` by how often and how recently a file was opened.

    Binds `:now`, the Unix time in seconds. Files without a row of `access` stand in the order of
    `updated_at`, so the best of them are an index walk; the rows of `access` are scored in full.
    """
    never = f"{_SALIENT} AND NOT EXISTS (SELECT 1 FROM state.access a WHERE a.path = f.path)"
    untouched = _walk(scope, "files_updated", "f.updated_at", never)
    score = _FRESHNESS.format("u.key")
    return _ranked(
        f"SELECT id, path, {score} AS key FROM ({untouched}) u"
        f" UNION ALL SELECT id, path, key FROM ({_accessed(scope)})"
    )


def _accessed(scope: Filter) -> str:
    """The best scored rows of `access` that are in scope.

    The scores are sorted before a file is looked up: a row without its own time is the exception.
    """
    at = "coalesce(a.last_accessed_at, (SELECT o.updated_at FROM files o WHERE o.path = a.path))"
    uses = "ln(1 + coalesce(a.access_count, 0)) + max(coalesce(a.outcome_score, 0.0), 0.0)"
    score = f"{_FRESHNESS.format(at)} + {uses}"
    return (
        "SELECT f.id AS id, f.path AS path, s.key AS key FROM"
        f" (SELECT a.path AS path, {score} AS key FROM state.access a"
        # Without a limit SQLite may leave the order of an inner select out.
        " ORDER BY key DESC, path LIMIT -1) s"
        " CROSS JOIN files f ON f.path = s.path"
        f" WHERE {_SALIENT} AND {scope.whole} LIMIT {CUT}"
    )


def _walk(scope: Filter, index: str, key: str, also: str = "") -> str:
    """The 40 files in scope with the highest key, as `(id, path, key)`.

    A listed scope is sorted; any other is a walk of the index, live and archived files apart.
    """
    order = f"ORDER BY key DESC, path LIMIT {CUT}"
    columns = f"f.id AS id, f.path AS path, {key} AS key"
    extra = f" AND {also}" if also else ""
    if scope.listed is not None:
        return f"SELECT {columns} FROM files f WHERE {scope.whole}{extra} {order}"
    walks = [
        f"SELECT * FROM (SELECT {columns} FROM files f INDEXED BY {index}"
        f" WHERE f.archived = {value} AND {scope.condition}{extra} {order})"
        for value in scope.archived
    ]
    return walks[0] if len(walks) == 1 else f"{' UNION ALL '.join(walks)} {order}"


def _ranked(rows: str) -> str:
    """Number `(id, path, key)` from 1, the highest key first, cut at 40."""
    return (
        "SELECT id, row_number() OVER (ORDER BY key DESC, path) AS rank"
        f" FROM ({rows}) ORDER BY rank LIMIT {CUT}"
    )
