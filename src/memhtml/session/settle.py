"""Settle a commit that stopped half way: did it land, and what goes back (`sessions` §9.2).

A later call does it for one that was killed, and the call itself for one that failed.
"""

from __future__ import annotations

from memhtml import log as report
from memhtml.session import outcome as answers
from memhtml.session.job import Job
from memhtml.session.log import Log
from memhtml.session.outcome import Outcome
from memhtml.store import refs
from memhtml.store.lock import DirectoryLock, checkout_lock


def settle(job: Job, log: Log, pending: str) -> tuple[Outcome | None, Log]:
    """The `recovered` answer when `pending` landed, else None; and the log as it is now."""
    if not landed(job, pending):
        with checkout_lock(job.root):
            # Looked at again: whoever held the lock may have moved the ref meanwhile.
            if not landed(job, pending):
                if refs.checked_out(job.root) == job.target:
                    take_back(job, pending, log.base_sha)
                return None, clear_pending(job, log)
    return _recovered(job, log, pending)


def landed(job: Job, sha: str) -> bool:
    """Whether the ref stands at the commit or has moved on from it."""
    tip = refs.resolve(job.root, job.target)
    return tip is not None and job.repo.is_ancestor(sha, tip)


def roll_back(job: Job, log: Log, built: str, shared: DirectoryLock, *, followed: bool) -> None:
    """Put the checkout back and clear `pending`; when that fails the next commit settles it.

    Does nothing without both locks: a successor is settling it by then. An interrupt can arrive
    after the swap took effect: then nothing goes back, and the next call answers `recovered`.
    """
    try:
        if landed(job, built) or not (job.lock.still_ours() and shared.still_ours()):
            return
        if followed:
            take_back(job, built, log.base_sha)
        clear_pending(job, log)
    except Exception as error:
        report.warn(f"the roll-back is left to the next commit of this session: {error}")


def take_back(job: Job, pending: str, base: str) -> None:
    """Revert in the checkout what a commit that did not land had moved, path by path."""
    from memhtml.store import checkout

    if not job.repo.commit_exists(pending):
        return
    parent = job.repo.first_parent(pending) or base
    tip = refs.resolve(job.root, job.target)
    for path in checkout.put_back(job.repo, pending, parent, tip=tip):
        report.warn(f"{path} holds someone's work and was left as it is")


def clear_pending(job: Job, log: Log) -> Log:
    """The log without the commit that did not land."""
    return job.update(log, lambda stored: stored._replace(pending=None, pending_ops=0))


def _recovered(job: Job, log: Log, pending: str) -> tuple[Outcome, Log]:
    """Drop only what the commit carried: a put or exec may have appended after the kill."""
    from memhtml.store.commit import changed_paths

    base = log.base_sha if job.repo.is_ancestor(pending, log.base_sha) else pending
    remaining = log.ops[log.pending_ops :]
    settled = job.update(
        log,
        lambda stored: stored._replace(base_sha=base, ops=remaining, pending=None, pending_ops=0),
    )
    outcome = answers.committed(
        pending,
        changed_paths(job.repo, pending),
        worktree_synced=refs.checked_out(job.root) == job.target,
        recovered=True,
    )
    return outcome, settled
