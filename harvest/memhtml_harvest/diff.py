"""The harvest: what a changed tree means as session operations (spec `harvest` §3).

A pure function of plain values: the entries that are new or different, the seeded paths that have
no regular file any more, and the seed. It reads no disk and no clock, and adds no repairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from memhtml_harvest.report import Findings, Harvest
from memhtml_harvest.seed import Entry, Seed, holds_exactly


class Changes(NamedTuple):
    """A difference in the form `harvest` takes."""

    changed: dict[bytes, Entry]
    vanished: frozenset[str]


def harvest(
    changed: Mapping[bytes, Entry], vanished: Iterable[str], seed: Seed, *, scope: str
) -> Harvest:
    """The operations and rejections of one run; `scope` is `session` or `curate`.

    `changed` maps names below the mount, as bytes, to what stands there; entries that equal their
    seed are allowed and mean nothing. `vanished` are the seeded paths without a regular file.
    Every other entry and path ends up in an operation or among the rejected ones.
    """
    gone = frozenset(vanished)
    if not changed and not gone:
        return Harvest((), ())
    # Imported here, so that a run that changed nothing loads no parser.
    from memhtml_harvest.pair import pair_vanished
    from memhtml_harvest.rows import file_change

    findings = Findings()
    for raw in sorted(changed):
        file_change(raw, changed[raw], findings, seed, gone, scope)
    pair_vanished(gone, findings, seed, scope)
    return findings.finish(scope)


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
