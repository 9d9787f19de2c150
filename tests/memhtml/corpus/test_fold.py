"""The fold of a log into tree changes (spec `write-bar` §1)."""

from __future__ import annotations

import pytest
from tests.support.head import page

from memhtml.corpus.fold import CannotApply, Folded, fold
from memhtml_format.edit import add_link, add_meta, archive_stamp, remove_link, remove_meta
from memhtml_format.ops import AddLabel, AddLink, Archive, DropLabel, DropLink, Move, Op, Put

A = "areas/inbox/a.html"
B = "areas/inbox/b.html"
SLOT = "archive/2026/areas/inbox/a.html"
AT = "2026-11-30T16:09:45Z"
BASE = {A: page("A", entities=["system:a"], links=[("supports", f"/{B}")]), B: page("B")}


class Reader:
    """The base's bytes, and which paths were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, path: str) -> bytes | None:
        self.asked.append(path)
        return BASE.get(path)


def folded(*ops: Op) -> Folded:
    return fold(ops, Reader(), AT)


def test_an_empty_log_reads_and_changes_nothing() -> None:
    read = Reader()
    assert fold((), read, AT) == Folded({}, frozenset())
    assert read.asked == []


def test_a_put_is_its_html_and_reads_nothing() -> None:
    read = Reader()
    assert fold([Put(B, "é")], read, AT) == Folded({B: "é".encode()}, frozenset())
    assert read.asked == []


def test_head_edits_splice_the_file_as_staged_so_far() -> None:
    link, label = AddLink(A, "relates_to", "/x.html"), AddLabel(A, "system:b")
    expected = add_meta(add_link(BASE[A], "relates_to", "/x.html"), "entity", "system:b")
    assert folded(link, label) == Folded({A: expected}, frozenset())
    assert expected.count(b"memhtml-entity") == 2
    drops = folded(DropLink(A, "supports", f"/{B}"), DropLabel(A, "system:a"))
    bare = remove_meta(remove_link(BASE[A], "supports", f"/{B}"), "entity", "system:a")
    assert drops == Folded({A: bare}, frozenset())
    assert b"supports" not in bare
    assert b"entity" not in bare


def test_an_edge_or_entity_that_is_there_or_gone_already_changes_no_byte() -> None:
    ops = (
        AddLink(A, "supports", f"/{B}"),
        AddLabel(A, "system:a"),
        DropLink(A, "part_of", f"/{B}"),
        DropLabel(A, "system:other"),
    )
    assert folded(*ops) == Folded({A: BASE[A]}, frozenset())


def test_an_archive_stamps_the_source_as_the_batch_left_it() -> None:
    staged = add_meta(BASE[A], "entity", "system:b")
    done = folded(AddLabel(A, "system:b"), Archive(A, SLOT, "only says which article"))
    assert done == Folded({SLOT: archive_stamp(staged, AT)}, frozenset({A}))
    text = done.files[SLOT].decode()
    assert '<meta name="memhtml-status" content="archived">' in text
    assert f'<meta name="memhtml-archived" content="{AT}">' in text
    assert 'name="memhtml-updated" content="2026-03-01T09:00:00Z"' in text


def test_a_move_carries_the_bytes_unchanged_and_later_edits_act_at_the_destination() -> None:
    to = "projects/p/a.html"
    assert folded(Move(A, to, "")) == Folded({to: BASE[A]}, frozenset({A}))
    labelled = folded(Move(A, to, ""), AddLabel(to, "system:b"))
    assert labelled.files == {to: add_meta(BASE[A], "entity", "system:b")}


def test_a_put_after_an_archive_takes_the_freed_path() -> None:
    done = folded(Archive(A, SLOT, ""), Put(A, "new"))
    assert done == Folded({SLOT: archive_stamp(BASE[A], AT), A: b"new"}, frozenset())


def test_a_put_that_is_archived_again_leaves_nothing_to_remove() -> None:
    new, slot = "areas/inbox/n.html", "archive/2026/areas/inbox/n.html"
    html = page("N").decode()
    done = folded(Put(new, html), Archive(new, slot, html))
    assert done == Folded({slot: archive_stamp(html.encode(), AT)}, frozenset())


def test_a_file_that_is_no_record_is_removed_when_the_caller_knows_of_it() -> None:
    new, slot = "areas/inbox/n.html", "archive/2026/areas/inbox/n.html"
    html = page("N").decode()
    ops = (Put(new, html), Archive(new, slot, html))
    assert fold(ops, Reader(), AT, holds=lambda path: path == new).gone == {new}


@pytest.mark.parametrize(
    "op",
    [
        AddLink("areas/none.html", "supports", "/x.html"),
        DropLink("areas/none.html", "supports", "/x.html"),
        AddLabel("areas/none.html", "system:a"),
        DropLabel("areas/none.html", "system:a"),
        Archive("areas/none.html", "archive/2026/areas/none.html", "x"),
        Move("areas/none.html", "areas/other.html", "x"),
    ],
    ids=lambda op: op.kind,
)
def test_an_operation_without_its_file_names_itself(op: Op) -> None:
    with pytest.raises(CannotApply) as caught:
        folded(Put(B, "x"), op)
    assert caught.value.op is op
    assert "areas/none.html" in caught.value.reason


def test_an_operation_on_a_path_the_batch_emptied_cannot_apply() -> None:
    for gone in (Archive(A, SLOT, ""), Move(A, "areas/c.html", "")):
        with pytest.raises(CannotApply):
            folded(gone, AddLabel(A, "system:b"))


def test_html_that_is_no_unicode_text_cannot_apply() -> None:
    with pytest.raises(CannotApply):
        folded(Put(A, "\ud800"))


def test_only_the_files_an_operation_needs_are_read_and_each_once() -> None:
    read = Reader()
    fold((AddLabel(A, "x:y"), DropLabel(A, "x:y"), Move(A, "areas/c.html", "")), read, AT)
    assert read.asked == [A]
