"""The middle of a commit: judge and fold, build the commit object, move checkout and ref.

Spec `sessions` §9.1, steps 1 to 10. Nothing shared moves before `pending` is in the log; a failure
after that puts the checkout back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log as report
from memhtml import policy as store_policy
from memhtml.errors import MemhtmlError
from memhtml.session import outcome as answers
from memhtml.session.log import Log
from memhtml.session.settle import roll_back
from memhtml.session.view import touched_by
from memhtml.store import refs
from memhtml.store.lock import DirectoryLock, checkout_lock

if TYPE_CHECKING:
    from memhtml.bar.readings import Readings
    from memhtml.corpus.head import Head
    from memhtml.session.job import Job
    from memhtml.session.outcome import Outcome


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
    """What the ref held when it was looked at, or None when it does not exist: the swap expects
    this. An annotated tag holds the tag object."""

    @property
    def paths(self) -> list[str]:
        """Written and removed paths, sorted."""
        return sorted({*self.writes, *self.removals})


class Built(NamedTuple):
    """A commit object that nothing names yet."""

    sha: str
    staged: Staged


def stage(job: Job, log: Log) -> Staged | Outcome:
    """Steps 1 to 3: judge against the base, look at the ref, fold, mark contradictions."""
    from memhtml.bar.judge import judge
    from memhtml.corpus.head import open_head

    policy = store_policy.load(job.root)
    with open_head(job.root, log.ref, log.base_sha, repo=job.repo) as head:
        found = judge(log.ops, head, policy, job.scope, readings=job.readings)
        if found:
            return answers.refused(found)
        on_step("judged")
        held, tip = refs.standing(job.root, job.target)
        if tip is not None and tip != log.base_sha:
            return answers.rebase_needed(tip, overlapping(job, log, tip))
        if held is not None and tip is None:
            raise no_commit_there(job.target)
        return fold_and_mark(log, head, job.readings, expected=held)


def no_commit_there(ref: str) -> MemhtmlError:
    """The failure of a commit on a ref that stands at something else: that is never given up."""
    return MemhtmlError(
        "ERR_GIT", f"{ref} stands at an object that is missing or no commit; nothing landed"
    )


def fold_and_mark(log: Log, head: Head, readings: Readings, *, expected: str | None) -> Staged:
    """Step 3: one instant for the whole commit; marks go to the staged bytes only."""
    from memhtml.bar.contradictions import compare
    from memhtml.session.view import fold_log, now_second

    folded = fold_log(
        log, head.read, now_second(), holds=lambda path: head.file_kind(path) == "file"
    )
    compared = compare(log.ops, head, readings=readings)
    return Staged(
        marked(folded.files, compared.marks),
        frozenset(folded.gone),
        compared.contradictions,
        compared.restatements,
        expected,
    )


def marked(files: Mapping[str, bytes], marks: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """The files with a `contradicts` link to each rival (spec `write-bar` §8)."""
    found = dict(files)
    for path, hrefs in marks.items():
        from memhtml_format.edit import add_link  # 2 ms, and most commits contradict nothing.

        for href in hrefs:
            found[path] = add_link(found[path], "contradicts", href)
    return found


def overlapping(job: Job, log: Log, tip: str) -> list[str]:
    """Touched paths that differ between the base and the ref's new tip."""
    return [
        path
        for path in touched_by(log.ops)
        if job.repo.entry(log.base_sha, path) != job.repo.entry(tip, path)
    ]


def build(job: Job, log: Log, staged: Staged) -> Built:
    """Step 4: blobs, trees and the commit object."""
    from memhtml.store import commit as commits
    from memhtml.store.tree import build_tree

    with commits.asking_identity(job.repo) as identity:
        tree = build_tree(job.repo, log.base_sha, staged.writes, staged.removals)
        text = commits.message(job.scope, job.message, [("Memhtml-Session", log.id)])
        now_s = int(time.time())
        sha = commits.create(job.repo, tree, [log.base_sha], text, now_s, who=identity())
    on_step("built")
    return Built(sha, staged)


def land(job: Job, log: Log, built: Built) -> Outcome:
    """Steps 5 to 10, under the checkout lock."""
    from memhtml.store import checkout, unfinished

    with checkout_lock(job.root) as shared:
        on_step("checkout-locked")
        unfinished.settle(job.repo)
        followed = refs.checked_out(job.root) == job.target
        if followed:
            dirty = checkout.dirty(job.repo, log.base_sha, built.staged.paths)
            if dirty:
                return answers.worktree_dirty(dirty)
        warn_of_other_worktree(job.root, job.target)
        job.hold(shared)
        carried = len(log.ops)
        log = job.update(log, lambda now: now._replace(pending=built.sha, pending_ops=carried))
        on_step("pending")
        outcome = move(job, log, built, shared, followed=followed)
        if outcome.kind == "committed":
            on_step("swapped")
            job.update(log, lambda stored: landed_log(stored, built.sha))
            on_step("cleared")
        return outcome


def move(job: Job, log: Log, built: Built, shared: DirectoryLock, *, followed: bool) -> Outcome:
    """Steps 8 and 9: checkout, then ref. Whatever else happens, both are back where they were."""
    from memhtml.store import checkout
    from memhtml.store.journey import CheckoutDirty

    try:
        followed = still_followed(job, was=followed)
        if followed:
            checkout.follow(job.repo, log.base_sha, built.sha, built.staged.paths)
            on_step("followed")
        job.hold(shared)
        subject = f"session {log.id}: commit"
        swapped = refs.swap(job.root, job.target, built.sha, built.staged.expected, subject)
    except CheckoutDirty as error:
        # Someone edited or staged between the look and the move.
        roll_back(job, log, built.sha, shared, followed=followed)
        return answers.worktree_dirty(error.paths)
    except BaseException:
        roll_back(job, log, built.sha, shared, followed=followed)
        raise
    if not swapped:
        roll_back(job, log, built.sha, shared, followed=followed)
        return lost_swap(job, log)
    return answers.committed(
        built.sha,
        built.staged.paths,
        contradictions=built.staged.contradictions,
        restatements=built.staged.restatements,
        worktree_synced=followed,
    )


def still_followed(job: Job, *, was: bool) -> bool:
    """Whether the checkout moves: HEAD may have gone elsewhere since its paths were looked at.

    `ERR_GIT` when it came here instead, because nobody looked at the paths.
    """
    now = refs.checked_out(job.root) == job.target
    if now and not was:
        raise MemhtmlError("ERR_GIT", f"{job.target} was checked out meanwhile; commit again")
    return now


def landed_log(stored: Log, sha: str) -> Log:
    """The log after its operations landed: empty, at the new commit."""
    return stored._replace(base_sha=sha, ops=(), pending=None, pending_ops=0)


def lost_swap(job: Job, log: Log) -> Outcome:
    """Someone moved the ref between the look and the swap."""
    tip = refs.resolve(job.root, job.target)
    if tip is None:
        return answers.rebase_needed(log.base_sha, [])
    return answers.rebase_needed(tip, overlapping(job, log, tip))


def warn_of_other_worktree(root: str, ref: str) -> None:
    """A linked worktree that has the ref open is not followed; its owner should know."""
    other = refs.other_worktree_with(root, ref)
    if other is not None:
        report.warn(f"{ref} is checked out at {other}, which does not move with this commit")
