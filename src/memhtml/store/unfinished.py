"""What a direct write notes before it moves anything shared, and how a killed one is taken back.

The note lies beside the session logs, which git ignores. It names the commit that was to land and,
for each path that was not as the commit before has it, what file and index held: somebody's
uncommitted edit must come back as it was. Whoever takes the checkout lock next settles it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log

if TYPE_CHECKING:
    from memhtml.store.entries import Side
    from memhtml.store.index import Staged
    from memhtml.store.journey import Move
    from memhtml.store.repo import Change, Repo

NOTE = (".memhtml", "sessions", "checkout.pending")
FORMAT = 1
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Stands for the version before a first commit; git knows it without storing it."""

_OID_CHARS = len(EMPTY_TREE)
_HEX = frozenset("0123456789abcdef")


class Standing(NamedTuple):
    """What a path held before the write: in the working tree and in the index."""

    file: Side | None
    staged: Side | None


class Pending(NamedTuple):
    """A commit on its way: `ref` is None on a detached HEAD, `old` before a first commit."""

    ref: str | None
    old: str | None
    new: str
    others: dict[str, Standing]
    """The paths that were not as `old` has them."""


def note_path(root: str) -> str:
    """Where the note of a store lies."""
    return os.path.join(root, *NOTE)


def write_note(root: str, pending: Pending) -> None:
    """Put the note down before anything moves. Raises OSError."""
    import json

    from memhtml.store.atomic import temporary_name, write_all

    others = {path: list(standing) for path, standing in pending.others.items()}
    text = json.dumps([FORMAT, pending.ref, pending.old, pending.new, others])
    path = note_path(root)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = os.path.join(os.path.dirname(path), temporary_name("checkout"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(aside, flags, 0o600)
        try:
            # Not flushed: it is for a kill. After a power cut the files are no safer than it is.
            write_all(descriptor, text.encode())
        finally:
            os.close(descriptor)
        os.replace(aside, path)
    except BaseException:
        _remove(aside)
        raise


def remove_note(root: str) -> None:
    """The write is over, one way or the other."""
    _remove(note_path(root))


def settle(repo: Repo) -> None:
    """Take back what a killed direct write left in the checkout; nothing when it landed.

    The caller holds the checkout lock. Cheap when there is no note. Raises `MemhtmlError`
    `ERR_GIT` or `StorageError` `write`, the note kept, when it cannot be taken back now; what can
    never be taken back is a warning.
    """
    if not os.path.lexists(note_path(repo.root)):
        return
    from memhtml.store.index import LockWait
    from memhtml.store.index_stat import remove_left_overs

    remove_left_overs(LockWait(repo.root).git_dir)
    pending = _read_note(repo.root)
    if pending is not None and not _landed(repo, pending):
        _take_back_what_can_be(repo, pending)
    remove_note(repo.root)


def _take_back_what_can_be(repo: Repo, pending: Pending) -> None:
    from memhtml.store.objects import ObjectMissing

    if not _stands(repo, pending):
        log.warn("an unfinished write stays in the working tree, where another commit is now")
        return
    try:
        for path in take_back(repo, pending):
            log.warn(f"{path} holds someone's work and was left as it is")
    except ObjectMissing as error:  # By a power cut or a `git gc`: the next call would fail too.
        log.warn(f"an unfinished write stays in the working tree: {error}")


def _stands(repo: Repo, pending: Pending) -> bool:
    """Whether the checkout still is of the commit or branch that was written to."""
    from memhtml.store import refs

    if refs.checked_out(repo.root) == pending.ref:
        return True
    # The branch has another name by now, or a new one was opened here, which keeps every file.
    return refs.head_commit(repo.root) == pending.old


def take_back(repo: Repo, pending: Pending) -> list[str]:
    """Put files and index entries back where they still are as the write left them.

    Answers the paths left alone, because somebody wrote or staged there since.
    """
    from memhtml.errors import StorageError
    from memhtml.store import index
    from memhtml.store.journey import put_back
    from memhtml.store.worktree import WorkTree

    back = sorted(_ways_back(repo, pending))
    wait = index.LockWait(repo.root)
    state = index.staged(repo.root, pending.old or EMPTY_TREE, [move.path for move, _ in back])
    entries = dict(_entries_back(back, state))
    if entries:
        wait.until_free()
    try:
        with WorkTree(repo.root) as files:
            for folder in {move.path.rpartition("/")[0] for move, _staged in back}:
                files.sweep(folder)
            left = put_back(repo, files, [move for move, _staged in back], {}, _no_one)
            index.set_entries(repo.root, entries, wait)
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else "the working tree"
        raise StorageError("write", f"{name}: {error.strerror}") from error
    return sorted(left)


def _no_one(_path: str) -> None:
    """Nobody watches these moves."""


def _entries_back(
    back: list[tuple[Move, Side | None]], state: Staged
) -> Iterator[tuple[str, Side | None]]:
    for move, staged in back:
        if move.path in state.unmerged or move.path in state.crossing:
            continue
        if move.path in state.entries and state.entries[move.path] == move.old:
            yield move.path, staged


def _ways_back(repo: Repo, pending: Pending) -> Iterator[tuple[Move, Side | None]]:
    """Each path's move back, and what its index entry was.

    A path that the branch has by now as the write left it stays: somebody committed it meanwhile.
    """
    from memhtml.store.journey import Move

    tip = _tip(repo, pending)
    met = set()
    for change in _changes(repo, pending):
        met.add(change.path)
        if tip != pending.old and tip is not None and side_at(repo, tip, change.path) == change.new:
            continue
        stood = pending.others.get(change.path, Standing(change.old, change.old))
        yield Move(change.path, change.new, stood.file), stood.staged
    # A file that somebody had edited to be what the commit writes, or had removed beforehand.
    for path, stood in pending.others.items():
        if path not in met:
            yield Move(path, side_at(repo, pending.new, path), stood.file), stood.staged


def side_at(repo: Repo, commit: str, path: str) -> Side | None:
    """What a commit has at `path`, folders left out."""
    entry = repo.entry(commit, path)
    return None if entry is None or entry.kind == "tree" else (entry.mode, entry.oid)


def _changes(repo: Repo, pending: Pending) -> Iterator[Change]:
    from memhtml.store.repo import Change

    if pending.old is not None:
        yield from repo.difference(pending.old, pending.new)
        return
    for path, mode, oid in repo.files(pending.new):
        yield Change(path, None, (mode, oid))


def _landed(repo: Repo, pending: Pending) -> bool:
    from memhtml.store import refs

    tips = {_tip(repo, pending), refs.head_commit(repo.root)} - {None}
    return any(repo.is_ancestor(pending.new, tip) for tip in tips if tip is not None)


def _tip(repo: Repo, pending: Pending) -> str | None:
    from memhtml.store import refs

    if pending.ref is None:
        return refs.head_commit(repo.root)
    return refs.resolve(repo.root, pending.ref)


def _read_note(root: str) -> Pending | None:
    """The note; None for one that is no note of ours, which nothing can be taken back by."""
    import json

    from memhtml.errors import MemhtmlError

    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(note_path(root), flags), "rb") as file:
            return _pending(json.loads(file.read()))
    except (OSError, ValueError, TypeError, RecursionError, MemhtmlError) as error:
        log.warn(f"the note of an unfinished write cannot be read and is dropped: {error}")
        return None


def _pending(value: Any) -> Pending:
    """A note's value as it was meant. What is left of a crash, or planted, need not be one.

    Raises ValueError, TypeError, and `MemhtmlError` for a path that git refuses.
    """
    from memhtml.store.refs import valid_ref
    from memhtml.store.tree import refuse_bad_path

    format_, ref, old, new, others = value
    if format_ != FORMAT or not isinstance(others, dict):
        raise ValueError("it is of another form")
    if ref is not None and not (isinstance(ref, str) and valid_ref(ref)):
        raise ValueError("it names no branch")
    found = {}
    for path, (file, staged) in others.items():
        refuse_bad_path(path)
        found[path] = Standing(_side(file), _side(staged))
    return Pending(ref, None if old is None else _oid(old), _oid(new), found)


def _side(value: Any) -> Side | None:
    if value is None:
        return None
    mode, oid = value
    if not isinstance(mode, int):
        raise TypeError("a file mode is a number")
    return mode, _oid(oid)


def _oid(value: Any) -> str:
    if not isinstance(value, str) or len(value) != _OID_CHARS or not set(value) <= _HEX:
        raise ValueError("it names no object")
    return value


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
