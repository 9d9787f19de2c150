"""`entity activity`: what the records are about, the latest first (spec `retrieval` §16.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml.retrieve import pages
from memhtml_format.text import trim

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

_ACTIVITY = (
    "SELECT e.entity_type, e.entity_name, count(*),"
    " max(coalesce(f.event_at, f.updated_at)) AS active, max(f.event_at), max(f.updated_at),"
    " count(*) OVER () FROM file_entities e JOIN files f ON f.path = e.path"
    " WHERE {where} GROUP BY e.entity_type, e.entity_name"
    " ORDER BY active DESC, e.entity_type, e.entity_name LIMIT ?"
)


def entity_activity(
    conn: sqlite3.Connection, entity_type: str | None, limit: int, *, archived: bool
) -> dict[str, Any]:
    """The payload of `entity.activity`; `limit` is brought into 1 to 500.

    `entity_type` is compared with ASCII case folded; blank means every type. Names are as files
    write them. Raises sqlite3.Error.
    """
    size = pages.bound(limit)
    conditions = ["1" if archived else "f.archived = 0"]
    values: list[object] = []
    if kind := trim(entity_type or ""):
        conditions.append("e.entity_type = ? COLLATE NOCASE")
        values.append(kind)
    statement = _ACTIVITY.format(where=" AND ".join(conditions))
    rows = conn.execute(statement, (*values, size)).fetchall()
    return {
        "entities": [_entity(row) for row in rows],
        "entityCount": rows[0][-1] if rows else 0,
        "limit": size,
    }


def _entity(row: tuple[Any, ...]) -> dict[str, Any]:
    kind, name, files, active, event, written, _all = row
    return {
        "entity": f"{kind}:{name}",
        "entityType": kind,
        "entityName": name,
        "fileCount": files,
        "lastActivityAt": active,
        "lastEventAt": event,
        "lastWrittenAt": written,
    }
