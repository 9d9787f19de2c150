"""The fold: one SQL statement fuses the orderings of the arms (spec `retrieval` §7).

Each hit of an arm adds `weight / (rank + 60)`. What the arms rank by is not this module's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memhtml.retrieve import arms

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Sequence

    from memhtml.retrieve.scope import Filter

RANK_OFFSET = 60
# In the order in which an answer names them.
WEIGHTS = {"fts": 1.0, "vector": 1.0, "recency": 0.5, "salience": 0.4}


class Orderings(NamedTuple):
    """What two arms ranked before the fold, best first; None for an arm that did not fire."""

    fts: Sequence[int] | None
    vector: Sequence[int] | None


class Fused(NamedTuple):
    """One file of the pool and the sum it was given."""

    id: int
    path: str
    score: float


def fused(
    conn: sqlite3.Connection,
    given: Orderings,
    scope: Filter,
    pool: int,
    *,
    now_s: float,
    has_state: bool,
) -> tuple[list[Fused], list[str]]:
    """The best `pool` files by sum, then path; and the arms that fired. Raises sqlite3.Error."""
    sql, values = statement(given, scope, has_state=has_state)
    rows = conn.execute(sql, {**values, "now": int(now_s), "pool": max(pool, 0)})
    return [Fused(*row) for row in rows], fired(given, has_state=has_state)


def fired(given: Orderings, *, has_state: bool) -> list[str]:
    """The arms that rank, in the order of an answer."""
    present = {
        "fts": given.fts is not None,
        "vector": given.vector is not None,
        "recency": True,
        "salience": has_state,
    }
    return [name for name in WEIGHTS if present[name]]


def statement(
    given: Orderings, scope: Filter, *, has_state: bool
) -> tuple[str, dict[str, str | int]]:
    """The statement and the values it binds, all but `:now` and `:pool`."""
    selects = {"recency": arms.recency(scope)}
    values: dict[str, str | int] = dict(scope.parameters)
    for name, ids in (("fts", given.fts), ("vector", given.vector)):
        if ids is not None:
            selects[name] = f"SELECT value AS id, key + 1 AS rank FROM json_each(:{name})"
            values[name] = f"[{','.join(map(str, ids))}]"
    if has_state:
        selects["salience"] = arms.salience(scope)
    names = [name for name in WEIGHTS if name in selects]
    tables = ", ".join(f"{name}(id, rank) AS ({selects[name]})" for name in names)
    union = " UNION ALL ".join(
        f"SELECT id, {WEIGHTS[name]} / (rank + {RANK_OFFSET}) AS part FROM {name}" for name in names
    )
    sql = (
        f"WITH {tables}, parts(id, part) AS ({union})"
        " SELECT f.id, f.path, sum(p.part) AS score FROM parts p CROSS JOIN files f ON f.id = p.id"
        " GROUP BY f.id ORDER BY score DESC, f.path LIMIT :pool"
    )
    return sql, values
