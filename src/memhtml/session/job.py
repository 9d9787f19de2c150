"""One call of `session commit`: the repository it writes, the ref it moves, the lock it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from memhtml.errors import StorageError
from memhtml.session.log import Log, scope_of, update_held
from memhtml.store.lock import DirectoryLock

if TYPE_CHECKING:
    from memhtml.bar.readings import Readings
    from memhtml.store.repo import Repo


class Job(NamedTuple):
    """What every step of one commit needs; the session lock is held throughout."""

    repo: Repo
    target: str
    """The ref at the end of the log's symbolic ones: what is compared, followed and moved."""
    lock: DirectoryLock
    message: str
    readings: Readings
    """Every text of the log is parsed once, whoever asks and however often the log is judged."""

    @property
    def root(self) -> str:
        """The store."""
        return self.repo.root

    @property
    def scope(self) -> str:
        """The scope of what the commit moves, however the log spells it."""
        return scope_of(self.target)

    def update(self, log: Log, change: Callable[[Log], Log]) -> Log:
        """Change the stored log, which must be `log`. Errors raised: those of `update_held`."""
        return update_held(self.root, log, change, self.lock)

    def hold(self, shared: DirectoryLock) -> None:
        """Both locks are still ours, or stop before anything shared moves (`sessions` §2)."""
        self.lock.refresh()
        if not self.lock.still_ours():
            raise StorageError(
                "session.locked", "the session lock was lost while the commit paused"
            )
        shared.refresh()
        if not shared.still_ours():
            raise StorageError(
                "checkout.locked", "the checkout lock was lost while the commit paused"
            )
