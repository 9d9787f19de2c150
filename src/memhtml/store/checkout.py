"""Moves index and working tree with a commit, and back, without touching anybody's own work.

Spec `sessions` §9.1 (dirty, following) and §9.2 (a commit that did not land). The rule throughout:
only a path of the commit, and only while it holds exactly what one of the two versions has.
Contents are compared; stat data alone never decides. The caller holds the checkout lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from memhtml import log
from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import index
from memhtml.store.compare import agreeing, holds, may_agree
from memhtml.store.index_stat import fill_in
from memhtml.store.repo import MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE
from memhtml.store.tree import refuse_bad_path
from memhtml.store.worktree import Look, Spare, Stamp, WorkTree
from memhtml_format.paths import parents

if TYPE_CHECKING:
    from memhtml.store.entries import Side
    from memhtml.store.index import Staged
    from memhtml.store.repo import Repo


def no_move(path: str) -> None:
    """The move hook of a normal run: does nothing."""


on_move: Callable[[str], None] = no_move
"""Called with each path before it moves, and with `index` before the index does; for tests."""


class CheckoutDirty(MemhtmlError):
    """`ERR_DIRTY_TREE`: `paths`, sorted, changed under the commit between the look and the move."""

    def __init__(self, paths: Collection[str]) -> None:
        self.paths = sorted(paths)
        super().__init__("ERR_DIRTY_TREE", f"uncommitted changes at {', '.join(self.paths[:5])}")


class _Move(NamedTuple):
    """One path's two versions; a side is None where the version has no file there."""

    path: str
    old: Side | None
    new: Side | None


def dirty(repo: Repo, parent_commit: str, paths: Collection[str]) -> list[str]:
    """The paths among `paths` that hold uncommitted state against `parent_commit`, sorted.

    A path is dirty when its index entry is not the parent's, when its file is not (content,
    executable bit, kind), or when something untracked, ignored or not, is in its way. A file that
    git's own filters would store as the parent's content is clean, and so is one that a sparse
    checkout leaves out. Raises `MemhtmlError` `ERR_GIT`.
    """
    wanted = set(paths)
    repo.index_seen = index.signature(repo.root)
    state = index.staged(repo.root, parent_commit, wanted)
    found = {*state.entries, *state.unmerged, *state.crossing}
    absent: set[str] = set()
    differing: dict[str, Side] = {}
    with WorkTree(repo.root) as files:
        for path in wanted - found:
            verdict = _compare(repo, files, parent_commit, path, wanted)
            if verdict == "dirty":
                found.add(path)
            elif verdict == "absent":
                absent.add(path)
            elif isinstance(verdict, tuple):
                differing[path] = verdict
    found |= absent - index.not_checked_out(repo.root, absent)
    found |= differing.keys() - agreeing(repo, differing)
    return sorted(found)


def follow(repo: Repo, parent: str, commit: str, paths: Collection[str]) -> None:
    """Move index and working tree from `parent` to `commit` at `paths`.

    New content is written aside first, so that a full disk shows before anything moved. Raises
    `StorageError` `write`, `MemhtmlError` `ERR_GIT` (git's index lock among them) or
    `CheckoutDirty`; whatever had moved is then back where it was.
    """
    moves = [move for path in sorted(set(paths)) if (move := _move(repo, parent, commit, path))]
    for move in moves:
        if move.new is not None:
            refuse_bad_path(move.path)
    wait = index.LockWait(repo.root)
    wait.until_free()
    with WorkTree(repo.root) as files:
        sparse = _left_out(repo, files, moves, "old")
        journey = _Journey(repo, files)
        try:
            journey.run([move for move in moves if move.path not in sparse])
            on_move("index")
            _refuse_new_stages(repo, parent, moves)
            entries = {move.path: move.new for move in moves}
            index.set_entries(repo.root, entries, wait, sparse=sparse)
        except BaseException as error:
            journey.back()
            if isinstance(error, OSError):
                raise _storage(error) from error
            raise
        journey.finish()
        _fill_in(files, wait, moves, journey.placed)


