"""The serialiser and the bounds on what is parsed."""

from __future__ import annotations

import ast
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.format import CLAIM, page

from memhtml_format import guard, html, record


def rewritten(markup: str) -> str:
    return html.serialise(html.parse_article(markup).root)


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (
            "<P TITLE=\"b\" id='a'><MARK>Claim &copy;</MARK> "
            '<a href="x?a=1&b=2" aria-label="q">l</a></P>',
            '<p id="a" title="b"><mark>Claim ©</mark> '
            '<a aria-label="q" href="x?a=1&amp;b=2">l</a></p>',
        ),
        ('a &lt; b &amp; c &gt; "d" &nbsp;', 'a &lt; b &amp; c &gt; "d" &nbsp;'),
        ('<a title="&quot;<&nbsp;\r\n&#13;">', '<a title="&quot;<&nbsp;&#10;&#13;"></a>'),
        ("<pre>\n\n x</pre>", "<pre>\n\n x</pre>"),
        ("<pre>\nx</pre>", "<pre>x</pre>"),
        ("<br/><p hidden>x", '<br><p hidden="">x</p>'),
        ("<style>a > b</style>", "<style>a > b</style>"),
        ("<!-- a -->b", "<!-- a -->b"),
        ("<!--a---><!----><?x-->-->b<!----->", "<!--a---><!----><!--?x---->--&gt;b<!----->"),
        ("<tr><td>x", "x"),
        ("<table><td>x", "<table><tbody><tr><td>x</td></tr></tbody></table>"),
        ("<template><p>a<template>b</template></template>c", None),
        ("", ""),
    ],
)
def test_serialiser_writes_one_spelling(markup: str, expected: str | None) -> None:
    if expected is None:
        expected = "<template><p>a<template>b</template></p></template>c"
    assert rewritten(markup) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="<>/=\"'& \n\u00a0abp!-", max_size=60))
def test_serialising_twice_changes_nothing_more(markup: str) -> None:
    once = rewritten(f"<p>{markup}</p>")
    assert rewritten(once) == once


def test_escapes_keep_a_value_on_one_line() -> None:
    line = html.start_tag("meta", [("name", "x"), ("content", 'a"b\r\n<&\u00a0')])
    assert line == '<meta name="x" content="a&quot;b&#13;&#10;<&amp;&nbsp;">'


@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 100_000,
        "<p>" + "".join(f"<b a={i}>" for i in range(2000)) + "<p>x" * 4000,
        ("<b id=1>" + "<div>" * 9 + "</b>") * 3000 + "<p>x" * 3000,
        "<p " + " ".join(f"a{i}=1" for i in range(50_000)) + ">",
        "<a x='" + '<a y="' * 100_000,
        "<span>" * 50_000 + "</i>" * 50_000,
        "<html a=1>" * 60_000,
        "".join(f"<b {'x' * (i % 60)}><table></b></table>" for i in range(3000)) + "<p>x" * 3000,
    ],
)
def test_markup_whose_tree_would_explode_is_refused_quickly(body: str) -> None:
    data = page(CLAIM + body).encode()
    began = time.process_time()
    reading = record.read("areas/x.html", data)
    assert time.process_time() - began < 5
    assert [problem.code for problem in reading.problems] == ["U2"]
    assert record.content_hash(data) is None
    assert record.head_view(data) is None
    assert record.active_content(data) == ()


@pytest.mark.parametrize(
    "body",
    [
        "<tr><td><code>x</code><td><a href='/x?a=1#b'>y <b>z</b><br></a></tr>" * 3000,
        "<p>word <strong>word <em>word</em></strong> word</p>\n" * 8000,
        "<ul>" + "<li>item " * 5000 + "</ul>",
        "<span>" * 20_000,
        "x" * 2_000_000,
        "&amp;" * 50_000,
    ],
)
def test_long_ordinary_pages_are_read(body: str) -> None:
    data = page(f"{CLAIM}<table>{body}</table>" if "<tr>" in body else CLAIM + body).encode()
    assert record.read("areas/x.html", data).record is not None


@pytest.mark.parametrize("spelling", ["<\u017f a=1>x</\u017f>", "<s a='>x</s>'>", "<b/a=1>x</b>"])
def test_only_cleanly_closed_formatting_is_discounted(spelling: str) -> None:
    assert guard.is_tangled((spelling + "<s b=2>") * 2000 + "<p>x" * 2000)


def tags_of(text: str) -> list[str]:
    """The tags that the estimate counts."""
    return guard._TAG.findall(text)


@given(st.lists(st.sampled_from(["<ul>", "<LI>", "<li>", "</li>", "</ul>", "<b>", "</b>", "<br>"])))
def test_estimate_of_steps_is_never_too_low(parts: list[str]) -> None:
    tags = tags_of("".join(parts * 20))
    assert guard._steps_at_most(tags) >= guard._steps_exactly(tags)


def test_long_lists_are_let_through_by_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(tags: list[str]) -> int:
        raise AssertionError("counted tag by tag")

    monkeypatch.setattr(guard, "_steps_exactly", forbidden)
    assert not guard.is_tangled("<ul><li>x</li></ul>" * 50_000)


@pytest.mark.parametrize(
    "tag",
    [
        "<p" + " a" * 5_000 + ">",
        "<p" + " a=1" * 5_000 + ">",
        '<p a="' + ">" * 9 + '"' + ' a="1"' * 5_000 + ">",
        "<p/" + "a/" * 5_000 + ">",
        "<p x<y" + " a" * 5_000,
        "</p" + " a" * 5_000 + ">",
    ],
)
def test_one_crowded_tag_among_plain_ones_is_found(tag: str) -> None:
    plain = "<p a=1 b='2' c=\"3\">x</p><br/><br />" * 2_000
    assert guard.is_tangled(plain + tag)
    assert not guard.is_tangled(plain + tag[:2_000] + ">")


def test_no_pattern_uses_what_older_interpreters_get_wrong() -> None:
    # Possessive quantifiers and atomic groups, which CPython matches rightly from 3.11.5 on only.
    wrong = re.compile(r"[*+?}]\+|\(\?>")
    roots = Path(__file__).parents[2]
    texts = [
        (path.name, node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
        for part in ("src", "sandbox", "harvest")
        for path in (roots / part).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    ]
    assert len(texts) > 1_000
    assert [(name, text) for name, text in texts if wrong.search(text)] == []
