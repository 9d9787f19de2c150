"""`reinforce`: what came of using records, noted in `state.db` alone (spec `retrieval` §14)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from memhtml.retrieve.missing import path_not_found
from memhtml.retrieve.read import is_file
from memhtml_format import paths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memhtml.index.database import Index
    from memhtml.index.state import Signal


def reinforce(index: Index, given: Iterable[str], signal: Signal) -> dict[str, Any]:
    """The payload of `memory.reinforced`; a repeated path counts once, a blank one not at all.

    Raises `MemhtmlError` `ERR_PATH_NOT_FOUND`, before anything is written, for the first path that
    has neither an index row nor a record file in the working tree; `StorageError`; sqlite3.Error.
    """
    from memhtml.index.state import bump

    wanted = [path for path in dict.fromkeys(map(_normal, given)) if path]
    for path in wanted:
        if not _is_known(index, path):
            raise path_not_found(path)
    moved, cooling = bump(index.conn, wanted, signal, time.time())
    return {"bumped": moved, "cooledDown": cooling, "signal": signal}


def _normal(path: str) -> str:
    return paths.normalise(path.strip())


def _is_known(index: Index, path: str) -> bool:
    row = index.conn.execute("SELECT 1 FROM files WHERE path = ?", (path,)).fetchone()
    return row is not None or (paths.is_record_path(path) and is_file(index.root, path))
