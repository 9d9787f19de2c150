"""The harvest: what a changed tree means as session operations (spec `harvest` §3).

A pure function of plain values: the entries that are new or different, the seeded paths that have
no regular file any more, and the seed. It reads no disk and no clock, and adds no repairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from memhtml_harvest.budget import HARVEST_BYTES_CAP, Budget
from memhtml_harvest.report import Findings, Harvest
from memhtml_harvest.seed import Entry, Seed, holds_exactly


class Changes(NamedTuple):
    """A difference in the form `harvest` takes."""

    changed: dict[bytes, Entry]
    vanished: frozenset[str]


def harvest(
    changed: Mapping[bytes, Entry],
    vanished: Iterable[str],
    seed: Seed,
    *,
    scope: str,
    bytes_cap: int = HARVEST_BYTES_CAP,
    check: Callable[[], None] | None = None,
) -> Harvest:
    """The operations and rejections of one run; `scope` is `session` or `curate`.

    `changed` maps names below the mount, as bytes, to what stands there; entries that equal their
    seed are allowed and mean nothing. `vanished` are the seeded paths without a regular file.
    Every other entry and path ends up in an operation or among the rejected ones.

    The files that are read state `bytes_cap` bytes in all at most, in path order; one that does
    not fit any more is `too-large`. `check` is called before each file and each vanished path, and
    what it raises ends the harvest: a caller's deadline.
    """
    gone = frozenset(vanished)
    if not changed and not gone:
        return Harvest((), ())
    # Imported here, so that a run that changed nothing loads no parser.
    from memhtml_harvest.pair import pair_vanished
    from memhtml_harvest.rows import Run, file_change

    check = check or _in_time
    findings = Findings()
    run = Run(seed, gone, scope, Budget(bytes_cap))
    for raw in sorted(changed):
        check()
        file_change(raw, changed[raw], findings, run)
    pair_vanished(findings, run, check)
    return findings.finish(scope)


def _in_time() -> None:
    """The check of a caller without a deadline."""


def diff_trees(before: Mapping[str, bytes], after: Mapping[bytes, Entry]) -> Changes:
    """The difference of two whole trees, for callers that hold both (spec `harvest` §6)."""
    changed: dict[bytes, Entry] = {}
    files: set[bytes] = set()
    for raw, entry in after.items():
        if entry.kind == "file":
            files.add(raw)
        if not same_as_seed(raw, entry, before):
            changed[raw] = entry
    return Changes(changed, frozenset(path for path in before if path.encode() not in files))


def same_as_seed(raw: bytes, entry: Entry, before: Mapping[str, bytes]) -> bool:
    """Whether the entry is a regular file with the bytes that `before` has at its name."""
    try:
        seeded = before.get(raw.decode())
    except UnicodeDecodeError:
        return False
    return seeded is not None and holds_exactly(entry, seeded)
