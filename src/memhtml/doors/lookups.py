"""What a door asks the index: who holds this article, who claims something for this frame.

Answers are rows of the commit the index stands at, and of files a person has not committed yet.
Such a file may have been removed or changed since, so who holds an article is looked at again.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `memhtml.index.sqlite`.
from collections.abc import Callable

from memhtml.doors.conflicts import Claim
from memhtml_format.frame import frame

_HOLDERS = (
    "SELECT path, blob_sha FROM files WHERE content_hash = :hash AND archived = 0"
    " AND memory_type <> 'task' UNION ALL"
    " SELECT path, blob_sha FROM duplicates WHERE content_hash = :hash ORDER BY path"
)
_CLAIMS = (
    "SELECT path, gist FROM files WHERE frame_key = ? AND archived = 0 AND memory_type <> 'task'"
    " ORDER BY path"
)


class Lookups:
    """Questions to an open index. Every method may raise sqlite3.Error.

    `stands` says of a path and a blob whether last commit or working tree have the one at the
    other.
    """

    def __init__(self, conn: sqlite3.Connection, stands: Callable[[str, str], bool]) -> None:
        self._conn = conn
        self._stands = stands

    def holder(self, content_hash: str, *, but: str = "") -> str | None:
        """The lowest active path, tasks left out, that holds the article; `but` is no holder.

        Raises what `stands` raises.
        """
        rows = self._conn.execute(_HOLDERS, {"hash": content_hash}).fetchall()
        found = (str(path) for path, oid in rows if path != but and self._stands(path, oid))
        return next(found, None)

    def claims(self, frame_key: str) -> list[Claim]:
        """The active claims of one frame in path order, tasks left out."""
        found = []
        for path, claim in self._conn.execute(_CLAIMS, (frame_key,)):
            slot = frame(claim)
            if slot is not None:
                found.append(Claim(slot.value, claim, path=path))
        return found
