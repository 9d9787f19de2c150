"""The look-ups of `design.md` §4 against one database, each by an index.

Plain functions from a connection to plain rows. Nothing here knows of a delta. A text that is no
Unicode (a path a script made of odd bytes) is in no database, so it finds nothing.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`: 2 ms of every exec.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memhtml.store.snapshot_schema import OtherKind

Row = tuple[Any, ...]

_COLUMNS = (
    "path, lower(hex(blob)), 'sha256:' || lower(hex(content_hash)), archived, memory_type, status,"
    " title, claim, frame_key, frame_value, created_at, updated_at, event_at"
)
_PAGE = 500


def record(conn: sqlite3.Connection, path: str) -> Row | None:
    """The row of one record, in the order of `corpus.interface.RecordRow`."""
    found = _rows(conn, f"SELECT {_COLUMNS} FROM records WHERE path = ?", path)
    return found[0] if found else None


def file_kind(conn: sqlite3.Connection, path: str) -> OtherKind | None:
    """`file` or `other` when the tree has exactly this path and it is no folder."""
    sql = (
        "SELECT 'file' FROM records WHERE path = ? UNION ALL SELECT kind FROM others WHERE path = ?"
    )
    found = _rows(conn, sql, path, path)
    return found[0][0] if found else None


def file_under(conn: sqlite3.Connection, folder: str, hidden: Callable[[str], bool]) -> bool:
    """Whether the tree has anything below a folder, records or not, that is not hidden."""
    sql = (
        "SELECT path FROM records WHERE path > ? AND path < ?"
        " UNION ALL SELECT path FROM others WHERE path > ? AND path < ?"
    )
    try:
        found = conn.execute(sql, _range(folder) * 2)
    except UnicodeEncodeError:
        return False
    return any(not hidden(path) for (path,) in found)


def blob(conn: sqlite3.Connection, path: str) -> str | None:
    """The git blob of one record."""
    found = _rows(conn, "SELECT lower(hex(blob)) FROM records WHERE path = ?", path)
    return found[0][0] if found else None


def lowest_live(
    conn: sqlite3.Connection, content_hash: str, hidden: Callable[[str], bool]
) -> str | None:
    """The lowest path of a live record with this article that is not hidden."""
    try:
        key = bytes.fromhex(content_hash.removeprefix("sha256:"))
    except ValueError:
        return None
    sql = "SELECT path FROM records WHERE content_hash = ? AND archived = 0 ORDER BY path"
    return next((path for (path,) in conn.execute(sql, (key,)) if not hidden(path)), None)


def live_with_hash(conn: sqlite3.Connection, content_hash: str) -> list[str]:
    """Every live record with this article, in path order."""
    sql = "SELECT path FROM records WHERE content_hash = ? AND archived = 0 ORDER BY path"
    key = bytes.fromhex(content_hash.removeprefix("sha256:"))
    return [path for (path,) in conn.execute(sql, (key,))]


def live_hashes(conn: sqlite3.Connection, hidden: Callable[[str], bool] | None) -> bytes:
    """The article hashes of the live records that are not hidden, 32 bytes each, end to end."""
    if hidden is None:
        sql = "SELECT content_hash FROM records WHERE archived = 0"
        return b"".join(digest for (digest,) in conn.execute(sql))
    rows = conn.execute("SELECT content_hash, path FROM records WHERE archived = 0")
    return b"".join(digest for digest, path in rows if not hidden(path))


def live_texts(
    conn: sqlite3.Connection, after: str, characters: int
) -> list[tuple[str, bytes, str]]:
    """(path, article hash, start of the article's text) of the next live records behind a path."""
    sql = (
        "SELECT path, content_hash, substr(body, 1, ?) FROM records"
        f" WHERE path > ? AND archived = 0 ORDER BY path LIMIT {_PAGE}"
    )
    return conn.execute(sql, (characters, after)).fetchall()


def rivals(conn: sqlite3.Connection, frame_key: str) -> list[Row]:
    """The live records of one frame key, in path order."""
    sql = f"SELECT {_COLUMNS} FROM records WHERE frame_key = ? AND archived = 0 ORDER BY path"
    return _rows(conn, sql, frame_key)


def links(conn: sqlite3.Connection, path: str) -> list[Row]:
    """(rel, href) of one record, in document order."""
    sql = (
        "SELECT l.rel, l.href FROM records r JOIN links l ON l.record = r.id"
        " WHERE r.path = ? ORDER BY l.ord"
    )
    return _rows(conn, sql, path)


def entities(conn: sqlite3.Connection, path: str) -> list[str]:
    """The authored entity values of one record, in order."""
    sql = (
        "SELECT e.value FROM records r JOIN entities e ON e.record = r.id"
        " WHERE r.path = ? AND e.derived = 0 ORDER BY e.ord"
    )
    return [value for (value,) in _rows(conn, sql, path)]


def holders(conn: sqlite3.Connection, target: str) -> list[Row]:
    """(path, order, rel, href) of every link of a live record to this target."""
    # CROSS JOIN keeps the planner from walking all records instead of the few links.
    sql = (
        "SELECT r.path, l.ord, l.rel, l.href FROM links l CROSS JOIN records r ON r.id = l.record"
        " WHERE l.target = ? AND r.archived = 0"
    )
    return _rows(conn, sql, target)


def linking(conn: sqlite3.Connection, target: str, rel: str) -> list[str]:
    """The live records with such a link to this target, in path order."""
    sql = (
        "SELECT DISTINCT r.path FROM links l CROSS JOIN records r ON r.id = l.record"
        " WHERE l.target = ? AND l.rel = ? AND r.archived = 0 ORDER BY r.path"
    )
    return [path for (path,) in _rows(conn, sql, target, rel)]


def first_under(conn: sqlite3.Connection, folder: str, hidden: Callable[[str], bool]) -> str | None:
    """The lowest record below a folder that is not hidden."""
    sql = "SELECT path FROM records WHERE path > ? AND path < ? ORDER BY path"
    try:
        found = conn.execute(sql, _range(folder))
    except UnicodeEncodeError:
        return None
    return next((path for (path,) in found if not hidden(path)), None)


def under(conn: sqlite3.Connection, folder: str) -> list[str]:
    """The records below a folder, in path order."""
    sql = "SELECT path FROM records WHERE path > ? AND path < ? ORDER BY path"
    return [path for (path,) in _rows(conn, sql, *_range(folder))]


def page(conn: sqlite3.Connection, after: str) -> list[tuple[str, str]]:
    """The next (path, blob) pairs behind a path, in path order; empty at the end."""
    sql = f"SELECT path, lower(hex(blob)) FROM records WHERE path > ? ORDER BY path LIMIT {_PAGE}"
    return _rows(conn, sql, after)


def count_held(conn: sqlite3.Connection, paths: list[str]) -> int:
    """How many of these paths are records."""
    sql = "SELECT count(*) FROM records WHERE path = ?"
    return sum(_rows(conn, sql, path)[0][0] for path in paths)


def _range(folder: str) -> tuple[str, str]:
    """Everything below a folder: `0` is the character behind `/`. No folder means everything."""
    return (f"{folder}/", f"{folder}0") if folder else ("", "\U0010ffff")


def _rows(conn: sqlite3.Connection, sql: str, *values: str) -> list[Row]:
    try:
        return conn.execute(sql, values).fetchall()
    except UnicodeEncodeError:
        return []
