"""The shared index of a work tree, through git children: what is staged, and setting a few entries.

git reads every kind of index (split, sparse, any version) and rewrites one of 100,000 entries in
30 ms; pygit2 needs 110 ms for the same and refuses some. The index lock is git's own: waited for,
never removed (spec `sessions` §2).
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from memhtml import log
from memhtml.errors import MemhtmlError
from memhtml.store import index_stat
from memhtml.store.child import git_failed, run_git
from memhtml.store.entries import Side
from memhtml.store.refs import ZERO_ID, git_dirs
from memhtml_format.paths import parents

LOCK_WAIT_S = 5.0
POLL_S = 0.05


class Staged(NamedTuple):
    """How the index differs from a commit, at and around some paths.

    `entries` has the index's side of every wanted path that differs, None where the index has
    none. `unmerged` and `crossing` are wanted paths that a conflict, or somebody's entry above or
    below the path, makes untouchable.
    """

    entries: dict[str, Side | None]
    unmerged: frozenset[str]
    crossing: frozenset[str]


class LockWait:
    """One budget of 5 s for a held `index.lock`, shared by the steps of one call."""

    def __init__(self, root: str) -> None:
        self.git_dir = git_dirs(root)[0]
        self.path = os.path.join(self.git_dir, "index.lock")
        self._deadline = time.monotonic() + LOCK_WAIT_S

    def until_free(self) -> None:
        """Wait until the lock is free. Raises `MemhtmlError` `ERR_GIT` naming it."""
        if os.path.lexists(self.path):
            index_stat.remove_left_overs(self.git_dir)
        while os.path.lexists(self.path):
            self.pause()

    def pause(self) -> None:
        """Sleep a moment, or raise when the time is up."""
        if time.monotonic() >= self._deadline:
            log.error(f"{self.path} is held")
            raise MemhtmlError(
                "ERR_GIT",
                "another git process holds index.lock; run the same call again when it is done, "
                "or remove the file when no git process is running",
            )
        time.sleep(POLL_S)


def staged(root: str, commit: str, wanted: Collection[str]) -> Staged:
    """What is staged against `commit` at the `wanted` paths.

    One comparison of the whole index, because git skips equal folders but tries every path
    specification on every entry. Raises `MemhtmlError` `ERR_GIT`.
    """
    run = run_git(
        root, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", commit, "--"
    )
    if run.status != 0:
        raise git_failed("diff-index", run)
    names = set(wanted)
    above = {parent for path in names for parent in parents(path)}
    entries: dict[str, Side | None] = {}
    unmerged: set[str] = set()
    crossing: set[str] = set()
    for status, side, path in _raw_lines(run.stdout):
        if path in names:
            if status == "U":
                unmerged.add(path)
            else:
                entries[path] = side
            continue
        crossing.update(parent for parent in parents(path) if parent in names)
        if path in above and side is not None:
            crossing.update(name for name in names if name.startswith(f"{path}/"))
    return Staged(entries, frozenset(unmerged), frozenset(crossing))


def signature(root: str) -> tuple[int, int, int] | None:
    """What changes whenever git writes the index; None when there is no index."""
    try:
        info = os.stat(os.path.join(git_dirs(root)[0], "index"))
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns, info.st_size


def not_checked_out(root: str, wanted: Collection[str]) -> set[str]:
    """Those of `wanted` whose entry says that the file need not be there (a sparse checkout)."""
    if not wanted:
        return set()
    run = run_git(root, "ls-files", "-t", "-z")
    if run.status != 0:
        raise git_failed("ls-files", run)
    lines = (line for line in run.stdout.split(b"\0") if line.startswith(b"S "))
    return {os.fsdecode(line[2:]) for line in lines}.intersection(wanted)


def set_entries(
    root: str,
    entries: Mapping[str, Side | None],
    wait: LockWait,
    *,
    sparse: Collection[str] = (),
) -> None:
    """Set or (None) remove index entries in one step; all others stay as they are.

    Entries at `sparse` paths go on saying that their file need not be there. Raises `MemhtmlError`
    `ERR_GIT`, the index untouched, when git refuses or the lock stays held.
    """
    if not entries:
        return
    ordered = sorted(entries.items(), key=lambda item: item[1] is not None)
    marked = [(path, side) for path, side in ordered if side is not None and path in sparse]
    words: list[str] = []
    for path, (mode, oid) in marked:
        words += ["--cacheinfo", f"{mode:o},{oid},{path}"]
    if marked:
        words += ["--skip-worktree", *(f"./{path}" for path, _side in marked)]
    lines = entry_lines(dict(item for item in ordered if item not in marked))
    while True:
        wait.until_free()
        # Written out in full: git 2.39 loses entries of a sparse index in such a call.
        command = ("-c", "index.sparse=false", "update-index", "-z", "--add", *words)
        run = run_git(root, *command, "--index-info", stdin=lines, changes=True)
        if run.status == 0:
            break
        if "index.lock" not in run.stderr or "File exists" not in run.stderr:
            raise git_failed("update-index", run)
        wait.pause()
    if "gnoring path" in run.stderr:  # git leaves a bad path out and calls that success.
        raise MemhtmlError("ERR_GIT", "git update-index refused a path of this commit")


def entry_lines(entries: Mapping[str, Side | None]) -> bytes:
    """The lines of `git update-index -z --index-info`, removals first: they may make room."""
    ordered = sorted(entries.items(), key=lambda item: item[1] is not None)
    return b"".join(_info_line(*item) for item in ordered)


def _info_line(path: str, side: Side | None) -> bytes:
    head = f"0 {ZERO_ID}" if side is None else f"{side[0]:o} {side[1]}"
    return head.encode() + b"\t" + os.fsencode(path) + b"\0"


def _raw_lines(data: bytes) -> Iterator[tuple[str, Side | None, str]]:
    """(status, index side, path) of each record of `git diff-index --raw -z`."""
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        stop = data.index(b"\0", end + 1)
        _old_mode, mode, _old, oid, status = data[at + 1 : end].decode("ascii").split(" ")
        path = data[end + 1 : stop].decode("utf-8", "surrogateescape")
        yield status[:1], (None if mode == "000000" else (int(mode, 8), oid)), path
        at = stop + 1
