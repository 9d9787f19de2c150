"""`neighbors`: the records that edges of class `memory` lead to (spec `retrieval` §16.1)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Iterator

DEEPEST = 2
MOST_NODES = 200
MOST_ROWS = 10_000
"""Edge rows that one walk reads at most."""

_COLUMNS = "SELECT src_path, rel, dst_path, derived FROM edges WHERE edge_class = 'memory'"
_OUTGOING = f"{_COLUMNS} AND src_path = ?{{rels}} ORDER BY rel, dst_path"
_INCOMING = f"{_COLUMNS} AND dst_path = ?{{rels}} ORDER BY src_path, rel"
_TITLE = "SELECT title FROM files WHERE path = ?"


class _Reached:
    """A path that the walk came to; the first edge names it, any may be mined."""

    __slots__ = ("derived", "hop", "rel", "title")

    def __init__(self, title: str, hop: int, rel: str) -> None:
        self.title = title
        self.hop = hop
        self.rel = rel
        self.derived = False


class _Walk:
    """A breadth-first walk over edge rows, counted."""

    def __init__(self, conn: sqlite3.Connection, center: str, rels: Collection[str]) -> None:
        self.conn = conn
        self.center = center
        self.reached: dict[str, _Reached] = {}
        self.edges: set[tuple[str, str, str]] = set()
        self.saturated = False
        self._rows = 0
        self._rels = tuple(dict.fromkeys(rels))
        narrowed = f" AND rel IN ({', '.join('?' * len(self._rels))})" if rels else ""
        self._statements = [text.format(rels=narrowed) for text in (_OUTGOING, _INCOMING)]

    def hop(self, number: int, frontier: list[str]) -> list[str]:
        """Follow every edge of the frontier; the paths that were not reached before, sorted."""
        fresh: list[str] = []
        for path in frontier:
            for source, rel, target, derived in self._rows_of(path):
                other = target if source == path else source
                if not self._reach(other, number, rel, fresh):
                    continue
                self.edges.add((source, rel, target))
                if other != self.center and self.reached[other].hop == number:
                    self.reached[other].derived |= bool(derived)
        return sorted(fresh)

    def _rows_of(self, path: str) -> Iterator[tuple[str, str, str, int]]:
        for statement in self._statements:
            for row in self.conn.execute(statement, (path, *self._rels)):
                if self._rows == MOST_ROWS:
                    self.saturated = True
                    return
                self._rows += 1
                yield row

    def _reach(self, path: str, number: int, rel: str, fresh: list[str]) -> bool:
        """Note a path; False for one without a row, which the index knows nothing of."""
        if path == self.center or path in self.reached:
            return True
        row = self.conn.execute(_TITLE, (path,)).fetchone()
        if row is None:
            return False
        self.reached[path] = _Reached(row[0], number, rel)
        fresh.append(path)
        return True


def neighbors(
    conn: sqlite3.Connection, center: str, depth: int, limit: int, rels: Collection[str]
) -> dict[str, Any]:
    """The payload of `memory.neighbors`; `depth` and `limit` are brought into their ranges.

    `rels` are memory rels, none meaning all. An edge whose other end has no row is not walked and
    not counted. Raises sqlite3.Error.
    """
    depth, limit = max(1, min(DEEPEST, depth)), max(1, min(MOST_NODES, limit))
    walk = _Walk(conn, center, rels)
    frontier = [center] if conn.execute(_TITLE, (center,)).fetchone() else []
    for number in range(1, depth + 1):
        frontier = walk.hop(number, frontier)
    order = sorted(walk.reached, key=lambda path: (walk.reached[path].hop, path))
    return {
        "center": center,
        "depth": depth,
        "limit": limit,
        "nodes": [_node(path, walk.reached[path]) for path in order[:limit]],
        "edges": len(walk.edges),
        "nodesDropped": max(0, len(order) - limit),
        "scanSaturated": walk.saturated,
    }


def _node(path: str, reached: _Reached) -> dict[str, Any]:
    return {
        "path": path,
        "title": reached.title,
        "hop": reached.hop,
        "rel": reached.rel,
        "derived": reached.derived,
    }
