"""What the rows of the index and of the access plane say is wrong (spec `cli` §11 `doctor`).

Reads only. A target that the index does not know may still be a file of the working tree, so that
is looked at as well, for the few in question.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml_format import paths

if TYPE_CHECKING:
    from _sqlite3 import Connection

    from memhtml.store.worktree import WorkTree

INBOX = f"{paths.INBOX}/"
INBOX_TASKS = f"{paths.INBOX}/tasks/"
INBOX_ROOM = 20
INBOX_TASKS_ROOM = 10
"""An inbox with more than that is crowded."""
SHOWN_ENTITIES = 20

_UNKNOWN = (
    " NOT EXISTS(SELECT 1 FROM files WHERE files.path = {0})"
    " AND NOT EXISTS(SELECT 1 FROM duplicates WHERE duplicates.path = {0})"
)
# A session is no file, so an edge to one cannot dangle.
_DANGLING = (
    "SELECT src_path, rel, dst_path FROM edges"
    f" WHERE derived = 0 AND edge_class <> 'provenance' AND {_UNKNOWN.format('edges.dst_path')}"
    " ORDER BY src_path, rel, dst_path"
)
_ORPHANS = f"SELECT path FROM state.access AS a WHERE {_UNKNOWN.format('a.path')} ORDER BY a.path"
_IN_INBOX = (
    "SELECT count(*) FROM (SELECT path FROM files WHERE archived = 0 AND memory_type <> 'task'"
    " UNION ALL SELECT path FROM duplicates)"
    " WHERE path >= :folder AND path < :after AND instr(substr(path, length(:folder) + 1), '/') = 0"
)
_OPEN_TASKS = (
    "SELECT count(*) FROM files WHERE archived = 0 AND memory_type = 'task'"
    " AND task_status <> 'done' AND path >= :folder AND path < :after"
)
_OVERDUE = (
    "SELECT path, task_status, due_at FROM files WHERE archived = 0 AND memory_type = 'task'"
    " AND task_status <> 'done' AND substr(due_at, 1, 10) < ? ORDER BY due_at, path"
)
_BLOCKERS = (
    "SELECT e.dst_path, e.src_path, b.archived FROM edges AS e"
    " JOIN files AS t ON t.path = e.dst_path LEFT JOIN files AS b ON b.path = e.src_path"
    " WHERE e.edge_class = 'task' AND e.rel = 'blocks' AND e.derived = 0"
    " AND t.archived = 0 AND t.memory_type = 'task' AND t.task_status <> 'done'"
    " ORDER BY e.dst_path, e.src_path"
)
_UNTYPED = (
    "FROM file_entities AS e JOIN files AS f ON f.path = e.path"
    " WHERE e.entity_type = 'unknown' AND f.archived = 0"
)
_SUPERSEDED = (
    "SELECT e.dst_path, min(e.src_path) FROM edges AS e"
    " JOIN files AS old ON old.path = e.dst_path AND old.archived = 0"
    " JOIN files AS new ON new.path = e.src_path AND new.archived = 0"
    " WHERE e.rel = 'supersedes' AND e.derived = 0 GROUP BY e.dst_path ORDER BY e.dst_path"
)


class Edge(NamedTuple):
    """An authored edge whose target has no file; `rewrite_to` is where that went, if anywhere."""

    src_path: str
    rel: str
    dst_path: str
    rewrite_to: str | None

    def to_json(self) -> dict[str, Any]:
        """The object of the payload."""
        return {
            "srcPath": self.src_path,
            "rel": self.rel,
            "dstPath": self.dst_path,
            "rewriteTo": self.rewrite_to,
        }


def dangling(conn: Connection, files: WorkTree) -> list[Edge]:
    """The authored edges whose target has no file. Raises sqlite3.Error."""
    rows = conn.execute(_DANGLING).fetchall()
    missing = {target for _src, _rel, target in rows if is_gone(files, target)}
    return [
        Edge(src, rel, target, archived_form(conn, src, target))
        for src, rel, target in rows
        if target in missing
    ]


def archived_form(conn: Connection, src_path: str, path: str) -> str | None:
    """The newest archive slot that holds what was once at `path`, if a link there can name it.

    Never the holder itself.
    """
    query = "SELECT path FROM files WHERE origin_path = ? AND path <> ?"
    slots = (paths.archive_slot(found) for (found,) in conn.execute(query, (path, src_path)))
    known = [slot for slot in slots if slot is not None and slot.original == path]
    if not known:
        return None
    last = max(known, key=lambda slot: (slot.year, slot.slot))
    form = paths.archive_path(path, last.year, last.slot)
    return form if paths.href_target(paths.href(form)) == form else None


def orphan_access_rows(conn: Connection, files: WorkTree) -> list[str]:
    """The paths that were once read and are no file now. Raises sqlite3.Error."""
    rows = conn.execute(_ORPHANS).fetchall()
    return [path for (path,) in rows if is_gone(files, path)]


def inbox(conn: Connection) -> dict[str, Any]:
    """The four fields about what waits to be put in its place."""
    depth = conn.execute(_IN_INBOX, _range(INBOX)).fetchone()[0]
    tasks = conn.execute(_OPEN_TASKS, _range(INBOX_TASKS)).fetchone()[0]
    return {
        "inboxDepth": depth,
        "inboxCrowded": depth > INBOX_ROOM,
        "inboxTaskDepth": tasks,
        "inboxTasksCrowded": tasks > INBOX_TASKS_ROOM,
    }


def overdue_tasks(conn: Connection, today: str) -> list[dict[str, Any]]:
    """Open tasks whose due day was before `today` (UTC, `YYYY-MM-DD`), the longest due first."""
    rows = conn.execute(_OVERDUE, (today,))
    return [{"path": path, "taskStatus": state, "dueAt": due} for path, state, due in rows]


def stale_blockers(conn: Connection, files: WorkTree) -> list[dict[str, Any]]:
    """Open tasks that wait for something archived, or for a file that is not there any more."""
    return [
        {"path": path, "blockerPath": blocker, "blockerState": state}
        for path, blocker, archived in conn.execute(_BLOCKERS).fetchall()
        if (state := _blocker_state(files, blocker, archived)) is not None
    ]


def _blocker_state(files: WorkTree, blocker: str, archived: int | None) -> str | None:
    if archived is None or is_gone(files, blocker):
        return "missing"
    return "archived" if archived else None


def untyped_entities(conn: Connection) -> tuple[list[dict[str, Any]], int]:
    """Entities of active files without a type half, the commonest first, and how many there are."""
    query = f"SELECT e.entity_name, count(*) {_UNTYPED} GROUP BY e.entity_name ORDER BY 2 DESC, 1"
    rows = conn.execute(f"{query} LIMIT {SHOWN_ENTITIES}")
    shown = [{"entityName": name, "files": count} for name, count in rows]
    total = conn.execute(f"SELECT count(DISTINCT e.entity_name) {_UNTYPED}").fetchone()[0]
    return shown, total


def superseded_live(conn: Connection) -> list[dict[str, Any]]:
    """Live memories that another live one supersedes; search ranks them below that one."""
    return [{"path": path, "supersededBy": by} for path, by in conn.execute(_SUPERSEDED)]


def is_gone(files: WorkTree, path: str) -> bool:
    """Whether the working tree has no file at `path`; one that cannot be looked at is none gone."""
    try:
        return files.look(path).kind != "file"
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG


def _range(folder: str) -> dict[str, str]:
    """The bounds of all paths that begin with `folder`, which ends with a slash."""
    return {"folder": folder, "after": f"{folder[:-1]}0"}
