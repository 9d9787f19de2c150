"""Folds a session's operations into a tree, in order (spec `write-bar` §1).

Pure: bytes come from a callback and only for the files an operation needs. Nothing is judged
here; the write bar has done that, or will.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memhtml_format.ops import AddLabel, AddLink, Archive, DropLabel, DropLink, Move, Op, Put

Read = Callable[[str], bytes | None]
Holds = Callable[[str], bool]
Splice = AddLink | DropLink | AddLabel | DropLabel


class Folded(NamedTuple):
    """The outcome: whole files by path, and the paths of the base that are gone."""

    files: dict[str, bytes]
    gone: frozenset[str]


class CannotApply(Exception):
    """An operation met no file to act on; `op` is the operation, `reason` a sentence part."""

    def __init__(self, op: Op, reason: str) -> None:
        super().__init__(f"{op.kind} {op.path}: {reason}")
        self.op = op
        self.reason = reason


def fold(ops: Sequence[Op], read: Read, at: str, *, holds: Holds | None = None) -> Folded:
    """The tree changes of `ops` over the base that `read` answers for.

    `at` is the instant (isoSecond) an archive is stamped with. An edge or entity that is there
    already, or gone already, changes nothing. Raises `CannotApply` when an operation's file is
    in neither the batch nor the base. `gone` names only paths the base holds, so that nobody
    has to hide what was never there; `holds` answers that for files that are no records as well
    (a commit needs it, a view does not), else `read` does.
    """
    staging = _Staging(read)
    for op in ops:
        _apply(op, staging, at)
    return staging.finish(holds or (lambda path: staging.base(path) is not None))


class _Staging:
    """The files the batch wrote (bytes) or removed (None) so far, over the base."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._base: dict[str, bytes | None] = {}
        self.files: dict[str, bytes | None] = {}

    def base(self, path: str) -> bytes | None:
        if path not in self._base:
            self._base[path] = self._read(path)
        return self._base[path]

    def take(self, op: Op) -> bytes:
        data = self.files[op.path] if op.path in self.files else self.base(op.path)
        if data is None:
            raise CannotApply(op, f"there is no record at {op.path}")
        return data

    def finish(self, holds: Holds) -> Folded:
        files = {path: data for path, data in self.files.items() if data is not None}
        removed = (path for path, data in self.files.items() if data is None)
        return Folded(files, frozenset(path for path in removed if holds(path)))


def _apply(op: Op, staging: _Staging, at: str) -> None:
    if isinstance(op, Put):
        staging.files[op.path] = _encoded(op)
        return
    data = staging.take(op)
    if isinstance(op, Archive | Move):
        # The source goes first: the bytes travel as the batch left them, edits included.
        staging.files[op.path] = None
        staging.files[op.to] = _stamped(data, at) if isinstance(op, Archive) else data
        return
    staging.files[op.path] = _spliced(op, data)


def _stamped(data: bytes, at: str) -> bytes:
    from memhtml_format.edit import archive_stamp  # A log of puts alone needs no editor: 2 ms.

    return archive_stamp(data, at)


def _spliced(op: Splice, data: bytes) -> bytes:
    from memhtml_format import edit

    if isinstance(op, AddLink):
        return edit.add_link(data, op.rel, op.href)
    if isinstance(op, DropLink):
        return edit.remove_link(data, op.rel, op.href)
    if isinstance(op, AddLabel):
        return edit.add_meta(data, "entity", op.entity)
    return edit.remove_meta(data, "entity", op.entity)


def _encoded(op: Put) -> bytes:
    try:
        return op.html.encode()
    except UnicodeEncodeError as error:
        raise CannotApply(op, "its html is no Unicode text") from error
