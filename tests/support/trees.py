"""Commits as plain dictionaries, for tests of the corpus cache and the change set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from memhtml_sandbox.cache import CorpusCache

Tree = dict[str, bytes]


def sha(letter: str) -> str:
    """A commit id that is easy to read in a failure: `sha("a")` is forty times that digit."""
    return letter * 40


class DictSource:
    """The `Source` of a cache over trees kept in memory; counts what it was asked."""

    def __init__(self, trees: Mapping[str, Tree] | None = None) -> None:
        self.trees: dict[str, Tree] = dict(trees or {})
        self.full_reads: list[str] = []
        self.differences: list[tuple[str, str]] = []

    def files(self, sha: str) -> Iterable[tuple[str, bytes]]:
        self.full_reads.append(sha)
        return iter(sorted(self.trees[sha].items()))

    def difference(self, old: str, new: str) -> Iterator[tuple[str, bytes | None]]:
        self.differences.append((old, new))
        before, after = self.trees[old], self.trees[new]
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                yield path, after.get(path)


def own_cache(root: str) -> CorpusCache:
    """A cache for the user that runs the tests."""
    return CorpusCache(root, uid=os.geteuid(), gid=os.getegid())


def tree_of(folder: str) -> Tree:
    """The regular files below a folder on disk, by relative path."""
    found: Tree = {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(here, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read()
    return found
