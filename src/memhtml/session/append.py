"""Add operations to a session's log: the last step of put and exec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memhtml.session.log import Log, update

if TYPE_CHECKING:
    from memhtml_format.ops import Op


def append(root: str, log: Log, ops: Sequence[Op]) -> tuple[Op, ...]:
    """Add `ops` to the stored log; all of the log's operations after it.

    `log` is the one the caller computed from. Errors raised: `session.moved`, `session.locked`,
    `session.write`, and those of `read_log`; nothing is appended then.
    """
    return update(
        root, log.id, log.ops, lambda stored: stored._replace(ops=(*stored.ops, *ops))
    ).ops
