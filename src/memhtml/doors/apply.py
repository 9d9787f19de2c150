"""`apply`: many memories from a stream, in one commit and one pass of the index.

Spec `cli` §10 `apply`. What is slow and needs no lock comes before it is taken, or after.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `memhtml.index.sqlite`.
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from memhtml import log
from memhtml.doors.batch import Placed, Plan, plan, summary
from memhtml.doors.change import Change
from memhtml.doors.opening import Door, now
from memhtml.doors.places import Places
from memhtml.doors.provenance import NOWHERE, Provenance, of_draft, session_link
from memhtml.doors.workers import prepare_all
from memhtml.store.commit import message
from memhtml_format.render import Draft


class Wishes(NamedTuple):
    """How a batch is applied: all or nothing, and which reports are made."""

    atomic: bool = True
    conflicts: bool = False
    near_duplicates: bool = False


def apply(
    root: str, drafts: Iterable[Draft], wishes: Wishes, ids: Provenance = NOWHERE
) -> dict[str, Any]:
    """The payload of `batch.applied`. `ids` are those of drafts that name none.

    What is wrong with one draft is a result. Errors raised: those of a door (`opening.Door`).
    """
    import gc

    # A batch makes a million objects and no cycles; looking for some takes a tenth of the time.
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _applied(root, drafts, wishes, ids)
    finally:
        if was_on:
            gc.enable()


def _applied(root: str, drafts: Iterable[Draft], wishes: Wishes, ids: Provenance) -> dict[str, Any]:
    at = now()
    filled = [ids.fill(draft) for draft in drafts]
    source = next((found for found in map(_conversation, filled) if found != NOWHERE), NOWHERE)
    ops = prepare_all(filled, at)
    del filled  # Their texts are in the files now.
    sha, degraded = None, False
    with Door(root) as door:
        door.catch_up()
        with door.landing() as land:
            door.catch_up()
            places = Places(land.exists, land.blocker)
            found = plan(ops, at, places, door.lookups.holder, atomic=wishes.atomic)
            if wishes.conflicts:
                report_conflicts(found, door)
            if found.placed:
                sha = door.commit(land, change_of(found.placed, source, at))
        if wishes.near_duplicates:
            from memhtml.doors.near import report_near

            degraded = report_near(*found, door.index.conn, door.embedder)
        door.finish()
    return {
        "results": found.results,
        "summary": summary(found.results),
        "commit_sha": sha,
        "near_duplicates_degraded": degraded,
    }


def _conversation(draft: Draft) -> Provenance:
    """Where the whole batch comes from, when this draft is the first to say it."""
    found = of_draft(draft)
    return found if found.session_id or found.prompt_id else NOWHERE


def change_of(placed: Sequence[Placed], source: Provenance, at: str) -> Change:
    """The one change of a batch."""
    titles = [each.prepared.draft.title for each in placed]
    text = titles[0] if len(titles) == 1 else f"{len(titles)} memories"
    links = (session_link(each.prepared.draft, each.path, "wrote", at) for each in placed)
    return Change(
        message("batch", text, source.trailers()),
        {each.path: each.prepared.data for each in placed},
        known={each.path: each.prepared.detail_at(each.path) for each in placed},
        links=tuple(link for link in links if link is not None),
    )


def report_conflicts(found: Plan, door: Door) -> None:
    """Fill in `conflict`. A look-up that fails is a warning and no findings."""
    from memhtml.doors.conflicts import Conflicts

    claims = Conflicts(door.lookups.claims)
    try:
        for number, _path, op in found.placed:
            record = op.detail.record
            if op.is_task or op.is_markup or not record.frame_key or record.frame_value is None:
                continue
            conflict = claims.check(number, record.frame_key, record.frame_value, record.claim)
            if conflict is not None:
                found.results[number]["conflict"] = conflict.to_json()
    except sqlite3.Error as error:
        log.warn(f"conflicts were not looked for: {error}")
        for each in found.results:
            each["conflict"] = None
