"""New claims beside live records of the same frame, at commit (spec `write-bar` §8).

Nothing here refuses a commit: a contradiction becomes a `contradicts` link on the new file, a
restatement is only listed. The comparison is lexical.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from memhtml.bar.readings import Readings
from memhtml.corpus.interface import Corpus, RecordRow
from memhtml_format.ops import AddLink, Archive, DropLink, Move, Op, Put
from memhtml_format.paths import archive_slot, href, href_target, is_archived
from memhtml_format.record import Link, Record

Restatement: TypeAlias = Literal["archived", "superseded", "same-value"]


class Comparison(NamedTuple):
    """The links to add, by path of the new file, and the two lists of the payload."""

    marks: dict[str, list[str]]
    """Path of a new file → hrefs its head must name with `contradicts`."""
    contradictions: list[dict[str, Any]]
    """`{path, against}`."""
    restatements: list[dict[str, Any]]
    """`{path, against, reason}`."""


class _Fate(NamedTuple):
    """What the log does to records: who is archived, who moves where, what new files link to."""

    archived: frozenset[str]
    moved: dict[str, str]
    puts: dict[str, str]
    """Path → html of its final put, in the order of those."""
    links: dict[str, set[Link]]
    """Path of a put → the links its head ends up with."""


def compare(ops: Sequence[Op], base: Corpus, *, readings: Readings | None = None) -> Comparison:
    """Classify each pair of a new claim and a live record of the base with its frame key.

    Only for a log that passed the bar against `base`. `readings` may be the ones of `judge`.
    """
    readings = readings or Readings()
    fate = _fate(ops, readings)
    found = Comparison({}, [], [])
    for path, html in fate.puts.items():
        record = readings.record(html)
        if record is None or record.frame_key is None:
            continue
        for rival in base.rivals(record.frame_key):
            if rival.path != path:
                _add_pair(found, path, record, rival, fate)
    return found


def _add_pair(found: Comparison, path: str, record: Record, rival: RecordRow, fate: _Fate) -> None:
    against = fate.moved.get(rival.path, rival.path)
    reason = _restates(record, fate.links[path], rival, against, fate)
    if reason is not None:
        found.restatements.append({"path": path, "against": against, "reason": reason})
        return
    found.contradictions.append({"path": path, "against": against})
    if Link("contradicts", href(against)) not in fate.links[path]:
        found.marks.setdefault(path, []).append(href(against))


def _restates(
    record: Record, links: set[Link], rival: RecordRow, against: str, fate: _Fate
) -> Restatement | None:
    """The first row of the table that matches; None is a contradiction."""
    if rival.path in fate.archived:
        return "archived"
    if any(link.rel == "supersedes" and _names(link, (rival.path, against)) for link in links):
        return "superseded"
    return "same-value" if _agree(record, rival) else None


def _names(link: Link, paths: tuple[str, ...]) -> bool:
    """Whether the link's target is one of the paths, or an archive slot of one."""
    named = href_target(link.href)
    slot = archive_slot(named)
    return named in paths or (slot is not None and slot.original in paths)


def _agree(record: Record, rival: RecordRow) -> bool:
    """Equal values; of two verdicts equal titles as well, because those carry the ruling."""
    from memhtml_format.frame import values_agree

    if not values_agree(record.frame_value or "", rival.frame_value or ""):
        return False
    both_verdicts = record.memory_type == rival.memory_type == "verdict"
    return not both_verdicts or values_agree(record.title, rival.title)


def _fate(ops: Sequence[Op], readings: Readings) -> _Fate:
    archived: set[str] = set()
    moved: dict[str, str] = {}
    puts: dict[str, str] = {}
    links: dict[str, set[Link]] = {}
    for op in ops:
        if isinstance(op, Put) and not is_archived(op.path):
            puts.pop(op.path, None)  # Two puts of one path count as the final one.
            puts[op.path] = op.html
            record = readings.record(op.html)
            links[op.path] = set(record.links if record else ())
        elif isinstance(op, AddLink) and op.path in links:
            links[op.path].add(Link(op.rel, op.href))
        elif isinstance(op, DropLink) and op.path in links:
            links[op.path].discard(Link(op.rel, op.href))
        elif isinstance(op, Archive):
            archived.add(op.path)
            puts.pop(op.path, None)  # A new file archived at once is history, not a rival.
        elif isinstance(op, Move):
            moved[op.path] = op.to
    return _Fate(frozenset(archived), moved, puts, links)
