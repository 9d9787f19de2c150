"""The middle of a commit: judge and fold, build the commit object, move checkout and ref.

Spec `sessions` §9.1, steps 1 to 10. Nothing shared moves before `pending` is in the log; a failure
after that puts the checkout back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log as report
from memhtml import policy as store_policy
from memhtml.errors import StorageError
from memhtml.session import outcome as answers
from memhtml.session.log import Log, update
from memhtml.session.view import touched_by
from memhtml.store import refs
from memhtml.store.lock import DirectoryLock, checkout_lock

if TYPE_CHECKING:
    from memhtml.corpus.head import Head
    from memhtml.session.outcome import Outcome
    from memhtml.store.repo import Repo


def no_step(name: str) -> None:
    """The step hook of a normal run: does nothing."""


on_step: Callable[[str], None] = no_step
"""Called with the name of each step after it; tests replace it to kill the process there."""


class Staged(NamedTuple):
    """The tree the log asks for, and what comparing claims found."""

    writes: dict[str, bytes]
    removals: frozenset[str]
    contradictions: list[dict[str, Any]]
    restatements: list[dict[str, Any]]
    expected: str | None
    """The ref's value the swap expects: the base, or None when the ref does not exist."""

    @property
    def paths(self) -> list[str]:
        """Written and removed paths, sorted."""
        return sorted({*self.writes, *self.removals})


class Built(NamedTuple):
    """A commit object that nothing names yet."""

    sha: str
    staged: Staged


def stage(root: str, log: Log) -> Staged | Outcome:
    """Steps 1 to 3: judge against the base, look at the ref, fold, mark contradictions."""
    from memhtml.bar.judge import judge
    from memhtml.corpus.head import open_head
    from memhtml.store.repo import Repo

    policy = store_policy.load(root)
    repo = Repo(root)
    with open_head(root, log.ref, log.base_sha, repo=repo) as head:
        found = judge(log.ops, head, policy, log.scope)
        if found:
            return answers.refused(found)
        on_step("judged")
        tip = refs.resolve(root, log.ref)
        if tip is not None and tip != log.base_sha:
            return answers.rebase_needed(tip, overlapping(repo, log, tip))
        return fold_and_mark(log, head, expected=tip)


def fold_and_mark(log: Log, head: Head, *, expected: str | None) -> Staged:
    """Step 3: one instant for the whole commit; marks go to the staged bytes only."""
    from memhtml.bar.contradictions import compare
    from memhtml.session.view import fold_log, now_second
    from memhtml_format.edit import add_link

    folded = fold_log(
        log, head.read, now_second(), holds=lambda path: head.file_kind(path) == "file"
    )
    compared = compare(log.ops, head)
    writes = dict(folded.files)
    for path, hrefs in compared.marks.items():
        for href in hrefs:
            writes[path] = add_link(writes[path], "contradicts", href)
    return Staged(
        writes,
        frozenset(folded.gone),
        compared.contradictions,
        compared.restatements,
        expected,
    )


def overlapping(repo: Repo, log: Log, tip: str) -> list[str]:
    """Touched paths that differ between the base and the ref's new tip."""
    return [
        path
        for path in touched_by(log.ops)
        if repo.entry(log.base_sha, path) != repo.entry(tip, path)
    ]


def build(root: str, log: Log, staged: Staged, *, message: str) -> Built:
    """Step 4: blobs, trees and the commit object; loose objects only."""
    from memhtml.store import commit as commits
    from memhtml.store.repo import Repo
    from memhtml.store.tree import build_tree

    repo = Repo(root)
    tree = build_tree(repo, log.base_sha, staged.writes, staged.removals)
    text = commits.message(log.scope, message, [("Memhtml-Session", log.id)])
    sha = commits.create(repo, tree, [log.base_sha], text, int(time.time()))
    on_step("built")
    return Built(sha, staged)


