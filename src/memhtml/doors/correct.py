"""`correct`: a replacement comes, the memory it replaces retires, in one commit.

Spec `cli` §10 `correct`, `format` §7.1. Only the type is carried over from the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.doors.change import Change
from memhtml.doors.drafts import Prepared, prepare
from memhtml.doors.opening import Door, now
from memhtml.doors.places import Places
from memhtml.doors.provenance import of_draft, session_link
from memhtml.doors.records import Named, href_of, live, named, stamped
from memhtml.doors.refusals import duplicate, invalid, shown
from memhtml.doors.retire import free_slot, superseded_stamps
from memhtml.store.commit import message
from memhtml_format.record import Link
from memhtml_format.render import Draft

if TYPE_CHECKING:
    from memhtml.doors.lookups import Lookups
    from memhtml.store.land import Landing


class Correction(NamedTuple):
    """Where the replacement and the retired memory go, and the change that brings them there."""

    path: str
    archived_path: str
    content_hash: str
    change: Change


def correct(root: str, target: str, draft: Draft, reason: str | None) -> dict[str, Any]:
    """The payload of `memory.corrected`. A draft without a type takes the target's.

    Errors raised: `ERR_PATH_NOT_FOUND`; `ERR_INVALID_MEMORY` for an archived target, for the
    target's own content and for a draft that breaks the format; `ERR_DUPLICATE_CONTENT`;
    `write.pathExhausted`; and those of a door (`opening.Door`).
    """
    with Door(root) as door:
        door.catch_up()
        with door.landing() as land:
            door.catch_up()
            found = plan(land, door.lookups, target, draft, reason, now())
            sha = door.commit(land, found.change)
        door.finish()
    return {
        "path": found.path,
        "archivedPath": found.archived_path,
        "commitSha": sha,
        "contentHash": found.content_hash,
    }


def plan(
    land: Landing, lookups: Lookups, target: str, draft: Draft, reason: str | None, at: str
) -> Correction:
    """The correction at the instant `at`. Raises as `correct` does."""
    old = live(named(target, land.read), "is not corrected")
    slot = free_slot(old.path, at, land)
    made = _replacement(draft._replace(memory_type=draft.memory_type or old.memory_type), slot, at)
    _refuse_twin(made, old, lookups)
    places = Places(lambda each: each != old.path and land.exists(each), land.blocker)
    path = places.find(made.draft, at)
    since = made.draft.valid_from or at
    stamps = superseded_stamps(at, href_of(path), since, old.detail.valid_until)
    text = message("correct", draft.title, of_draft(draft).trailers(), reason)
    link = session_link(draft, path, "corrected", at)
    change = Change(
        text,
        {path: made.data, slot: stamped(old, stamps)},
        () if path == old.path else (old.path,),
        known={path: made.detail_at(path)},
        displaced={old.path: slot} if path == old.path else {},
        links=(link,) if link else (),
    )
    return Correction(path, slot, made.content_hash, change)


def _replacement(draft: Draft, slot: str, at: str) -> Prepared:
    """The new file, rendered twice: only the first rendering says when its event was."""
    first = prepare(draft, at)
    since = draft.valid_from or first.detail.record.event_at or at
    linked = draft._replace(valid_from=since, links=(Link("supersedes", href_of(slot)),))
    return prepare(linked, at)


def _refuse_twin(made: Prepared, old: Named, lookups: Lookups) -> None:
    if made.content_hash == old.detail.record.content_hash:
        raise invalid(f"{shown(old.path)} says exactly this already")
    existing = None if made.is_task else lookups.holder(made.content_hash, but=old.path)
    if existing is not None:
        raise duplicate(existing)
