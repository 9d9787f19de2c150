"""Moves index and working tree with a commit, and back, without touching anybody's own work.

Spec `sessions` §9.1 (dirty, following) and §9.2 (a commit that did not land). The rule throughout:
only a path of the commit, and only while it holds exactly what one of the two versions has.
Contents are compared; stat data alone never decides. The caller holds the checkout lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal

from memhtml.errors import StorageError
from memhtml.store import index
from memhtml.store.compare import agreeing, holds, may_agree
from memhtml.store.journey import CheckoutDirty, Journey, Move, fill_in_stats
from memhtml.store.journey import put_back as put_back_files
from memhtml.store.tree import refuse_bad_path
from memhtml.store.worktree import Look, Stamp, WorkTree
from memhtml_format.paths import parents

if TYPE_CHECKING:
    from memhtml.store.entries import Side
    from memhtml.store.index import Staged
    from memhtml.store.repo import Repo


def no_move(path: str) -> None:
    """The move hook of a normal run: does nothing."""


on_move: Callable[[str], None] = no_move
"""Called with each path before it moves, and with `index` before the index does; for tests."""


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
        journey = Journey(repo, files, lambda path: on_move(path))
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
        fill_in_stats(files, wait.git_dir, moves, journey.placed)


def put_back(repo: Repo, pending: str, parent: str, *, tip: str | None = None) -> list[str]:
    """Take back what a commit that did not land left in the checkout; the paths left alone, sorted.

    Per path, in the index and in the working tree: what equals `pending` goes back to `parent`'s,
    what equals `parent` stays, anything else is someone's work and stays. A path that the branch's
    `tip` has as `pending` has it stays too: somebody committed it meanwhile. May be repeated.
    Raises `StorageError` `write` or `MemhtmlError` `ERR_GIT`.
    """
    changes = list(repo.difference(parent, pending))
    moves = [Move(c.path, c.new, c.old) for c in changes if not _is_at(repo, tip, c.path, c.new)]
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
            left |= put_back_files(repo, files, others, placed, lambda path: on_move(path))
            on_move("index")
            index.set_entries(repo.root, entries, wait, sparse=sparse)
            fill_in_stats(files, wait.git_dir, moves, placed)
    except OSError as error:
        raise _storage(error) from error
    return sorted(left)


def _left_out(
    repo: Repo, files: WorkTree, moves: list[Move], here: Literal["old", "new"]
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


def _move(repo: Repo, parent: str, commit: str, path: str) -> Move | None:
    sides: list[Side | None] = []
    for version in (parent, commit):
        entry = repo.entry(version, path)
        # A folder is here by the paths below it, which the commit removes or writes on their own.
        sides.append(None if entry is None or entry.kind == "tree" else (entry.mode, entry.oid))
    return None if sides[0] == sides[1] else Move(path, *sides)


def _refuse_new_stages(repo: Repo, parent: str, moves: list[Move]) -> None:
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
    repo: Repo, parent: str, moves: list[Move]
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
