"""The version a session sees: its base with its own log folded over (spec `write-bar` §1)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError
from memhtml.session.log import Log
from memhtml_format.instants import second
from memhtml_format.ops import Op, touched

if TYPE_CHECKING:
    from memhtml.corpus.fold import CannotApply, Folded

ReadBytes = Callable[[str], bytes | None]
Holds = Callable[[str], bool]


def now_second() -> str:
    """This instant, whole seconds, UTC (spec `format` §3.4)."""
    return second(time.time())


def fold_log(log: Log, read: ReadBytes, at: str, *, holds: Holds | None = None) -> Folded:
    """The log over the base. `ERR_INVALID_MEMORY` names an operation that no longer applies.

    `holds` is for a commit, which removes files of the base that are no records as well.
    """
    # Not at the top: an exec over an empty log should not pay for the head editor.
    from memhtml.corpus.fold import CannotApply, fold

    try:
        return fold(log.ops, read, at, holds=holds)
    except CannotApply as error:
        raise no_longer_applies(log.id, error) from error


def no_longer_applies(session_id: str, error: CannotApply) -> MemhtmlError:
    """The failure of put and exec after a rebase took an operation's record away."""
    where = " -> ".join(touched(error.op))
    return MemhtmlError(
        "ERR_INVALID_MEMORY",
        f"the {error.op.kind} of {where} in the session's log no longer applies: {error.reason}",
        suggestions=(
            f"memhtml session commit --id {session_id} --message <summary> --drop-refused",
        ),
    )


def touched_by(ops: list[Op] | tuple[Op, ...]) -> frozenset[str]:
    """Every path the operations touch."""
    return frozenset(path for op in ops for path in touched(op))
