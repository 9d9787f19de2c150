"""`task list`: the tasks of the index by path, and what blocks each (spec `cli` §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.errors import MemhtmlError
from memhtml.retrieve import pages
from memhtml.retrieve.listing import est_tokens, stated, type_label
from memhtml_format.instants import is_instant
from memhtml_format.text import trim

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

_DAY_CHARS = len("2026-01-01")
_HEX = frozenset("0123456789abcdef")
_TASK = (
    "SELECT path, title, task_status, due_at, workspace, archived, updated_at, char_count"
    " FROM files WHERE path = ?"
)
_BLOCKERS = (
    "SELECT e.src_path FROM edges e JOIN files f ON f.path = e.src_path"
    " WHERE e.dst_path = ? AND e.edge_class = 'task' AND e.rel = 'blocks'"
    " AND f.archived = 0 AND f.memory_type = 'task' ORDER BY e.src_path"
)


class WantedTasks(NamedTuple):
    """What a list of tasks is narrowed to; None and blank mean "not given".

    `due_before` is a day or an instant, of which the day counts. `detected`: only files named
    `det-<digest>-…`.
    """

    status: str | None = None
    workspace: str | None = None
    due_before: str | None = None
    include_archived: bool = False
    detected: bool = False
    cursor: str | None = None


def check_due_before(text: str | None) -> str | None:
    """The day that tasks must be due before, None when none was given.

    Raises `MemhtmlError` `ERR_INVALID_MEMORY` when the text is no instant.
    """
    given = trim(text or "")
    if not given:
        return None
    if not is_instant(given):
        raise MemhtmlError(
            "ERR_INVALID_MEMORY",
            f"--due-before is {given[:40]!r}, not YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ",
            suggestions=("memhtml task list --due-before 2026-12-31",),
        )
    return given[:_DAY_CHARS]


def list_tasks(conn: sqlite3.Connection, wanted: WantedTasks, limit: int) -> dict[str, Any]:
    """The payload of `task.list`; `limit` is brought into 1 to 500.

    Raises `MemhtmlError` `ERR_INVALID_MEMORY` for a bad `due_before`, and sqlite3.Error.
    """
    day, size = check_due_before(wanted.due_before), pages.bound(limit)
    tasks: list[dict[str, Any]] = []
    within = pages.segments(
        None,
        stated(wanted.workspace),
        archived=wanted.include_archived,
        cursor=stated(wanted.cursor),
    )
    for segment in within:
        label = type_label("task", archived=segment.archived)
        for path in pages.paths(conn, [label], segment):
            row = conn.execute(_TASK, (path,)).fetchone()
            if not _matches(row, wanted, day):
                continue
            if len(tasks) == size:
                return {"tasks": tasks, "nextCursor": tasks[-1]["path"]}
            tasks.append(_task(row, [each for (each,) in conn.execute(_BLOCKERS, (path,))]))
    return {"tasks": tasks, "nextCursor": None}


def is_detected(path: str) -> bool:
    """Whether the file name is `det-<digest>-…`, the digest in lower-case hex digits."""
    name = path.rpartition("/")[2]
    mark, _, rest = name.partition("-")
    digest, dash, _ = rest.partition("-")
    return mark == "det" and bool(dash) and bool(digest) and _HEX.issuperset(digest)


def _matches(row: tuple[Any, ...], wanted: WantedTasks, day: str | None) -> bool:
    path, _title, status, due, *_rest = row
    if wanted.status and status != wanted.status:
        return False
    if day is not None and (due is None or due[:_DAY_CHARS] >= day):
        return False
    return not wanted.detected or is_detected(path)


def _task(row: tuple[Any, ...], blockers: list[str]) -> dict[str, Any]:
    path, title, status, due, workspace, archived, updated, size = row
    return {
        "path": path,
        "title": title,
        "taskStatus": status,
        "dueAt": due,
        "workspace": workspace,
        "archived": bool(archived),
        "updatedAt": updated,
        "blockedBy": blockers,
        "estTokens": est_tokens(size),
    }
