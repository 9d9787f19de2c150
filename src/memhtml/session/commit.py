"""`session commit`: land a session's log as one commit (spec `sessions` §9).

This module decides; `memhtml.store` builds the tree and moves the ref and the checkout. The order
of the steps is the crash-safety argument: `pending` is written before anything shared moves, and
the checkout moves before the ref, so that a crash leaves staged additions that settlement reverts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml import log as report
from memhtml.session import landing, settle
from memhtml.session.bound import Identity
from memhtml.session.log import Log, read_log
from memhtml.session.outcome import Outcome, refused
from memhtml.session.trail import append_trail
from memhtml.store.lock import DirectoryLock, session_lock
from memhtml_format.ops import Op

if TYPE_CHECKING:
    from memhtml.bar.drop import Dropped


def commit(root: str, identity: Identity, *, message: str, drop: bool) -> dict[str, Any]:
    """The payload of `session.committed`.

    Errors raised: those of `read_log`, `session.locked`, `checkout.locked`, `policy.invalid`,
    `ERR_GIT`. After any of them nothing shared has moved, or the log's `pending` names the commit
    that the next call settles.
    """
    read_log(root, identity.id)  # A typo must not leave a lock folder behind.
    with session_lock(root, identity.id) as lock:
        log = read_log(root, identity.id)
        base = log.base_sha
        dropped: list[Dropped] = []
        outcome: Outcome | None = None
        if log.pending is not None:
            outcome, log = settle.settle(root, log, lock)
        if outcome is None:
            outcome, dropped = land_or_drop(root, log, lock, message=message, drop=drop)
        landed = outcome.fields.get("sha")
        snapshot = write_snapshot(root, log.ref, landed, recovered=outcome.recovered)
    return {
        "id": log.id,
        "ref": log.ref,
        "baseSha": base,
        "kind": outcome.kind,
        **outcome.fields,
        "snapshot": snapshot,
        "dropped": [
            {"kind": item.kind, "path": item.path, "reasons": list(item.reasons)}
            for item in dropped
        ],
        "via": "local",
    }


def land_or_drop(
    root: str, log: Log, lock: DirectoryLock, *, message: str, drop: bool
) -> tuple[Outcome, list[Dropped]]:
    """Try to land; with `drop`, take refused operations out and try again (`write-bar` §9)."""
    from memhtml.bar.drop import drop_refused

    dropped: list[Dropped] = []
    while True:
        outcome = attempt(root, log, lock, message=message)
        if outcome.kind != "refused" or not drop or not log.ops:
            return outcome, dropped
        kept, gone = drop_refused(log.ops, outcome.violations)
        if not gone:
            return outcome, dropped
        log = shorten(root, log, kept, lock)
        append_trail(root, log.id, gone)
        dropped.extend(gone)
        if not log.ops:
            return outcome, dropped


def shorten(root: str, log: Log, kept: list[Op], lock: DirectoryLock) -> Log:
    """Write the log without the dropped operations."""
    from memhtml.session.log import update

    lock.refresh()
    return update(root, log.id, log.ops, lambda stored: stored._replace(ops=tuple(kept)), lock=lock)


def attempt(root: str, log: Log, lock: DirectoryLock, *, message: str) -> Outcome:
    """Steps 1 to 10 of spec `sessions` §9.1, once."""
    if not log.ops:
        return refused([])
    staged = landing.stage(root, log)
    if isinstance(staged, Outcome):
        return staged
    lock.refresh()
    built = landing.build(root, log, staged, message=message)
    return landing.land(root, log, built, lock)


def write_snapshot(
    root: str, ref: str, sha: str | None, *, recovered: bool
) -> dict[str, Any] | None:
    """Advance the head database to the landed commit; best effort (spec `sessions` §4.3)."""
    if sha is None:
        return None
    from memhtml.store.repo import Repo
    from memhtml.store.snapshot import stands_at
    from memhtml.store.snapshot import write_snapshot as advance

    try:
        if recovered and stands_at(root, ref, sha):
            return None
        written = advance(root, ref, sha, Repo(root))
    except Exception as error:
        report.warn(f"the head database was not advanced: {type(error).__name__}: {error}")
        return None
    return None if written is None else written.to_json()
