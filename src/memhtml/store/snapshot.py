"""The head databases: which one answers for a commit, when one is built, advanced or removed.

One SQLite file (WAL) per followed ref in `.memhtml/snapshots/`, standing at one commit
(`design.md` §4, spec `sessions` §4). Deleting the folder is always safe: all of it comes from
git. A snapshot that cannot be used is a warning, never a failure.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # Without the date types of `sqlite3`: 2 ms of every exec.
import os
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from memhtml import log
from memhtml.store import snapshot_files as files
from memhtml.store import snapshot_open as opening
from memhtml.store.snapshot_open import Database
from memhtml.store.snapshot_schema import PROGRAM

if TYPE_CHECKING:
    from memhtml.store.repo import Repo
    from memhtml_format.record import Record

Replaced = Literal["built", "found", "failed"]
Source = Literal["snapshot", "snapshot+advance", "git"]
LiveRefs = Callable[[], Collection[str]]

_ROUNDS = 4


class Opened(NamedTuple):
    """A database for a wanted commit, and how it was come by.

    `ancestor` and `reparsed` are set when the difference was written into the file just now.
    When `database.meta.sha` is not the wanted commit, the caller lays the difference over it.
    """

    database: Database
    source: Source
    ancestor: str | None = None
    reparsed: int | None = None


class SnapshotReport(NamedTuple):
    """What `session commit` reports as `snapshot` (spec `sessions` §9.4)."""

    sha: str
    path: str
    bytes: int
    rows: int
    ms: int
    pruned: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "pruned": list(self.pruned)}


def open_database(root: str, ref: str, sha: str, repo: Repo) -> Opened:
    """The database of `ref`, at `sha` when that costs no more than the changes since it stood.

    Advances it when `sha` is newer than where it stands, builds it when there is none or a
    useless one, and falls back to a private one with a warning. Asks git for nothing when the
    file stands at `sha`. Raises only what `repo` raises.
    """
    opened = _settle(root, ref, sha, repo, sideways=False)
    if opened is not None:
        return opened
    return Opened(private_database(ref, sha, repo), "git")


def private_database(ref: str, sha: str, repo: Repo) -> Database:
    """The records of one commit in a database that only this process sees."""
    log.warn(f"the records of {ref} are read from git into memory")
    from memhtml.store.snapshot_build import build_private

    conn = build_private(ref, sha, repo)
    meta = opening.read_meta(conn)
    assert meta is not None
    return Database(conn, meta, None, None)


def discard(root: str, ref: str) -> bool:
    """Move a database aside that turned out to be damaged; False when others hold on to it."""
    try:
        guard = files.hold(root, exclusive=True)
        if guard is None:
            return False
        with guard:
            files.put_aside(files.database_path(root, ref))
    except OSError as error:
        log.warn(f"a damaged head database stays where it is: {error}")
        return False
    return True


def stands_at(root: str, ref: str, sha: str) -> bool:
    """Whether a usable database of `ref` stands at this commit. Never builds one."""
    try:
        database = opening.connect(root, ref)
    except (opening.Unusable, opening.Unreachable):
        return False
    database.close()
    return database.meta.sha == sha


def write_snapshot(
    root: str,
    ref: str,
    sha: str,
    repo: Repo,
    *,
    anew: bool = False,
    live_refs: LiveRefs | None = None,
    known: Mapping[str, Record] | None = None,
) -> SnapshotReport | None:
    """Bring the database of `ref` to `sha`, which its tip is now, and prune (spec `sessions` §4.3).

    `anew` reads all of git whatever is there. `known` are records the caller has read already, by
    the blob they were read from. Call it with no database open. Best effort: a failure is a warning
    and None.
    """
    started = time.monotonic()
    path = files.database_path(root, ref)
    try:
        if anew and _replace(root, ref, sha, repo, opening.Unusable("asked for")) == "failed":
            return None
        opened = _settle(root, ref, sha, repo, sideways=True, known=known)
        if opened is None:
            return None
        opened.database.close()
        meta = opened.database.meta
        if meta.sha != sha:
            log.warn(f"the head database of {ref} is busy and was not advanced")
            return None
        size_bytes = os.stat(path).st_size
    except (OSError, sqlite3.Error) as error:
        log.warn(f"the head database of {ref} was not written: {error}")
        return None
    pruned = prune(root, repo, keep_ref=ref, live_refs=live_refs, sweep=True)
    ms = round((time.monotonic() - started) * 1000)
    return SnapshotReport(sha, path, size_bytes, meta.records, ms, tuple(pruned))


def prune(
    root: str,
    repo: Repo,
    *,
    keep_ref: str | None = None,
    live_refs: LiveRefs | None = None,
    sweep: bool = False,
) -> list[str]:
    """Remove the databases nobody needs; the commits they stood at, newest first.

    `sweep` also removes what was put aside or left half built. Needs no database open here.
    """
    from memhtml.store import snapshot_prune

    return snapshot_prune.prune(root, repo, keep_ref=keep_ref, live_refs=live_refs, sweep=sweep)


def _settle(
    root: str,
    ref: str,
    sha: str,
    repo: Repo,
    *,
    sideways: bool,
    known: Mapping[str, Record] | None = None,
) -> Opened | None:
    """The file of `ref`, opened and advanced or built as needed; None when it cannot be used.

    `sideways` advances it to a commit that is no newer one as well: the ref was moved there.
    """
    built = False
    for _round in range(_ROUNDS):
        try:
            database = opening.connect(root, ref)
            if database.meta.sha == sha:
                return Opened(database, "git" if built else "snapshot")
            opened = _advanced(database, ref, sha, repo, sideways=sideways, known=known)
            if opened is not None:
                return opened
        except opening.Unusable as error:
            outcome = "failed" if built else _build(root, ref, sha, repo, error)
            if outcome == "failed":
                return None
            built = outcome == "built"
            if built and not sideways:
                prune(root, repo, keep_ref=ref)
        except opening.Unreachable as error:
            log.warn(f"the head database of {ref} is out of reach: {error}")
            return None
    return None


def _advanced(
    database: Database,
    ref: str,
    sha: str,
    repo: Repo,
    *,
    sideways: bool,
    known: Mapping[str, Record] | None,
) -> Opened | None:
    """The database for another commit than it stands at, or None to look again."""
    try:
        stored = database.meta.sha
        if not repo.commit_exists(stored):
            raise opening.Unusable(f"git has lost its commit {stored}")
        if not sideways and not (repo.is_ancestor(stored, sha) and _is_of(ref, sha, repo)):
            return Opened(database, "snapshot+advance")
        reparsed = _write(database, ref, sha, repo, known)
        meta = opening.begin(database.conn)
        if reparsed is None and meta == database.meta:
            # Busy: the difference stays in memory, over a fresh read transaction.
            return Opened(database, "snapshot+advance")
        if reparsed is not None and meta is not None and meta.sha == sha:
            database.meta = meta
            return Opened(database, "snapshot+advance", stored, reparsed)
        database.close()
        return None
    except sqlite3.Error as error:
        database.close()
        raise opening.Unusable(str(error), opens=False) from error
    except BaseException:
        database.close()
        raise


def _build(root: str, ref: str, sha: str, repo: Repo, found: opening.Unusable) -> Replaced:
    """Build the file at the commit wanted, or at the ref's own when that one is not of the ref."""
    own = sha if _is_of(ref, sha, repo) else _tip(ref, repo)
    return _replace(root, ref, own or sha, repo, found)


