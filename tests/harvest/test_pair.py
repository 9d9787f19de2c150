"""Seeded files that vanished: archives, moves, deletions, and every edge of spec `harvest` §3.5."""

from __future__ import annotations

import pytest
from tests.support.harvest import Doc, judge, summary

from memhtml_format.ops import Archive, Move
from memhtml_harvest.seed import FileEntry

A, B, C = "areas/inbox/a.html", "areas/inbox/b.html", "areas/inbox/c.html"
SLOT, SLOT2, SLOT3 = (f"archive/2026{n}/areas/inbox/a.html" for n in ("", ".2", ".3"))
ONE, TWO = Doc("One is one."), Doc("Two is two.")


def test_archive_carries_the_twins_text() -> None:
    assert judge({A: ONE}, {SLOT: ONE}).ops == (Archive(A, SLOT, ONE.html),)


def test_move_carries_the_copys_text() -> None:
    assert judge({A: ONE}, {B: ONE}).ops == (Move(A, B, ONE.html),)


def test_head_operations_of_a_twin_go_to_the_source_before_the_archive() -> None:
    twin = ONE._replace(links=(("supports", f"/{B}"),), entities=("team:x",))
    result = judge({A: ONE}, {SLOT: twin})

    assert summary(result) == (
        [f"link {A} supports /{B}", f"label {A} team:x", f"archive {A} {SLOT}"],
        [],
    )
    assert result.ops[-1] == Archive(A, SLOT, twin.html)


def test_head_operations_of_a_moved_copy_go_to_the_source() -> None:
    copy = ONE._replace(entities=("team:x",))

    assert summary(judge({A: ONE}, {B: copy}))[0] == [f"label {A} team:x", f"move {A} {B}"]


def test_two_records_that_link_to_each_other_move_together() -> None:
    before = {
        A: ONE._replace(links=(("supports", f"/{B}"),)),
        B: TWO._replace(links=(("supports", f"/{A}"),)),
    }
    to_a, to_b = "projects/p/a.html", "projects/p/b.html"
    after = {
        to_a: ONE._replace(links=(("supports", f"/{to_b}"),)),
        to_b: TWO._replace(links=(("supports", f"/{to_a}"),)),
    }

    assert summary(judge(before, after)) == (
        [
            f"link {A} supports /{to_b}",
            f"unlink {A} supports /{B}",
            f"link {B} supports /{to_a}",
            f"unlink {B} supports /{A}",
            f"move {A} {to_a}",
            f"move {B} {to_b}",
        ],
        [],
    )


@pytest.mark.parametrize("place", [SLOT, B])
@pytest.mark.parametrize(
    "changed",
    [
        ONE._replace(title="Other"),
        ONE._replace(metas=(("status", "archived"), ("archived", "2026-06-01T08:00:00Z"))),
        ONE._replace(head_extra="<!-- x -->"),
        ONE._replace(markup="<p><em><mark>{}</mark></em></p>"),
        ONE._replace(title=""),
    ],
    ids=["title", "stamps", "comment", "markup", "no-record"],
)
def test_another_head_refuses_the_source_and_leaves_a_put(place: str, changed: Doc) -> None:
    result = judge({A: ONE}, {place: changed})

    assert summary(result) == ([f"put {place}"], [f"head-edit {A}"])
    assert place in result.rejected[0].reason


def test_stamped_twin_is_told_which_metas_changed() -> None:
    twin = ONE._replace(metas=(("status", "archived"),))

    assert "the meta memhtml-status changed" in judge({A: ONE}, {SLOT: twin}).rejected[0].reason


def test_twin_with_another_article_differs() -> None:
    assert summary(judge({A: ONE}, {SLOT: TWO})) == ([f"put {SLOT}"], [f"twin-differs {A}"])


def test_twin_with_another_article_is_not_searched_for_a_copy() -> None:
    result = judge({A: ONE}, {SLOT: TWO, B: ONE})

    assert summary(result) == ([f"put {SLOT}", f"put {B}"], [f"twin-differs {A}"])


def test_lowest_year_then_slot_pairs_as_numbers() -> None:
    slots = [f"archive/{y}/areas/inbox/a.html" for y in ("2026.10", "2026.9", "10000", "2027")]
    result = judge({A: ONE}, dict.fromkeys(slots, ONE))

    assert summary(result)[0][-1] == f"archive {A} archive/2026.9/areas/inbox/a.html"
    assert len(result.ops) == 4
    assert result.rejected == ()