def land(root: str, log: Log, built: Built, lock: DirectoryLock) -> Outcome:
    """Steps 5 to 10, under the checkout lock."""
    from memhtml.store import checkout
    from memhtml.store.repo import Repo

    repo = Repo(root)
    with checkout_lock(root) as shared:
        on_step("checkout-locked")
        followed = refs.checked_out(root) == log.ref
        if followed:
            dirty = checkout.dirty(repo, log.base_sha, built.staged.paths)
            if dirty:
                return answers.worktree_dirty(dirty)
        warn_of_other_worktree(root, log.ref)
        hold(lock, shared)
        carried = len(log.ops)
        update(
            root,
            log.id,
            log.ops,
            lambda stored: stored._replace(pending=built.sha, pending_ops=carried),
            lock=lock,
        )
        on_step("pending")
        try:
            if followed:
                checkout.follow(repo, log.base_sha, built.sha, built.staged.paths)
                on_step("followed")
            hold(lock, shared)
            subject = f"session {log.id}: commit"
            swapped = refs.swap(root, log.ref, built.sha, built.staged.expected, subject)
        except checkout.CheckoutDirty as error:
            # Someone edited or staged between the look and the move.
            roll_back(root, log, built, lock, followed=followed)
            return answers.worktree_dirty(error.paths)
        except BaseException:
            roll_back(root, log, built, lock, followed=followed)
            raise
        if not swapped:
            roll_back(root, log, built, lock, followed=followed)
            return lost_swap(repo, root, log)
        on_step("swapped")
        update(root, log.id, log.ops, lambda stored: landed_log(stored, built.sha), lock=lock)
        on_step("cleared")
    return answers.committed(
        built.sha,
        built.staged.paths,
        contradictions=built.staged.contradictions,
        restatements=built.staged.restatements,
        worktree_synced=followed,
    )


def landed_log(stored: Log, sha: str) -> Log:
    """The log after its operations landed: empty, at the new commit."""
    return stored._replace(base_sha=sha, ops=(), pending=None, pending_ops=0)


def hold(lock: DirectoryLock, shared: DirectoryLock) -> None:
    """Both locks are still ours, or stop before anything shared moves (spec `sessions` §2)."""
    lock.refresh()
    if not lock.still_ours():
        raise StorageError("session.locked", "the session lock was lost while the commit paused")
    shared.refresh()
    if not shared.still_ours():
        raise StorageError("checkout.locked", "the checkout lock was lost while the commit paused")


def roll_back(root: str, log: Log, built: Built, lock: DirectoryLock, *, followed: bool) -> None:
    """Put the checkout back and clear `pending`; when that fails the next commit settles it.

    An interrupt can arrive after the swap took effect: then the commit has landed, nothing goes
    back, and `pending` stays for the next call to answer `recovered`.
    """
    from memhtml.store import checkout
    from memhtml.store.repo import Repo

    try:
        if refs.resolve(root, log.ref) == built.sha:
            return
        if followed:
            for path in checkout.put_back(Repo(root), built.sha, log.base_sha):
                report.warn(f"{path} holds someone's work and was left as it is")
        update(
            root,
            log.id,
            log.ops,
            lambda stored: stored._replace(pending=None, pending_ops=0),
            lock=lock,
        )
    except Exception as error:
        report.warn(f"the roll-back is left to the next commit of this session: {error}")


def lost_swap(repo: Repo, root: str, log: Log) -> Outcome:
    """Someone moved the ref between the look and the swap."""
    tip = refs.resolve(root, log.ref)
    if tip is None:
        return answers.rebase_needed(log.base_sha, [])
    return answers.rebase_needed(tip, overlapping(repo, log, tip))


def warn_of_other_worktree(root: str, ref: str) -> None:
    """A linked worktree that has the ref open is not followed; its owner should know."""
    other = refs.other_worktree_with(root, ref)
    if other is not None:
        report.warn(f"{ref} is checked out at {other}, which does not move with this commit")
