"""link, unlink, label, unlabel: head edits of live sources (spec `write-bar` §4.4, §4.5).

All failures of one operation become one `format` violation at its source.
"""

from __future__ import annotations

from memhtml.bar.batch import Batch, why_not_live
from memhtml_format.ops import AddLabel, AddLink, DropLabel, DropLink
from memhtml_format.paths import href_target, is_root_relative
from memhtml_format.record import Link
from memhtml_format.text import well_formed_entity
from memhtml_format.violations import Violation
from memhtml_format.vocab import RELS


def judge_link(op: AddLink, batch: Batch) -> list[Violation]:
    """A link already there is accepted and changes nothing."""
    head = batch.live(op.path)
    reasons = _edge_reasons(op, batch)
    if not is_root_relative(op.href):
        reasons.append(f"href {op.href!r} is not root-relative")
    else:
        reasons.extend(_target_reasons(op.path, href_target(op.href), batch))
    if reasons or head is None:
        return [Violation("format", op.path, tuple(reasons))]
    head.links[Link(op.rel, op.href)] = None
    return []


def judge_unlink(op: DropLink, batch: Batch) -> list[Violation]:
    """The edge must be on the source as the batch left it so far."""
    head = batch.live(op.path)
    reasons = _edge_reasons(op, batch)
    edge = Link(op.rel, op.href)
    if not reasons and head is not None and edge not in head.links:
        reasons.append(f"no link {op.rel} to {op.href!r} is on it")
    if reasons or head is None:
        return [Violation("format", op.path, tuple(reasons))]
    del head.links[edge]
    return []


def judge_label(op: AddLabel, batch: Batch) -> list[Violation]:
    """The value must be well formed and not carried yet."""
    head = batch.live(op.path)
    reasons = [] if head is not None else [why_not_live(batch, op.path)]
    if not well_formed_entity(op.entity):
        reasons.append(f"entity {op.entity!r} is not a lower-case type:name")
    if head is not None and op.entity in head.entities:
        reasons.append(f"it carries the entity {op.entity!r} already")
    if reasons or head is None:
        return [Violation("format", op.path, tuple(reasons))]
    head.entities[op.entity] = None
    return []


def judge_unlabel(op: DropLabel, batch: Batch) -> list[Violation]:
    """The value must be carried, spelled exactly so; it may be malformed."""
    head = batch.live(op.path)
    if head is None:
        return [Violation("format", op.path, (why_not_live(batch, op.path),))]
    if op.entity not in head.entities:
        return [Violation("format", op.path, (f"it carries no entity {op.entity!r}",))]
    del head.entities[op.entity]
    batch.unlabelled[op.path] = None
    return []


def _edge_reasons(op: AddLink | DropLink, batch: Batch) -> list[str]:
    """What both kinds of edge edit ask: a live source and a known rel."""
    reasons = [] if batch.live(op.path) is not None else [why_not_live(batch, op.path)]
    if op.rel not in RELS:
        reasons.append(f"rel {op.rel!r} is none of {', '.join(RELS)}")
    return reasons


def _target_reasons(source: str, named: str, batch: Batch) -> list[str]:
    if named == source:
        return ["a record does not link to itself"]
    if named in batch.named or batch.base.record(named) is not None:
        return []
    return [f"the target /{named} is not a record"]
