"""Reads every memory file once, for what its format has to say (spec `cli` §11 `doctor`).

A file is read as the working tree has it: from git while it is unchanged, else from the disk. One
file is held at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.index.projection import is_indexable
from memhtml.store.repo import FILE_MODES
from memhtml_format.paths import is_archived
from memhtml_format.record import read_at_door

if TYPE_CHECKING:
    from memhtml.store.repo import Repo
    from memhtml.store.worktree import WorkTree


class FileFindings(NamedTuple):
    """`warnings` as the payload has them, and the paths of files that are no memory."""

    warnings: list[dict[str, Any]]
    unparseable: list[str]


def read_all(repo: Repo, files: WorkTree, head: str | None, dirty: Collection[str]) -> FileFindings:
    """Read every file that belongs in the index; `dirty` are the paths git does not call clean.

    A file that never was a memory counts as unparseable like one that stopped being one. What is
    active content (spec `format` §3.7) is a warning wherever the file lies; the format's own
    warnings are given for active files alone. Raises `MemhtmlError` `ERR_GIT` and OSError.
    """
    found = FileFindings([], [])
    for path, data in _working_files(repo, files, head, frozenset(dirty)):
        reading, active = read_at_door(path, data)
        said = [problem.text for problem in active]
        if reading.record is None:
            found.unparseable.append(path)
        elif not is_archived(path):
            said = [*reading.warnings, *said]
        if said:
            found.warnings.append({"path": path, "warnings": said})
    found.warnings.sort(key=lambda entry: str(entry["path"]))
    found.unparseable.sort()
    return found


def _working_files(
    repo: Repo, files: WorkTree, head: str | None, dirty: frozenset[str]
) -> Iterator[tuple[str, bytes]]:
    for path, mode, oid in repo.files(head) if head is not None else ():
        if mode in FILE_MODES and path not in dirty and is_indexable(path):
            yield path, repo.data(oid)
    for path in dirty:
        if is_indexable(path) and files.look(path).kind == "file":
            yield path, files.read(path)
