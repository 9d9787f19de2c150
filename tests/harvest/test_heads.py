"""Head edits: what becomes operations, what is refused, and what the refusal says (§3.4)."""

from __future__ import annotations

import pytest
from tests.support.harvest import AT, Doc, judge, summary

from memhtml_harvest.report import Harvest

NOTE = "areas/inbox/note.html"
A, B, C = "/areas/inbox/a.html", "/areas/inbox/b.html", "/areas/inbox/c.html"
PLAIN = Doc(links=(("supports", A), ("part-of", B)), entities=("system:a", "team:b"))


def edited(before: Doc, after: Doc | bytes) -> Harvest:
    return judge({NOTE: before}, {NOTE: after})


def refusal(before: Doc, after: Doc | bytes) -> str:
    """The reason of the one rejection, after checking that it is a head edit and all there is."""
    result = edited(before, after)
    assert result.ops == ()
    assert [item.path for item in result.rejected] == [NOTE]
    reason = result.rejected[0].reason
    assert reason.startswith("head-edit: ")
    return reason


def test_operations_come_by_kind_and_in_document_order() -> None:
    after = PLAIN._replace(
        links=(("leads-to", C), ("part-of", B), ("caused_by", A)),
        entities=("team:z", "system:a", "app:q"),
    )

    assert summary(edited(PLAIN, after))[0] == [
        f"link {NOTE} leads_to {C}",
        f"link {NOTE} caused_by {A}",
        f"unlink {NOTE} supports {A}",
        f"label {NOTE} team:z",
        f"label {NOTE} app:q",
        f"unlabel {NOTE} team:b",
    ]


def test_removed_edges_keep_the_old_documents_order() -> None:
    before = PLAIN._replace(links=(("supports", C), ("supports", A), ("supports", B)))

    assert summary(edited(before, before._replace(links=())))[0] == [
        f"unlink {NOTE} supports {C}",
        f"unlink {NOTE} supports {A}",
        f"unlink {NOTE} supports {B}",
    ]


def test_a_respelled_rel_is_the_same_edge() -> None:
    before = Doc(links=(("part-of", A),))
    reason = refusal(before, before._replace(links=(("part_of", A),)))

    assert "no link or entity" in reason


def test_hrefs_are_compared_as_written() -> None:
    before = Doc(links=(("supports", A),))

    assert summary(edited(before, Doc(links=(("supports", f"{A}#x"),))))[0] == [
        f"link {NOTE} supports {A}#x",
        f"unlink {NOTE} supports {A}",
    ]


def test_values_are_compared_decoded() -> None:
    after = Doc(entities=("team:r&amp;d",))

    assert summary(edited(Doc(), after))[0] == [f"label {NOTE} team:r&d"]


@pytest.mark.parametrize(
    "line",
    [
        f'<link href="{A}" rel="memhtml-supports">',
        f"<link rel='memhtml-supports' href='{A}'>",
        f"<link rel=memhtml-supports href={A} >",
        f'<LINK REL="memhtml-supports" HREF="{A}">',
        f'\n  <link\n    rel="memhtml-supports"\n    href="{A}"\n  />\n',
        f'<link data-note="a > b" rel="memhtml-supports" href="{A}">',
        f'<link rel="memhtml-supports" href="{A}"><link rel="memhtml-supports" href="{A}">',
    ],
)
def test_an_edge_counts_in_every_spelling_of_its_element(line: str) -> None:
    result = edited(Doc(), Doc(head_extra=line))

    assert summary(result) == ([f"link {NOTE} supports {A}"], [])


def test_several_edges_on_one_line_count_each() -> None:
    line = (
        f'<link rel="memhtml-supports" href="{A}"><meta content="team:z" name="memhtml-entity">'
        f'<link rel="memhtml-part-of" href="{B}">'
    )

    assert summary(edited(Doc(), Doc(head_extra=line)))[0] == [
        f"link {NOTE} supports {A}",
        f"link {NOTE} part_of {B}",
        f"label {NOTE} team:z",
    ]


@pytest.mark.parametrize(
    "line",
    [
        f'<link rel="MEMHTML-SUPPORTS" href="{A}">',
        '<meta name="MEMHTML-ENTITY" content="team:z">',
        f'<!-- <link rel="memhtml-supports" href="{A}"> -->',
        '<meta name="description" content="x">',
        '<link rel="license" href="/x">',
    ],
)
def test_what_the_parser_does_not_count_is_an_unknown_change(line: str) -> None:
    assert "no link or entity" in refusal(Doc(), Doc(head_extra=line))


def test_an_edge_in_a_comment_beside_a_true_one_is_not_cut_with_it() -> None:
    true_edge = f'<link rel="memhtml-supports" href="{A}">'
    comment = f'<!-- <link rel="memhtml-supports" href="{A}"> -->\n'
    reason = refusal(Doc(), Doc(head_extra=true_edge + comment))

    assert "the rest of the head" in reason
    assert f"link added supports {A}" in reason


