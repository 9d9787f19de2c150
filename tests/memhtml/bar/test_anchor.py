"""requireAnchor at the end of a batch (spec `write-bar` §5.2); puts are in `test_put`."""

from __future__ import annotations

from tests.support.bar import STRICT, A, B, corpus, judged, kinds, page

from memhtml_format.ops import AddLabel, AddLink, Archive, DropLabel, Move, Op, Put
from memhtml_format.violations import Violation

ANCHORED = page("a is here", entities=["system:cache"])
PLAIN = page("x is here")
PROJECT = "projects/p/x.html"
TOPIC = "resources/t/x.html"
BASE = corpus({A: ANCHORED, PROJECT: PLAIN, B: page("b is bare")})


def strict(*ops: Op) -> list[Violation]:
    """The findings over the base under a policy that requires an anchor."""
    return judged(BASE, *ops, policy=STRICT)


def test_unanchored_record_is_not_judged_by_itself() -> None:
    assert strict(AddLink(B, "supports", f"/{A}"), AddLabel(A, "x:y")) == []


def test_unlabelling_the_last_entity_is_below_the_bar() -> None:
    found = strict(DropLabel(A, "system:cache"))
    assert kinds(found) == [("write-bar", A)]
    assert "memhtml-entity" in found[0].reasons[0]


def test_unlabelling_is_judged_at_the_end_of_the_batch() -> None:
    assert strict(DropLabel(A, "system:cache"), AddLabel(A, "system:store")) == []


def test_unlabelled_record_that_the_batch_archives_passes() -> None:
    assert strict(DropLabel(A, "system:cache"), Archive(A, f"archive/2026/{A}", ANCHORED)) == []


def test_unlabelled_record_that_moves_is_judged_once_at_its_destination() -> None:
    to = "resources/t/a.html"
    assert kinds(strict(DropLabel(A, "system:cache"), Move(A, to, ANCHORED))) == [("write-bar", to)]
    after = strict(Move(A, to, ANCHORED), DropLabel(to, "system:cache"))
    assert kinds(after) == [("write-bar", to)]


def test_moving_out_of_a_project_without_entity_is_below_the_bar() -> None:
    assert kinds(strict(Move(PROJECT, TOPIC, PLAIN))) == [("write-bar", TOPIC)]
    assert strict(Move(PROJECT, TOPIC, PLAIN), AddLabel(TOPIC, "x:y")) == []
    assert strict(Move(PROJECT, "projects/q/x.html", PLAIN)) == []


def test_moving_an_unanchored_record_is_judged_even_when_it_was_so_before() -> None:
    assert kinds(strict(Move(B, TOPIC, page("b is bare")))) == [("write-bar", TOPIC)]


def test_put_over_a_destination_is_judged_once() -> None:
    found = strict(Move(PROJECT, TOPIC, PLAIN), Put(TOPIC, page("y is here")))
    assert kinds(found) == [("claim-edit", TOPIC), ("write-bar", TOPIC)]


def test_put_over_an_unlabelled_record_is_judged_by_itself() -> None:
    over = Put(A, page("a is other", entities=["x:y"]))
    assert kinds(strict(DropLabel(A, "system:cache"), over)) == [("claim-edit", A)]
    plain = Put(A, page("a is other"))
    found = strict(DropLabel(A, "system:cache"), plain)
    assert kinds(found) == [("claim-edit", A), ("write-bar", A)]


def test_unlabelling_a_put_of_the_batch_is_judged_at_the_end() -> None:
    new = Put("areas/inbox/n.html", page("n is new", entities=["x:y"]))
    found = strict(new, DropLabel(new.path, "x:y"))
    assert kinds(found) == [("write-bar", new.path)]


def test_refused_unlabel_is_passed_over() -> None:
    assert kinds(strict(DropLabel(B, "x:y"))) == [("format", B)]


def test_moves_come_before_unlabelled_records() -> None:
    found = strict(DropLabel(A, "system:cache"), Move(PROJECT, TOPIC, PLAIN))
    assert kinds(found) == [("write-bar", TOPIC), ("write-bar", A)]


def test_nothing_is_asked_without_the_setting() -> None:
    assert judged(BASE, DropLabel(A, "system:cache"), Move(PROJECT, TOPIC, PLAIN)) == []
