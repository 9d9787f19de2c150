"""Settle a commit that was killed half way: did `pending` land or not (spec `sessions` §9.2)."""

from __future__ import annotations

from memhtml import log as report
from memhtml.session import outcome as answers
from memhtml.session.log import Log, update
from memhtml.session.outcome import Outcome
from memhtml.store import refs
from memhtml.store.lock import DirectoryLock, checkout_lock


def settle(root: str, log: Log, lock: DirectoryLock) -> tuple[Outcome | None, Log]:
    """The `recovered` answer when `pending` landed, else None; and the log as it is now."""
    from memhtml.store.repo import Repo

    assert log.pending is not None
    repo = Repo(root)
    tip = refs.resolve(root, log.ref)
    known = repo.commit_exists(log.pending)
    if tip is not None and known and repo.is_ancestor(log.pending, tip):
        return _landed(root, log, lock)
    if known and refs.checked_out(root) == log.ref:
        _put_back(root, log)
    cleared = update(
        root,
        log.id,
        log.ops,
        lambda stored: stored._replace(pending=None, pending_ops=0),
        lock=lock,
    )
    return None, cleared


def _landed(root: str, log: Log, lock: DirectoryLock) -> tuple[Outcome, Log]:
    """Drop only what the commit carried: a put or exec may have appended after the kill."""
    from memhtml.store.commit import changed_paths
    from memhtml.store.repo import Repo

    repo = Repo(root)
    pending = log.pending
    assert pending is not None
    base = log.base_sha if repo.is_ancestor(pending, log.base_sha) else pending
    remaining = log.ops[log.pending_ops :]
    settled = update(
        root,
        log.id,
        log.ops,
        lambda stored: stored._replace(base_sha=base, ops=remaining, pending=None, pending_ops=0),
        lock=lock,
    )
    outcome = answers.committed(
        pending,
        changed_paths(repo, pending),
        worktree_synced=refs.checked_out(root) == log.ref,
        recovered=True,
    )
    return outcome, settled


def _put_back(root: str, log: Log) -> None:
    """Revert what the killed commit had moved in the checkout, path by path."""
    from memhtml.store import checkout
    from memhtml.store.repo import Repo

    repo = Repo(root)
    assert log.pending is not None
    parent = repo.first_parent(log.pending) or log.base_sha
    with checkout_lock(root):
        for path in checkout.put_back(repo, log.pending, parent):
            report.warn(f"{path} holds someone's work and was left as it is")
