"""Seeded records that vanished: archives, moves and deletions (spec `harvest` §3.5).

Works on the put candidates that the table left over. Twins are found by name and copies by content
hash, each through one index that is built at most once, so that the cost follows the changes.
"""

from __future__ import annotations

from collections.abc import Callable

from memhtml_format import paths
from memhtml_format.ops import Archive, Move
from memhtml_harvest import heads
from memhtml_harvest.report import Candidate, Findings, Refusal
from memhtml_harvest.rows import Run

NAMED_COPIES = 3
_GONE = (
    "no file holds its article now, and a deletion is no operation; "
    "archive a record by moving it to archive/<year>/<its path>"
)
_GONE_ARCHIVED = "an archived record is history; it stays in its slot"


def pair_vanished(findings: Findings, run: Run, check: Callable[[], None]) -> None:
    """File what became of each vanished path, in path order; `check` as in `harvest`."""
    pairing = _Pairing(findings, run, check)
    for path in sorted(run.gone):
        check()
        pairing.settle(path)


class _Pairing:
    """The candidates of one harvest and who has claimed them."""

    __slots__ = ("_budget", "_check", "_copies", "_findings", "_scope", "_seed", "_twins")

    def __init__(self, findings: Findings, run: Run, check: Callable[[], None]) -> None:
        self._findings = findings
        self._seed = run.seed
        self._scope = run.scope
        self._budget = run.budget
        self._check = check
        self._twins = _first_twins(findings.puts)
        self._copies: dict[str, list[str]] | None = None

    def settle(self, path: str) -> None:
        """File what became of the vanished `path`."""
        if paths.is_archived(path):
            self._refuse(path, Refusal("deleted", _GONE_ARCHIVED))
            return
        twin = self._twins.get(path)
        copies = [] if twin else self._copies_of(path)
        partner = twin or (copies[0] if len(copies) == 1 else None)
        if partner is None:
            self._refuse(path, Refusal("deleted", _several(copies) if copies else _GONE))
            return
        if self._pairs(path, partner, is_twin=twin is not None):
            # Used up: the partner is no put, and no other record pairs with it.
            del self._findings.puts[partner]
            copies.clear()

    def _pairs(self, path: str, partner: str, *, is_twin: bool) -> bool:
        """File the pair, or why it is none. A reserved pair is refused as one, both halves."""
        candidate = self._findings.puts[partner]
        reserved = paths.reserved(path, self._scope)
        if reserved:
            refusal = Refusal("reserved-path", reserved.text)
            self._findings.reject_path(partner, refusal)
            self._refuse(path, refusal)
            return True
        difference = self._difference(path, partner, candidate)
        if difference:
            self._refuse(path, difference)
            return False
        if is_twin:
            self._findings.archives.append(Archive(path, partner, candidate.html))
        else:
            self._findings.moves.append(Move(path, partner, candidate.html))
        return True

    def _difference(self, path: str, partner: str, candidate: Candidate) -> Refusal | None:
        """Why the two are no pair; None files the head operations between them, if any."""
        old, new = self._seed.read(path), candidate.data
        if old == new:
            return None
        if old is None or _content_hash(new) != self._seed.content_hash(path):
            text = f"{partner} holds another article, so it is not this record archived"
            return Refusal("twin-differs", text)
        edit = heads.compare(old, new)
        if edit is None:
            return Refusal("head-edit", f"its copy at {partner} is no memory file any more")
        refusal = heads.refusal(edit, f"its copy at {partner} differs: ")
        refusal = refusal or self._budget.take_head_ops(edit.ops_count)
        if refusal:
            return refusal
        self._findings.head_ops[path] = heads.operations(path, edit)
        return None

    def _copies_of(self, path: str) -> list[str]:
        """The new files at live paths that hold the article of the vanished `path`.

        The list is the index's own, so that a pairing can empty it.
        """
        if self._copies is None:
            self._copies = _copies_by_hash(self._findings.puts, self._check)
        if not self._copies:
            # A script that only deletes asks nothing of the seed, whatever the number of records.
            return []
        content_hash = self._seed.content_hash(path)
        return [] if content_hash is None else self._copies.get(content_hash, [])

    def _refuse(self, path: str, refusal: Refusal) -> None:
        """List the vanished path, unless what stands there now is listed already (§3.5 rule 3)."""
        self._findings.reject_path(path, refusal)


def _first_twins(puts: dict[str, Candidate]) -> dict[str, str]:
    """For each path that a candidate is an archive slot of, the candidate of the lowest slot."""
    lowest: dict[str, tuple[int, int, str]] = {}
    for path in puts:
        slot = paths.archive_slot(path)
        if slot is None:
            continue
        key = (slot.year, slot.slot, path)
        lowest[slot.original] = min(key, lowest.get(slot.original, key))
    return {original: path for original, (_, _, path) in lowest.items()}


def _is_copy(path: str, candidate: Candidate) -> bool:
    """Whether a record may have moved there: a new file at a live path."""
    return candidate.new and not paths.is_archived(path)


def _copies_by_hash(puts: dict[str, Candidate], check: Callable[[], None]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, candidate in puts.items():
        if _is_copy(path, candidate):
            check()
            content_hash = _content_hash(candidate.data)
            if content_hash is not None:
                found.setdefault(content_hash, []).append(path)
    return found


def _content_hash(data: bytes) -> str | None:
    from memhtml_format.record import content_hash

    return content_hash(data)


def _several(copies: list[str]) -> str:
    """The reason for more copies than one; it names a few, since every source repeats it."""
    named = ", ".join(copies[:NAMED_COPIES])
    more = ", …" if len(copies) > NAMED_COPIES else ""
    return f"{len(copies)} new files hold its article ({named}{more}), so it moved to none of them"
