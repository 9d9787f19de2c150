"""How the write bar judges moves and the edges they leave behind (spec `write-bar` §4.7)."""

from __future__ import annotations

import pytest
from tests.support.bar import A, B, C, corpus, judged, kinds, only_reason, page, reasons

from memhtml_format.ops import AddLabel, AddLink, Archive, DropLink, Move, Put

OLD = page("a is here")
TO = "projects/p/a.html"
MOVE = Move(A, TO, OLD)
BASE = corpus({A: OLD, B: page("b is here")})


def holder(*hrefs: str, rel: str = "part_of") -> str:
    """A page whose edges name these paths."""
    return page("c is here", links=[(rel, f"/{href}") for href in hrefs])


def test_move_to_a_free_live_path_passes() -> None:
    assert judged(BASE, MOVE) == []


@pytest.mark.parametrize("to", ["notes/a.html", "projects/p/a.txt", "projects/../a.html"])
def test_destination_that_is_no_memory_path_is_marked(to: str) -> None:
    assert only_reason(judged(BASE, Move(A, to, OLD)), "format", A).startswith("move destination: ")


@pytest.mark.parametrize("to", ["archive/2026/areas/inbox/a.html", A, B])
def test_destination_that_is_archived_or_held_is_format(to: str) -> None:
    assert kinds(judged(BASE, Move(A, to, OLD))) == [("format", A)]


def test_destination_written_earlier_in_the_batch_is_format() -> None:
    put = Put(TO, page("x is new"))
    assert "earlier in this batch" in only_reason(judged(BASE, put, MOVE), "format", A)
    other = Move(B, TO, page("b is here"))
    assert kinds(judged(BASE, MOVE, other)) == [("format", B)]


def test_path_that_a_record_left_is_no_destination() -> None:
    found = judged(BASE, MOVE, Move(B, A, page("b is here")))
    assert kinds(found) == [("format", B)]


def test_put_of_this_batch_cannot_move() -> None:
    new = page("c is new")
    reason = only_reason(judged(BASE, Put(C, new), Move(C, TO, new)), "format", C)
    assert "only a record of the base" in reason


def test_record_that_was_put_over_cannot_move() -> None:
    new = page("a is new")
    found = judged(BASE, Put(A, new), Move(A, TO, new))
    assert kinds(found) == [("claim-edit", A), ("format", A)]


@pytest.mark.parametrize("source", [C, "archive/2026/areas/inbox/z.html"])
def test_source_that_is_no_live_record_is_format(source: str) -> None:
    base = corpus({"archive/2026/areas/inbox/z.html": OLD})
    assert kinds(judged(base, Move(source, TO, OLD))) == [("format", source)]


def test_second_move_of_one_record_is_format_at_either_path() -> None:
    again = judged(BASE, MOVE, Move(A, "projects/q/a.html", OLD))
    assert "moved earlier in this batch" in only_reason(again, "format", A)
    onward = judged(BASE, MOVE, Move(TO, "projects/q/a.html", OLD))
    assert "moved here" in only_reason(onward, "format", TO)


def test_archived_source_cannot_move() -> None:
    found = judged(BASE, Archive(A, f"archive/2026/{A}", OLD), MOVE)
    assert "archived earlier in this batch" in only_reason(found, "format", A)


def test_html_must_hold_the_article_and_meet_the_constraints() -> None:
    other = only_reason(judged(BASE, Move(A, TO, page("x is"))), "format", A)
    assert "another article" in other
    broken = OLD.replace("<title>A title</title>", "")
    assert only_reason(judged(BASE, Move(A, TO, broken)), "format", A).startswith("html: ")


def test_old_record_with_active_content_can_still_move() -> None:
    old = OLD.replace("</article>", "<form></form></article>")
    assert judged(corpus({A: old}), Move(A, TO, old)) == []


def test_put_at_the_destination_is_a_claim_edit() -> None:
    assert kinds(judged(BASE, MOVE, Put(TO, page("x is new")))) == [("claim-edit", TO)]


@pytest.mark.parametrize("to", [f"{A}/x.html", f"{B}/x.html"])
def test_destination_below_a_record_is_format(to: str) -> None:
    assert "move destination: " in only_reason(judged(BASE, Move(A, to, OLD)), "format", A)


def test_failures_of_one_move_are_one_violation() -> None:
    text = reasons(judged(BASE, Move(C, "x", "<p>")), "format", C)
    assert "no live record" in text
    assert "move destination: " in text
    assert "html: " in text


def test_edge_to_the_old_path_is_format_naming_the_fix() -> None:
    base = corpus({A: OLD, C: holder(A)})
    reason = only_reason(judged(base, MOVE), "format", A)
    for part in (TO, C, "part_of", "unlink", f"link part_of to /{TO}", "same batch"):
        assert part in reason


