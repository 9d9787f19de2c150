"""Whether a file of the working tree is one side of a change: byte for byte, or for git.

Nothing here changes anything. Stat data never decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memhtml.store.child import run_git
from memhtml.store.repo import MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE

if TYPE_CHECKING:
    from memhtml.store.entries import Side
    from memhtml.store.repo import Repo
    from memhtml.store.worktree import Look, WorkTree


def holds(repo: Repo, files: WorkTree, path: str, seen: Look, side: Side | None) -> bool:
    """Whether the working tree has exactly `side` at `path`; `seen` is what is there."""
    if side is None:
        return seen.kind in ("absent", "blocked", "folder")
    mode, oid = side
    if mode == MODE_SUBMODULE:
        return False
    data = repo.data(oid)
    if mode == MODE_LINK:
        return seen.kind == "link" and files.target(path) == data
    if seen.kind != "file" or seen.size_bytes != len(data) or not bit_agrees(repo, seen, side):
        return False
    return files.read(path) == data


def may_agree(repo: Repo, seen: Look, side: Side | None) -> bool:
    """Whether git's filters could make a file out of `side` that looks like this one."""
    if side is None or side[0] in (MODE_LINK, MODE_SUBMODULE):
        return False
    return seen.kind == "file" and bit_agrees(repo, seen, side)


def bit_agrees(repo: Repo, seen: Look, side: Side) -> bool:
    """Whether the executable bit is the side's, where it means something."""
    return seen.executable == (side[0] == MODE_EXECUTABLE) or not repo.trusts_file_mode


def agreeing(repo: Repo, sides: Mapping[str, Side]) -> set[str]:
    """Those paths whose file git would store as the side's content, line ends converted."""
    names = [path for path in sides if "\n" not in path]
    if not names:
        return set()
    text = "".join(f"{path}\n" for path in names).encode("utf-8", "surrogateescape")
    run = run_git(repo.root, "hash-object", "--stdin-paths", stdin=text)
    ids = run.stdout.decode("ascii", "replace").split()
    if run.status != 0 or len(ids) != len(names):
        return set()  # A file is gone or cannot be read: nothing is known of any.
    return {path for path, oid in zip(names, ids, strict=True) if oid == sides[path][1]}
