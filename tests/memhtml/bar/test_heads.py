"""How the write bar judges links and labels (spec `write-bar` §4.4, §4.5)."""

from __future__ import annotations

import pytest
from tests.support.bar import A, B, C, corpus, judged, kinds, only_reason, page, reasons

from memhtml_format.ops import AddLabel, AddLink, Archive, DropLabel, DropLink, Move, Op, Put
from memhtml_format.vocab import RELS

TWIN = f"archive/2026/{A}"
OLD = page("a is here")
BASE = corpus({A: OLD, B: page("b is here"), "archive/2025/areas/inbox/z.html": page("z was")})


@pytest.mark.parametrize("rel", RELS)
def test_link_of_every_rel_to_a_record_passes(rel: str) -> None:
    assert judged(BASE, AddLink(A, rel, f"/{B}")) == []


def test_link_to_an_archived_record_passes() -> None:
    assert judged(BASE, AddLink(A, "supersedes", "/archive/2025/areas/inbox/z.html")) == []


def test_link_that_is_there_already_passes() -> None:
    base = corpus({A: page("a is here", links=[("supports", f"/{B}")]), B: page("b is here")})
    again = AddLink(A, "supports", f"/{B}")
    assert judged(base, again, again) == []


@pytest.mark.parametrize("rel", ["relates-to", "memhtml-supports", "nope", ""])
def test_rel_outside_the_vocabulary_is_format(rel: str) -> None:
    assert "rel" in only_reason(judged(BASE, AddLink(A, rel, f"/{B}")), "format", A)
    assert "rel" in only_reason(judged(BASE, DropLink(A, rel, f"/{B}")), "format", A)


@pytest.mark.parametrize(
    "href", ["areas/inbox/b.html", "//x/y", "/a//b", "/", "/a/../b", "http://x/"]
)
def test_href_that_is_not_root_relative_is_one_reason(href: str) -> None:
    reason = only_reason(judged(BASE, AddLink(A, "supports", href)), "format", A)
    assert "root-relative" in reason


def test_link_to_nothing_is_format() -> None:
    reason = only_reason(
        judged(BASE, AddLink(A, "supports", "/areas/inbox/none.html")), "format", A
    )
    assert "not a record" in reason
    assert "areas/inbox/none.html" in reason


@pytest.mark.parametrize("suffix", ["", "?x=1", "#part", "?a#b"])
def test_target_is_what_stands_before_query_and_fragment(suffix: str) -> None:
    assert judged(BASE, AddLink(A, "supports", f"/{B}{suffix}")) == []
    own = only_reason(judged(BASE, AddLink(A, "supports", f"/{A}{suffix}")), "format", A)
    assert "itself" in own


@pytest.mark.parametrize(
    "later",
    [
        Put(C, page("c is here")),
        Put(C, "<p>broken"),
        Move(B, C, page("b is here")),
    ],
)
def test_target_that_the_batch_names_later_passes(later: Op) -> None:
    found = judged(BASE, AddLink(A, "supports", f"/{C}"), later)
    assert [violation for violation in found if violation.path == A] == []


def test_target_may_be_the_slot_that_the_batch_archives_to() -> None:
    found = judged(BASE, AddLink(B, "supersedes", f"/{TWIN}"), Archive(A, TWIN, OLD))
    assert found == []


def test_link_on_a_path_without_record_is_format() -> None:
    reason = only_reason(judged(BASE, AddLink(C, "supports", f"/{A}")), "format", C)
    assert "no live record" in reason


@pytest.mark.parametrize(
    "op",
    [
        AddLink("archive/2025/areas/inbox/z.html", "supports", f"/{A}"),
        AddLabel("archive/2025/areas/inbox/z.html", "a:b"),
        DropLabel("archive/2025/areas/inbox/z.html", "a:b"),
        DropLink("archive/2025/areas/inbox/z.html", "supports", f"/{A}"),
    ],
)
def test_archived_record_takes_no_head_edit(op: Op) -> None:
    assert "history" in only_reason(judged(BASE, op), "format", op.path)


def test_put_at_an_archive_slot_takes_no_head_edit() -> None:
    found = judged(BASE, Put(TWIN, page("x is new")), AddLabel(TWIN, "a:b"))
    assert kinds(found) == [("format", TWIN)]


@pytest.mark.parametrize("to", [TWIN, "projects/p/a.html"])
def test_path_that_the_record_left_takes_no_head_edit(to: str) -> None:
    leave = Archive(A, to, OLD) if to == TWIN else Move(A, to, OLD)
    reason = only_reason(judged(BASE, leave, AddLabel(A, "a:b")), "format", A)
    assert "earlier in this batch" in reason