def _is_of(ref: str, sha: str, repo: Repo) -> bool:
    """Whether a commit is one that `ref` stands at or has passed.

    Any other, such as the tip of a branch made from this one, is only looked at: a database that
    followed it would stand ahead of its own ref, and every later call would have to go back.
    """
    tip = _tip(ref, repo)
    return tip is None or repo.is_ancestor(sha, tip)


def _tip(ref: str, repo: Repo) -> str | None:
    from memhtml.store import refs

    return refs.head_commit(repo.root) if ref == "HEAD" else refs.resolve(repo.root, ref)


def _write(
    database: Database, ref: str, sha: str, repo: Repo, known: Mapping[str, Record] | None
) -> int | None:
    """Advance the file; None when it is busy or was moved first. Damage raises sqlite3.Error."""
    from memhtml.store.snapshot_build import advance

    database.conn.execute("ROLLBACK")
    try:
        return advance(database.conn, ref, database.meta.sha, sha, repo, known)
    except sqlite3.OperationalError as error:
        log.warn(f"the head database of {ref} was not advanced: {error}")
        return None


def _replace(root: str, ref: str, sha: str, repo: Repo, found: opening.Unusable) -> Replaced:
    """Build the database under the exclusive lock, unless another process has by now."""
    path = files.database_path(root, ref)
    try:
        fresh = not os.path.isdir(files.folder(root))
        guard = files.hold(root, exclusive=True)
        if guard is None:
            log.warn(f"the head database of {ref} is in use and cannot be replaced")
            return "failed"
        with guard:
            if fresh:
                _keep_out_of_git(root)
            return _replace_held(path, ref, sha, repo, found)
    except (OSError, sqlite3.Error) as error:
        log.warn(f"the head database of {ref} cannot be built: {error}")
        return "failed"


def _replace_held(path: str, ref: str, sha: str, repo: Repo, found: opening.Unusable) -> Replaced:
    from memhtml.store.snapshot_build import build_file

    if os.path.lexists(path):
        meta = opening.read_meta_of(path)
        usable = meta is not None and (meta.program, meta.ref) == (PROGRAM, ref)
        if usable and found.absent:
            return "found"
        log.warn(f"the head database of {ref} is rebuilt: {found}")
        if found.opens and _rebuilt_inside(path, ref, sha, repo):
            return "built"
        files.put_aside(path)
    else:
        log.warn(f"there is no head database of {ref}: it is built from git")
    build_file(path, ref, sha, repo)
    return "built"


def _rebuilt_inside(path: str, ref: str, sha: str, repo: Repo) -> bool:
    """Rebuild a file that opens; False when it turns out to be damaged."""
    from memhtml.store.snapshot_build import rebuild_inside

    conn = None
    try:
        conn = opening.open_file(path)
        rebuild_inside(conn, ref, sha, repo)
    except sqlite3.DatabaseError as error:
        if opening.primary_code(error) not in opening.DAMAGE:
            raise
        log.warn(f"it does not take a new content and is put aside: {error}")
        return False
    finally:
        if conn is not None:
            conn.close()
    return True


def _keep_out_of_git(root: str) -> None:
    from memhtml.store.scaffold import ensure_ignored

    ensure_ignored(root)
