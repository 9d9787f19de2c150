"""Moves single files of a working tree from one side to another, and back, writing all aside first.

A move is refused when the file is not what it was thought to be; contents are compared, stat data
alone never decides. Which files move, and what the index says, is the caller's matter, who holds
the checkout lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from memhtml import log
from memhtml.errors import MemhtmlError
from memhtml.store.compare import agreeing, holds, may_agree
from memhtml.store.index_stat import fill_in
from memhtml.store.repo import MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE
from memhtml.store.worktree import Spare, Stamp, WorkTree
from memhtml_format.paths import parents

if TYPE_CHECKING:
    from memhtml.store.entries import Side
    from memhtml.store.repo import Repo


class CheckoutDirty(MemhtmlError):
    """`ERR_DIRTY_TREE`: `paths`, sorted, changed under the commit between the look and the move."""

    def __init__(self, paths: Collection[str]) -> None:
        self.paths = sorted(paths)
        super().__init__("ERR_DIRTY_TREE", f"uncommitted changes at {', '.join(self.paths[:5])}")


class Move(NamedTuple):
    """One path's two versions; a side is None where the version has no file there."""

    path: str
    old: Side | None
    new: Side | None


class Journey:
    """The moves of one call, with what is needed to take them back on a full disk.

    `tell` is called with each path before it moves. `contents` holds blobs by their id that need
    not be read back.
    """

    def __init__(
        self,
        repo: Repo,
        files: WorkTree,
        tell: Callable[[str], None],
        contents: Mapping[str, bytes] | None = None,
    ) -> None:
        self._repo = repo
        self._files = files
        self._tell = tell
        self._contents = contents or {}
        self._waiting: dict[str, Spare] = {}
        self._done: list[tuple[Move, Spare | None]] = []
        self.placed: dict[str, Stamp] = {}
        """The files written, as they were then."""

    def run(self, moves: list[Move]) -> None:
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

    def back(self, stays: Callable[[Move], bool] = lambda _move: False) -> None:
        """Undo in reverse, but what `stays`; what cannot be undone is left to `put_back`, with a
        warning."""
        kept_for_good = []
        for move, kept in reversed(self._done):
            if stays(move):
                continue
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

    def _prepare(self, move: Move) -> None:
        assert move.new is not None
        known = self._contents.get(move.new[1])
        spare = _spare(self._repo, self._files, move.path, move.new, known)
        if spare is not None:
            self._waiting[move.path] = spare

    def _remove(self, move: Move) -> None:
        self._tell(move.path)
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

    def _write(self, move: Move) -> None:
        self._tell(move.path)
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

    def _expect(self, move: Move, side: Side) -> None:
        """The file is still the parent's, byte for byte or for git."""
        seen = self._files.look(move.path)
        if holds(self._repo, self._files, move.path, seen, side):
            return
        if not may_agree(self._repo, seen, side) or not agreeing(self._repo, {move.path: side}):
            raise CheckoutDirty([move.path])

    def _undo(self, move: Move, kept: Spare | None) -> bool:
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


def fill_in_stats(
    files: WorkTree, git_dir: str, moves: Iterable[Move], placed: Mapping[str, Stamp]
) -> None:
    """Tell the index entries of the files just placed what their files look like."""
    known: dict[str, tuple[Side, os.stat_result]] = {}
    for move in moves:
        stamp = placed.get(move.path)
        info = files.unchanged(move.path, stamp) if stamp is not None else None
        if move.new is not None and info is not None:
            known[move.path] = move.new, info
    if known:
        fill_in(git_dir, known)


def _content(files: WorkTree, path: str, side: Side) -> bytes:
    return files.target(path) if side[0] == MODE_LINK else files.read(path)


def _spare(
    repo: Repo, files: WorkTree, path: str, side: Side, known: bytes | None = None
) -> Spare | None:
    mode, oid = side
    if mode == MODE_SUBMODULE:
        return None
    data = repo.data(oid) if known is None else known
    if mode == MODE_LINK:
        return files.spare_link(data, path)
    return files.spare_file(data, path, executable=mode == MODE_EXECUTABLE)


def put_back(
    repo: Repo,
    files: WorkTree,
    moves: Iterable[Move],
    placed: dict[str, Stamp],
    tell: Callable[[str], None],
) -> set[str]:
    """Move files back that a commit which did not land may have moved; may be repeated.

    Its own files go first, so that a folder's or a file's place is free again. Answers the paths
    that hold someone's work; notes in `placed` what was written.
    """
    left: set[str] = set()
    returning: list[Move] = []
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
        elif not _drop_file(repo, files, move, tell):
            left.add(move.path)
    for move in returning:
        tell(move.path)
        if not _return_file(repo, files, move, placed):
            left.add(move.path)
    return left - agreeing(repo, differing)  # The parent's already, but for git's filters.


def _drop_file(repo: Repo, files: WorkTree, move: Move, tell: Callable[[str], None]) -> bool:
    """Remove the pending commit's file; False when it was written to at the last moment."""
    assert move.old is not None
    tell(move.path)
    taken = files.take_away(move.path)
    if files.read_spare(taken) != repo.data(move.old[1]):
        files.place(taken, move.path, replace=False)
        return False
    files.discard(taken)
    files.remove_empty_folders(move.path)
    return True


def _return_file(repo: Repo, files: WorkTree, move: Move, placed: dict[str, Stamp]) -> bool:
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
