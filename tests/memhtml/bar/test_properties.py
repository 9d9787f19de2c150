"""The write bar on random logs over random small corpora.

Whatever the log holds, judging is total. What passes folds, and the folded tree keeps the promises
the rules exist for. A slow second reading of the duplicate, claim-edit and slot rules agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.support.bar import A, corpus, judged, page
from tests.support.growing import ENTITIES, LIVE, RELS, SLOTS, Growing, folded

from memhtml.bar.anchor import anchored
from memhtml.bar.batch import Batch
from memhtml.bar.contradictions import compare
from memhtml.bar.drop import drop_refused
from memhtml.bar.judge import judge, walk
from memhtml.bar.readings import Readings
from memhtml.corpus.memory import MemoryCorpus
from memhtml.policy import DEFAULT, Policy
from memhtml.schema.operations import Violation as PublishedViolation
from memhtml_format import edit
from memhtml_format.ops import (
    AddLabel,
    AddLink,
    Archive,
    DropLabel,
    DropLink,
    Move,
    Op,
    Put,
    encode,
)
from memhtml_format.paths import archive_path, archive_slot, href_target, is_archived, parents
from memhtml_format.record import read
from memhtml_format.violations import encode as encode_violation
from memhtml_format.violations import sentence

ODD = ["areas/arcs/z.html", "areas/inbox/index.html", "notes/a.html", f"/{A}", "", "archive/x.html"]
FRAMES = [f"The owner of part {n} is team {m}" for n in range(2) for m in range(4)]
ARBITRARY = st.text(max_size=8) | st.sampled_from(["\ud800", "a\x00b", "/", "//", "."])

paths = st.sampled_from(LIVE) | st.sampled_from(SLOTS)
hrefs = paths.map(lambda path: f"/{path}")
edges = st.lists(st.tuples(st.sampled_from(RELS), hrefs), max_size=2)
pages = st.builds(
    lambda claim, entities, links, kind: page(claim, entities=entities, links=links, kind=kind),
    st.sampled_from(FRAMES),
    st.lists(st.sampled_from(ENTITIES), max_size=2),
    edges,
    st.sampled_from(["semantic", "verdict", "episodic"]),
)
bases = st.dictionaries(paths, pages, min_size=2, max_size=7).map(
    lambda records: {
        path: html for path, html in records.items() if not set(parents(path)) & records.keys()
    }
)
policies = st.builds(Policy, st.sampled_from([frozenset(), frozenset({"episodic"})]), st.booleans())


def operations(
    where: st.SearchStrategy[str], texts: st.SearchStrategy[str]
) -> st.SearchStrategy[Op]:
    """Any of the seven kinds."""
    rels, entities = st.sampled_from(RELS), st.sampled_from(ENTITIES)
    targets = where.map(lambda path: f"/{path}")
    return st.one_of(
        st.builds(Put, where, texts),
        st.builds(AddLink, where, rels, targets),
        st.builds(DropLink, where, rels, targets),
        st.builds(AddLabel, where, entities),
        st.builds(DropLabel, where, entities),
        st.builds(Archive, where, where, texts),
        st.builds(Move, where, where, texts),
    )


wild_text = ARBITRARY | paths | st.sampled_from(ODD)
wild = operations(wild_text, pages | ARBITRARY) | st.builds(
    AddLink, wild_text, ARBITRARY, ARBITRARY
)


@given(bases, st.lists(wild, max_size=8), policies, st.sampled_from(["session", "curate"]))
@settings(max_examples=200, deadline=None)
def test_judging_is_total_and_every_finding_can_be_told(
    records: dict[str, str], ops: list[Op], policy: Policy, scope: str
) -> None:
    adapter: TypeAdapter[object] = TypeAdapter(PublishedViolation)
    found = judge(ops, corpus(records), policy, scope)
    for violation in found:
        adapter.validate_python(encode_violation(violation))
        assert violation.path is not None
        assert sentence(violation).startswith(f"{violation.path}: ")
    kept, dropped = drop_refused(ops, found)
    assert len(kept) + len(dropped) == len(ops)
    assert bool(dropped) == bool(found)


@given(bases, st.lists(wild, max_size=8), policies)
@settings(max_examples=100, deadline=None)
def test_dropping_ends_in_a_log_that_passes(
    records: dict[str, str], ops: list[Op], policy: Policy
) -> None:
    base = corpus(records)
    for _ in range(len(ops) + 1):
        found = judge(ops, base, policy, "session")
        if not found:
            return
        ops, _dropped = drop_refused(ops, found)
    pytest.fail("the log never passed")


@given(bases, policies, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_passing_batch_folds_into_a_tree_that_keeps_the_promises(
    records: dict[str, str], policy: Policy, rng: Random
) -> None:
    ops = Growing(records, policy, rng).grow(14)
    after = folded(records, ops)
    every_file_is_in_its_place(ops, after)
    no_edge_dangles(ops, after)
    no_live_article_gained_a_copy(ops, after)
    if policy.require_anchor:
        all_touched_records_are_anchored(ops, after)
    heads_are_as_the_batch_knew_them(records, ops, after)
    marks_name_live_records(records, ops, after)


def every_file_is_in_its_place(ops: Sequence[Op], after: MemoryCorpus) -> None:
    """What was written is a record, what left is gone, and no path lies below another."""
    here = set(after.record_paths())
    left = {op.path for op in ops if isinstance(op, Archive | Move)}
    for op in ops:
        if isinstance(op, Put):
            assert op.path in here | left
        if isinstance(op, Archive | Move):
            assert op.to in here
            assert op.path not in here
    for path in here:
        assert not here.intersection(parents(path))


def no_edge_dangles(ops: Sequence[Op], after: MemoryCorpus) -> None:
    """No live record links to a path that a move left."""
    for op in ops:
        if isinstance(op, Move):
            assert after.holders(op.path) == []


def no_live_article_gained_a_copy(ops: Sequence[Op], after: MemoryCorpus) -> None:
    """What a put wrote is the only live record with its article."""
    for op in ops:
        row = after.record(op.path) if isinstance(op, Put) else None
        if row is not None and not row.archived:
            assert after.live_with_hash(row.content_hash) == op.path


def all_touched_records_are_anchored(ops: Sequence[Op], after: MemoryCorpus) -> None:
    """Puts, unlabelled records and moved ones say what they are about."""
    touched = {op.path for op in ops if isinstance(op, Put | DropLabel)}
    touched |= {op.to for op in ops if isinstance(op, Move)}
    for path in touched & set(after.record_paths()):
        assert is_archived(path) or anchored(path, after.entities(path))


def heads_are_as_the_batch_knew_them(
    records: dict[str, str], ops: Sequence[Op], after: MemoryCorpus
) -> None:
    """The walk's picture of each head equals what the fold's bytes say."""
    batch = Batch(ops, corpus(records), DEFAULT, "session", Readings())
    assert walk(ops, batch) == []
    for path, head in batch.heads.items():
        row = after.record(path)
        if head is None:
            assert row is None
            continue
        assert row is not None
        assert head.content_hash == row.content_hash
        assert set(head.links) == set(after.links(path))
        assert set(head.entities) == set(after.entities(path))


def marks_name_live_records(
    records: dict[str, str], ops: Sequence[Op], after: MemoryCorpus
) -> None:
    """A contradiction is between two live records, and its link lands on the new one."""
    found = compare(ops, corpus(records))
    pairs = [(pair["path"], pair["against"]) for pair in found.contradictions]
    for path, against in pairs:
        assert path != against
        assert after.record(path) is not None
        assert after.record(against) is not None
        assert not is_archived(against)
    for path, hrefs in found.marks.items():
        data = after.read(path) or b""
        for href in hrefs:
            assert (path, href_target(href)) in pairs
            data = edit.add_link(data, "contradicts", href)
        marked = read(path, data).record
        assert marked is not None
        assert {link.href for link in marked.links if link.rel == "contradicts"} >= set(hrefs)
    restated = {(each["path"], each["against"]) for each in found.restatements}
    assert not restated & set(pairs)


simple_ops = st.lists(
    st.one_of(
        st.builds(Put, st.sampled_from([*LIVE[:3], *SLOTS[:4]]), st.sampled_from(FRAMES).map(page)),
        st.builds(
            lambda path, year, slot, html: Archive(path, archive_path(path, year, slot), html),
            st.sampled_from(LIVE[:3]),
            st.sampled_from([2025, 2026]),
            st.integers(1, 3),
            st.sampled_from(FRAMES).map(page),
        ),
    ),
    max_size=10,
)
simple_bases = st.dictionaries(
    st.sampled_from([*LIVE[:3], *SLOTS]), st.sampled_from(FRAMES).map(page), max_size=6
)


def plainly(records: dict[str, str], ops: Sequence[Op]) -> list[tuple[str, str]]:
    """Duplicates, claim edits and refused archives, found by scanning lists of everything."""
    done: list[Op] = []
    found: list[tuple[str, str]] = []
    for op in ops:
        earlier = [each for each in done if isinstance(each, Put)]
        archives = [each for each in done if isinstance(each, Archive)]
        if isinstance(op, Put):
            live = [html for path, html in records.items() if not is_archived(path)]
            if op.html in live + [each.html for each in earlier]:
                found.append(("duplicate", op.path))
            elif op.path in records or op.path in [each.to for each in archives]:
                found.append(("claim-edit", op.path))
            done.append(op)
        elif isinstance(op, Archive):
            now: dict[str, str] = dict(records)
            for each in done:
                if isinstance(each, Put):
                    now[each.path] = each.html
                elif isinstance(each, Archive):
                    now.pop(each.path, None)
            held = [*records, *(e.path for e in earlier), *(e.to for e in archives)]
            slot = archive_slot(op.to)
            assert slot is not None
            free = next(
                twin
                for twin in (archive_path(op.path, slot.year, n) for n in range(1, 50))
                if twin not in held
            )
            if now.get(op.path) == op.html and op.to == free:
                done.append(op)
            else:
                found.append(("format", op.path))
    return found


@given(simple_bases, simple_ops)
@settings(max_examples=200, deadline=None)
def test_slots_duplicates_and_claim_edits_agree_with_a_plain_reading(
    records: dict[str, str], ops: list[Op]
) -> None:
    found = [(each.kind, each.path) for each in judged(corpus(records), *ops)]
    assert found == plainly(records, ops)


@given(bases, st.lists(wild, max_size=6))
@settings(max_examples=60, deadline=None)
def test_judging_twice_gives_the_same(records: dict[str, str], ops: list[Op]) -> None:
    before = [encode(op) for op in ops]
    first = judge(ops, corpus(records), DEFAULT, "session")
    assert judge(ops, corpus(records), DEFAULT, "session") == first
    assert [encode(op) for op in ops] == before
