"""`archive`: a memory moves to the archive (spec `cli` §10 `archive`, `format` §2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml.doors.change import Change
from memhtml.doors.opening import Door, now
from memhtml.doors.records import Named, live, named, stamped
from memhtml.doors.retire import Metas, archive_stamps, free_slot
from memhtml.store.commit import message

if TYPE_CHECKING:
    from memhtml.store.land import Landing


def archive(root: str, path: str, reason: str) -> dict[str, Any]:
    """The payload of `memory.archived`.

    Errors raised: `ERR_PATH_NOT_FOUND`, `ERR_INVALID_MEMORY` for one that is archived already, and
    those of a door (`opening.Door`).
    """
    with Door(root) as door:
        with door.landing() as land:
            memory = live(named(path, land.read), "stays where it is")
            slot, change = retire(land, memory, now(), reason)
            sha = door.commit(land, change)
        door.finish()
    return {"path": memory.path, "archivePath": slot, "commitSha": sha}


def retire(
    land: Landing, memory: Named, at: str, reason: str, metas: Metas | None = None
) -> tuple[str, Change]:
    """The free slot of a memory, and the change that moves it there.

    `metas` are set besides the archive stamps. Raises as `records.stamped` does.
    """
    slot = free_slot(memory.path, at, land)
    data = stamped(memory, [*(metas or ()), *archive_stamps(at)])
    text = message("archive", f"{memory.path} — {reason}", [])
    return slot, Change(text, {slot: data}, (memory.path,))
