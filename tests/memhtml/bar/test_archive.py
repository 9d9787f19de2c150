"""How the write bar judges archives (spec `write-bar` §4.6)."""

from __future__ import annotations

import pytest
from tests.support.bar import A, B, corpus, judged, kinds, only_reason, page, reasons

from memhtml_format.ops import AddLabel, Archive, Move, Put

OLD = page("a is here")
TWIN = f"archive/2026/{A}"
TWIN_2 = f"archive/2026.2/{A}"
BASE = corpus({A: OLD})


@pytest.mark.parametrize("year", ["2026", "1999", "0007", "12345"])
def test_archive_to_the_first_slot_of_any_year_passes(year: str) -> None:
    assert judged(BASE, Archive(A, f"archive/{year}/{A}", OLD)) == []


def test_held_slot_names_the_first_free_one() -> None:
    base = corpus({A: OLD, TWIN: page("a was")})
    reason = only_reason(judged(base, Archive(A, TWIN, OLD)), "format", A)
    assert TWIN in reason
    assert "held" in reason
    assert TWIN_2 in reason
    assert judged(base, Archive(A, TWIN_2, OLD)) == []


def test_skipped_slot_names_the_first_free_one() -> None:
    reason = only_reason(judged(BASE, Archive(A, TWIN_2, OLD)), "format", A)
    assert TWIN_2 in reason
    assert "skips" in reason
    assert f"is {TWIN}" in reason


def test_slots_fill_from_the_bottom_even_across_a_gap() -> None:
    base = corpus({A: OLD, TWIN_2: page("a was")})
    assert judged(base, Archive(A, TWIN, OLD)) == []
    full = corpus({A: OLD, TWIN: page("a was"), TWIN_2: page("a was once")})
    assert judged(full, Archive(A, f"archive/2026.3/{A}", OLD)) == []


def test_slot_written_earlier_in_the_batch_is_held() -> None:
    put = Put(TWIN, page("x was"))
    reason = only_reason(judged(BASE, put, Archive(A, TWIN, OLD)), "format", A)
    assert TWIN_2 in reason
    assert judged(BASE, put, Archive(A, TWIN_2, OLD)) == []


@pytest.mark.parametrize("second", [TWIN, TWIN_2, f"archive/2027/{A}"])
def test_second_archive_of_one_record_is_format(second: str) -> None:
    found = judged(BASE, Archive(A, TWIN, OLD), Archive(A, second, OLD))
    assert "archived earlier in this batch" in reasons(found, "format", A)


def test_archive_after_a_put_in_between_passes_its_source_check() -> None:
    new = page("a is new")
    found = judged(BASE, Archive(A, TWIN, OLD), Put(A, new), Archive(A, TWIN_2, new))
    assert kinds(found) == [("claim-edit", A)]


def test_put_of_this_batch_can_be_archived() -> None:
    new = page("b is new")
    assert judged(BASE, Put(B, new), Archive(B, f"archive/2026/{B}", new)) == []


def test_archive_of_nothing_is_format() -> None:
    found = judged(BASE, Archive(B, f"archive/2026/{B}", OLD))
    assert "no live record" in only_reason(found, "format", B)


def test_archive_of_an_archived_record_is_format() -> None:
    base = corpus({TWIN: OLD})
    found = judged(base, Archive(TWIN, f"archive/2027/{TWIN}", OLD))
    assert kinds(found) == [("format", TWIN)]


def test_moved_record_is_archived_in_the_next_session() -> None:
    to = "projects/p/a.html"
    found = judged(BASE, Move(A, to, OLD), Archive(to, f"archive/2026/{to}", OLD))
    assert "next session" in only_reason(found, "format", to)


def test_source_that_moved_away_cannot_be_archived() -> None:
    found = judged(BASE, Move(A, "projects/p/a.html", OLD), Archive(A, TWIN, OLD))
    assert "moved earlier in this batch" in only_reason(found, "format", A)


@pytest.mark.parametrize(
    "to", [f"archive/2026/{B}", f"archive/2026.1/{A}", B, "archive/2026/x", f"archive/26/{A}"]
)
def test_destination_must_map_back_to_the_source(to: str) -> None:
    found = judged(BASE, Archive(A, to, OLD))
    assert to in only_reason(found, "format", A)


def test_html_must_hold_the_article_of_the_source() -> None:
    reason = only_reason(judged(BASE, Archive(A, TWIN, page("b is here"))), "format", A)
    assert "another article" in reason


def test_html_may_differ_in_its_head() -> None:
    html = page("a is here", title="Retitled", entities=["x:y"])
    assert judged(BASE, AddLabel(A, "a:b"), Archive(A, TWIN, html)) == []


def test_html_must_meet_the_constraints() -> None:
    html = OLD.replace('<meta name="memhtml-type" content="semantic">\n', "")
    assert only_reason(judged(BASE, Archive(A, TWIN, html)), "format", A).startswith("html: ")


def test_old_record_with_active_content_can_still_be_archived() -> None:
    old = OLD.replace("</article>", "<form></form></article>")
    assert judged(corpus({A: old}), Archive(A, TWIN, old)) == []


def test_failures_of_one_archive_are_one_violation() -> None:
    text = reasons(judged(BASE, Archive(B, "archive/x", "<p>")), "format", B)
    assert "no live record" in text
    assert "archive/<YYYY>/" in text
    assert "html: " in text


def test_refused_archive_leaves_its_source_in_place() -> None:
    found = judged(BASE, Archive(A, TWIN_2, OLD), AddLabel(A, "a:b"), Archive(A, TWIN, OLD))
    assert kinds(found) == [("format", A)]


def test_inbound_links_of_an_archived_record_are_left_alone() -> None:
    base = corpus({A: OLD, B: page("b is", links=[("supports", f"/{A}")])})
    assert judged(base, Archive(A, TWIN, OLD)) == []


def test_slot_that_is_a_folder_cannot_be_taken() -> None:
    base = corpus({A: OLD}, others=[f"{TWIN}/picture.png"])
    assert "folder" in only_reason(judged(base, Archive(A, TWIN, OLD)), "format", A)


def test_slot_that_holds_a_broken_file_is_free() -> None:
    assert judged(corpus({A: OLD}, others=[TWIN]), Archive(A, TWIN, OLD)) == []
