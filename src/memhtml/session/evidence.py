"""What one exec found, and what a recording keeps of it.

The sandbox's entries can only be read while the run's upper layer is open, so a recording copies
them before it closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memhtml.session.log import Log

if TYPE_CHECKING:
    from memhtml.execute.mount import Mount, RecordSeed
    from memhtml.policy import Policy
    from memhtml_format.ops import Op
    from memhtml_format.violations import Violation
    from memhtml_harvest.report import Rejected
    from memhtml_sandbox.changes import Entry
    from memhtml_sandbox.result import Run


class Judged(NamedTuple):
    """What the run changed and what the bar says of it."""

    ops: tuple[Op, ...]
    rejected: tuple[Rejected, ...]
    violations: list[Violation]
    blocking: list[str]


class Evidence(NamedTuple):
    """All that a recording needs to run the call again."""

    log: Log
    policy: Policy
    run: Run
    judged: Judged
    appended: int
    mount: Mount
    after: dict[bytes, Kept]
    vanished: tuple[str, ...]
    seen: frozenset[str]
    """Records that the harvest and the bar asked for and found."""


class Kept(NamedTuple):
    """One changed entry as a recording keeps it; `data` is None where it could not be read."""

    kind: str
    size: int
    data: bytes | None

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes, or the `OSError` of a file that could not be read."""
        if self.data is None:
            raise PermissionError("it could not be read when the run was recorded")
        return self.data[:limit]


class WatchedSeed:
    """A seed that remembers which records it was asked for."""

    def __init__(self, seed: RecordSeed, seen: set[str]) -> None:
        self.seed = seed
        self.seen = seen

    def read(self, path: str) -> bytes | None:
        """The seeded bytes."""
        self.holds(path)
        return self.seed.read(path)

    def holds(self, path: str) -> bool:
        """Whether a record was seeded at the path."""
        found = self.seed.holds(path)
        if found:
            self.seen.add(path)
        return found

    def holds_under(self, folder: str) -> bool:
        """Whether a record was seeded below the folder; the first one is remembered."""
        first = self.seed.first_under(folder)
        if first is not None:
            self.seen.add(first)
        return first is not None

    def content_hash(self, path: str) -> str | None:
        """The hash of a seeded record's article."""
        self.holds(path)
        return self.seed.content_hash(path)


def keep_evidence(
    log: Log, policy: Policy, run: Run, judged: Judged, mount: Mount, seen: set[str] | None
) -> Evidence | None:
    """Read what the script left while the upper layer is still open; None without a recording."""
    if seen is None:
        return None
    changes = run.changes()
    after = {name: kept(entry) for name, entry in changes.changed.items()}
    vanished = tuple(sorted(changes.vanished))
    return Evidence(log, policy, run, judged, 0, mount, after, vanished, frozenset(seen))


def kept(entry: Entry) -> Kept:
    """An entry with its bytes, up to one past the harvest's cap."""
    from memhtml_harvest.rows import FILE_BYTES_CAP

    if entry.kind != "file" or entry.size > FILE_BYTES_CAP:
        return Kept(entry.kind, entry.size, b"")
    try:
        return Kept(entry.kind, entry.size, entry.read(FILE_BYTES_CAP + 1))
    except OSError:
        return Kept(entry.kind, entry.size, None)
