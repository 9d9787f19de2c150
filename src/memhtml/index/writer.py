"""Brings single paths of the index up to date, and keeps one row for each article.

Of live files with one article, tasks apart, the first path is indexed and the others wait in
`duplicates`; when the first goes away the next comes in (spec `retrieval` §2.1). Works inside the
caller's transactions, which end with `settle`.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from memhtml.index import projection
from memhtml.index.changes import Step
from memhtml.store.objects import ObjectMissing
from memhtml_format.instants import second

if TYPE_CHECKING:
    from memhtml.store.repo import Repo
    from memhtml.store.worktree import WorkTree
    from memhtml_format.record import Detail

SAME_FILE_PERCENT = 75
"""How alike two files must be for the accesses and conversations of one to become the other's.
Small memories share most of their lines, so git also calls a file renamed that merely looks like
another."""

WORTH_A_BATCH = 50
"""From so many new files on they are inserted together."""

_LIVE = "archived = 0 AND memory_type <> 'task'"


class Writer:
    """One pass over the index of the repository `repo`, at the time `now_s`.

    `known` are readings that need not be made again, by path; they count while their blob is the
    wanted one. `counts` is by the kind of step, `skipped` gives a reason by path, `projected` the
    paths whose rows were written, `moves` the renames that accesses follow.
    """

    def __init__(
        self,
        conn: sqlite3.Connection,
        repo: Repo,
        files: WorkTree,
        now_s: float,
        known: Mapping[str, Detail] | None = None,
    ) -> None:
        self._conn = conn
        self._repo = repo
        self._files = files
        self._known = known or {}
        self._at = second(now_s)
        self._touched: set[str] = set()
        self._fresh: list[Detail] = []
        self.counts: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.projected: list[str] = []
        self.moves: list[tuple[str, str]] = []

    def apply(self, step: Step) -> None:
        """Take one step. A file that does not parse keeps its last row and is skipped."""
        self.counts[step.kind] += 1
        if step.moved_from is not None:
            self._move(step)
        if step.oid is None:
            self.remove(step.path)
            return
        fresh = step.kind == "added" and self._stored_blob(step.path) is None
        known = self._known.get(step.path)
        if known is not None and known.record.blob_sha == step.oid:
            self._write(known, fresh=fresh)
        else:
            self._project(step.path, self._repo.data(step.oid), fresh=fresh)

    def project_working_copy(self, path: str) -> None:
        """Bring `path` to what the working tree holds: a record, or nothing."""
        try:
            data = self._working_copy(path)
        except OSError as error:
            self.skipped[path] = f"cannot be read: {error.strerror}"
            return
        if data is None:
            self.remove(path)
        elif self._stored_blob(path) != _blob_sha(data):
            self._project(path, data)

    def project_blob(self, path: str, oid: str | None) -> None:
        """Bring `path` to the blob `oid`, or to nothing."""
        if oid is None:
            self.remove(path)
        elif self._stored_blob(path) != oid:
            self._project(path, self._repo.data(oid))

    def remove(self, path: str) -> None:
        """Take the file out of the index."""
        self._insert_fresh()
        self.skipped.pop(path, None)
        self._note(path)
        projection.remove(self._conn, path)
        self._conn.execute("DELETE FROM duplicates WHERE path = ?", (path,))

    def settle(self) -> None:
        """See that each article touched since the last call has the row of its first path."""
        self._insert_fresh()
        touched, self._touched = sorted(self._touched), set()
        for content_hash in touched:
            while not self._settled(content_hash):
                continue

    def _move(self, step: Step) -> None:
        old, new = step.moved_from, step.path
        assert old is not None
        self._insert_fresh()
        same = step.likeness >= SAME_FILE_PERCENT or self._is_article(step, self._article(old))
        self._note(old)
        self._note(new)
        projection.move(self._conn, old, new)
        self._conn.execute("DELETE FROM duplicates WHERE path = ?", (old,))
        self._note(new)
        if same:
            self._conn.execute(
                "UPDATE memory_session_links SET path = ? WHERE path = ?", (new, old)
            )
            self.moves.append((old, new))

    def _is_article(self, step: Step, content_hash: str | None) -> bool:
        from memhtml_format.record import content_hash as hash_of

        if content_hash is None or step.oid is None:
            return False
        return hash_of(self._repo.data(step.oid)) == content_hash

    def _project(self, path: str, data: bytes, *, fresh: bool = False) -> None:
        from memhtml_format.record import read_detail

        found = read_detail(path, data)
        if found.detail is None:
            self.skipped[path] = "; ".join(problem.text for problem in found.problems)
            return
        self._write(found.detail, fresh=fresh)

    def _write(self, detail: Detail, *, fresh: bool = False) -> None:
        """Write a file's row; a fresh one, at a path without a row, waits for others like it."""
        path = detail.record.path
        self.skipped.pop(path, None)
        self.projected.append(path)
        if fresh:
            self._fresh.append(detail)
            return
        self._insert_fresh()
        self._note(path)
        projection.write_detail(self._conn, detail, at=self._at)
        self._conn.execute("DELETE FROM duplicates WHERE path = ?", (path,))
        self._note(path)

    def _insert_fresh(self) -> None:
        fresh, self._fresh = self._fresh, []
        if len(fresh) >= WORTH_A_BATCH:
            projection.insert_fresh(self._conn, fresh, self._at)
        else:
            for detail in fresh:
                projection.write_detail(self._conn, detail, at=self._at)
        for detail in fresh:
            self._note(detail.record.path)

    def _note(self, path: str) -> None:
        """Remember the article of the row at `path`, if it is one that must be alone."""
        query = f"SELECT content_hash FROM files WHERE path = ? AND {_LIVE}"
        self._touched.update(row[0] for row in self._conn.execute(query, (path,)))

    def _article(self, path: str) -> str | None:
        query = (
            "SELECT content_hash FROM files WHERE path = :path UNION ALL"
            " SELECT content_hash FROM duplicates WHERE path = :path"
        )
        row = self._conn.execute(query, {"path": path}).fetchone()
        return None if row is None else str(row[0])

    def _stored_blob(self, path: str) -> str | None:
        query = (
            "SELECT blob_sha FROM files WHERE path = :path UNION ALL"
            " SELECT blob_sha FROM duplicates WHERE path = :path"
        )
        row = self._conn.execute(query, {"path": path}).fetchone()
        return None if row is None else str(row[0])

    def _settled(self, content_hash: str) -> bool:
        """One round; False when a file that waits could not be read and the next must be tried."""
        rows = f"SELECT path FROM files WHERE content_hash = ? AND {_LIVE} ORDER BY path"
        holders = [path for (path,) in self._conn.execute(rows, (content_hash,))]
        waits = "SELECT path, blob_sha FROM duplicates WHERE content_hash = ? ORDER BY path LIMIT 1"
        waiting = self._conn.execute(waits, (content_hash,)).fetchone()
        if waiting is not None and (not holders or waiting[0] < holders[0]):
            path, oid = waiting
            return self._let_in(path, oid, content_hash)
        for later in holders[1:]:
            self._put_off(later, holders[0])
        return True

    def _let_in(self, path: str, oid: str, content_hash: str) -> bool:
        """Index a file that waited. Another round follows, because it may have displaced one."""
        from memhtml_format.record import read_detail

        data = self._bytes(path, oid)
        found = None if data is None else read_detail(path, data).detail
        if found is None or found.record.content_hash != content_hash:
            # An edit of the working tree that is gone; who cleans up after edits comes by.
            self._conn.execute("DELETE FROM duplicates WHERE path = ?", (path,))
        else:
            self._write(found)
            self._touched.discard(content_hash)
        return False

    def _put_off(self, path: str, first: str) -> None:
        self._conn.execute(
            "INSERT OR REPLACE INTO duplicates"
            " SELECT path, content_hash, blob_sha FROM files WHERE path = ?",
            (path,),
        )
        projection.remove(self._conn, path)
        self.skipped[path] = f"duplicate content of {first}"

    def _bytes(self, path: str, oid: str) -> bytes | None:
        try:
            return self._repo.data(oid)
        except ObjectMissing:
            try:
                data = self._working_copy(path)
            except OSError:
                return None
            return data if data is not None and _blob_sha(data) == oid else None

    def _working_copy(self, path: str) -> bytes | None:
        """The bytes of a plain file of the working tree, None when there is none."""
        try:
            if self._files.look(path).kind != "file":
                return None
            return self._files.read(path)
        except FileNotFoundError:
            return None


def _blob_sha(data: bytes) -> str:
    from memhtml_format.digest import blob_sha

    return blob_sha(data)
