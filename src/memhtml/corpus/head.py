"""One version of the corpus: the head database, the difference to it, and its commit in git.

A head keeps one read transaction: open it, ask, and close it before a script runs or a person is
asked. When the database stands at the commit nothing but sqlite3 is loaded, until bytes are asked.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`: 2 ms of every exec.
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from memhtml import log
from memhtml.corpus.delta import Delta
from memhtml.corpus.layers import Base
from memhtml.errors import StorageError
from memhtml.store import snapshot, snapshot_query
from memhtml.store.snapshot_open import Database
from memhtml.store.snapshot_schema import OtherKind, kind_of, touches_memory

if TYPE_CHECKING:
    from memhtml.corpus.view import View
    from memhtml.store.repo import Repo
    from memhtml_format.record import Record

T = TypeVar("T")

_MOST_LAID_PATHS = 10_000
_MOST_LAID_OTHERS = 50_000
"""A longer difference is not held in memory: the version is built privately instead. Of files
that are no records only the names are held."""


class HeadReport(NamedTuple):
    """How a head was loaded (spec `sessions` §4.1). `skipped` is None when a snapshot was read."""

    sha: str
    records: int
    skipped: int | None
    load_ms: int
    source: snapshot.Source
    snapshot_path: str | None
    ancestor_sha: str | None
    reparsed: int | None

    def to_json(self) -> dict[str, Any]:
        """The eight keys of the payload."""
        return {
            "sha": self.sha,
            "records": self.records,
            "skipped": self.skipped,
            "loadMs": self.load_ms,
            "source": self.source,
            "snapshotPath": self.snapshot_path,
            "ancestorSha": self.ancestor_sha,
            "reparsed": self.reparsed,
        }


class Head(Base):
    """The records at `sha`. Made by `open_head`; close it, or use it in a `with` statement."""

    report: HeadReport

    def __init__(self, root: str, ref: str, sha: str, repo: Repo) -> None:
        started = time.monotonic()
        self.root = root
        self.ref = ref
        self.sha = sha
        self.repo = repo
        self._base: tuple[Delta, ...] = ()
        opened = snapshot.open_database(root, ref, sha, repo)
        self._database = opened.database
        try:
            opened, records = self._laid(opened)
        except BaseException:
            self._database.close()
            raise
        from_git = opened.source == "git"
        self.report = HeadReport(
            sha=sha,
            records=records,
            skipped=self._database.meta.skipped if from_git else None,
            load_ms=round((time.monotonic() - started) * 1000),
            source=opened.source,
            snapshot_path=None if from_git else self._database.path,
            ancestor_sha=opened.ancestor,
            reparsed=opened.reparsed,
        )

    def close(self) -> None:
        """End the read transaction. Twice is fine."""
        self._database.close()

    def __enter__(self) -> Head:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def view(self, files: Mapping[str, bytes], gone: Collection[str]) -> View:
        """This version with a folded log laid over it; good for as long as the head is open."""
        from memhtml.corpus.view import View

        return View(self, files, gone)

    def read(self, path: str) -> bytes | None:
        """The bytes of the record at this path."""
        found = self.record(path) if self._base else None
        blob = found.blob_sha if found else None
        if blob is None and not self._hidden(path):
            blob = self.ask(snapshot_query.blob, path)
        return None if blob is None else self.repo.data(blob)

    def deltas(self) -> Sequence[Delta]:
        """The difference between the database's commit and this one, or nothing."""
        return self._base

    def database(self) -> Database:
        """The database the head reads."""
        return self._database

    def ask(self, question: Callable[..., T], *values: object) -> T:
        """Put a question to the database; a damaged one is replaced, and asked again.

        Raises `StorageError` `snapshot.read` when that did not help.
        """
        try:
            return question(self._database.conn, *values)
        except sqlite3.ProgrammingError:
            raise  # A closed head: that is the caller's mistake.
        except sqlite3.Error as error:
            if self._database.path is None:
                raise _unreadable(self.root, self.ref, error) from error
            log.warn(f"the head database of {self.ref} is damaged: {error}")
        try:
            self._recover()
            return question(self._database.conn, *values)
        except sqlite3.Error as error:
            raise _unreadable(self.root, self.ref, error) from error

    def _recover(self) -> None:
        self._database.close()
        snapshot.discard(self.root, self.ref)
        opened = snapshot.open_database(self.root, self.ref, self.sha, self.repo)
        self._database = opened.database
        self._laid(opened)

    def _laid(self, opened: snapshot.Opened) -> tuple[snapshot.Opened, int]:
        """Lay the difference over a database of another commit; how, and how many records then."""
        self._base = ()
        meta = opened.database.meta
        if meta.sha == self.sha:
            return opened, meta.records
        delta = _delta(self.repo, meta.sha, self.sha)
        if delta is None:
            self._database.close()
            self._database = snapshot.private_database(self.ref, self.sha, self.repo)
            return snapshot.Opened(self._database, "git"), self._database.meta.records
        replaced = self.ask(snapshot_query.count_held, sorted(delta.paths))
        self._base = (delta,)
        opened = opened._replace(ancestor=meta.sha, reparsed=len(delta.paths))
        return opened, meta.records - replaced + len(delta.records())


def open_head(root: str, ref: str, sha: str, *, repo: Repo) -> Head:
    """The corpus at commit `sha`, read through the database of `ref` (full name).

    Builds or advances the database as `design.md` §4 says. Raises `MemhtmlError` when git cannot
    give what is needed; a database that cannot be used is only a warning, unless the records
    cannot be held in memory either: `StorageError` `snapshot.read`.
    """
    try:
        return Head(root, ref, sha, repo)
    except sqlite3.Error as error:
        raise _unreadable(root, ref, error) from error


def _unreadable(root: str, ref: str, error: sqlite3.Error) -> StorageError:
    import shlex  # 2 ms, and only here.

    return StorageError(
        "snapshot.read",
        f"the head database of {ref}: {error}",
        suggestions=(f"rm -r {shlex.quote(os.path.join(root, '.memhtml', 'snapshots'))}",),
    )


def _delta(repo: Repo, old: str, new: str) -> Delta | None:
    """The difference between two commits, or None when it is too large to hold."""
    kinds: dict[str, OtherKind | None] = {}
    blobs: dict[str, str | None] = {}
    for change in repo.difference(old, new):
        path, entry = change.path, change.new
        kinds[path] = None if entry is None else kind_of(entry[0])
        if touches_memory(change):
            blobs[path] = None if entry is None else entry[1]
        if len(blobs) > _MOST_LAID_PATHS or len(kinds) - len(blobs) > _MOST_LAID_OTHERS:
            return None

    def load(path: str) -> Record | None:
        from memhtml_format.record import read

        blob = blobs[path]
        return None if blob is None else read(path, repo.data(blob)).record

    return Delta(kinds, blobs, load)