def put_back(repo: Repo, pending: str, parent: str, *, tip: str | None = None) -> list[str]:
    """Take back what a commit that did not land left in the checkout; the paths left alone, sorted.

    Per path, in the index and in the working tree: what equals `pending` goes back to `parent`'s,
    what equals `parent` stays, anything else is someone's work and stays. A path that the branch's
    `tip` has as `pending` has it stays too: somebody committed it meanwhile. May be repeated.
    Raises `StorageError` `write` or `MemhtmlError` `ERR_GIT`.
    """
    changes = list(repo.difference(parent, pending))
    moves = [_Move(c.path, c.new, c.old) for c in changes if not _is_at(repo, tip, c.path, c.new)]
    moves.sort()
    wait = index.LockWait(repo.root)
    entries, left = _entries_to_put_back(repo, parent, moves)
    if entries:
        wait.until_free()
    try:
        with WorkTree(repo.root) as files:
            for folder in {move.path.rpartition("/")[0] for move in moves}:
                files.sweep(folder)
            sparse = _left_out(repo, files, moves, "new")
            placed: dict[str, Stamp] = {}
            others = [move for move in moves if move.path not in sparse]
            left |= _put_back_files(repo, files, others, placed)
            on_move("index")
            index.set_entries(repo.root, entries, wait, sparse=sparse)
            _fill_in(files, wait, moves, placed)
    except OSError as error:
        raise _storage(error) from error
    return sorted(left)


def _left_out(
    repo: Repo, files: WorkTree, moves: list[_Move], here: Literal["old", "new"]
) -> set[str]:
    """The moves whose file is not there because a sparse checkout leaves it out.

    `here` is the side that the file should be when it is there. Only their entries move.
    """
    absent = [
        move.path
        for move in moves
        if getattr(move, here) is not None and files.look(move.path).kind == "absent"
    ]
    return index.not_checked_out(repo.root, absent)


def _fill_in(
    files: WorkTree, wait: index.LockWait, moves: Iterable[_Move], placed: Mapping[str, Stamp]
) -> None:
    """Tell the index entries of the files just placed what their files look like."""
    known: dict[str, tuple[Side, os.stat_result]] = {}
    for move in moves:
        stamp = placed.get(move.path)
        info = files.unchanged(move.path, stamp) if stamp is not None else None
        if move.new is not None and info is not None:
            known[move.path] = move.new, info
    if known:
        fill_in(wait.git_dir, known)


def _move(repo: Repo, parent: str, commit: str, path: str) -> _Move | None:
    sides: list[Side | None] = []
    for version in (parent, commit):
        entry = repo.entry(version, path)
        # A folder is here by the paths below it, which the commit removes or writes on their own.
        sides.append(None if entry is None or entry.kind == "tree" else (entry.mode, entry.oid))
    return None if sides[0] == sides[1] else _Move(path, *sides)


def _refuse_new_stages(repo: Repo, parent: str, moves: list[_Move]) -> None:
    """Refuse when somebody staged one of the paths since `dirty` looked."""
    if repo.index_seen is not None and repo.index_seen == index.signature(repo.root):
        return
    state = index.staged(repo.root, parent, [move.path for move in moves])
    found = {*state.entries, *state.unmerged, *state.crossing}
    if found:
        raise CheckoutDirty(found)


def _storage(error: OSError) -> StorageError:
    name = error.filename if isinstance(error.filename, str) else "the working tree"
    return StorageError("write", f"{name}: {error.strerror}")


# --- comparing ---------------------------------------------------------------------------------


def _compare(
    repo: Repo, files: WorkTree, parent: str, path: str, wanted: set[str]
) -> Literal["clean", "dirty", "absent"] | Side:
    """What is at a path; a side when its raw bytes differ, and git must judge whether it is that.

    `absent` is a file that a sparse checkout may have left out.
    """
    entry = repo.entry(parent, path)
    try:
        seen = files.look(path)
        if entry is None:
            free = seen.kind == "absent" or _leaves(repo, parent, seen, wanted)
            return "clean" if free else "dirty"
        if entry.kind == "tree":
            return "clean" if _only_removed_below(files, path, seen, wanted) else "dirty"
        side = (entry.mode, entry.oid)
        if holds(repo, files, path, seen, side):
            return "clean"
        if seen.kind == "absent":
            return "absent"
        return side if may_agree(repo, seen, side) else "dirty"
    except OSError:
        return "dirty"  # What cannot be read cannot be called unchanged.


