"""Says on standard error when an answer from the index is not about the store as it stands.

A read never brings the index forward (spec `cli` §4), so it must not look as if it had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memhtml import log

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

_UPDATE = "run `memhtml index update`"


def warn_unless_current(conn: sqlite3.Connection, root: str) -> None:
    """Warn when the index is missing, unfinished or behind HEAD; no git is started for it.

    Raises sqlite3.Error, and `StorageError` `index_state.decode`.
    """
    from memhtml.index.state import read_state

    state = read_state(conn)
    if state is None:
        if _head(root) is not None:  # A repository without a commit has nothing to index.
            log.warn(f"there is no index yet, so nothing is found; {_UPDATE}")
    elif state.head_sha is None:
        log.warn("a rebuild of the index ended half way; run `memhtml index rebuild`")
    elif state.unfinished:
        log.warn(f"an update of the index ended half way; {_UPDATE}")
    elif (head := _head(root)) is not None and head != state.head_sha:
        log.warn(f"the index is of commit {state.head_sha[:12]}, not {head[:12]}; {_UPDATE}")


def _head(root: str) -> str | None:
    from memhtml.errors import MemhtmlError
    from memhtml.store.refs import head_commit

    try:
        return head_commit(root)
    except MemhtmlError:
        return None  # A search needs no commit, so an unreadable one is for others to report.