def test_moved_record_takes_head_edits_at_its_destination() -> None:
    to = "projects/p/a.html"
    found = judged(
        BASE,
        AddLabel(A, "a:b"),
        Move(A, to, OLD),
        DropLabel(to, "a:b"),
        AddLabel(to, "c:d"),
        AddLink(to, "supports", f"/{B}"),
    )
    assert found == []


def test_put_of_this_batch_takes_head_edits() -> None:
    html = page("c is here", entities=["a:b"], links=[("supports", f"/{B}")])
    found = judged(
        BASE,
        Put(C, html),
        DropLabel(C, "a:b"),
        DropLink(C, "supports", f"/{B}"),
        AddLabel(C, "c:d"),
    )
    assert found == []


def test_failures_of_one_operation_are_one_violation() -> None:
    text = reasons(judged(BASE, AddLink(C, "nope", "x")), "format", C)
    assert "no live record" in text
    assert "rel" in text
    assert "root-relative" in text


def test_unlink_needs_the_edge_as_the_batch_left_it() -> None:
    base = corpus({A: page("a is here", links=[("supports", f"/{B}")]), B: page("b is here")})
    drop = DropLink(A, "supports", f"/{B}")
    assert judged(base, drop) == []
    assert "supports" in only_reason(judged(base, drop, drop), "format", A)
    assert judged(base, drop, AddLink(A, "supports", f"/{B}"), drop) == []
    assert kinds(judged(base, DropLink(A, "relates_to", f"/{B}"))) == [("format", A)]


def test_unlink_of_a_dangling_edge_passes() -> None:
    base = corpus({A: page("a is here", links=[("supports", "/areas/gone.html")])})
    assert judged(base, DropLink(A, "supports", "/areas/gone.html")) == []


def test_link_that_failed_is_not_there_to_unlink() -> None:
    href = "/areas/inbox/none.html"
    found = judged(BASE, AddLink(A, "supports", href), DropLink(A, "supports", href))
    assert kinds(found) == [("format", A), ("format", A)]


@pytest.mark.parametrize(
    "value", ["memhtml", "Service:X", "person: sample", ":x", "a:", " a:b", ""]
)
def test_malformed_label_is_format(value: str) -> None:
    assert "entity" in only_reason(judged(BASE, AddLabel(A, value)), "format", A)


@pytest.mark.parametrize("value", ["service:checkout-api", "person:sample user", "url:http://x"])
def test_well_formed_label_passes(value: str) -> None:
    assert judged(BASE, AddLabel(A, value)) == []


def test_label_that_is_carried_is_format() -> None:
    base = corpus({A: page("a is here", entities=["a:b"])})
    assert "already" in only_reason(judged(base, AddLabel(A, "a:b")), "format", A)
    assert kinds(judged(BASE, AddLabel(A, "a:b"), AddLabel(A, "a:b"))) == [("format", A)]


def test_unlabel_takes_off_only_what_is_carried_byte_for_byte() -> None:
    base = corpus({A: page("a is here", entities=["Legacy Value"])})
    assert judged(base, DropLabel(A, "Legacy Value")) == []
    assert kinds(judged(base, DropLabel(A, "legacy value"))) == [("format", A)]
    assert kinds(judged(base, DropLabel(A, "Legacy Value"), DropLabel(A, "Legacy Value"))) == [
        ("format", A)
    ]


def test_swapping_a_label_works_in_either_order() -> None:
    base = corpus({A: page("a is here", entities=["Old"])})
    off, on = DropLabel(A, "Old"), AddLabel(A, "new:one")
    assert judged(base, off, on) == []
    assert judged(base, on, off) == []


@pytest.mark.parametrize(
    "op", [AddLabel(C, "a:b"), DropLabel(C, "a:b"), AddLink(f"/{A}", "supports", f"/{B}")]
)
def test_head_edit_without_a_live_source_is_format_at_the_source(op: Op) -> None:
    assert kinds(judged(BASE, op)) == [("format", op.path)]


def test_text_with_half_a_character_is_format_and_breaks_no_look_up() -> None:
    for op in (
        AddLabel("areas/\udc80.html", "a:b"),
        AddLink(A, "supports", "/areas/\udc80.html"),
        Move(A, "areas/\udc80.html", OLD),
    ):
        assert "half a character" in reasons(judged(BASE, op), "format", op.path)
