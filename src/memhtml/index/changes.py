"""What git says about indexable files: the difference of two commits, renames, the working tree.

Answers steps to take; what a step does to the rows is `writer`'s matter (spec `retrieval` §4.2).
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from memhtml.index.projection import is_indexable
from memhtml.store.repo import FILE_MODES
from memhtml_format.paths import BUCKETS

if TYPE_CHECKING:
    from memhtml.store.entries import Side
    from memhtml.store.repo import Change, Repo

T = TypeVar("T")
Kind: TypeAlias = Literal["added", "modified", "removed", "renamed"]

LISTED = 5_000
"""A difference up to this long is held; a longer one is read twice."""

_RENAME_LIMIT = 1_000


class Step(NamedTuple):
    """One path to bring up to date: from the blob `oid`, or gone when that is None.

    Of a renamed file `moved_from` is the path before and `likeness` says how alike the two are, in
    per cent.
    """

    kind: Kind
    path: str
    oid: str | None
    moved_from: str | None = None
    likeness: int = 0


class Plan(NamedTuple, Generic[T]):
    """Steps, which may be gone through once; there are no more than `most` of them."""

    most: int
    steps: Iterator[T]


def difference(repo: Repo, old: str, new: str) -> Plan[Step]:
    """The steps from commit `old` to `new`. Raises `MemhtmlError` `ERR_GIT`."""
    found = _steps(repo.difference(old, new))
    held = list(islice(found, LISTED + 1))
    kinds = {step.kind for step in held}
    count = len(held)
    if count > LISTED:
        for step in found:
            kinds.add(step.kind)
            count += 1
        found = _steps(repo.difference(old, new))
    else:
        found = iter(held)
    # Most commits only add or only change: then nothing was renamed, and git is not asked.
    if not {"added", "removed"} <= kinds:
        return Plan(count, found)
    renamed = _renames(repo.root, old, new)
    return Plan(count, _with_renames(found, renamed))


def mismatches(conn: sqlite3.Connection, repo: Repo, old: str | None, head: str) -> Plan[Step]:
    """The steps that make the index say what the commit `head` says, whatever it says now.

    One walk over the tree; for an index whose last update was cut short, or whose commit git no
    longer has. `old` is that commit while git has it: what was renamed since is moved again.
    """
    query = "SELECT path, blob_sha FROM files UNION ALL SELECT path, blob_sha FROM duplicates"
    stored = {path: bytes.fromhex(oid) for path, oid in conn.execute(query)}
    renamed = _renames(repo.root, old, head) if old is not None else {}
    steps: list[Step] = []
    for path, mode, oid in repo.files(head):
        if not _is_file(path, (mode, oid)):
            continue
        before = stored.pop(path, None)
        if path in renamed:
            steps.append(Step("renamed", path, oid, *renamed[path]))
        elif before != bytes.fromhex(oid):
            steps.append(Step("added" if before is None else "modified", path, oid))
    sources = {before for before, _likeness in renamed.values()}
    steps += [Step("removed", path, None) for path in stored if path not in sources]
    return Plan(len(steps), iter(steps))


def dirty_paths(root: str) -> list[str]:
    """The indexable paths whose working copy git does not call clean, sorted.

    Modified, staged, deleted and untracked ones, and both ends of a rename; ignored files are no
    part of a store. Raises `MemhtmlError` `ERR_GIT`.
    """
    from memhtml.store.child import git_failed, run_git

    words = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    run = run_git(root, "status", *words, "--ignore-submodules=all", "--", *BUCKETS)
    if run.status != 0:
        raise git_failed("status", run)
    names = {_text(entry[3:]) for entry in run.stdout.split(b"\0") if entry}
    return sorted(path for path in names if path is not None and is_indexable(path))


def blob_at(repo: Repo, head: str, path: str) -> str | None:
    """The blob of an indexable file of the commit `head`, None when it has none at `path`."""
    entry = repo.entry(head, path)
    return None if entry is None or entry.mode not in FILE_MODES else entry.oid


def _steps(changes: Iterable[Change]) -> Iterator[Step]:
    for path, old, new in changes:
        before, after = _blob(path, old), _blob(path, new)
        if before == after:
            continue
        if after is None:
            yield Step("removed", path, None)
        else:
            yield Step("added" if before is None else "modified", path, after)


def _blob(path: str, side: Side | None) -> str | None:
    return side[1] if side is not None and _is_file(path, side) else None


def _is_file(path: str, side: Side) -> bool:
    return side[0] in FILE_MODES and is_indexable(path)


def _renames(root: str, old: str, new: str) -> dict[str, tuple[str, int]]:
    """New path → old path and likeness, as git pairs them."""
    from memhtml.store.child import git_failed, run_git

    words = ("-r", "-z", "-M", f"-l{_RENAME_LIMIT}", "--name-status", "--diff-filter=R")
    run = run_git(root, "diff-tree", *words, old, new, "--", *BUCKETS)
    if run.status != 0:
        raise git_failed("diff-tree", run)
    words_said = iter(run.stdout.split(b"\0"))
    found = {}
    for status, source, target in zip(words_said, words_said, words_said, strict=False):
        before, after = _text(source), _text(target)
        if before and after and is_indexable(before) and is_indexable(after):
            found[after] = before, int(status[1:])
    return found


def _with_renames(steps: Iterable[Step], renamed: Mapping[str, tuple[str, int]]) -> Iterator[Step]:
    """The steps with each pair made one. A link that became a file is no rename for us."""
    sources = {before for before, _likeness in renamed.values()}
    for step in steps:
        pair = renamed.get(step.path)
        if step.kind == "added" and pair is not None:
            yield Step("renamed", step.path, step.oid, *pair)
        elif not (step.kind == "removed" and step.path in sources):
            yield step


def _text(name: bytes) -> str | None:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return None
