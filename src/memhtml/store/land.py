"""Lands one direct write as one commit: its own paths, nothing else (spec `cli` §8).

The order is the safety argument. The commit object is built first, then a note names it, then the
files and their index entries move, and the branch moves last. A failure puts everything back at
once; after a kill the next holder of the checkout lock does, by the note.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from memhtml import log as report
from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import refs, unfinished
from memhtml.store.compare import agreeing, bit_agrees
from memhtml.store.index_hold import HeldIndex
from memhtml.store.lock import DirectoryLock, checkout_lock
from memhtml.store.pack import object_id
from memhtml.store.repo import MODE_EXECUTABLE, MODE_FILE, Repo
from memhtml.store.unfinished import EMPTY_TREE, Pending, Standing, side_at
from memhtml.store.worktree import WorkTree

if TYPE_CHECKING:
    from memhtml.store import commit as commits
    from memhtml.store.entries import Side
    from memhtml.store.journey import Journey, Move
    from memhtml.store.worktree import Look

TRIES = 8
"""How often a call starts again because somebody else's commit moved the branch."""

PATIENCE = 2
"""After so many tries the index lock is held from the start."""


def no_step(name: str) -> None:
    """The step hook of a normal run: does nothing."""


on_step: Callable[[str], None] = no_step
"""Called with the name of each step after it, and with each path before its file moves; tests
replace it to kill the process there."""


class _Built(NamedTuple):
    """A commit object that nothing names yet, and what has to move for it."""

    sha: str | None
    """None when the commit before says the same already; the checkout may still differ."""
    old: str | None
    moves: list[Move]
    entries: dict[str, Side | None]
    before: dict[str, Standing]
    contents: dict[str, bytes]
    sides: dict[str, Side | None]
    """What each path of the call has in the commit."""
    index_seen: tuple[int, int, int] | None
    """The index that was looked at."""


@contextmanager
def landing(root: str) -> Iterator[Landing]:
    """The right to write to the checkout: its lock is held, what a killed write left is settled.

    Raises `StorageError` `checkout.locked` after 15 s, and `ERR_GIT`.
    """
    from memhtml.store.scaffold import ensure_ignored

    with checkout_lock(root) as lock:
        ensure_ignored(root)
        repo = Repo(root)
        try:
            unfinished.settle(repo)
            with WorkTree(root) as files:
                yield Landing(repo, files, lock)
        finally:
            repo.close()


