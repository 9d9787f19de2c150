"""What a recording keeps of one exec; loaded only for one.

The sandbox's entries can be read no longer than the run's upper layer is open, so a recording
copies them before it closes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from memhtml.corpus.watched import Seen, WatchedCorpus

if TYPE_CHECKING:
    from memhtml.corpus.interface import Corpus
    from memhtml.execute.mount import Mount, RecordSeed
    from memhtml.policy import Policy
    from memhtml.session.judgement import Judged
    from memhtml.session.log import Log
    from memhtml_harvest.budget import Budget
    from memhtml_sandbox.changes import Entry
    from memhtml_sandbox.result import Run


class Evidence(NamedTuple):
    """All that is needed to run the call again. `judged` is from before the append."""

    log: Log
    policy: Policy
    run: Run
    judged: Judged
    mount: Mount
    after: dict[bytes, Kept]
    vanished: tuple[str, ...]
    seen: Seen
    """What the harvest and the bar asked for and found."""


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

    def __init__(self, seed: RecordSeed, seen: Seen) -> None:
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
            self.seen.records.add(path)
        return found

    def holds_under(self, folder: str) -> bool:
        """Whether a record was seeded below the folder; the first one is remembered."""
        first = self.seed.first_under(folder)
        if first is not None:
            self.seen.records.add(first)
        return first is not None

    def content_hash(self, path: str) -> str | None:
        """The hash of a seeded record's article."""
        self.holds(path)
        return self.seed.content_hash(path)


class Recorder:
    """Watches one exec. `evidence` is there once the script has run and was judged."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.evidence: Evidence | None = None

    def base(self, corpus: Corpus) -> WatchedCorpus:
        """The corpus to judge against, watched."""
        return WatchedCorpus(corpus, self.seen)

    def seed(self, seed: RecordSeed) -> WatchedSeed:
        """The seed to harvest against, watched."""
        return WatchedSeed(seed, self.seen)

    def keep(self, log: Log, policy: Policy, run: Run, judged: Judged, mount: Mount) -> None:
        """Read what the script left while the upper layer is still open."""
        changes = run.changes()
        after = keep_entries(changes.changed)
        vanished = tuple(sorted(changes.vanished))
        self.evidence = Evidence(log, policy, run, judged, mount, after, vanished, self.seen)


def keep_entries(changed: Mapping[bytes, Entry]) -> dict[bytes, Kept]:
    """The entries, with the bytes of as many files as one harvest takes.

    Only the bytes of `.html` files are ever harvested, so those go first.
    """
    from memhtml_harvest.budget import Budget

    budget = Budget()
    wanted = sorted(changed, key=lambda name: (not name.endswith(b".html"), name))
    found = {name: kept(changed[name], budget) for name in wanted}
    return {name: found[name] for name in changed}


def kept(entry: Entry, budget: Budget) -> Kept:
    """An entry with its bytes, up to one past the harvest's cap; past the budget its size alone."""
    from memhtml_harvest.rows import FILE_BYTES_CAP

    if entry.kind != "file" or entry.size > FILE_BYTES_CAP or budget.take_file(entry.size):
        return Kept(entry.kind, entry.size, b"")
    try:
        return Kept(entry.kind, entry.size, entry.read(FILE_BYTES_CAP + 1))
    except OSError:
        return Kept(entry.kind, entry.size, None)
