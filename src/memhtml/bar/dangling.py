"""Edges to moved records that nobody repointed (spec `write-bar` §4.7).

Asked after the whole batch is walked: for each move, every live record that still carries a link
to the old path is one `format` violation at the moved source.
"""

from __future__ import annotations

from memhtml.bar.batch import Batch
from memhtml_format.paths import href, href_target, is_archived
from memhtml_format.record import Link
from memhtml_format.violations import Violation

Holders = dict[str, list[Link]]
"""Holder → its edges, in document order."""


def dangling_edges(batch: Batch) -> list[Violation]:
    """The violations, moves in log order, the holders of one in path order."""
    if not batch.moves:
        return []
    staged = _staged_holders(batch)
    found = []
    for source, destination in batch.moves.items():
        holders = dict(staged.get(source, {}))
        for holder, link in batch.base.holders(source):
            if holder not in batch.heads:
                holders.setdefault(holder, []).append(link)
        for holder in sorted(holders):
            reasons = [_reason(holder, link, destination) for link in holders[holder]]
            found.append(Violation("format", source, tuple(dict.fromkeys(reasons))))
    return found


def _staged_holders(batch: Batch) -> dict[str, Holders]:
    """Moved source → the live records the batch touched that still link to it.

    A record that left is not there any more: its copy under `archive/` keeps its edges as history,
    and a moved one is found at its destination.
    """
    found: dict[str, Holders] = {}
    for path, head in batch.heads.items():
        if head is None or is_archived(path):
            continue
        for link in head.links:
            named = href_target(link.href)
            if named in batch.moves:
                found.setdefault(named, {}).setdefault(path, []).append(link)
    return found


def _reason(holder: str, link: Link, destination: str) -> str:
    return (
        f"moved to {destination}, but {holder} still links here with {link.rel} ({link.href}); "
        f"in the same batch unlink that edge and link {link.rel} to {href(destination)}"
    )
