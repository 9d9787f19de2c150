"""`state export` and `state import`: the access rows as a committed file (spec `cli` §11).

Export lands like any other write. Import is the one command that moves a damaged `state.db` out of
the way; it says where to, and deletes nothing.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`, as in `index`.
import os
import time
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any

from memhtml import log
from memhtml.doors import access_rows
from memhtml.doors.access_rows import Row
from memhtml.errors import StorageError
from memhtml.index import database, files, sqlite
from memhtml_format.instants import second

if TYPE_CHECKING:
    from collections.abc import Iterable

EXPORTED = ".memhtml/state/access.jsonl"
ROWS_A_TRANSACTION = 500

_SAID_BY_SQLITE = (sqlite3.Error, UnicodeDecodeError)
_SELECT = f"SELECT {', '.join(Row._fields)} FROM access ORDER BY path"
_LATER = "nullif(max(coalesce(access.{0}, ''), coalesce(excluded.{0}, '')), '')"
_MERGE = (
    f"INSERT INTO access({', '.join(Row._fields)}) VALUES({', '.join('?' * len(Row._fields))})"
    " ON CONFLICT(path) DO UPDATE SET"
    " access_count = max(access.access_count, excluded.access_count),"
    " reinforcement_count = max(access.reinforcement_count, excluded.reinforcement_count),"
    " outcome_score = excluded.outcome_score,"
    f" last_accessed_at = {_LATER.format('last_accessed_at')},"
    f" last_reinforced_at = {_LATER.format('last_reinforced_at')},"
    " updated_at = excluded.updated_at"
)


def export_state(root: str) -> dict[str, Any]:
    """The payload of `state.export`. Commits the file when it changed; no rows make no new file.

    Raises `StorageError` `state.open`, `state.migrate`, `state.locked`, `state.write`,
    `checkout.locked`, and what `landing` and a commit raise.
    """
    from memhtml.doors.finish import finish
    from memhtml.store.commit import message
    from memhtml.store.land import landing

    with landing(root) as land:
        data, kept = _exported(root)
        before, sha = land.read(EXPORTED), None
        if kept or before is not None:
            if before is not None and before != data:
                _warn_of_losses(before, kept)
            text = f"export {len(kept)} access rows to the committed sidecar"
            try:
                sha = land.commit({EXPORTED: data}, (), message("state", text, ()))
            except StorageError as error:
                if error.reason != "write":
                    raise
                raise StorageError("state.write", EXPORTED) from error
    if sha is not None:
        finish(root, land.repo)
    return {
        "path": EXPORTED,
        "rows": len(kept),
        "bytes": len(data),
        "written": sha is not None or (before is not None and before != data),
        "commitSha": sha,
    }


def import_state(root: str) -> dict[str, Any]:
    """The payload of `state.import`: the file's rows merged into `state.db`.

    `rows` are the lines that are rows, `restored` the paths they were merged into, `skipped` the
    lines that are none. Doing it again changes nothing. Raises `StorageError` `read`, `state.open`,
    `state.migrate`, `state.locked`, `state.write`.
    """
    with access_rows.of_file(root, EXPORTED) as lines:
        if moved := _set_aside_if_damaged(root):
            log.warn(f"state.db was damaged and was moved aside to .memhtml/{moved}")
        conn = database.open_state(root)
        try:
            rows, restored, skipped = _merged(conn, lines)
        except _SAID_BY_SQLITE as error:
            raise _failure(error) from error
        finally:
            conn.close()
    return {
        "path": EXPORTED,
        "rows": rows,
        "restored": restored,
        "skipped": skipped,
        "hasState": True,
    }


def _exported(root: str) -> tuple[bytes, set[str]]:
    """The file's bytes, and the paths in it."""
    conn = database.open_state(root)
    data, paths, left_out = bytearray(), set(), 0
    try:
        for values in conn.execute(_SELECT):
            row = access_rows.of_columns(values)
            if row is None:
                left_out += 1
                continue
            data += access_rows.line(row)
            paths.add(row.path)
    except _SAID_BY_SQLITE as error:
        raise _failure(error) from error
    finally:
        conn.close()
    if left_out:
        log.warn(f"{left_out} rows of state.db hold what no import would take, and are left out")
    return bytes(data), paths


def _warn_of_losses(before: bytes, kept: set[str]) -> None:
    """A clone that never imported would replace the file by less than it holds."""
    rows = access_rows.of_lines(BytesIO(before))
    lost = {row.path for row in rows if row is not None} - kept
    if lost:
        log.warn(
            f"{len(lost)} rows of {EXPORTED} are not in state.db and leave the file; git keeps"
            " them, and `memhtml state import` before an export brings them along"
        )


def _merged(conn: sqlite3.Connection, rows: Iterable[Row | None]) -> tuple[int, int, int]:
    """Write the rows; how many there were, in how many paths, and how many lines were none."""
    paths: set[str] = set()
    read, skipped, rest = 0, 0, iter(rows)
    while batch := list(islice(rest, ROWS_A_TRANSACTION)):
        sound = [row for row in batch if row is not None]
        with sqlite.writing(conn, "state.locked"):
            conn.executemany(_MERGE, sound)
        paths.update(row.path for row in sound)
        read, skipped = read + len(sound), skipped + len(batch) - len(sound)
    return read, len(paths), skipped


def _failure(error: Exception) -> StorageError:
    if sqlite.code_of(error) in sqlite.BUSY:
        return StorageError("state.locked", "another process keeps it locked")
    if database.is_damage(error):
        return database.state_open("it is damaged")
    return StorageError("state.write", f".memhtml/state.db: {error}")


def _set_aside_if_damaged(root: str) -> str | None:
    """Move `state.db` and its companions out of the way when it cannot be read; the new name.

    Nothing is written over: the name is a fresh one, and one that git ignores. Raises
    `StorageError` `state.open` when it cannot be moved.
    """
    if not _is_damaged(root):
        return None
    path = files.state_path(root)
    stamp = second(time.time()).replace("-", "").replace(":", "")
    number = 1
    while os.path.lexists(aside := f"{path}-damaged-{stamp}-{number}"):
        number += 1
    try:
        # The companions go first: one left beside a new database would be taken for its own.
        for suffix in reversed(files.COMPANIONS):
            if os.path.lexists(path + suffix):
                os.rename(path + suffix, aside + suffix)
    except OSError as error:
        raise StorageError(
            "state.open", f".memhtml/state.db cannot be moved aside: {error.strerror}"
        ) from error
    return os.path.basename(aside)


def _is_damaged(root: str) -> bool:
    """Whether what has the name of `state.db` is no sound database."""
    path = files.state_path(root)
    try:
        files.require_plain(path)
        if not database.has_state_file(root):
            return False
        conn = sqlite.connect(path, "mode=rw")
    except files.Planted:
        return True
    except sqlite3.Error:
        return False  # It cannot be reached, which opening it will say.
    try:
        if conn.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            return True
        for _row in conn.execute(_SELECT):
            pass  # Texts that are none any more are found by reading them alone.
        return False
    except _SAID_BY_SQLITE as error:
        # A table or a column that is not there is left to opening, which may add it.
        absent = sqlite.code_of(error) == sqlite3.SQLITE_ERROR
        return database.is_damage(error) and not absent
    finally:
        conn.close()