def test_each_holder_is_one_violation_with_a_reason_for_each_edge() -> None:
    both = page(
        "c is", links=[("part_of", f"/{A}"), ("supports", f"/{A}#x"), ("supports", f"/{B}")]
    )
    base = corpus({A: OLD, B: holder(A), C: both})
    found = judged(base, MOVE)
    assert kinds(found) == [("format", A), ("format", A)]
    assert [len(violation.reasons) for violation in found] == [1, 2]


def test_holders_come_in_path_order_whoever_linked() -> None:
    base = corpus({A: OLD, B: holder(A), C: page("c is here")})
    found = judged(base, AddLink(C, "supports", f"/{A}"), MOVE)
    assert [B in found[0].reasons[0], C in found[1].reasons[0]] == [True, True]


@pytest.mark.parametrize("repoint_first", [True, False])
def test_repointing_before_or_after_the_move_passes(repoint_first: bool) -> None:
    base = corpus({A: OLD, C: holder(A)})
    repoint = (DropLink(C, "part_of", f"/{A}"), AddLink(C, "part_of", f"/{TO}"))
    ops = (*repoint, MOVE) if repoint_first else (MOVE, *repoint)
    assert judged(base, *ops) == []


def test_unlinking_alone_passes() -> None:
    base = corpus({A: OLD, C: holder(A)})
    assert judged(base, DropLink(C, "part_of", f"/{A}"), MOVE) == []


def test_edge_of_a_put_in_the_batch_counts() -> None:
    found = judged(BASE, MOVE, Put(C, holder(A)))
    assert C in only_reason(found, "format", A)


def test_link_added_in_the_batch_counts() -> None:
    found = judged(BASE, AddLink(B, "supports", f"/{A}"), MOVE)
    assert B in only_reason(found, "format", A)


def test_replaced_put_no_longer_holds_its_edge() -> None:
    found = judged(BASE, MOVE, Put(C, holder(A)), Put(C, page("c is plain")))
    assert found == []


def test_refused_put_holds_no_edge() -> None:
    bad = holder(A).replace("<title>A title</title>", "")
    assert kinds(judged(BASE, MOVE, Put(C, bad))) == [("format", C)]


def test_holder_that_the_batch_archives_is_exempt() -> None:
    base = corpus({A: OLD, C: holder(A)})
    assert judged(base, MOVE, Archive(C, f"archive/2026/{C}", holder(A))) == []


def test_archived_holder_never_counts() -> None:
    base = corpus({A: OLD, f"archive/2025/{C}": holder(A)})
    assert (
        judged(base, MOVE, Put(f"archive/2026/{C}", page("z", links=[("supports", f"/{A}")]))) == []
    )


def test_holder_that_moves_is_judged_at_its_destination() -> None:
    base = corpus({A: OLD, C: holder(A)})
    away = Move(C, "projects/p/c.html", holder(A))
    assert "projects/p/c.html" in only_reason(judged(base, MOVE, away), "format", A)
    repaired = (
        MOVE,
        away,
        DropLink("projects/p/c.html", "part_of", f"/{A}"),
        AddLink("projects/p/c.html", "part_of", f"/{TO}"),
    )
    assert judged(base, *repaired) == []


def test_self_link_of_the_moved_record_must_go() -> None:
    selfish = page("a is here", links=[("relates_to", f"/{A}")])
    base = corpus({A: selfish})
    move = Move(A, TO, selfish)
    assert TO in only_reason(judged(base, move), "format", A)
    assert judged(base, DropLink(A, "relates_to", f"/{A}"), move) == []


def test_two_records_that_link_to_each_other_move_together() -> None:
    base = corpus({A: holder(B), B: page("b is here", links=[("part_of", f"/{A}")])})
    to_b = "projects/p/b.html"
    ops = (
        DropLink(A, "part_of", f"/{B}"),
        DropLink(B, "part_of", f"/{A}"),
        AddLink(A, "part_of", f"/{to_b}"),
        AddLink(B, "part_of", f"/{TO}"),
        Move(A, TO, holder(B)),
        Move(B, to_b, page("b is here")),
    )
    assert judged(base, *ops) == []


def test_refused_move_leaves_no_edge_dangling() -> None:
    base = corpus({A: OLD, C: holder(A)})
    assert kinds(judged(base, Move(A, C, OLD), AddLabel(A, "a:b"))) == [("format", A)]


def test_dangling_edges_come_after_the_walk() -> None:
    base = corpus({A: OLD, C: holder(A)})
    found = judged(base, MOVE, AddLabel(B, "a:b"))
    assert kinds(found) == [("format", B), ("format", A)]
