"""Head edits: what moves, where it lands, and that nothing else does (spec `format` §7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.format import AT, CLAIM, page

from memhtml_format import edit, record

PLAIN = page(head='<meta name="memhtml-tag" content="a">\n').encode()
LINK = '<link rel="memhtml-supports" href="/areas/b.html">'


def links(data: bytes) -> list[tuple[str, str]]:
    found = record.read("areas/x.html", data).record
    assert found is not None
    return [(link.rel, link.href) for link in found.links]


def line_added(before: bytes, after: bytes) -> tuple[int, str]:
    """The one line that `after` has more, and its place."""
    old, new = before.decode().split("\n"), after.decode().split("\n")
    place = next(i for i, line in enumerate(new) if i >= len(old) or line != old[i])
    assert new[:place] + new[place + 1 :] == old
    return place, new[place]


def test_set_meta_replaces_in_place_and_keeps_the_indentation() -> None:
    data = PLAIN.replace(
        f'<meta name="memhtml-updated" content="{AT}">'.encode(),
        f"   <META NAME='memhtml-updated' CONTENT={AT} />  <!-- x -->".encode(),
    )
    after = edit.set_meta(data, "updated", '2026-12-02"')
    assert b'\n   <meta name="memhtml-updated" content="2026-12-02&quot;">  <!-- x -->\n' in after
    assert len(after.split(b"\n")) == len(data.split(b"\n"))


def test_set_meta_inserts_by_the_order_of_the_vocabulary() -> None:
    assert line_added(PLAIN, edit.set_meta(PLAIN, "archived", AT)) == (
        9,
        f'<meta name="memhtml-archived" content="{AT}">',
    )
    assert line_added(PLAIN, edit.set_meta(PLAIN, "memhtml-alias", "b")) == (
        10,
        '<meta name="memhtml-alias" content="b">',
    )


def test_set_meta_leaves_unknown_names_alone() -> None:
    assert edit.set_meta(PLAIN, "color", "red") == PLAIN
    assert edit.add_meta(PLAIN, "color", "red") == PLAIN


def test_add_meta_goes_behind_the_last_of_its_name_and_never_twice() -> None:
    once = edit.add_meta(PLAIN, "tag", "b")
    assert line_added(PLAIN, once) == (10, '<meta name="memhtml-tag" content="b">')
    assert edit.add_meta(once, "tag", "a") == once
    assert line_added(PLAIN, edit.add_meta(PLAIN, "entity", "a:b"))[0] == 9


def test_remove_meta_takes_one_value_or_all() -> None:
    data = edit.add_meta(edit.add_meta(PLAIN, "tag", "b"), "tag", "c")
    assert edit.remove_meta(data, "tag", "b") == edit.add_meta(PLAIN, "tag", "c")
    assert edit.remove_meta(data, "tag") == PLAIN.replace(
        b'<meta name="memhtml-tag" content="a">\n', b""
    )
    assert edit.remove_meta(PLAIN, "tag", "z") == PLAIN


def test_add_link_goes_behind_links_then_metas_then_before_the_end_of_the_head() -> None:
    first = edit.add_link(PLAIN, "supports", "/areas/b.html")
    assert line_added(PLAIN, first) == (10, LINK)
    second = edit.add_link(first, "relates_to", "/areas/c.html")
    assert line_added(first, second) == (
        11,
        '<link rel="memhtml-relates-to" href="/areas/c.html">',
    )
    bare = b"<head>\n<title>x</title>\n  </head>\n<p>y"
    assert edit.add_link(bare, "supports", "/areas/b.html") == (
        f"<head>\n<title>x</title>\n{LINK}\n  </head>\n<p>y".encode()
    )


def test_add_link_knows_the_edge_in_either_spelling() -> None:
    data = page(head="<LINK HREF=/areas/c.html REL=memhtml-relates_to />\n").encode()
    assert edit.add_link(data, "relates_to", "/areas/c.html") == data
    assert links(edit.add_link(data, "relates_to", "/areas/c.html?x")) == [
        ("relates_to", "/areas/c.html"),
        ("relates_to", "/areas/c.html?x"),
    ]


def test_remove_link_matches_the_parsed_rel() -> None:
    data = page(
        head='<link rel="memhtml-relates_to" href="/a/b"/>\n<link rel="memhtml-relates-to" '
        'href="/a/c">\n<link rel="memhtml-supports" href="/a/b">\n'
    ).encode()
    assert links(edit.remove_link(data, "relates_to", "/a/b")) == [
        ("relates_to", "/a/c"),
        ("supports", "/a/b"),
    ]
    assert (
        edit.remove_link(data, "relates_to")
        == page(head='<link rel="memhtml-supports" href="/a/b">\n').encode()
    )


# The five repairs of spec `format` §7.


def test_removing_one_of_several_on_a_line_takes_the_element_only() -> None:
    head = f'<meta name="memhtml-tag" content="a"> {LINK} <!-- n -->\n'
    data = page(head=head).encode()
    assert edit.remove_link(data, "supports") == data.replace(LINK.encode(), b"")
    alone = page(head=f"  {LINK}\t\n").encode()
    assert edit.remove_link(alone, "supports") == page().encode()


def test_removing_an_element_over_several_lines_takes_them_all() -> None:
    data = page(head='<link\n  rel="memhtml-supports"\n  href="/a"\n>\n').encode()
    assert edit.remove_link(data, "supports") == page().encode()


def test_inserting_after_a_shared_line_goes_right_behind_the_element() -> None:
    data = PLAIN.replace(b"\n", b"")
    after = edit.add_link(data, "supports", "/areas/b.html")
    tag = b'<meta name="memhtml-tag" content="a">'
    assert after == data.replace(tag, tag + f"\n{LINK}\n".encode())
    assert links(after) == [("supports", "/areas/b.html")]


def test_inserting_before_a_shared_line_goes_right_before_the_element() -> None:
    data = PLAIN.replace(b"\n", b"")
    tag = b'<meta name="memhtml-tag" content="a">'
    stamp = f'\n<meta name="memhtml-archived" content="{AT}">\n'.encode()
    assert edit.set_meta(data, "archived", AT) == data.replace(tag, stamp + tag)


def test_line_ends_and_byte_order_mark_survive() -> None:
    data = b"\xef\xbb\xbf" + PLAIN.replace(b"\n", b"\r\n")
    after = edit.add_link(data, "supports", "/areas/b.html")
    assert after.replace(f"{LINK}\n".encode(), b"") == data
    assert edit.remove_link(after, "supports", "/areas/b.html") == data


def test_archive_stamp_sets_status_and_archived_but_not_updated() -> None:
    after = edit.archive_stamp(PLAIN, "2026-12-02T00:00:00Z")
    found = record.read("archive/2026/areas/x.html", after).record
    assert found is not None
    assert (found.status, found.updated_at) == ("archived", AT)
    assert b'\n<meta name="memhtml-archived" content="2026-12-02T00:00:00Z">\n' in after
    assert edit.archive_stamp(after, "2026-12-02T00:00:00Z") == after


def test_a_second_copy_in_comment_title_template_or_body_is_not_edited() -> None:
    data = page(
        f"{CLAIM}{LINK}",
        title=f"t {LINK.replace('<', '&lt;')}",
        head=f"<!-- {LINK} --><template>{LINK}</template>\n{LINK}\n",
    ).encode()
    after = edit.remove_link(data, "supports")
    assert after == data.replace(f"\n{LINK}\n".encode(), b"\n", 1)
    assert links(after) == []


def test_links_behind_the_end_of_the_head_are_edited_where_they_stand() -> None:
    data = page().replace("</head>\n", f"</head>\n{LINK}\n").encode()
    assert links(data) == [("supports", "/areas/b.html")]
    assert edit.remove_link(data, "supports") == page().encode()
    both = edit.add_link(data, "supports", "/areas/c.html")
    assert len(links(both)) == 2


def test_an_insertion_that_the_parser_would_not_count_finds_another_place() -> None:
    data = b"<head><link rel=icon href=x><title>x</title><p>y</p></head><article>z</article>"
    after = edit.add_link(data, "supports", "/areas/b.html")
    assert after == data.replace(b"href=x>", f"href=x>\n{LINK}\n".encode())


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"", b"<p>x", b"<head>", b"<frameset>", b"<div>" * 60_000]
)
def test_what_has_no_head_or_cannot_be_parsed_comes_back_unchanged_or_sound(data: bytes) -> None:
    for after in (
        edit.add_link(data, "supports", "/a"),
        edit.set_meta(data, "status", "archived"),
        edit.remove_link(data, "supports"),
        edit.remove_meta(data, "tag"),
        edit.cut_edges(data),
    ):
        assert after == data or (data == b"<head>" and after.startswith(data))


def test_cut_edges_takes_what_the_parser_counted_in_any_spelling() -> None:
    head = (
        '<LINK\n REL=memhtml-supports HREF="/a"/><meta content="a:b" name=\'memhtml-entity\'>\n'
        '<link rel="MEMHTML-SUPPORTS" href="/b"><!-- <link rel="memhtml-supports" href="/c"> -->\n'
        '<link rel="canonical" href="/d">\n'
    )
    cut = edit.cut_edges(b"\xef\xbb\xbf" + page(head=head).encode())
    assert cut == b"\xef\xbb\xbf" + page(head="\n" + head.split("\n", 2)[2]).encode()


def test_collapse_markup_drops_space_between_tags_only() -> None:
    assert edit.collapse_markup(" <p> a \n b</p>\r\n\t<p>c</p> ") == "<p> a b</p><p>c</p>"
    assert edit.collapse_markup("<p>\u00a0</p>") == "<p>\u00a0</p>"


# Properties over heads as people write them.

_SPACE = st.sampled_from(["", " ", "\n", "\r\n", "\n  ", "\t"])
_ELEMENT = st.sampled_from(
    [
        '<meta name="memhtml-tag" content="a">',
        "<META CONTENT='b&amp;c' NAME=memhtml-entity />",
        '<meta name="memhtml-alias" content="ä">',
        '<link rel="memhtml-supports" href="/areas/b.html">',
        "<link href=/areas/c.html\nrel=memhtml-relates_to>",
        '<link rel="canonical" href="x">',
        "<!-- <link rel=memhtml-supports href=/x> -->",
        "<template><meta name=memhtml-tag content=t></template>",
        '<noscript><link rel="memhtml-blocks" href="/areas/n.html"></noscript>',
        '<meta name="viewport" content="a > b">',
        "<script>'<link rel=memhtml-supports href=/s>'</script>",
    ]
)


@st.composite
def _files(draw: st.DrawFn) -> bytes:
    parts = draw(st.lists(st.tuples(_ELEMENT, _SPACE), max_size=6))
    text = page(head="".join(element + space for element, space in parts))
    if draw(st.booleans()):
        text = text.replace("</head>\n", draw(st.sampled_from(["", "</head>", "</HEAD >\n"])))
    if draw(st.booleans()):
        text = text.replace("\n", draw(st.sampled_from(["", "\r\n", " "])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def _is_one_splice(before: bytes, after: bytes) -> bool:
    """Whether the outside of one contiguous span is the same bytes, the article inside it."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    limit = min(len(before), len(after)) - head
    while tail < limit and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return tail >= len(b"</article></body></html>") and head > 0


