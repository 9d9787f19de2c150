"""Prepares a large batch in two processes, because rendering is half the time of an `apply`.

The other process is a copy of this one that only renders: it holds no lock, opens nothing and says
what it made through a pipe. When it fails in any way, its share is done here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from memhtml.doors.drafts import prepare
from memhtml.errors import MemhtmlError

if TYPE_CHECKING:
    from memhtml.doors.batch import Op
    from memhtml_format.render import Draft

WORTH_A_PROCESS = 1000
"""From so many drafts on the other process saves more than it costs (20 ms)."""

_PART = 500
"""So many drafts are told at a time, so that neither side holds all of them twice."""


def prepare_all(drafts: Sequence[Draft], at: str) -> list[Op]:
    """Each draft as a file at the instant `at`, or why it is refused, in order."""
    if len(drafts) < WORTH_A_PROCESS or _processors() < 2:
        return prepare_here(drafts, at)
    middle = len(drafts) // 2
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _tell(reading, writing, drafts[middle:], at)
    os.close(writing)
    with open(reading, "rb") as pipe:
        try:
            mine = prepare_here(drafts[:middle], at)
            rest = _listen(pipe)
        finally:
            _end(pid)
    return mine + (rest if len(rest) == len(drafts) - middle else prepare_here(drafts[middle:], at))


def prepare_here(drafts: Sequence[Draft], at: str) -> list[Op]:
    """The same in this process alone."""
    return [_prepared(draft, at) for draft in drafts]


def _processors() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Not on every system.
        return os.cpu_count() or 1


def _prepared(draft: Draft, at: str) -> Op:
    try:
        return prepare(draft, at)
    except MemhtmlError as refused:
        return refused


def _tell(reading: int, writing: int, drafts: Sequence[Draft], at: str) -> None:
    """The other process, from its beginning to its end: nothing of this one may run on in it."""
    import pickle
    import signal

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.close(reading)
        made = [_portable(op) for op in prepare_here(drafts, at)]
        with open(writing, "wb") as pipe:
            for start in range(0, len(made), _PART):
                pickle.dump(made[start : start + _PART], pipe, pickle.HIGHEST_PROTOCOL)
        os._exit(0)
    finally:
        os._exit(1)


def _listen(pipe: BinaryIO) -> list[Op]:
    """What the other process made; less, when it ended early."""
    import pickle

    found: list[Op] = []
    while True:
        try:
            part = pickle.load(pipe)
        except (EOFError, pickle.UnpicklingError):
            return found
        found += [_op(each) for each in part]


def _portable(op: Op) -> object:
    # An exception is rebuilt from its arguments, and ours takes more than it keeps there.
    return (op.code, str(op), op.suggestions) if isinstance(op, MemhtmlError) else op


def _op(told: object) -> Op:
    if type(told) is tuple:
        code, text, suggestions = told
        return MemhtmlError(code, text, suggestions=suggestions)
    return told  # type: ignore[return-value]  # A named tuple of `drafts`.


def _end(pid: int) -> None:
    """End the process we started, if it has not ended, and see it off."""
    import signal

    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
