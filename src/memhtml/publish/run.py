"""`publish`: regenerate every listing and the site map, and commit those that changed (`cli` §11).

A page that somebody wrote by hand under a generated name, and has not committed, is left alone. All
pages are made before the checkout lock is taken, and only those that differ are held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from memhtml import log
from memhtml.errors import StorageError
from memhtml.index import follow
from memhtml.index.database import Index, open_index
from memhtml.index.state import read_state
from memhtml.publish import marks
from memhtml.publish.folders import LISTING, folders_of, newest_first
from memhtml.publish.page import page
from memhtml.publish.rows import Row, committed_rows
from memhtml.publish.sitemap import PATH as SITEMAP
from memhtml.publish.sitemap import SiteMap
from memhtml.store.atomic import stands_for
from memhtml.store.commit import message
from memhtml.store.land import Landing, landing
from memhtml.store.repo import FILE_MODES, Repo
from memhtml.store.worktree import WorkTree
from memhtml_format.digest import blob_sha
from memhtml_format.paths import BUCKETS, archive_slot

LATEST = 12
"""So many memories stand on the page of the store."""


class Artifact(NamedTuple):
    """One generated file."""

    path: str
    data: bytes


class Generated(NamedTuple):
    """What the index gives: the paths of all artifacts, and the bytes of those that differ."""

    paths: set[str]
    changed: dict[str, bytes]


def publish(root: str) -> dict[str, Any]:
    """The payload of `publish.report`.

    The index is brought to HEAD first; an uncommitted edit is not published. `paths` and `written`
    have the listings of folders that are gone as well: those are removed. Errors raised: those of
    the index, `checkout.locked`, `publish.write`, `ERR_GIT`.
    """
    from memhtml.doors.finish import finish

    # Two, because a first fill of the index leaves much in the first one's caches.
    with closing(Repo(root)) as repo:
        follow.update(root, repo=repo, embedder=None, dirty=False, embed=False)
    with closing(Repo(root)) as repo:
        made = generate(root, repo)
        with landing(root) as land:
            writes = {path: data for path, data in made.changed.items() if _is_ours(land, path)}
            gone = _left_over(land, made.paths)
            sha = _commit(land, writes, gone) if writes or gone else None
        if sha is not None:
            finish(root, repo)
    paths = sorted([*writes, *gone])
    return {
        "root": root,
        "artifacts": len(made.paths) - (len(made.changed) - len(writes)),
        "written": len(paths),
        "paths": paths,
        "commitSha": sha,
    }


def generate(root: str, repo: Repo) -> Generated:
    """Make every page, and keep those that the commit or the working tree has otherwise."""
    made = Generated(set(), {})
    with open_index(root) as index, WorkTree(root) as files:
        state = read_state(index.conn)
        head = None if state is None else state.head_sha
        for path, data in artifacts(index, repo):
            made.paths.add(path)
            if not _stands(repo, head, files, path, data):
                made.changed[path] = data
    return made


def artifacts(index: Index, repo: Repo) -> Iterator[Artifact]:
    """The page of every folder and the site map, from one state of the index."""
    conn = index.conn
    conn.execute("BEGIN")
    state = read_state(conn)
    head, dirty = (None, ()) if state is None else (state.head_sha, state.dirty_paths)
    chart = SiteMap()
    # The archive comes first in path order, so all of these are known when they are asked for.
    retired: dict[str, list[tuple[str, int]]] = {}
    latest: list[Row] = []
    for folder in folders_of(committed_rows(conn, repo, head, dirty)):
        slot = archive_slot(f"{folder.path}/{LISTING}") if folder.rows else None
        if slot is not None:
            origin = slot.original.rpartition("/")[0]
            retired.setdefault(origin, []).append((folder.path, len(folder.rows)))
        chart.add(folder)
        if not folder.archived:
            latest = newest_first([*latest, *folder.rows])[:LATEST]
        shown = () if folder.path else latest
        yield Artifact(folder.listing, page(folder, retired.get(folder.path, ()), shown))
    yield Artifact(SITEMAP, chart.finish())
    conn.execute("COMMIT")


def _stands(repo: Repo, head: str | None, files: WorkTree, path: str, data: bytes) -> bool:
    """Whether commit and working tree have the file as it was made now."""
    entry = None if head is None else repo.entry(head, path)
    if entry is None or entry.mode not in FILE_MODES or entry.oid != blob_sha(data):
        return False
    try:
        seen = files.look(path)
        return seen.kind == "file" and seen.size_bytes == len(data) and files.read(path) == data
    except OSError:
        return False


def _is_ours(land: Landing, path: str) -> bool:
    """Whether what is at the path may be replaced: nothing is lost by it.

    A listing is generated wherever it stands (spec `format` §1), whichever program made it, and
    the history keeps the one before. But a page that no commit holds is somebody's only copy.
    """
    if not land.exists(path):
        return True
    data = land.read(path)
    if data is not None:
        committed = None if land.head is None else land.repo.blob(land.head, path)
        if data == committed or marks.is_generated(path, data):
            return True
    log.warn(f"{path} was not generated and no commit holds it, so it stays as it is")
    return False


def _left_over(land: Landing, made: Collection[str]) -> list[str]:
    """The generated listings of the last commit whose folder has no memories any more."""
    if land.head is None:
        return []
    found = []
    for path, mode, oid in land.repo.files(land.head):
        bucket, _, rest = path.partition("/")
        if not rest.endswith(LISTING) or path in made or mode not in FILE_MODES:
            continue
        if bucket not in BUCKETS or path.rpartition("/")[2] != LISTING:
            continue
        data = land.read(path) if land.exists(path) else land.repo.data(oid)
        if data is not None and marks.is_generated(path, data):
            found.append(path)
    return found


def _commit(land: Landing, writes: Mapping[str, bytes], gone: Collection[str]) -> str | None:
    count = len(writes) + len(gone)
    text = message("publish", f"regenerate {count} generated artifacts", ())
    try:
        return land.commit(writes, gone, text)
    except StorageError as error:
        if error.reason != "write":
            raise
        said, _, why = (error.detail or "").partition(": ")
        path = next((each for each in (*writes, *gone) if stands_for(said, each)), said)
        raise StorageError("publish.write", f"{path}: {why}") from error
