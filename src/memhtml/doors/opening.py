"""One call at a door: the index it asks, the checkout it writes to, and what follows its commit.

The index is opened before anything is written, so that a damaged or a locked one is an error and
not a surprise; another program's makes room for ours. What a door decides stands in its own module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from memhtml import log
from memhtml.doors.finish import finish
from memhtml.doors.lookups import Lookups
from memhtml.embed.choose import bound_embedder
from memhtml.errors import MemhtmlError
from memhtml.index.database import open_writer
from memhtml.index.state import read_state
from memhtml.store import refs
from memhtml.store.repo import Repo
from memhtml_format.digest import blob_sha
from memhtml_format.instants import second

if TYPE_CHECKING:
    from memhtml.doors.change import Change
    from memhtml.store.land import Landing

STALE = "ERR_INDEX_STALE"


def now() -> str:
    """The instant of a call, as it is stamped."""
    return second(time.time())


class Door:
    """A context manager. `lookups` asks the index as `catch_up` left it, while the door lands.

    Making and using it raises `StorageError` `index.open`, `index.migrate`, `index.locked`,
    `checkout.locked`, `read` and `write`; `MemhtmlError` `ERR_GIT`, `ERR_DIRTY_TREE`, and
    `ERR_INVALID_FLAG` for a bad embedder variable. Nothing has been written then.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.embedder = bound_embedder()
        self.index = open_writer(root)
        self.lookups = Lookups(self.index.conn, self._stands)
        self._repo = Repo(root)
        self._land: Landing | None = None
        self._landed: Change | None = None
        self._was_behind = False

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._repo.close()
        self.index.__exit__(kind, error, trace)

    def catch_up(self) -> None:
        """Bring the index to HEAD; free when it is there. Vectors are left to `finish`.

        Called before the lock is taken, because it may take long, and again under it.
        """
        head = refs.head_commit(self.root)
        state = read_state(self.index.conn)
        if state is not None and state.head_sha == head and not state.unfinished:
            return
        if state is None and head is None:
            return
        from memhtml.index.follow import rebuild, update

        self._was_behind = True
        try:
            update(self.root, repo=self._repo, embedder=None, dirty=False, embed=False)
        except MemhtmlError as error:
            if error.code != STALE:
                raise
            # A first fill was cut short, most likely by the end of such a call as this one.
            log.warn("the index was left half built, and is built anew")
            rebuild(self.root, repo=self._repo, embedder=None, embed=False, force=True)

    @contextmanager
    def landing(self) -> Iterator[Landing]:
        """The right to write to the checkout, which ends before the index follows."""
        from memhtml.store.land import landing

        with landing(self.root) as land:
            self._repo.close()
            self._repo = land.repo  # It has at hand what was just written.
            self._land = land
            yield land

    def _stands(self, path: str, oid: str) -> bool:
        """Whether last commit or working tree have this blob at a path; see `Lookups`."""
        land = self._land
        assert land is not None, "nothing is looked up before the checkout is held"
        entry = None if land.head is None else land.repo.entry(land.head, path)
        if entry is not None and entry.oid == oid:
            return True
        data = land.read(path)
        return data is not None and blob_sha(data) == oid

    def commit(self, land: Landing, change: Change) -> str | None:
        """Land the change; None when it changes nothing."""
        sha = land.commit(change.writes, change.removals, change.message)
        if sha is not None:
            self._landed = change
        return sha

    def finish(self) -> None:
        """What follows a commit, if there was one. Never raises but for a signal."""
        if self._landed is None:
            return
        finish(
            self.root,
            self._repo,
            known=self._landed.known,
            displaced=self._landed.displaced,
            links=self._landed.links,
            was_behind=self._was_behind,
        )