def test_a_year_with_leading_zeros_is_a_number_too() -> None:
    old = "archive/0999/areas/inbox/a.html"

    assert summary(judge({A: ONE}, {old: ONE, SLOT: ONE}))[0] == [
        f"put {SLOT}",
        f"archive {A} {old}",
    ]


def test_the_lowest_twin_is_asked_alone() -> None:
    result = judge({A: ONE}, {SLOT: TWO, SLOT2: ONE})

    assert summary(result) == ([f"put {SLOT2}", f"put {SLOT}"], [f"twin-differs {A}"])


def test_archive_wins_over_a_live_copy() -> None:
    assert summary(judge({A: ONE}, {SLOT: ONE, B: ONE}))[0] == [f"put {B}", f"archive {A} {SLOT}"]


def test_two_copies_pair_with_nothing() -> None:
    result = judge({A: ONE}, {B: ONE, C: ONE})

    assert summary(result) == ([f"put {B}", f"put {C}"], [f"deleted {A}"])
    assert B in result.rejected[0].reason


def test_a_crowd_of_copies_is_counted_and_not_all_named() -> None:
    result = judge({A: ONE}, {f"projects/p/{n}.html": ONE for n in range(50)})

    reason = result.rejected[0].reason
    assert "50 new files" in reason
    assert reason.count("projects/p/") == 3


def test_copy_over_a_held_path_is_no_new_path() -> None:
    result = judge({A: ONE, B: TWO}, {B: ONE, C: TWO})

    assert summary(result) == ([f"put {B}", f"put {C}"], [f"deleted {A}"])


def test_two_records_that_swap_names_are_two_puts() -> None:
    assert summary(judge({A: ONE, B: TWO}, {A: TWO, B: ONE})) == ([f"put {A}", f"put {B}"], [])


def test_two_vanished_records_with_one_article_share_no_copy() -> None:
    result = judge({A: ONE, B: ONE}, {C: ONE})

    assert summary(result) == ([f"move {A} {C}"], [f"deleted {B}"])


def test_a_copy_that_the_first_record_could_not_take_is_left_for_the_next() -> None:
    other = ONE._replace(title="Other")
    result = judge({A: other, B: ONE}, {C: ONE})

    assert summary(result) == ([f"move {B} {C}"], [f"head-edit {A}"])


def test_new_fact_at_the_old_path_of_an_archived_one_is_no_archive() -> None:
    assert summary(judge({A: ONE}, {A: TWO, SLOT: ONE})) == ([f"put {SLOT}", f"put {A}"], [])


def test_archive_onto_a_held_slot_is_an_archive_for_the_bar_to_refuse() -> None:
    assert summary(judge({A: ONE, SLOT: TWO}, {SLOT: ONE}))[0] == [f"archive {A} {SLOT}"]


def test_held_slot_that_shares_the_article_is_no_edit_of_the_old_copy() -> None:
    old = ONE._replace(title="Old")

    assert summary(judge({A: ONE, SLOT: old}, {SLOT: ONE})) == ([f"archive {A} {SLOT}"], [])


def test_held_slot_with_the_very_same_bytes_shows_no_change() -> None:
    assert summary(judge({A: ONE, SLOT: ONE}, {SLOT: ONE})) == ([], [f"deleted {A}"])


@pytest.mark.parametrize(
    ("rewritten", "code"),
    [(Doc("Three."), "twin-differs"), (ONE._replace(title="Other"), "head-edit")],
)
def test_rewritten_slot_that_does_not_pair_is_a_put(rewritten: Doc, code: str) -> None:
    result = judge({A: ONE, SLOT: TWO}, {SLOT: rewritten})

    assert summary(result) == ([f"put {SLOT}"], [f"{code} {A}"])


def test_rewritten_slot_of_a_record_that_stays_is_history() -> None:
    before = {A: ONE, SLOT: TWO}

    assert summary(judge(before, {A: ONE, SLOT: ONE})) == ([], [f"archived-record {SLOT}"])


def test_rewritten_slot_of_an_archived_record_that_vanished_is_history() -> None:
    nested = f"archive/2027/{SLOT}"
    result = judge({SLOT: ONE, nested: TWO}, {nested: ONE})

    assert summary(result) == ([], [f"deleted {SLOT}", f"archived-record {nested}"])


def test_archived_record_moved_to_another_slot_is_a_put_and_a_deletion() -> None:
    assert summary(judge({SLOT: ONE}, {SLOT2: ONE})) == ([f"put {SLOT2}"], [f"deleted {SLOT}"])


