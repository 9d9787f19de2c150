"""`write`: one memory in a commit of its own (spec `cli` §10 `write`)."""

from __future__ import annotations

from typing import Any

from memhtml.doors.change import Change
from memhtml.doors.drafts import Prepared, prepare
from memhtml.doors.opening import Door, now
from memhtml.doors.places import Places
from memhtml.doors.provenance import of_draft, session_link
from memhtml.store.commit import message
from memhtml_format.render import Draft


def write(root: str, draft: Draft) -> dict[str, Any]:
    """The payload of `memory.written`.

    Content that an active memory holds already writes nothing and answers with its path; a task is
    never a duplicate. Errors raised: `ERR_INVALID_MEMORY`, `ERR_WRITE_CONFLICT`,
    `write.pathExhausted`, and those of a door (`opening.Door`).
    """
    at = now()
    made = prepare(draft, at)
    sha = None
    with Door(root) as door:
        door.catch_up()
        with door.landing() as land:
            door.catch_up()
            places = Places(land.exists, land.blocker)
            existing = None if made.is_task else door.lookups.holder(made.content_hash)
            path = places.find(draft, at) if existing is None else existing
            if existing is None:
                sha = door.commit(land, written(made, path, at))
        door.finish()
    return {
        "path": path,
        "created": existing is None,
        "deduped": existing is not None,
        "existingPath": existing,
        "commitSha": sha,
        "contentHash": made.content_hash,
    }


def written(made: Prepared, path: str, at: str) -> Change:
    """The change that puts one prepared draft at `path`."""
    link = session_link(made.draft, path, "wrote", at)
    return Change(
        message("write", made.draft.title, of_draft(made.draft).trailers()),
        {path: made.data},
        known={path: made.detail_at(path)},
        links=(link,) if link else (),
    )
