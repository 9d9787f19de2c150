"""The one row that says where the index stands, and the access plane's only writer.

Spec `retrieval` §2.1 (`index_state`), §2.2 and §14.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from memhtml.errors import StorageError
from memhtml.index import sqlite
from memhtml_format.instants import second
from memhtml_format.text import is_blank

Signal: TypeAlias = Literal["neutral", "positive", "negative"]

COOLDOWN_S = 900
_SIGNALS: dict[Signal, int] = {"neutral": 0, "positive": 1, "negative": -1}
_PATHS_A_STATEMENT = 500
_KEEP = 0.7

# A stamp that is no instant counts as none.
_RESTED = "coalesce(unixepoch({}) <= :now - :cooldown, 1)"
_ACCESS = _RESTED.format("access.last_accessed_at")
_OUTCOME = f"(:signal <> 0 AND {_RESTED.format('access.last_reinforced_at')})"
_BUMP = (
    "INSERT INTO state.access(path, access_count, reinforcement_count, outcome_score,"
    " last_accessed_at, last_reinforced_at, updated_at)"
    " SELECT value, 1, abs(:signal), :signal, :at, iif(:signal = 0, NULL, :at), :at"
    " FROM json_each(:paths) WHERE true"
    " ON CONFLICT(path) DO UPDATE SET"
    f" access_count = access_count + {_ACCESS},"
    f" last_accessed_at = iif({_ACCESS}, :at, last_accessed_at),"
    f" reinforcement_count = reinforcement_count + {_OUTCOME},"
    f" last_reinforced_at = iif({_OUTCOME}, :at, last_reinforced_at),"
    f" outcome_score = iif({_OUTCOME}, max(-1.0, min(1.0,"
    f" outcome_score * {_KEEP} + :signal * {1 - _KEEP:.1f})), outcome_score),"
    " updated_at = :at"
    f" WHERE {_ACCESS} OR {_OUTCOME} RETURNING path"
)


class IndexState(NamedTuple):
    """Where the index stands. `head_sha` is None until a rebuild has finished.

    `embed_model` is the space `<model>@<dim>` of the vectors, None before the first. `dirty_paths`
    are indexed from the working copy. `unfinished`: a long update has begun and not ended.
    """

    head_sha: str | None
    embed_model: str | None
    embed_dim: int | None
    rebuilt_at: str | None
    updated_at: str | None
    dirty_paths: tuple[str, ...]
    unfinished: bool


def read_state(conn: sqlite3.Connection) -> IndexState | None:
    """The state row, or None on an index that was never filled.

    Raises `StorageError` `index_state.decode` and sqlite3.Error.
    """
    row = conn.execute(
        "SELECT head_sha, embed_model, embed_dim, rebuilt_at, updated_at, dirty_paths, unfinished"
        " FROM index_state WHERE id = 1"
    ).fetchone()
    if row is None:
        return None
    head, model, dim, rebuilt, updated, dirty, unfinished = row
    return IndexState(head, model, dim, rebuilt, updated, _decoded(dirty), bool(unfinished))


def _decoded(text: object) -> tuple[str, ...]:
    if text == "[]":
        return ()
    import json  # 6 ms, and only while something is dirty.

    try:
        found = json.loads(str(text))
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise StorageError(
            "index_state.decode",
            "dirty_paths is no list of paths",
            suggestions=("memhtml index rebuild",),
        )
    return tuple(found)


def bump(
    conn: sqlite3.Connection,
    paths: Iterable[str],
    signal: Signal,
    now_s: float,
    *,
    patient: bool = True,
) -> tuple[list[str], list[str]]:
    """Count an access of each path, and its outcome unless `signal` is neutral (§14).

    Unless it is `patient`, a locked database is not waited for longer than `conn` itself does.

    Answers the paths that moved and those that are cooling down, each in the order given, repeats
    and blanks dropped. Without `state.db` all are cooling down. Raises `StorageError`
    `state.locked` and sqlite3.Error.
    """
    wanted = list(dict.fromkeys(path for path in paths if not is_blank(path)))
    if not any(row[1] == "state" for row in conn.execute("PRAGMA database_list")):
        return [], wanted
    moved: set[str] = set()
    for start in range(0, len(wanted), _PATHS_A_STATEMENT):
        moved |= _bump(conn, wanted[start : start + _PATHS_A_STATEMENT], signal, now_s, patient)
    return [path for path in wanted if path in moved], [p for p in wanted if p not in moved]


def _bump(
    conn: sqlite3.Connection, paths: Sequence[str], signal: Signal, now_s: float, patient: bool
) -> set[str]:
    import json

    values = {
        "paths": json.dumps(paths),
        "signal": _SIGNALS[signal],
        "now": int(now_s),
        "at": second(now_s),
        "cooldown": COOLDOWN_S,
    }

    def ask() -> list[tuple[str]]:
        return conn.execute(_BUMP, values).fetchall()

    try:
        rows = sqlite.patiently(ask, "state.locked", retry=patient)
    except sqlite3.OperationalError as error:
        if sqlite.code_of(error) != sqlite3.SQLITE_READONLY:
            raise
        return set()  # A mount that cannot be written counts nothing.
    return {path for (path,) in rows}


def move_access(conn: sqlite3.Connection, moves: Collection[tuple[str, str]]) -> None:
    """Carry the access rows of moved files to their new paths; `conn` is `open_state`'s.

    A row that is already at the new path takes what is larger or later of both. Doing it again
    changes nothing. Raises `StorageError` `state.locked` and sqlite3.Error.
    """
    if not moves:
        return
    with sqlite.writing(conn, "state.locked"):
        for old, new in moves:
            conn.execute(_MERGE, (old, new))
            conn.execute("UPDATE OR IGNORE access SET path = ? WHERE path = ?", (new, old))
            conn.execute("DELETE FROM access WHERE path = ?", (old,))


_MERGE = (
    "UPDATE access SET"
    " access_count = max(access.access_count, old.access_count),"
    " reinforcement_count = max(access.reinforcement_count, old.reinforcement_count),"
    " outcome_score = iif(coalesce(old.last_reinforced_at, '')"
    " > coalesce(access.last_reinforced_at, ''), old.outcome_score, access.outcome_score),"
    " last_accessed_at = nullif(max(coalesce(access.last_accessed_at, ''),"
    " coalesce(old.last_accessed_at, '')), ''),"
    " last_reinforced_at = nullif(max(coalesce(access.last_reinforced_at, ''),"
    " coalesce(old.last_reinforced_at, '')), ''),"
    " updated_at = nullif(max(coalesce(access.updated_at, ''), coalesce(old.updated_at, '')), '')"
    " FROM (SELECT * FROM access WHERE path = ?) AS old WHERE access.path = ?"
)