def _leaves(repo: Repo, parent: str, seen: Look, wanted: set[str]) -> bool:
    """Whether what is in the way is a file of the parent that this commit touches itself."""
    if seen.kind != "blocked" or seen.blocker not in wanted:
        return False
    entry = repo.entry(parent, seen.blocker)
    return entry is not None and entry.kind in ("blob", "link")


def _only_removed_below(files: WorkTree, path: str, seen: Look, wanted: set[str]) -> bool:
    """Whether a folder that a file replaces holds nothing but what the commit removes."""
    if seen.kind != "folder":
        return seen.kind == "absent"
    others, folders = files.everything_below(path)
    needed = {above for other in others for above in parents(other)}
    return wanted.issuperset(others) and needed.issuperset(folders)


# --- forwards ----------------------------------------------------------------------------------


class _Journey:
    """The moves of one `follow`, with what is needed to take them back on a full disk."""

    def __init__(self, repo: Repo, files: WorkTree) -> None:
        self._repo = repo
        self._files = files
        self._waiting: dict[str, Spare] = {}
        self._done: list[tuple[_Move, Spare | None]] = []
        self.placed: dict[str, Stamp] = {}
        """The files written, as they were then."""

    def run(self, moves: list[_Move]) -> None:
        """Removals first, so that a folder can take a file's place and the other way round."""
        written = [move for move in moves if move.new is not None]
        removed = [move for move in moves if move.new is None]
        blocked = {move.path for move in removed}
        # A place below a file that is still there is prepared after that file is gone.
        later = [m for m in written if any(a in blocked for a in parents(m.path))]
        for move in written:
            if move not in later:
                self._prepare(move)
        for move in removed:
            self._remove(move)
        for move in later:
            self._prepare(move)
        for move in written:
            self._write(move)

    def back(self) -> None:
        """Undo in reverse; what cannot be undone is left to `put_back`, with a warning."""
        kept_for_good = []
        for move, kept in reversed(self._done):
            try:
                undone = self._undo(move, kept)
            except (OSError, MemhtmlError) as error:
                log.warn(f"{move.path} could not be put back at once: {error}")
                undone = False
            if not undone and kept is not None:
                kept_for_good.append(kept)
        self._discard(but=kept_for_good)

    def finish(self) -> None:
        """Drop what was kept for the way back."""
        self._discard()

    def _discard(self, but: Collection[Spare] = ()) -> None:
        for spare in [*self._waiting.values(), *(kept for _, kept in self._done if kept)]:
            if spare not in but:
                self._files.discard(spare)
        for path in self._waiting:
            self._files.remove_empty_folders(path)
        self._waiting.clear()
        self._done.clear()

    def _prepare(self, move: _Move) -> None:
        assert move.new is not None
        spare = _spare(self._repo, self._files, move.path, move.new)
        if spare is not None:
            self._waiting[move.path] = spare

    def _remove(self, move: _Move) -> None:
        on_move(move.path)
        if move.old is None or move.old[0] == MODE_SUBMODULE:
            return
        self._expect(move, move.old)
        seen = _content(self._files, move.path, move.old)
        taken = self._files.take_away(move.path)
        self._done.append((move, taken))
        # Looked at again where nobody else can reach it: a last edit is put back, not dropped.
        if self._files.read_spare(taken) != seen:
            raise CheckoutDirty([move.path])
        self._files.remove_empty_folders(move.path)

    def _write(self, move: _Move) -> None:
        on_move(move.path)
        spare = self._waiting.get(move.path)
        if spare is None:
            return
        kept = None
        if move.old is not None:
            self._expect(move, move.old)
            kept = self._files.keep_copy(move.path)
        try:
            self._files.place(spare, move.path, replace=move.old is not None)
        except BaseException as error:
            if kept is not None:
                self._files.discard(kept)
            if isinstance(error, FileExistsError):
                raise CheckoutDirty([move.path]) from None
            raise
        del self._waiting[move.path]
        self._done.append((move, kept))
        if spare.stamp is not None:
            self.placed[move.path] = spare.stamp

    def _expect(self, move: _Move, side: Side) -> None:
        """The file is still the parent's, byte for byte or for git."""
        seen = self._files.look(move.path)
        if holds(self._repo, self._files, move.path, seen, side):
            return
        if not may_agree(self._repo, seen, side) or not agreeing(self._repo, {move.path: side}):
            raise CheckoutDirty([move.path])

    def _undo(self, move: _Move, kept: Spare | None) -> bool:
        files, path = self._files, move.path
        if not holds(self._repo, files, path, files.look(path), move.new):
            return False  # Somebody wrote here meanwhile: theirs now.
        if move.old is None:
            files.discard(files.take_away(path))
            files.remove_empty_folders(path)
            return True
        back = kept or _spare(self._repo, files, path, move.old)
        if back is not None:
            files.place(back, path, replace=move.new is not None)
        return True