def test_an_edge_in_the_body_is_no_edge() -> None:
    page = Doc().html.replace("</article>", f'<link rel="memhtml-supports" href="{A}"></article>')

    assert "markup" in refusal(Doc(), page.encode())


def test_an_edge_after_the_head_goes_back_into_it() -> None:
    page = Doc().html.replace("</head>", f'</head><link rel="memhtml-supports" href="{A}">')

    assert summary(edited(Doc(), page.encode()))[0] == [f"link {NOTE} supports {A}"]


@pytest.mark.parametrize("rel", ["cites", "supports nofollow", ""])
def test_a_rel_outside_the_vocabulary_makes_a_put(rel: str) -> None:
    assert summary(edited(Doc(), Doc(links=((rel, A),)))) == ([f"put {NOTE}"], [])


def test_an_href_that_is_not_root_relative_makes_a_put() -> None:
    assert summary(edited(Doc(), Doc(links=(("supports", "b.html"),))))[0] == [f"put {NOTE}"]


def test_other_words_are_one_put_and_no_head_operation() -> None:
    after = PLAIN._replace(words="The relay drains in a day.", links=())

    assert summary(edited(PLAIN, after)) == ([f"put {NOTE}"], [])


def test_a_file_cut_off_in_its_article_is_a_put() -> None:
    half = PLAIN.html[: PLAIN.html.index("an hour")]

    assert summary(edited(PLAIN, half.encode()))[0] == [f"put {NOTE}"]


def test_a_changed_stamp_is_named_with_the_edges_beside_it() -> None:
    after = PLAIN._replace(
        metas=(("updated", "2026-07-01T00:00:00Z"),),
        links=(("supports", A), ("relates-to", C)),
        entities=("system:a",),
    )
    reason = refusal(PLAIN, after)

    assert f'the meta memhtml-updated changed from "{AT}" to "2026-07-01T00:00:00Z"' in reason
    assert f"link added relates_to {C}" in reason
    assert f"link removed part_of {B}" in reason
    assert "entity removed team:b" in reason


def test_every_other_change_is_named() -> None:
    after = Doc(
        title="Other",
        metas=(("confidence", "0.40"), ("tag", "x")),
        markup="<p><em><mark>{}</mark></em></p>",
    )
    reason = refusal(Doc(), after)

    assert 'the title changed from "Relay" to "Other"' in reason
    assert 'the meta memhtml-confidence was added with "0.40"' in reason
    assert 'the meta memhtml-tag was added with "x"' in reason
    assert "markup changed" in reason


def test_a_removed_meta_is_named() -> None:
    before = Doc(metas=(("session", "s1"),))

    assert 'the meta memhtml-session was removed, it was "s1"' in refusal(before, Doc())


def test_a_long_value_is_cut_in_the_reason() -> None:
    reason = refusal(Doc(), Doc(title="t" * 5_000))

    assert len(reason) < 1_000


@pytest.mark.parametrize(
    "page",
    [
        PLAIN.html.replace("\n", "\r\n"),
        PLAIN.html.replace("<p>", "   <p>"),
        PLAIN.html.replace("<title>", "<!-- x --><title>"),
        PLAIN.html.replace('content="system:a"', "content='system:a'"),
        PLAIN.html.replace("system:a", "@").replace("team:b", "system:a").replace("@", "team:b"),
        PLAIN.html + "\n\n",
        "\ufeff" + PLAIN.html,
    ],
    ids=["crlf", "indent", "comment", "quotes", "entity-order", "end", "bom"],
)
def test_a_byte_change_without_an_edit_is_listed(page: str) -> None:
    assert "no link or entity" in refusal(PLAIN, page.encode())


def test_a_doubled_link_is_listed() -> None:
    reason = refusal(PLAIN, PLAIN._replace(links=(*PLAIN.links, ("supports", A))))

    assert "doubled" in reason


@pytest.mark.parametrize(
    "page",
    [
        PLAIN.html.replace("system:a", "system:c").replace("\n<meta", "\n    <meta"),
        PLAIN.html.replace("system:a", "system:c").replace("<p><mark>", "<p>\n<mark>"),
        PLAIN.html.replace("system:a", "system:c") + "\n",
        PLAIN.html.replace("system:a", "system:c").replace("\n", "\r\n"),
    ],
    ids=["head-indent", "article-spacing", "end", "crlf"],
)
def test_spacing_beside_a_true_edit_is_no_objection(page: str) -> None:
    assert summary(edited(PLAIN, page.encode())) == (
        [f"label {NOTE} system:c", f"unlabel {NOTE} system:a"],
        [],
    )


def test_reordered_entities_beside_a_true_edit_are_no_objection() -> None:
    after = PLAIN._replace(entities=("team:b", "system:c", "system:a"))

    assert summary(edited(PLAIN, after)) == ([f"label {NOTE} system:c"], [])


def test_a_seeded_file_that_is_no_record_is_answered_with_a_put() -> None:
    before = b"<p>not a record</p>"

    assert summary(judge({NOTE: before}, {NOTE: b"<p>not a  record</p>"}))[0] == [f"put {NOTE}"]