def test_archived_record_moved_to_a_live_path_is_a_put_and_a_deletion() -> None:
    assert summary(judge({SLOT: ONE}, {B: ONE})) == ([f"put {B}"], [f"deleted {SLOT}"])


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "device"])
def test_special_file_at_the_vanished_path_is_its_only_entry(kind: str) -> None:
    special = FileEntry(kind=kind)

    assert summary(judge({A: ONE}, {A: special})) == ([], [f"not-a-regular-file {A}"])
    assert summary(judge({A: ONE}, {A: special, SLOT: ONE})) == (
        [f"archive {A} {SLOT}"],
        [f"not-a-regular-file {A}"],
    )
    assert summary(judge({A: ONE}, {A: special, SLOT: TWO})) == (
        [f"put {SLOT}"],
        [f"not-a-regular-file {A}"],
    )


def test_folder_at_the_vanished_path_has_no_entry_so_the_deletion_is_listed() -> None:
    result = judge({A: ONE}, {f"{A}/notes.txt": FileEntry()})

    assert summary(result)[1] == [f"deleted {A}", f"not-html {A}/notes.txt"]


def test_link_in_place_of_a_folder_lists_each_record_below() -> None:
    result = judge({A: ONE, B: TWO}, {"areas/inbox": FileEntry(kind="link")})

    assert summary(result)[1] == [
        "not-a-regular-file areas/inbox",
        f"deleted {A}",
        f"deleted {B}",
    ]


PERSON = "resources/people/p.html"
PERSON_SLOT = "archive/2026/resources/people/p.html"


@pytest.mark.parametrize("place", [PERSON_SLOT, B])
@pytest.mark.parametrize("copy", [ONE, ONE._replace(title="Other"), ONE._replace(title="")])
def test_reserved_source_and_its_copy_are_both_refused(place: str, copy: Doc) -> None:
    result = judge({PERSON: ONE}, {place: copy})

    assert summary(result)[0] == []
    assert sorted(summary(result)[1]) == sorted(
        [f"reserved-path {place}", f"reserved-path {PERSON}"]
    )


def test_reserved_source_and_a_twin_of_other_words_are_both_refused() -> None:
    assert summary(judge({PERSON: ONE}, {PERSON_SLOT: TWO}))[1] == [
        f"reserved-path {PERSON_SLOT}",
        f"reserved-path {PERSON}",
    ]


def test_reserved_source_onto_its_held_slot_is_refused_as_a_pair() -> None:
    result = judge({PERSON: ONE, PERSON_SLOT: TWO}, {PERSON_SLOT: ONE})

    assert summary(result) == (
        [],
        [f"reserved-path {PERSON_SLOT}", f"reserved-path {PERSON}"],
    )


def test_reserved_source_with_two_copies_is_deleted_and_the_copies_are_puts() -> None:
    assert summary(judge({PERSON: ONE}, {B: ONE, C: ONE})) == (
        [f"put {B}", f"put {C}"],
        [f"deleted {PERSON}"],
    )


def test_reserved_source_without_a_copy_is_deleted() -> None:
    assert summary(judge({PERSON: ONE}, {B: TWO})) == ([f"put {B}"], [f"deleted {PERSON}"])


def test_second_slot_of_a_reserved_source_never_becomes_an_operation() -> None:
    second = "archive/2026.2/resources/people/p.html"
    result = judge({PERSON: ONE}, {PERSON_SLOT: ONE, second: ONE})

    assert result.ops == ()
    assert {item.code for item in result.rejected} == {"reserved-path"}
    assert len(result.rejected) == 3


def test_reserved_source_replaced_by_a_link_keeps_one_entry_and_refuses_its_copy() -> None:
    result = judge({PERSON: ONE}, {PERSON: FileEntry(kind="link"), B: ONE})

    assert summary(result) == ([], [f"reserved-path {B}", f"not-a-regular-file {PERSON}"])


def test_curation_archives_and_moves_its_own_folders() -> None:
    assert summary(judge({PERSON: ONE}, {PERSON_SLOT: ONE}, scope="curate"))[0] == [
        f"archive {PERSON} {PERSON_SLOT}"
    ]
    assert summary(judge({PERSON: ONE}, {B: ONE}, scope="curate"))[0] == [f"move {PERSON} {B}"]


def test_record_moved_to_where_no_record_may_be_is_gone() -> None:
    result = judge({A: ONE, B: TWO}, {"areas/arcs/a.html": ONE, "b.html": TWO})

    assert summary(result) == (
        [],
        [
            "reserved-path areas/arcs/a.html",
            f"deleted {A}",
            f"deleted {B}",
            "not-a-memory-path b.html",
        ],
    )