def _content(files: WorkTree, path: str, side: Side) -> bytes:
    return files.target(path) if side[0] == MODE_LINK else files.read(path)


def _spare(repo: Repo, files: WorkTree, path: str, side: Side) -> Spare | None:
    mode, oid = side
    if mode == MODE_SUBMODULE:
        return None
    data = repo.data(oid)
    if mode == MODE_LINK:
        return files.spare_link(data, path)
    return files.spare_file(data, path, executable=mode == MODE_EXECUTABLE)


def _is_at(repo: Repo, commit: str | None, path: str, side: Side | None) -> bool:
    """Whether `commit` has exactly `side` at `path`."""
    if commit is None:
        return False
    entry = repo.entry(commit, path)
    if entry is None or entry.kind == "tree":
        return side is None
    return side == (entry.mode, entry.oid)


# --- and back ----------------------------------------------------------------------------------


def _entries_to_put_back(
    repo: Repo, parent: str, moves: list[_Move]
) -> tuple[dict[str, Side | None], set[str]]:
    """The index entries that go back, and the paths whose entry is someone's work."""
    state: Staged = index.staged(repo.root, parent, [move.path for move in moves])
    entries: dict[str, Side | None] = {}
    left = set(state.unmerged)
    for move in moves:
        if move.path in left or move.path not in state.entries:
            continue  # The entry is in conflict, or the parent's already.
        if state.entries[move.path] == move.old and move.path not in state.crossing:
            entries[move.path] = move.new
        else:
            left.add(move.path)
    return entries, left


def _put_back_files(
    repo: Repo, files: WorkTree, moves: Iterable[_Move], placed: dict[str, Stamp]
) -> set[str]:
    """Files of the pending commit go first, so that a folder's or a file's place is free again.

    Answers the paths that hold someone's work; notes in `placed` what was written.
    """
    left: set[str] = set()
    returning: list[_Move] = []
    differing: dict[str, Side] = {}
    for move in moves:
        seen = files.look(move.path)
        if holds(repo, files, move.path, seen, move.new):
            if move.new is None and seen.kind == "absent":
                files.remove_empty_folders(move.path)  # Made for it, and it never came.
        elif not holds(repo, files, move.path, seen, move.old):
            left.add(move.path)
            if move.new is not None and may_agree(repo, seen, move.new):
                differing[move.path] = move.new
        elif move.new is not None:
            returning.append(move)
        elif not _drop_file(repo, files, move):
            left.add(move.path)
    for move in returning:
        on_move(move.path)
        if not _return_file(repo, files, move, placed):
            left.add(move.path)
    return left - agreeing(repo, differing)  # The parent's already, but for git's filters.


def _drop_file(repo: Repo, files: WorkTree, move: _Move) -> bool:
    """Remove the pending commit's file; False when it was written to at the last moment."""
    assert move.old is not None
    on_move(move.path)
    taken = files.take_away(move.path)
    if files.read_spare(taken) != repo.data(move.old[1]):
        files.place(taken, move.path, replace=False)
        return False
    files.discard(taken)
    files.remove_empty_folders(move.path)
    return True


def _return_file(repo: Repo, files: WorkTree, move: _Move, placed: dict[str, Stamp]) -> bool:
    """Write the parent's file again; False when someone's file or folder took the place."""
    assert move.new is not None
    try:
        spare = _spare(repo, files, move.path, move.new)
    except NotADirectoryError:
        return False
    if spare is None:
        return True
    try:
        files.place(spare, move.path, replace=move.old is not None)
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        files.discard(spare)
        return False
    if spare.stamp is not None:
        placed[move.path] = spare.stamp
    return True
