"""`session commit`: land a session's log as one commit (spec `sessions` §9).

This module decides; `memhtml.store` builds the tree and moves the ref and the checkout. The order
of the steps is the crash-safety argument: `pending` is written before anything shared moves, and
the checkout moves before the ref, so that a crash leaves staged additions that settlement reverts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memhtml import log as report
from memhtml.bar.readings import Readings
from memhtml.session import landing
from memhtml.session.bound import Identity
from memhtml.session.job import Job
from memhtml.session.log import Log, read_log
from memhtml.session.outcome import Outcome, refused
from memhtml.session.settle import settle
from memhtml.session.trail import append_trail
from memhtml.store import refs
from memhtml.store.lock import session_lock
from memhtml.store.repo import Repo

if TYPE_CHECKING:
    from memhtml.bar.drop import Dropped
    from memhtml_format.ops import Op


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
        job = Job(Repo(root), refs.final(root, log.ref), lock, message, Readings())
        dropped: list[Dropped] = []
        outcome: Outcome | None = None
        if log.pending is not None:
            outcome, log = settle(job, log, log.pending)
        if outcome is None:
            outcome, dropped = land_or_drop(job, log, drop=drop)
        snapshot = write_snapshot(job, log.ref, outcome)
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


def land_or_drop(job: Job, log: Log, *, drop: bool) -> tuple[Outcome, list[Dropped]]:
    """Try to land; with `drop`, take refused operations out and try again (`write-bar` §9)."""
    dropped: list[Dropped] = []
    while True:
        outcome = attempt(job, log)
        if outcome.kind != "refused" or not drop or not log.ops:
            return outcome, dropped
        from memhtml.bar.drop import drop_refused

        kept, gone = drop_refused(log.ops, outcome.violations)
        if not gone:
            return outcome, dropped
        log = shorten(job, log, kept)
        append_trail(job.root, log.id, gone)
        dropped.extend(gone)
        if not log.ops:
            return outcome, dropped


def shorten(job: Job, log: Log, kept: Sequence[Op]) -> Log:
    """Write the log without the dropped operations."""
    job.lock.refresh()
    return job.update(log, lambda stored: stored._replace(ops=tuple(kept)))


def attempt(job: Job, log: Log) -> Outcome:
    """Steps 1 to 10 of spec `sessions` §9.1, once."""
    if not log.ops:
        return refused([])
    staged = landing.stage(job, log)
    if isinstance(staged, Outcome):
        return staged
    job.lock.refresh()
    return landing.land(job, log, landing.build(job, log, staged))


def write_snapshot(job: Job, ref: str, outcome: Outcome) -> dict[str, Any] | None:
    """Advance the head database to the landed commit; best effort (spec `sessions` §4.3)."""
    sha = outcome.fields.get("sha")
    if sha is None:
        return None
    from memhtml.store.snapshot import stands_at
    from memhtml.store.snapshot import write_snapshot as advance

    try:
        if outcome.recovered:
            # Others may have landed on top since: their snapshot must not go back.
            past = refs.resolve(job.root, job.target) != sha
            if past or stands_at(job.root, ref, sha):
                return None
        written = advance(job.root, ref, sha, job.repo, known=job.readings.whole)
    except Exception as error:
        report.warn(f"the head database was not advanced: {type(error).__name__}: {error}")
        return None
    return None if written is None else written.to_json()
