"""The write bar on random logs over random small corpora.

Whatever the log holds, judging is total. What passes folds, and the folded tree keeps the promises
the rules exist for. A slow second reading of the duplicate, claim-edit and slot rules agrees.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.support.bar import A, B, C, corpus, judged, page

from memhtml.bar.anchor import anchored
from memhtml.bar.batch import Batch
from memhtml.bar.contradictions import compare
from memhtml.bar.drop import drop_refused
from memhtml.bar.judge import judge, walk
from memhtml.bar.readings import Readings
from memhtml.corpus.fold import fold
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

AT = "2026-08-09T10:11:12Z"
LIVE = [
    A,
    B,
    C,
    "areas/x.html",
    "areas/x.html/y.html",
    "projects/p/a.html",
    "resources/t/b.html",
]
SLOTS = [f"archive/{year}/{path}" for year in ("2026", "2026.2", "2025") for path in LIVE[:3]]
ODD = ["areas/arcs/z.html", "areas/inbox/index.html", "notes/a.html", f"/{A}", "", "archive/x.html"]
FRAMES = [f"The owner of part {n} is team {m}" for n in range(2) for m in range(3)]
RELS = ["supports", "supersedes", "contradicts", "relates_to"]
ENTITIES = ["a:b", "c:d", "Legacy"]
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
bases = st.dictionaries(paths, pages, max_size=6).map(
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


def grown(records: dict[str, str], offers: Sequence[Op], policy: Policy) -> list[Op]:
    """The operations among `offers` that a session could append one by one without a finding."""
    base, readings = corpus(records), Readings()
    kept: list[Op] = []
    for offer in offers:
        if isinstance(offer, Archive | Move):
            offer = at_home(offer, records, kept)
        if not judge([*kept, offer], base, policy, "session", readings=readings):
            kept.append(offer)
    return kept


def at_home(op: Archive | Move, records: dict[str, str], kept: Sequence[Op]) -> Op:
    """The same operation with the article its source has, and an archive into a slot of its own."""
    html = {**records, **{op.path: op.html for op in kept if isinstance(op, Put)}}.get(op.path, "")
    if isinstance(op, Move):
        return op._replace(html=html)
    slot = archive_slot(op.to)
    return op._replace(to=archive_path(op.path, *slot[:2]) if slot else op.to, html=html)


def folded(records: dict[str, str], ops: Sequence[Op]) -> MemoryCorpus:
    """The corpus after the log landed."""
    files = {path: html.encode() for path, html in records.items()}
    outcome = fold(ops, files.get, AT)
    kept = {path: data for path, data in files.items() if path not in outcome.gone}
    return MemoryCorpus(kept | outcome.files)


passing_offers = st.lists(operations(paths, pages), max_size=25)


@given(bases, passing_offers, policies)
@settings(max_examples=120, deadline=None)
def test_passing_batch_folds_into_a_sound_tree(
    records: dict[str, str], offers: list[Op], policy: Policy
) -> None:
    ops = grown(records, offers, policy)
    after = folded(records, ops)
    here = set(after.record_paths())
    for op in ops:
        if isinstance(op, Put):
            assert op.path in here or op.path in left_paths(ops)
        if isinstance(op, Archive | Move):
            assert op.to in here
            assert op.path not in here
    for path in here:
        assert not here.intersection(parents(path))
    for source in (op.path for op in ops if isinstance(op, Move)):
        assert after.holders(source) == []


def left_paths(ops: Sequence[Op]) -> set[str]:
    """Sources of archives and moves."""
    return {op.path for op in ops if isinstance(op, Archive | Move)}


@given(bases, passing_offers)
@settings(max_examples=120, deadline=None)
def test_passing_batch_adds_no_second_copy_of_a_live_article(
    records: dict[str, str], offers: list[Op]
) -> None:
    ops = grown(records, offers, DEFAULT)
    after = folded(records, ops)
    written = {op.path for op in ops if isinstance(op, Put) and not is_archived(op.path)}
    for path in written & set(after.record_paths()):
        row = after.record(path)
        assert row is not None
        assert after.live_with_hash(row.content_hash) == path


@given(bases, passing_offers)
@settings(max_examples=120, deadline=None)
def test_passing_batch_leaves_what_it_touched_anchored(
    records: dict[str, str], offers: list[Op]
) -> None:
    ops = grown(records, offers, Policy(require_anchor=True))
    after = folded(records, ops)
    judged_paths = {op.path for op in ops if isinstance(op, Put | DropLabel)}
    judged_paths |= {op.to for op in ops if isinstance(op, Move)}
    for path in judged_paths & set(after.record_paths()):
        if not is_archived(path):
            assert anchored(path, after.entities(path))


@given(bases, passing_offers)
@settings(max_examples=120, deadline=None)
def test_batch_knows_the_heads_that_the_fold_writes(
    records: dict[str, str], offers: list[Op]
) -> None:
    ops = grown(records, offers, DEFAULT)
    batch = Batch(ops, corpus(records), DEFAULT, "session", Readings())
    assert walk(ops, batch) == []
    after = folded(records, ops)
    for path, head in batch.heads.items():
        row = after.record(path)
        if head is None or is_archived(path):
            assert row is None or is_archived(path)
            continue
        assert row is not None
        assert head.content_hash == row.content_hash
        assert set(head.links) == set(after.links(path))
        assert set(head.entities) == set(after.entities(path))


@given(bases, passing_offers)
@settings(max_examples=120, deadline=None)
def test_marks_name_live_records_and_land_on_new_files(
    records: dict[str, str], offers: list[Op]
) -> None:
    ops = grown(records, offers, DEFAULT)
    base = corpus(records)
    found = compare(ops, base)
    after = folded(records, ops)
    pairs = [(pair["path"], pair["against"]) for pair in found.contradictions]
    for path, against in pairs:
        assert after.record(path) is not None
        assert after.record(against) is not None
        assert not is_archived(against)
        assert path != against
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
