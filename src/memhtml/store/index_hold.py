"""Holds git's index lock while a commit's entries and its branch move, as `git commit` itself does.

Nobody else's git can then stage, or commit what is staged, in between. The lock is a second name
of a file with a name of ours, so that one which a kill leaves behind can be told from git's and is
removed by the next holder of the checkout lock (`index_stat.remove_left_overs`). git children only
ever write the new index, under a name of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError
from memhtml.store.atomic import temporary_name
from memhtml.store.child import git_failed, run_git
from memhtml.store.index import LockWait, entry_lines
from memhtml.store.worktree import NO_HARD_LINKS

if TYPE_CHECKING:
    from memhtml.store.entries import Side

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class HeldIndex:
    """The index of the work tree at `root`, to be taken. The caller holds the checkout lock."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._wait = LockWait(root)
        self.git_dir = self._wait.git_dir
        """The work tree's own git folder."""
        self._index = os.path.join(self.git_dir, "index")
        self._marker = os.path.join(self.git_dir, temporary_name("index"))
        self._fresh = os.path.join(self.git_dir, temporary_name("index"))
        self._kept = os.path.join(self.git_dir, temporary_name("index"))
        self._depth = 0
        self._replaced = False

    def until_free(self) -> None:
        """Wait until nobody else has the lock. Raises `MemhtmlError` `ERR_GIT` after 5 s."""
        if not self._depth:
            self._wait.until_free()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock; may be nested. Raises `MemhtmlError` `ERR_GIT` after 5 s, or OSError."""
        if not self._depth:
            self._enter()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._leave()

    def _enter(self) -> None:
        os.close(os.open(self._marker, _NEW_FILE, 0o600))
        try:
            while not self._take():
                self._wait.pause()
        except BaseException:
            _remove(self._marker)
            raise

    def _leave(self) -> None:
        for path in (self._fresh, f"{self._fresh}.lock", self._kept):
            _remove(path)
        # The marker last: as long as it is there, a lock left behind is known as ours.
        _remove(self._wait.path)
        _remove(self._marker)

    def set_entries(self, entries: Mapping[str, Side | None]) -> None:
        """Set or (None) remove entries; all others stay. Raises `ERR_GIT`, nothing changed."""
        if not entries:
            return
        self._copy()
        # Written out in full: git 2.39 loses entries of a sparse index in such a call.
        words = ("-c", "index.sparse=false", "update-index", "-z", "--add", "--index-info")
        lines = entry_lines(entries)
        run = run_git(self._root, *words, stdin=lines, changes=True, index_file=self._fresh)
        if run.status != 0:
            raise git_failed("update-index", run)
        if "gnoring path" in run.stderr:  # git leaves a bad path out and calls that success.
            raise MemhtmlError("ERR_GIT", "git update-index refused a path of this commit")
        os.replace(self._fresh, self._index)
        self._replaced = True

    def put_back(self) -> None:
        """The index as it was before `set_entries`. Raises OSError."""
        if not self._replaced:
            return
        if os.path.exists(self._kept):
            os.replace(self._kept, self._index)
        else:
            os.unlink(self._index)  # There was none.
        self._replaced = False

    def _take(self) -> bool:
        try:
            os.link(self._marker, self._wait.path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            return self._take_without_links()
        return True

    def _take_without_links(self) -> bool:
        """As git does itself; a kill then leaves a lock that nobody can tell from git's."""
        try:
            os.close(os.open(self._wait.path, _NEW_FILE, 0o666))
        except FileExistsError:
            return False
        return True

    def _copy(self) -> None:
        """The index under the name for the new one, and once more for the way back."""
        try:
            os.link(self._index, self._kept)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            _copy_file(self._index, self._kept)
        _copy_file(self._index, self._fresh)


def _copy_file(path: str, copy: str) -> None:
    with open(path, "rb") as source:
        mode = os.fstat(source.fileno()).st_mode & 0o777
        target = os.open(copy, _NEW_FILE, mode)
        try:
            while sent := os.sendfile(target, source.fileno(), None, 1 << 24):
                del sent
        finally:
            os.close(target)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