_EDITS: list[Callable[[bytes], bytes]] = [
    lambda data: edit.set_meta(data, "status", "archived"),
    lambda data: edit.set_meta(data, "archived", AT),
    lambda data: edit.add_meta(data, "tag", "new"),
    lambda data: edit.add_meta(data, "entity", 'n:"<&'),
    lambda data: edit.add_link(data, "blocks", "/areas/new.html"),
]


@settings(max_examples=150, deadline=None)
@given(_files(), st.sampled_from(_EDITS))
def test_an_edit_is_one_splice_and_keeps_the_content_hash(
    data: bytes, change: Callable[[bytes], bytes]
) -> None:
    after = change(data)
    assert after != data
    assert _is_one_splice(data, after)
    assert record.content_hash(after) == record.content_hash(data)
    assert change(after) == after


@settings(max_examples=150, deadline=None)
@given(_files())
def test_adding_then_removing_what_was_absent_is_no_change(data: bytes) -> None:
    added = edit.add_link(data, "about_person", "/areas/new.html")
    removed = edit.remove_link(added, "about_person", "/areas/new.html")
    # An insertion into a shared line leaves the two newlines that it came with.
    assert removed.replace(b"\n", b"") == data.replace(b"\n", b"")
    labelled = edit.add_meta(data, "entity", "new:one")
    unlabelled = edit.remove_meta(labelled, "entity", "new:one")
    assert unlabelled.replace(b"\n", b"") == data.replace(b"\n", b"")


@given(st.lists(_ELEMENT.filter(lambda element: "noscript" not in element), max_size=6))
def test_adding_then_removing_on_lines_of_their_own_is_the_identity(parts: list[str]) -> None:
    data = page(head="".join(f"{part}\n" for part in parts)).encode()
    added = edit.add_link(data, "about_person", "/areas/new.html")
    assert added != data
    assert edit.remove_link(added, "about_person", "/areas/new.html") == data


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(_EDITS))
def test_edits_never_raise_on_any_bytes(data: bytes, change: Callable[[bytes], bytes]) -> None:
    assert isinstance(change(data), bytes)
    assert isinstance(edit.cut_edges(data), bytes)
