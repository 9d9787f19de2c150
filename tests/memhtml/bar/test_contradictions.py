"""New claims beside live ones of the same frame (spec `write-bar` §8)."""

from __future__ import annotations

import pytest
from tests.support.bar import A, B, C, corpus, judged, page

from memhtml.bar.contradictions import Comparison, compare
from memhtml_format.ops import AddLink, Archive, DropLink, Move, Op, Put

OLD = page("The capital of India is New Delhi.")
NEW = page("The capital of India is Mumbai.")
PUNE = page("The capital of India is Pune.")
WET = page("Water is wet.")
TWIN = f"archive/2026/{A}"
TO = "projects/p/a.html"
NOTHING = Comparison({}, [], [])


def compared(records: dict[str, str], *ops: Op) -> Comparison:
    """What a log that passes the bar is compared to."""
    base = corpus(records)
    assert judged(base, *ops) == []
    return compare(ops, base)


def test_other_value_is_a_contradiction_marked_on_the_new_file() -> None:
    found = compared({A: OLD}, Put(B, NEW))
    assert found == Comparison({B: [f"/{A}"]}, [{"path": B, "against": A}], [])


def test_same_value_is_a_restatement_without_a_link() -> None:
    found = compared({A: OLD}, Put(B, page("The capital of India is new   DELHI!")))
    assert found == Comparison({}, [], [{"path": B, "against": A, "reason": "same-value"}])


def test_other_frame_and_no_frame_are_not_compared() -> None:
    assert compared({A: OLD}, Put(B, page("The capital of Peru is Lima."))) == NOTHING
    assert compared({A: OLD}, Put(B, WET)) == NOTHING


def test_archived_record_is_no_rival() -> None:
    assert compared({TWIN: OLD}, Put(B, NEW)) == NOTHING


def test_rivals_come_in_path_order_and_puts_in_log_order() -> None:
    other = page("The capital of India is Kolkata.")
    found = compared(
        {B: OLD, A: other},
        Put("areas/z.html", NEW),
        Put("areas/y.html", PUNE),
    )
    assert [(pair["path"], pair["against"]) for pair in found.contradictions] == [
        ("areas/z.html", A),
        ("areas/z.html", B),
        ("areas/y.html", A),
        ("areas/y.html", B),
    ]
    assert found.marks == {
        "areas/z.html": [f"/{A}", f"/{B}"],
        "areas/y.html": [f"/{A}", f"/{B}"],
    }


def test_rivals_of_one_session_are_not_compared_with_each_other() -> None:
    assert compared({}, Put(A, OLD), Put(B, NEW)) == NOTHING


def test_record_that_the_session_archives_is_a_restatement() -> None:
    found = compared({A: OLD}, Put(B, NEW), Archive(A, TWIN, OLD))
    assert found.restatements == [{"path": B, "against": A, "reason": "archived"}]
    assert found.marks == {}


@pytest.mark.parametrize("target", [A, f"archive/2025.3/{A}"])
def test_superseding_link_makes_a_restatement(target: str) -> None:
    new = page("The capital of India is Mumbai.", links=[("supersedes", f"/{target}")])
    found = compared({A: OLD}, Put(B, new))
    assert found == Comparison({}, [], [{"path": B, "against": A, "reason": "superseded"}])


def test_superseding_link_counts_as_the_batch_left_it() -> None:
    link = AddLink(B, "supersedes", f"/{A}")
    assert compared({A: OLD}, Put(B, NEW), link).restatements[0]["reason"] == "superseded"
    taken = compared({A: OLD}, Put(B, NEW), link, DropLink(B, "supersedes", f"/{A}"))
    assert taken.contradictions == [{"path": B, "against": A}]


def test_other_link_to_the_record_supersedes_nothing() -> None:
    new = page("The capital of India is Mumbai.", links=[("supports", f"/{A}")])
    assert compared({A: OLD}, Put(B, new)).marks == {B: [f"/{A}"]}


def test_archived_wins_over_superseded_and_superseded_over_same_value() -> None:
    new = page("The capital of India is New Delhi!", links=[("supersedes", f"/{A}")])
    assert compared({A: OLD}, Put(B, new)).restatements[0]["reason"] == "superseded"
    both = compared({A: OLD}, Put(B, new), Archive(A, TWIN, OLD))
    assert both.restatements[0]["reason"] == "archived"


def test_two_verdicts_agree_only_with_equal_titles() -> None:
    claim, again = "The verdict of round two is open", "The verdict of round two is open!"
    kept = page(claim, kind="verdict", title="Keep it")
    assert compared({A: kept}, Put(B, page(again, kind="verdict", title="keep  IT."))).marks == {}
    turned = compared({A: kept}, Put(B, page(again, kind="verdict", title="Drop it")))
    assert turned.marks == {B: [f"/{A}"]}


def test_title_is_ignored_when_one_alone_is_a_verdict() -> None:
    kept = page("The verdict of round two is open", kind="verdict", title="Keep it")
    found = compared({A: kept}, Put(B, page("The verdict of round two is open!", title="Drop it")))
    assert found.restatements == [{"path": B, "against": A, "reason": "same-value"}]


def test_record_that_moves_is_named_at_its_destination() -> None:
    found = compared({A: OLD}, Put(B, NEW), Move(A, TO, OLD))
    assert found == Comparison({B: [f"/{TO}"]}, [{"path": B, "against": TO}], [])


def test_moved_record_can_be_superseded_at_its_destination() -> None:
    new = page("The capital of India is Mumbai.", links=[("supersedes", f"/{TO}")])
    found = compared({A: OLD}, Put(B, new), Move(A, TO, OLD))
    assert found.restatements == [{"path": B, "against": TO, "reason": "superseded"}]


def test_identical_link_is_not_doubled() -> None:
    new = page("The capital of India is Mumbai.", links=[("contradicts", f"/{A}")])
    found = compared({A: OLD}, Put(B, new))
    assert found == Comparison({}, [{"path": B, "against": A}], [])


def test_two_puts_of_one_path_count_as_the_final_one() -> None:
    found = compared(
        {A: OLD},
        Put(B, PUNE),
        Put(C, NEW),
        Put(B, WET),
    )
    assert found.contradictions == [{"path": C, "against": A}]


def test_put_that_was_replaced_takes_the_place_of_the_final_one() -> None:
    last = page("The capital of India is Kolkata.")
    found = compared({A: OLD}, Put(B, PUNE), Put(C, NEW), Put(B, last))
    assert [pair["path"] for pair in found.contradictions] == [C, B]


def test_new_file_that_is_archived_at_once_is_no_rival() -> None:
    assert compared({A: OLD}, Put(B, NEW), Archive(B, f"archive/2026/{B}", NEW)) == NOTHING
    assert compared({A: OLD}, Put(f"archive/2026/{B}", NEW)) == NOTHING


def test_tasks_are_compared_as_well() -> None:
    task = page("The owner of rotation is Ada", kind="task")
    found = compared({A: task}, Put(B, page("The owner of rotation is Bo", kind="task")))
    assert found.marks == {B: [f"/{A}"]}
