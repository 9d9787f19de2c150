"""`doctor --fix`: the two repairs that need no judgement (spec `cli` §11).

A link to a file that is gone points at its archived form afterwards, or is dropped; access rows of
files that are gone are removed. What somebody is editing is left to them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log
from memhtml.doctor.findings import is_gone
from memhtml.errors import StorageError
from memhtml.store.atomic import stands_for
from memhtml.store.worktree import WorkTree
from memhtml_format import edit, paths
from memhtml_format.instants import second
from memhtml_format.record import read_detail

if TYPE_CHECKING:
    from memhtml.doctor.findings import Edge
    from memhtml.store.land import Landing


class Mended(NamedTuple):
    """The new bytes of one file, and what became of its edges."""

    data: bytes
    rewritten: int
    dropped: int


class _NotMended(Exception):
    """A file that is left as it is; the text says why."""


def repair(
    root: str, dangling: Sequence[Edge], orphans: Sequence[str], dirty: Collection[str]
) -> dict[str, Any]:
    """Mend what was found, and say what became of it: the payload's `repaired`.

    Errors raised: `checkout.locked`, `doctor.write`, `ERR_GIT`, `ERR_DIRTY_TREE`, and those of
    `state.db`. Links are mended before rows are removed.
    """
    mended: dict[str, Mended] = {}
    failed: list[str] = []
    sha = None
    if dangling:
        mended, failed, sha = _mend_links(root, dangling, frozenset(dirty))
    return {
        "rewritten": sum(each.rewritten for each in mended.values()),
        "dropped": sum(each.dropped for each in mended.values()),
        "failedWrites": sorted(failed),
        "prunedAccessRows": _prune(root, orphans) if orphans else 0,
        "commitSha": sha,
    }


def _mend_links(
    root: str, dangling: Sequence[Edge], dirty: frozenset[str]
) -> tuple[dict[str, Mended], list[str], str | None]:
    from memhtml.doors.finish import finish
    from memhtml.store.land import landing
    from memhtml.store.repo import Repo

    mended: dict[str, Mended] = {}
    failed: list[str] = []
    at = second(time.time())
    with landing(root) as land, WorkTree(root) as files:
        for path, edges in groupby(dangling, key=lambda edge: edge.src_path):
            try:
                found = _mend(land, files, path, list(edges), dirty, at)
            except _NotMended as why:
                log.warn(f"{path} was not repaired: {why}")
                failed.append(path)
                continue
            if found is not None:
                mended[path] = found
        sha = _commit(land, mended, failed)
    if sha is not None:
        with closing(Repo(root)) as repo:
            finish(root, repo)
    return mended, failed, sha


def _mend(
    land: Landing,
    files: WorkTree,
    path: str,
    edges: Sequence[Edge],
    dirty: frozenset[str],
    at: str,
) -> Mended | None:
    """The file without its dangling edges; None when it has none any more."""
    try:
        data = land.read(path)
    except StorageError as error:
        raise _NotMended(error.detail) from error
    committed = None if land.head is None else land.repo.blob(land.head, path)
    if data is None:
        raise _NotMended("it is no file")
    if path in dirty or data != committed:
        raise _NotMended("it has uncommitted changes")
    after, rewritten, dropped = data, 0, 0
    for edge in edges:
        if not is_gone(files, edge.dst_path):
            continue
        changed = without(path, after, edge)
        if changed == after:
            continue
        after = changed
        rewritten += edge.rewrite_to is not None
        dropped += edge.rewrite_to is None
    if after == data:
        return None
    after = edit.set_meta(after, "updated", at)
    reading = read_detail(path, after).detail
    if reading is None or reading.record.updated_at != at:
        raise _NotMended("its head cannot be edited in place")
    return Mended(after, rewritten, dropped)


def without(path: str, data: bytes, edge: Edge) -> bytes:
    """The bytes with every link of that rel to that target rewritten, or dropped.

    What follows the path in an href stays. Raises `_NotMended` when the head cannot be edited.
    """
    new = edge.rewrite_to
    hrefs = _hrefs(path, data, edge.rel, edge.dst_path)
    for href in hrefs:
        data = edit.remove_link(data, edge.rel, href)
        if new is not None:
            rest = href[len(edge.dst_path) + 1 :]
            data = edit.add_link(data, edge.rel, paths.href(new) + rest)
    left = _hrefs(path, data, edge.rel, edge.dst_path)
    if left or (hrefs and new is not None and not _hrefs(path, data, edge.rel, new)):
        raise _NotMended("its head cannot be edited in place")
    return data


def _hrefs(path: str, data: bytes, rel: str, target: str) -> list[str]:
    """The hrefs of a rel that lead to a path, whatever stands behind it."""
    reading = read_detail(path, data).detail
    if reading is None:
        raise _NotMended("it is no memory")
    links = reading.record.links
    return [
        link.href for link in links if link.rel == rel and paths.href_target(link.href) == target
    ]


def _commit(land: Landing, mended: dict[str, Mended], failed: list[str]) -> str | None:
    """Land what can be written; a file that the disk refuses goes to `failed` instead."""
    from memhtml.store.commit import message

    while mended:
        count = sum(each.rewritten + each.dropped for each in mended.values())
        text = message("link", f"repair {count} dangling links", ())
        try:
            return land.commit({path: each.data for path, each in mended.items()}, (), text)
        except StorageError as error:
            if error.reason != "write":
                raise
            said = (error.detail or "").partition(": ")[0]
            refused = [path for path in mended if stands_for(said, path)]
            if not refused:
                raise StorageError("doctor.write", error.detail) from error
            for path in refused:
                log.warn(f"{path} was not repaired: {error.detail}")
                failed.append(path)
                del mended[path]
    return None


def _prune(root: str, orphans: Sequence[str]) -> int:
    """Remove access rows, how many; one whose file is there again stays."""
    from memhtml.index import sqlite
    from memhtml.index.database import open_state

    with closing(open_state(root)) as conn, WorkTree(root) as files:
        gone = [(path,) for path in orphans if is_gone(files, path)]
        with sqlite.writing(conn, "state.locked"):
            return conn.executemany("DELETE FROM access WHERE path = ?", gone).rowcount
