"""Pages of paths that carry every wanted label, in path order (spec `retrieval` §16.3).

Each label is a run of an index that is ordered by path. The runs are leapfrogged, so a page costs
what it shows and what the rarest label holds, however large the store is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Iterator

SMALLEST, LARGEST = 1, 500

_RANGE = " AND path >= ? AND path < ? ORDER BY path LIMIT 1"
_AFTER = "\x00"
"""Nothing sorts between a path and the same with this behind it."""


class Label(NamedTuple):
    """The paths for which `condition` on `table` holds with one of `choices` as its values.

    With the values given, an index must answer the condition in path order.
    """

    table: str
    condition: str
    choices: tuple[tuple[object, ...], ...]

    def statement(self) -> str:
        """The look-up of the next path; its last two values are where to begin and to end."""
        return f"SELECT path FROM {self.table} WHERE {self.condition}{_RANGE}"


class Segment(NamedTuple):
    """The paths from `low` (left out) to `high` (left out), all archived or all live."""

    archived: bool
    low: str
    high: str


EVERYTHING = Label("files", "1", ((),))


def bound(limit: int) -> int:
    """A page's size, brought into 1 to 500 (spec `cli` §11)."""
    return max(SMALLEST, min(LARGEST, limit))


def segments(
    para: str | None, workspace: str | None, *, archived: bool, cursor: str | None
) -> list[Segment]:
    """Where to look, in path order: what a bucket, a workspace and a cursor leave.

    A path alone says its bucket, its workspace and whether it is archived; `archive` sorts first.
    """
    low, high = "", "resources0"
    if para is not None:
        low, high = f"{para}/", f"{para}0"
    if workspace is not None:
        low, high = max(low, f"projects/{workspace}/"), min(high, f"projects/{workspace}0")
    found = [Segment(False, max(low, "archive0", cursor or ""), high)]
    if archived or para == "archive":
        found.insert(0, Segment(True, max(low, "archive/", cursor or ""), min(high, "archive0")))
    return [each for each in found if each.low < each.high]


def paths(conn: sqlite3.Connection, labels: list[Label], within: Segment) -> Iterator[str]:
    """The paths of the segment that carry every label, in order. Raises sqlite3.Error."""
    wanted = [(label.statement(), label.choices) for label in labels or [EVERYTHING]]
    start = within.low + _AFTER
    while True:
        agreed = 0
        while agreed < len(wanted):
            found = _next(conn, *wanted[agreed], start, within.high)
            if found is None:
                return
            # The ones before have to look again from here.
            agreed = agreed + 1 if found == start or agreed == 0 else 0
            start = found
        yield start
        start += _AFTER


def _next(
    conn: sqlite3.Connection,
    statement: str,
    choices: tuple[tuple[object, ...], ...],
    start: str,
    end: str,
) -> str | None:
    found = (conn.execute(statement, (*values, start, end)).fetchone() for values in choices)
    return min((row[0] for row in found if row is not None), default=None)
