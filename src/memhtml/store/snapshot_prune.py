"""Which head databases stay (spec `sessions` §4.3): those of a ref or a live session, at most 4."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from memhtml import log
from memhtml.errors import MemhtmlError
from memhtml.store import refs
from memhtml.store import snapshot_files as files
from memhtml.store.snapshot_open import read_meta_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from memhtml.store.repo import Repo

KEPT = 4


class _Found(NamedTuple):
    path: str
    ref: str | None
    sha: str | None
    committed_s: int


def prune(
    root: str,
    repo: Repo,
    *,
    keep_ref: str | None,
    live_refs: Callable[[], Collection[str]] | None,
    sweep: bool,
) -> list[str]:
    """Remove what no ref and no live session needs, and the oldest beyond four.

    The database of `keep_ref` always stays. Answers the commits of those removed, newest first;
    one whose commit cannot be told is removed without being listed. Best effort: a folder that
    others hold on to for 5 s is left as it is.
    """
    alive = live_refs or (lambda: session_refs(root))
    try:
        if not _work(root, repo, keep_ref, alive, sweep=sweep):
            return []
        guard = files.hold(root, exclusive=True)
        if guard is None:
            return []
        with guard:
            doomed = _doomed(root, repo, keep_ref, alive)
            for found in doomed:
                files.remove_database(found.path)
            for path in files.left_overs(root) if sweep else ():
                files.remove(path)
    except OSError as error:
        log.warn(f"old head databases were not removed: {error}")
        return []
    doomed.sort(key=lambda found: found.committed_s, reverse=True)
    return [found.sha for found in doomed if found.sha is not None]


def _work(
    root: str,
    repo: Repo,
    keep_ref: str | None,
    live_refs: Callable[[], Collection[str]],
    *,
    sweep: bool,
) -> bool:
    """Whether the exclusive lock is worth taking; nearly every commit ends here."""
    if sweep and files.left_overs(root):
        return True
    kept = [] if keep_ref is None else [files.database_path(root, keep_ref)]
    if files.databases(root) == kept:
        return False
    # Shared, so that nobody swaps a file while we have it open.
    guard = files.hold(root, exclusive=False)
    if guard is None:
        return False
    with guard:
        return bool(_doomed(root, repo, keep_ref, live_refs))


def session_refs(root: str) -> set[str]:
    """The refs that the session logs of a store name; a log that does not decode names none."""
    place = os.path.join(root, ".memhtml", "sessions")
    found: set[str] = set()
    try:
        names = os.listdir(place)
    except OSError:
        return found
    for name in names:
        if not name.endswith(".json"):
            continue
        try:
            with open(os.path.join(place, name), "rb") as stream:
                ref = json.load(stream)["ref"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(ref, str):
            found.add(ref)
    return found


def _doomed(
    root: str, repo: Repo, keep_ref: str | None, live_refs: Callable[[], Collection[str]]
) -> list[_Found]:
    kept, doomed, orphans = [], [], []
    for path in files.databases(root):
        found = _look(path, repo)
        if found.ref is not None and found.ref == keep_ref:
            continue
        if found.ref is None:
            doomed.append(found)
        elif found.ref == "HEAD" or refs.resolve(root, found.ref) is not None:
            kept.append(found)
        else:
            orphans.append(found)
    if orphans:
        alive = live_refs()
        kept += [found for found in orphans if found.ref in alive]
        doomed += [found for found in orphans if found.ref not in alive]
    kept.sort(key=lambda found: (found.committed_s, found.path), reverse=True)
    return doomed + kept[KEPT - (1 if keep_ref is not None else 0) :]


def _look(path: str, repo: Repo) -> _Found:
    meta = read_meta_of(path)
    if meta is None:
        return _Found(path, None, None, 0)
    try:
        return _Found(path, meta.ref, meta.sha, repo.commit_time(meta.sha))
    except MemhtmlError:
        return _Found(path, meta.ref, meta.sha, 0)
