"""What a file says, and every constraint of spec `format` §3.6."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.format import AT, CLAIM, page

from memhtml_format import record
from memhtml_format.digest import blob_sha

PATH = "areas/inbox/x.html"


def codes(source: str) -> list[str]:
    return [problem.code for problem in record.read(PATH, source.encode()).problems]


def read(source: str, path: str = PATH) -> record.Record:
    reading = record.read(path, source.encode())
    assert reading.problems == ()
    assert reading.record is not None
    return reading.record


def test_record_carries_all_a_file_says() -> None:
    source = page(
        '<p>Seen on <time datetime="2026-07-28">July 28</time>, <mark>the <dfn>pool size</dfn> '
        "of the proxy is 20</mark>.</p><dl><dt>Limit</dt><dd><data value=' 20 '>twenty</data></dd>"
        "<dd>soft</dd></dl><pre><code data-lang='PY'>a  b</code></pre>"
        "<details><summary>Why</summary><dl><dt>a</dt><dd>b</dd></dl></details>"
        "<aside><cite>no</cite></aside><p><cite>The book</cite> <q cite='/x'>said</q> <q>bare</q>",
        title=" Pool\n size ",
        head='<meta name="memhtml-confidence" content="0.5">'
        '<meta name="memhtml-importance" content="7">'
        '<meta name="memhtml-entity" content="system:proxy"><meta name="memhtml-entity" content="">'
        '<meta name="memhtml-tag" content="infra"><meta name="description" content="x">'
        '<link rel="memhtml-relates_to" href="/areas/a.html"><link rel="canonical" href="y">',
    )
    found = read(source)
    assert found._replace(blob_sha="", content_hash="") == record.Record(
        path=PATH,
        blob_sha="",
        content_hash="",
        archived=False,
        memory_type="semantic",
        status="active",
        title="Pool size",
        claim="the pool size of the proxy is 20",
        frame_key="the pool size of the proxy is",
        frame_value="20",
        created_at=AT,
        updated_at=AT,
        event_at="2026-07-28",
        confidence=0.5,
        importance=7,
        tags=("infra",),
        entities=("system:proxy",),
        links=(record.Link("relates_to", "/areas/a.html"),),
        facets=(
            record.Facet("Limit", "twenty", 20.0),
            record.Facet("Limit", "soft", None),
            record.Facet("a", "b", None),
        ),
        body_text="Seen on July 28, the pool size of the proxy is 20. Limit twenty soft a b "
        "Why a b no The book said bare",
        disclosure_text="the pool size of the proxy is 20\nWhy\nLimit: twenty\nLimit: soft\n"
        "The book\nsaid",
        derived_entities=("concept:pool size", "lang:py"),
    )
    assert found.blob_sha == blob_sha(source.encode())
    assert found.content_hash == record.content_hash(source.encode())


def test_archived_is_decided_by_the_path_alone() -> None:
    assert not read(page(status="archived")).archived
    assert read(page(status="active"), "archive/2026/areas/x.html").archived


@pytest.mark.parametrize(
    ("metas", "confidence", "importance"),
    [
        ("", None, None),
        ('<meta name="memhtml-confidence" content=" ">', None, None),
        ('<meta name="memhtml-confidence" content="1.01">', None, None),
        ('<meta name="memhtml-importance" content="11">', None, None),
        ('<meta name="memhtml-importance" content="5.5">', None, None),
        ('<meta name="memhtml-importance" content="5.0">', None, 5),
        ('<meta name="memhtml-confidence" content="0">', 0.0, None),
    ],
)
def test_bad_numbers_read_as_absent(
    metas: str, confidence: float | None, importance: int | None
) -> None:
    found = read(page(head=metas))
    assert (found.confidence, found.importance) == (confidence, importance)


@pytest.mark.parametrize(
    ("article", "claim"),
    [
        ("<p><mark>a <code>x</code> b<pre>c</pre></mark>", "a b"),
        ("<p><mark>\u00a0a\u00a0b\u00a0</mark>", "a\u00a0b"),
        ("<p><code><mark>a</mark></code>", "a"),
    ],
)
def test_claim_leaves_code_out_and_keeps_inner_no_break_spaces(article: str, claim: str) -> None:
    assert read(page(article)).claim == claim


def _without(text: str) -> str:
    return page().replace(text, "")


_META = '<meta name="memhtml-{}" content="{}">'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (_without("<title>Cache ttl</title>\n"), ["H1"]),
        (page(title=" \u00a0"), ["H1"]),
        (page(CLAIM + "<svg><title>t</title></svg>"), ["H1"]),
        (_without(_META.format("type", "semantic")), ["H2"]),
        (_without(_META.format("status", "active")), ["H2"]),
        (_without(_META.format("created", AT) + "\n" + _META.format("updated", AT)), ["H2", "H2"]),
        (page(head=_META.format("color", "x") * 2), ["H3"]),
        (page(head=_META.format("", "x")), ["H3"]),
        (page(head=_META.format("Tag", "x")), ["H3"]),
        (page(head=_META.format("status", "")), ["H4"]),
        (page(head=_META.format("author", "a") * 3), ["H4"]),
        (page().replace("article>", "div>"), ["A1"]),
        (page(CLAIM + "<article></article>"), ["A1"]),
        (page("<p>x</p>"), ["A2"]),
        (page(CLAIM + "<p><mark>b</mark></p>"), ["A2"]),
        (page("<p><mark>\u00a0 </mark></p>"), ["A3"]),
        (page("<p><mark><code>x</code></mark></p>"), ["A3"]),
        (page("<aside><p><mark>a</mark></p></aside>"), ["A4"]),
        (page("<details><summary><mark>a</mark></summary></details>"), ["A5"]),
        (page("<aside><details><mark></mark></details></aside>"), ["A3", "A4", "A5"]),
        (page("<p>x</p><p><mark>a</mark></p>"), ["A6"]),
        (page("<mark>a</mark>"), ["A6"]),
        (page("<ul><li><p>x</p><mark>a</mark></li></ul>"), []),
        (page("<ul><li>x</li></ul><p><mark>a</mark></p>"), ["A6"]),
        (page(CLAIM + "<time>x</time><time datetime=2026-8-9>y</time>"), ["T1", "T1"]),
        (page(CLAIM + "<time datetime>x</time>"), ["T1"]),
        (page(CLAIM + "<script></script><style></style>"), ["P1"]),
        (page().replace('<html lang="en">', "<html class=x>"), ["P2"]),
        (page(CLAIM + "<p style=x class=y>"), ["P2"]),
        (page().replace("<head>", "<head onload=x>"), ["P3"]),
        (page(CLAIM + "<p on=x>"), []),
        (page(CLAIM + "<p once=x>"), ["P3"]),
        (page(CLAIM + "<template><p onclick=x></template>"), ["P3"]),
        (page(CLAIM + "<template><template><script></script></template></template>"), ["P1"]),
        (page(CLAIM + "<template><mark>b</mark><time>x</time></template>"), []),
        (page(head='<link rel="memhtml-likes" href="/a">'), ["L1"]),
        (page(head='<link rel="memhtml-supports nofollow" href="/a">'), ["L1"]),
        (page(head='<link rel="nofollow memhtml-supports">'), []),
        (page(head='<link rel="memhtml-supports"><link rel="memhtml-x" href="">'), [*"L"]),
        (page(head='<link rel="memhtml-supports" href="x.html">'), ["L3"]),
        (page(memory_type="essay"), ["M1"]),
        (page(memory_type=""), ["M1"]),
        (page(status="gone"), ["M2"]),
        (page(memory_type="task"), ["M3"]),
        (page(memory_type="task", head=_META.format("task-status", "later")), ["M3"]),
        (page(memory_type="task", head=_META.format("task-status", "doing")), []),
        (page(head=_META.format("task-status", "todo")), ["M3"]),
        (page(head=_META.format("task-status", "x") + _META.format("due", "soon")), ["M3"]),
        (page(head=_META.format("due", "2026-12-01")), []),
        (page(created="2026-12-01T10:00:00.000Z", updated=""), ["M4", "M4"]),
        (page(head=_META.format("valid-from", "x") + _META.format("archived", "")), ["M4", "M4"]),
    ],
)
def test_constraints(source: str, expected: list[str]) -> None:
    if expected == ["L"]:
        expected = ["L1", "L2", "L2"]
    assert codes(source) == expected


def test_problems_come_in_the_order_of_the_constraints() -> None:
    source = (
        "<html class=x><head><meta name=memhtml-type content=no><meta name=memhtml-x>"
        "<link rel=memhtml-x href=y></head><p onclick=a><time></time><script></script>"
    )
    assert codes(source) == [
        *("H1", "H2", "H2", "H2", "H3", "A1", "T1", "P1", "P2", "P3", "L1", "L3", "M1"),
    ]


def test_only_the_parsed_head_counts() -> None:
    late = (
        page()
        .replace("</head>", "<p>x</p></head>")
        .replace("<p>x</p>", '<p>x</p><meta name="memhtml-tag" content="body">')
    )
    found = read(late)
    assert found.tags == ()
    after = page().replace("</head>\n", '</head>\n<link rel="memhtml-supports" href="/a">\n')
    assert read(after).links == (record.Link("supports", "/a"),)
    nested = page(
        head='<noscript><meta name="memhtml-tag" content="a"></noscript>'
        '<template><meta name="memhtml-tag" content="b"></template>'
        '<!-- <meta name="memhtml-tag" content="c"> -->'
    )
    assert read(nested).tags == ("a",)


def test_attributes_count_once_and_decoded() -> None:
    found = read(page(head='<META NAME=memhtml-tag CONTENT="a&amp;b &#x41;" content=second>'))
    assert found.tags == ("a&b A",)


def test_a_charset_meta_and_a_byte_order_mark_change_nothing() -> None:
    source = page(title="Größe").replace("utf-8", "iso-8859-1")
    reading = record.read(PATH, b"\xef\xbb\xbf" + source.encode())
    assert reading.record is not None
    assert reading.record.title == "Größe"


def test_warnings_name_an_element_once_and_never_refuse() -> None:
    reading = record.read(
        PATH,
        page(
            CLAIM + "<br><br><div>x</div><figure><div>y</div><span>z</span></figure>"
            "<code data-lang='a b'>x</code><code data-lang='a b'>x</code><code data-lang=c>x</code>"
        ).encode(),
    )
    assert reading.record is not None
    assert reading.warnings == (
        "br is outside the element vocabulary",
        "div is outside the element vocabulary",
        "data-lang 'a b' is no language token",
    )


def test_bytes_that_are_not_utf8_are_a_problem_of_their_own() -> None:
    reading = record.read(PATH, b"<p>\xff")
    assert reading.record is None
    assert [problem.code for problem in reading.problems] == ["U1"]
    assert record.door_problems(PATH, b"\xff") == ("not valid UTF-8",)


def test_door_problems_name_the_path_first_and_active_content_last() -> None:
    source = page('<p class="x"><mark></mark> <script>1</script><iframe></iframe></p>')
    said = record.door_problems("notes/x.html", source.encode())
    assert said[0].startswith("path: not rooted in a PARA bucket")
    assert [bool(sentence) for sentence in said] == [True] * 5
    assert "mark is empty" in said[1]
    assert "script" in said[2]
    assert "class" in said[3]
    assert "iframe" in said[4]


def test_head_view_holds_what_a_harvest_compares() -> None:
    source = page(
        "<p><mark>a</mark>\n\n  b &lt;</p>\n <p TITLE=x id=y>c</p>",
        title=" A\n b ",
        head=_META.format("entity", "a:b")
        + _META.format("tag", "z")
        + _META.format("tag", "a")
        + '<link rel="memhtml-supports" href="/a">',
    )
    view = record.head_view(source.encode())
    assert view is not None
    assert view.title == "A b"
    assert dict(view.metas)["memhtml-tag"] == ("z", "a")
    assert dict(view.metas)["memhtml-created"] == (AT,)
    assert "memhtml-entity" not in dict(view.metas)
    assert view.entities == ("a:b",)
    assert view.links == (record.Link("supports", "/a"),)
    assert view.article_html == '<p><mark>a</mark> b &lt;</p><p id="y" title="x">c</p>'


def test_head_view_is_none_for_what_is_no_record() -> None:
    assert record.head_view(b"<p>x") is None
    assert record.head_view(b"\xff") is None


@pytest.mark.parametrize("element", ["span", "section", "q cite=x", "template", "dl><dt>a<dd"])
def test_deep_nesting_is_read_without_recursion(element: str) -> None:
    deep = page(CLAIM + f"<{element}>x" * 4000).encode()
    assert record.read(PATH, deep).record is not None
    assert record.head_view(deep) is not None
    assert record.content_hash(deep) is not None
    assert record.active_content(deep) == ()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_reading_never_raises_on_any_bytes(data: bytes) -> None:
    reading = record.read(PATH, data)
    assert (reading.record is None) == bool(reading.problems)
    record.door_problems(PATH, data)
    record.head_view(data)


_FRAGMENTS = st.sampled_from(
    [
        *("<article>", "</article>", "<mark>", "</mark>", "<p>", "<li>", "<aside>", "<details>"),
        *("<dl>", "<dt>", "<dd>", "</dl>", "<summary>", "</summary>", "<pre>", "\n", "x", "\0"),
        *("<time>", "<template>", "</template>", "<svg>", "<title>", "</title>", "<head>"),
        *("<table>", "<td>", "<select>", "<noscript>", "<frameset>", "<!--", "-->", "<b a=1>"),
        *("<meta name=memhtml-tag content=x>", "<link rel=memhtml-supports href=/a>", "</head>"),
        *("<data value=1>", "<cite>", "</cite>", "<dfn>", "<code data-lang=c>", "</code>", "&am"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_FRAGMENTS, max_size=40))
def test_reading_never_raises_on_any_markup(parts: list[str]) -> None:
    source = page("".join(parts)).encode()
    for data in (source, "".join(parts).encode()):
        reading = record.read(PATH, data)
        assert (reading.record is None) == bool(reading.problems)
        if reading.record is not None:
            assert reading.record.content_hash == record.content_hash(data)
            assert record.head_view(data) is not None
        record.active_content(data)
