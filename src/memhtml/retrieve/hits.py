"""The hits of an answer: what a file's row, its edges and its chunks say (spec `retrieval` §9).

Knows nothing of ranking; a hit's score is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memhtml.retrieve.candidates import SUPERSEDED_BY, entities_of, id_list, vectors_of
from memhtml.retrieve.listing import est_tokens
from memhtml.retrieve.snippets import snippets

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

    from memhtml.retrieve.vectors import Plane


def hits(
    conn: sqlite3.Connection, scored: Sequence[tuple[str, float]], near: Plane
) -> list[dict[str, Any]]:
    """The `hits` of `memory.hits` for `(path, score)`, in that order. Raises sqlite3.Error."""
    rows = _rows(conn, [path for path, _score in scored])
    listed = id_list(row[0] for row in rows.values())
    entities = entities_of(conn, listed)
    ordinals = {number: near_.ordinal for number, near_ in vectors_of(conn, listed, near).items()}
    texts = snippets(conn, {row[0]: ordinals.get(row[0], 0) for row in rows.values()})
    found = []
    for path, score in scored:
        number, title, gist, kind, confidence, updated, chars, superseded = rows[path]
        found.append(
            {
                "path": path,
                "title": title,
                "gist": gist,
                "memoryType": kind,
                "score": score,
                "confidence": confidence,
                "updatedAt": updated,
                "snippet": texts.get(number, ""),
                "entities": list(entities.get(number, ())),
                "supersededBy": superseded,
                "estTokens": est_tokens(chars),
            }
        )
    return found


def _rows(conn: sqlite3.Connection, paths: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    marks = ", ".join("?" * len(paths))
    sql = (
        "SELECT f.path, f.id, f.title, f.gist, f.memory_type, f.confidence, f.updated_at,"
        f" f.char_count, {SUPERSEDED_BY} FROM files f WHERE f.path IN ({marks})"
    )
    return {row[0]: row[1:] for row in conn.execute(sql, list(paths))}
