"""What a door asks the index: who holds this article, who claims something for this frame.

Answers are rows of the commit the index stands at, and of files a person has not committed yet.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `memhtml.index.sqlite`.

from memhtml.doors.conflicts import Claim
from memhtml_format.frame import frame

_HOLDER = (
    "SELECT path FROM files WHERE content_hash = ? AND archived = 0 AND memory_type <> 'task'"
    " AND path <> ? ORDER BY path LIMIT 1"
)
_CLAIMS = (
    "SELECT path, gist FROM files WHERE frame_key = ? AND archived = 0 AND memory_type <> 'task'"
    " ORDER BY path"
)


class Lookups:
    """Questions to an open index. Every method may raise sqlite3.Error."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def holder(self, content_hash: str, *, but: str = "") -> str | None:
        """The lowest active path, tasks left out, that holds the article; `but` is no holder."""
        row = self._conn.execute(_HOLDER, (content_hash, but)).fetchone()
        return None if row is None else str(row[0])

    def claims(self, frame_key: str) -> list[Claim]:
        """The active claims of one frame in path order, tasks left out."""
        found = []
        for path, claim in self._conn.execute(_CLAIMS, (frame_key,)):
            slot = frame(claim)
            if slot is not None:
                found.append(Claim(slot.value, claim, path=path))
        return found