class Landing:
    """One call's hold on the checkout. Made by `landing`.

    `head` is the commit HEAD stands at, None before the first one; `ref` the branch it is on, None
    when it is detached.
    """

    def __init__(self, repo: Repo, files: WorkTree, lock: DirectoryLock) -> None:
        self.repo = repo
        self.root = repo.root
        self.ref = refs.checked_out(repo.root)
        self.head = refs.head_commit(repo.root)
        self._files = files
        self._lock = lock

    def exists(self, path: str) -> bool:
        """Whether the working tree has anything at `path`, or a file in its way."""
        return self._look(path).kind != "absent"

    def held(self, path: str) -> bool:
        """Whether the working tree or the last commit has anything at `path`."""
        return self.exists(path) or self._committed(path) is not None

    def blocker(self, path: str) -> str | None:
        """What lies where a folder above `path` has to be and is none, or None."""
        return self._look(path).blocker or None

    def read(self, path: str) -> bytes | None:
        """The bytes that a commit of the working tree's file would hold; None when it is no file.

        Those are the last commit's while git calls the file unchanged, whatever its line ends.
        Raises `StorageError` `read`.
        """
        if self._look(path).kind != "file":
            return None
        try:
            data = self._files.read(path)
        except OSError as error:
            raise StorageError("read", f"{path}: {error.strerror}") from error
        side = self._committed(path)
        if side is None or side[1] == object_id("blob", data):
            return data
        return self.repo.data(side[1]) if agreeing(self.repo, {path: side}) else data

    def commit(
        self, writes: Mapping[str, bytes], removals: Collection[str], message: str
    ) -> str | None:
        """Land the paths as one commit on what HEAD has open; None when nothing changes.

        Whatever else is staged or edited stays as it is; what somebody had staged at one of the
        paths is replaced. Raises `StorageError` `write` when something that is no file is in the
        way or the disk refuses, `MemhtmlError` `ERR_GIT`, or `ERR_DIRTY_TREE` when a merge is open
        at a path or somebody writes there at this moment. Everything is then as it was.
        """
        taken = False
        for attempt in range(TRIES):
            held = HeldIndex(self.root)
            # Somebody who commits again and again would always be faster: then git waits for us.
            with held.taken() if attempt >= PATIENCE else nullcontext():
                built = self._build(writes, removals, message)
                landed = self._land(built, held, message.partition("\n")[0])
            if not landed:
                taken |= self._follow_branch(built)
                continue
            if built.sha is None:
                return self.head if taken else None
            self.head = built.sha
            return built.sha
        raise MemhtmlError("ERR_GIT", "the branch keeps moving; run the same call again")

    # --- building ------------------------------------------------------------------------------

    def _build(
        self, writes: Mapping[str, bytes], removals: Collection[str], message: str
    ) -> _Built:
        """The commit object, and what file and index entry of each path have to become."""
        from memhtml.store import commit as commits
        from memhtml.store import index
        from memhtml.store.journey import Move
        from memhtml.store.tree import build_tree

        with commits.asking_identity(self.repo) as identity:
            tree = build_tree(self.repo, self.head, writes, removals)
            contents = {object_id("blob", data): data for data in writes.values()}
            sides: dict[str, Side | None] = dict.fromkeys(removals)
            sides |= {path: (MODE_FILE, object_id("blob", data)) for path, data in writes.items()}
            paths = sorted(sides)
            seen = index.signature(self.root)
            state = index.staged(self.root, self.head or EMPTY_TREE, paths)
            _refuse_open_merge([*state.unmerged, *state.crossing])
            sha = self._commit_of(tree, message, identity)
            built = _Built(sha, self.head, [], {}, {}, contents, sides, seen)
        stash: dict[str, bytes] = {}
        for path in paths:
            committed, new = self._committed(path), sides[path]
            file = self._file(path, committed, stash)
            staged = state.entries.get(path, committed)
            if file != committed or staged != committed:
                built.before[path] = Standing(file, staged)
            if file != new:
                built.moves.append(Move(path, file, new))
            if staged != new:
                built.entries[path] = new
        self.repo.write_objects({oid: ("blob", data) for oid, data in stash.items()})
        on_step("built")
        return built

    def _commit_of(
        self, tree: str, message: str, identity: Callable[[], commits.Identity]
    ) -> str | None:
        from memhtml.store import commit as commits

        before = EMPTY_TREE if self.head is None else self.repo.root_tree(self.head)
        if tree == before:
            return None
        parents = [] if self.head is None else [self.head]
        return commits.create(self.repo, tree, parents, message, int(time.time()), who=identity())

    def _file(self, path: str, committed: Side | None, stash: dict[str, bytes]) -> Side | None:
        """What the working tree has at `path`; bytes that no commit holds go to `stash`."""
        seen = self._look(path)
        if seen.kind == "absent":
            return None
        if seen.kind != "file":
            raise StorageError("write", f"{seen.blocker or path} is in the way: it is no file")
        try:
            data = self._files.read(path)
        except OSError as error:
            raise StorageError("write", f"{path}: {error.strerror}") from error
        oid = object_id("blob", data)
        if committed is not None and committed[1] == oid and bit_agrees(self.repo, seen, committed):
            return committed
        stash[oid] = data
        return (MODE_EXECUTABLE if seen.executable else MODE_FILE), oid

    def _look(self, path: str) -> Look:
        try:
            return self._files.look(path)
        except OSError as error:
            raise StorageError("read", f"{path}: {error.strerror}") from error

    def _committed(self, path: str) -> Side | None:
        """What the last commit has at `path`, folders left out."""
        return None if self.head is None else side_at(self.repo, self.head, path)

    # --- moving --------------------------------------------------------------------------------

    def _land(self, built: _Built, held: HeldIndex, subject: str) -> bool:
        """Move files, index and branch; False when the branch had moved, all put back."""
        from memhtml.store.journey import Journey, fill_in_stats

        if built.sha is None and not built.moves and not built.entries:
            return True
        self._lock.refresh()
        pending = self._note(built)
        journey = Journey(self.repo, self._files, lambda path: on_step(path), built.contents)
        try:
            on_step("noted")
            held.until_free()
            journey.run(built.moves)
            on_step("moved")
            with held.taken():
                swapped = self._move_branch(built, pending, held, subject)
        except BaseException as error:
            self._undo(journey, pending)
            if isinstance(error, OSError):
                raise _storage(error) from error
            raise
        if not swapped:
            self._undo(journey, pending)
            return False
        fill_in_stats(self._files, held.git_dir, built.moves, journey.placed)
        journey.finish()
        unfinished.remove_note(self.root)
        return True

    def _move_branch(
        self, built: _Built, pending: Pending | None, held: HeldIndex, subject: str
    ) -> bool:
        """Index, then branch, while nobody else's git can stage or commit."""
        from memhtml.store import index

        if index.signature(self.root) != built.index_seen:
            state = index.staged(self.root, built.old or EMPTY_TREE, built.sides)
            _refuse_open_merge([*state.unmerged, *state.crossing])
            for path in built.sides:
                committed = self._committed(path)
                before = built.before.get(path, Standing(committed, committed)).staged
                # Whoever stages all that is there, at this moment, stages what we are about to.
                if state.entries.get(path, committed) not in (before, built.sides[path]):
                    raise MemhtmlError("ERR_DIRTY_TREE", f"{path} was staged at this moment")
        held.set_entries(built.entries)
        on_step("staged")
        try:
            self._lock.refresh()
            moved = pending is None or self._swap(pending, subject)
        except BaseException:
            if pending is None or not self._landed(pending):
                held.put_back()
            raise
        if not moved:
            held.put_back()
            return False
        on_step("swapped")
        return True

    def _note(self, built: _Built) -> Pending | None:
        if built.sha is None:
            return None  # Nothing shared moves but files towards what is committed already.
        pending = Pending(self.ref, built.old, built.sha, built.before)
        try:
            unfinished.write_note(self.root, pending)
        except OSError as error:
            raise _storage(error) from error
        return pending

    def _swap(self, pending: Pending, subject: str) -> bool:
        return refs.swap(self.root, self.ref or "HEAD", pending.new, pending.old, subject)

    def _undo(self, journey: Journey, pending: Pending | None) -> None:
        """Put everything back, unless the commit landed after all: a signal may come that late.

        What fails here is left to the next call, which finds the note.
        """
        try:
            if pending is not None and self._landed(pending):
                journey.finish()
            elif self._lock.still_ours():
                journey.back(self._taken_along(pending))
                if pending is not None:
                    unfinished.take_back(self.repo, pending)
            else:
                return
            unfinished.remove_note(self.root)
        except Exception as error:
            report.warn(f"putting the checkout back is left to the next call: {error}")

    def _taken_along(self, pending: Pending | None) -> Callable[[Move], bool]:
        """Which moves somebody has committed meanwhile: undone, they would be missing files."""
        tip = refs.head_commit(self.root)
        if pending is None or tip is None or tip == pending.old:
            return lambda _move: False
        return lambda move: side_at(self.repo, tip, move.path) == move.new

    def _landed(self, pending: Pending) -> bool:
        now = refs.head_commit(self.root)
        return now is not None and self.repo.is_ancestor(pending.new, now)

    def _follow_branch(self, built: _Built) -> bool:
        """Stand on the commit that somebody else landed meanwhile, when it left our paths alone.

        True when that commit holds some of ours: whoever commits all that is staged, at the moment
        when ours is, takes it along.
        """
        if refs.checked_out(self.root) != self.ref:
            raise MemhtmlError("ERR_GIT", "another branch was checked out meanwhile; run it again")
        taken = False
        before = {path: self._committed(path) for path in built.sides}
        self.head = refs.head_commit(self.root)
        for path, side in built.sides.items():
            now = self._committed(path)
            if now == before[path]:
                continue
            if now != side:
                raise MemhtmlError("ERR_GIT", f"another commit changed {path}; run it again")
            taken = True
        return taken


def _refuse_open_merge(paths: Collection[str]) -> None:
    """A path in conflict, or with somebody's entry above or below it in the index, is theirs."""
    if paths:
        raise MemhtmlError(
            "ERR_DIRTY_TREE",
            f"an open merge or a staged change is in the way at {', '.join(sorted(paths)[:5])}",
        )


def _storage(error: OSError) -> StorageError:
    name = error.filename if isinstance(error.filename, str) else "the working tree"
    return StorageError("write", f"{name}: {error.strerror}")
