"""`recall`: what an agent is handed of the best matches, inside a budget (spec `retrieval` §13).

Quotes disclosure texts alone; what `<details>` and `<aside>` say is for a full read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve import vectors
from memhtml.retrieve.listing import est_tokens
from memhtml.retrieve.order import pool_size, settled_order
from memhtml.retrieve.scope import Scope
from memhtml.retrieve.search import DEFAULT_FLOOR, fused_pool, reading

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

    from memhtml.embed.port import Embedder
    from memhtml.index.database import Index

POOL = 30
DEFAULT_BUDGET_CHARS = 16_000
ARC_BUDGET_CHARS = 9_000
QUOTES_PER_ENTITY = 2


class Quotable(NamedTuple):
    """One candidate of a pack. `names` are its entities without their types."""

    path: str
    title: str
    gist: str
    memory_type: str
    disclosure: str
    char_count: int
    names: frozenset[str]


def recall(
    index: Index,
    text: str,
    scope: Scope,
    budget_chars: int = DEFAULT_BUDGET_CHARS,
    *,
    embedder: Embedder | None = None,
    now_s: float,
    floor: float = DEFAULT_FLOOR,
) -> dict[str, Any]:
    """The payload of `recall.pack`. `budget_chars` ≥ 0 is for all but arcs, in code points.

    The steps before the fold see a larger pool than 30, as those of a search do; the best 30 are
    handed out (decided here). Raises `StorageError` and sqlite3.Error.
    """
    near = vectors.plane(index.conn, text, embedder, floor)
    with reading(index.conn):
        pool = fused_pool(index, text, scope, near, pool_size(POOL), now_s=now_s)
        order = settled_order(index.conn, text, pool.candidates, pool.scope)[:POOL]
        quotable = _quotable(index.conn, order)
    packs = {
        "arcs": fold((each for each in quotable if _is_arc(each)), ARC_BUDGET_CHARS),
        "memories": fold((each for each in quotable if not _is_arc(each)), budget_chars),
    }
    return {
        **packs,
        "spentChars": sum(pack["spentChars"] for pack in packs.values()),
        "truncated": any(pack["truncated"] for pack in packs.values()),
        "degraded": near.query is None,
        "vectorCoverage": near.coverage,
    }


def fold(ranked: Iterable[Quotable], budget_chars: int) -> dict[str, Any]:
    """One list of a pack: quotes in full while they fit, index lines for the rest.

    An entity name that two quotes have carries no third, counted in this list. A file without a
    text to quote is an index line (decided here).
    """
    disclosed: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    quoted: dict[str, int] = {}
    spent = 0
    for each in ranked:
        head = {
            "path": each.path,
            "title": each.title,
            "gist": each.gist,
            "memoryType": each.memory_type,
        }
        full = any(quoted.get(name, 0) >= QUOTES_PER_ENTITY for name in each.names)
        if full or not each.disclosure or spent + len(each.disclosure) > budget_chars:
            lines.append({**head, "estTokens": est_tokens(each.char_count)})
            continue
        disclosed.append({**head, "body": each.disclosure})
        spent += len(each.disclosure)
        for name in each.names:
            quoted[name] = quoted.get(name, 0) + 1
    return {
        "disclosed": disclosed,
        "indexLines": lines,
        "spentChars": spent,
        "truncated": bool(lines),
    }


def _is_arc(each: Quotable) -> bool:
    return each.memory_type == "arc"


def _quotable(conn: sqlite3.Connection, paths: Sequence[str]) -> list[Quotable]:
    """What a pack shows of each file, in the order given."""
    marks = ", ".join("?" * len(paths))
    rows = conn.execute(
        "SELECT path, title, gist, memory_type, disclosure_text, char_count FROM files"
        f" WHERE path IN ({marks})",
        list(paths),
    )
    found = {path: (path, *rest) for path, *rest in rows}
    names: dict[str, set[str]] = {}
    sql = f"SELECT path, entity_name FROM file_entities WHERE path IN ({marks})"
    for path, name in conn.execute(sql, list(paths)):
        names.setdefault(path, set()).add(name)
    return [Quotable._make((*found[path], frozenset(names.get(path, ())))) for path in paths]
