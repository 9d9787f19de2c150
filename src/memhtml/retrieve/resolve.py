"""`resolve`: an old path followed to where its fact lives now (spec `retrieval` §16.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml_format.paths import archive_slot

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

MOST_HOPS = 16

_FILE = "SELECT title, archived FROM files WHERE path = ?"
_SUCCESSOR = (
    "SELECT src_path FROM edges WHERE dst_path = ? AND edge_class = 'memory'"
    " AND rel = 'supersedes' AND derived = 0 ORDER BY created_at DESC, src_path LIMIT 1"
)
_ARCHIVED = (
    "SELECT path, coalesce(archived_at, updated_at) FROM files"
    " WHERE origin_path = ? AND archived = 1"
)


def resolve(conn: sqlite3.Connection, path: str, indexed_commit: str | None) -> dict[str, Any]:
    """The payload of `memory.resolved` for a normalised path. Raises sqlite3.Error.

    A hop that would come to a path it has been at is not taken: the walk ends before it, as a
    `cycle`.
    """
    at, seen = path, {path}
    steps: list[dict[str, str]] = []
    while True:
        file = conn.execute(_FILE, (at,)).fetchone()
        onward, via = _hop(conn, at, known=file is not None)
        if onward is None:
            reason = _end(file)
            break
        if onward in seen:
            reason = "cycle"
            break
        if len(steps) == MOST_HOPS:
            reason = "hop_limit"
            break
        steps.append({"from": at, "to": onward, "via": via})
        seen.add(onward)
        at = onward
    return {
        "requested": path,
        "path": at,
        "hops": len(steps),
        "steps": steps,
        "stopReason": reason,
        "title": None if file is None else file[0],
        "indexedCommit": indexed_commit,
    }


def _hop(conn: sqlite3.Connection, path: str, *, known: bool) -> tuple[str | None, str]:
    """Where the fact went from `path`, and by what; None where it ends."""
    if not known:
        return _archived(conn, path), "archive_move"
    row = conn.execute(_SUCCESSOR, (path,)).fetchone()
    return (None if row is None else row[0]), "supersedes"


def _archived(conn: sqlite3.Connection, path: str) -> str | None:
    """The newest archived file that came from `path`; of two in one second, the later slot."""
    rows = conn.execute(_ARCHIVED, (path,)).fetchall()
    return max(rows, key=_age, default=(None, ""))[0]


def _age(row: tuple[str, str]) -> tuple[str, int, int, str]:
    slot = archive_slot(row[0])
    year, number = (slot.year, slot.slot) if slot is not None else (0, 0)
    return row[1], year, number, row[0]


def _end(file: tuple[str, int] | None) -> str:
    if file is None:
        return "unindexed"
    return "archived" if file[1] else "live"
