"""What `--drop-refused` takes out of a log (spec `write-bar` §9)."""

from __future__ import annotations

from tests.support.bar import A, B, C, corpus, judged, page

from memhtml.bar.drop import Dropped, drop_refused
from memhtml.corpus.interface import Corpus
from memhtml.policy import DEFAULT
from memhtml_format.ops import AddLabel, AddLink, Archive, DropLink, Move, Op, Put
from memhtml_format.violations import Violation, sentence

OLD = page("a is here")


def rounds(base: Corpus, ops: list[Op]) -> tuple[list[Op], list[Dropped], int]:
    """Drop until the bar passes or the log is empty; how many rounds it took."""
    from memhtml.bar.judge import judge

    gone: list[Dropped] = []
    for taken in range(20):
        found = judge(ops, base, DEFAULT, "session")
        if not found or not ops:
            return ops, gone, taken
        ops, dropped = drop_refused(ops, found)
        gone.extend(dropped)
    raise AssertionError("dropping did not end")


def test_every_operation_on_a_refused_path_goes_the_good_ones_included() -> None:
    ops: list[Op] = [
        Put(B, page("b is new")),
        AddLabel(B, "a:b"),
        AddLabel(B, "A B"),
        Put(C, page("c is")),
    ]
    found = judged(corpus({}), *ops)
    kept, dropped = drop_refused(ops, found)
    assert kept == [ops[3]]
    assert [(item.kind, item.path) for item in dropped] == [("put", B), ("label", B), ("label", B)]
    assert dropped[0].reasons == (sentence(found[0]),)


def test_operation_goes_when_its_destination_is_refused() -> None:
    move = Move(A, "areas/arcs/a.html", OLD)
    found = judged(corpus({A: OLD}), move)
    kept, dropped = drop_refused([move], found)
    assert kept == []
    assert dropped == [Dropped("move", A, (sentence(found[0]),))]


def test_operation_between_two_refused_paths_carries_both_sentences_once() -> None:
    archive = Archive(A, f"archive/2026/{A}", OLD)
    twice = [
        Violation("reserved-path", A),
        Violation("reserved-path", A),
        Violation("claim-edit", archive.to),
    ]
    _, dropped = drop_refused([archive], twice)
    assert dropped[0].reasons == (sentence(twice[0]), sentence(twice[2]))


def test_violation_without_a_path_drops_nothing() -> None:
    ops = [Put(B, page("b is new"))]
    assert drop_refused(ops, [Violation("batch-cap", held=201, cap=200)]) == (ops, [])
    assert drop_refused([], []) == ([], [])


def test_link_to_a_dropped_put_goes_in_the_next_round() -> None:
    base = corpus({A: OLD})
    ops: list[Op] = [AddLink(A, "supports", f"/{B}"), Put(B, "<p>"), Put(C, page("c is"))]
    kept, gone, taken = rounds(base, ops)
    assert kept == [ops[2]]
    assert [item.kind for item in gone] == ["put", "link"]
    assert taken == 2


def test_move_with_a_dangling_edge_goes_and_its_repoints_follow() -> None:
    to = "projects/p/a.html"
    base = corpus(
        {
            A: OLD,
            B: page("b is", links=[("supports", f"/{A}")]),
            C: page("c is", links=[("supports", f"/{A}")]),
        }
    )
    ops: list[Op] = [
        DropLink(B, "supports", f"/{A}"),
        AddLink(B, "supports", f"/{to}"),
        Move(A, to, OLD),
        AddLabel(C, "x:y"),
    ]
    kept, gone, taken = rounds(base, ops)
    assert kept == [ops[3]]
    assert [item.kind for item in gone] == ["move", "unlink", "link"]
    assert taken == 2
