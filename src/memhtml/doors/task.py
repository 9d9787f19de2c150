"""`task add` and `task status` (spec `cli` §10)."""

from __future__ import annotations

from typing import Any

from memhtml.doors.archive import retire
from memhtml.doors.change import Change
from memhtml.doors.opening import Door, now
from memhtml.doors.records import live, named, stamped
from memhtml.doors.refusals import invalid, shown
from memhtml.doors.write import write
from memhtml.store.commit import message
from memhtml_format.render import Draft
from memhtml_format.text import is_blank
from memhtml_format.vocab import TASK_STATUSES

DONE = "done"
_DONE_REASON = "task done"


def add(root: str, draft: Draft) -> dict[str, Any]:
    """The payload of `task.written`. Errors raised: those of `write`."""
    written = write(root, draft)
    return {
        "path": written["path"],
        "created": written["created"],
        "deduped": written["deduped"],
        "existingPath": written["existingPath"],
        "taskStatus": draft.status,
        "dueAt": draft.due,
        "commitSha": written["commitSha"],
    }


def set_status(root: str, path: str, status: str, reason: str | None) -> dict[str, Any]:
    """The payload of `task.updated`; `done` archives the task in the same commit.

    Errors raised: `ERR_INVALID_MEMORY` for an unknown status, a memory that is no task or one that
    is archived, `ERR_PATH_NOT_FOUND`, and those of a door (`opening.Door`).
    """
    if status not in TASK_STATUSES:
        raise invalid(f"{shown(status)!r} is no task status; allowed: {', '.join(TASK_STATUSES)}")
    slot, sha, unchanged = None, None, False
    with Door(root) as door:
        with door.landing() as land:
            task = named(path, land.read)
            if task.memory_type != "task":
                raise invalid(f"{shown(task.path)} is no task but {task.memory_type}")
            live(task, "keeps its status")
            metas = [("task-status", status)]
            if status == DONE:
                why = _DONE_REASON if reason is None or is_blank(reason) else reason
                slot, change = retire(land, task, now(), why, metas)
                sha = door.commit(land, change)
            elif task.detail.task_status == status:
                unchanged = True
            else:
                data = stamped(task, [*metas, ("updated", now())])
                text = message("task", f"{status} {task.path}", [])
                sha = door.commit(land, Change(text, {task.path: data}))
        door.finish()
    return {
        "path": task.path,
        "taskStatus": status,
        "archived": slot is not None,
        "archivePath": slot,
        "commitSha": sha,
        "unchanged": unchanged,
    }
