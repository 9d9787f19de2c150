"""The tokeniser with offsets, compared with the tree builder."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from memhtml_format import html, tokens


def names(text: str) -> list[str]:
    return [("/" if tag.closing else "") + tag.name for tag in tokens.tags(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<P><!-- <a> --><b>", ["p", "b"]),
        ("<!--><a><!---><b><!-- x --!><c><!----!><d>", ["a", "b", "c", "d"]),
        ("<!doctype html '>'><a>", ["a"]),
        ("<?php <a>?><b>", ["b"]),
        ("</><a></ <b>><c></1><d>", ["a", "c", "d"]),
        ("<title><a></titlex></title ><b>", ["title", "/title", "b"]),
        ("<textarea></TEXTAREA/><b>", ["textarea", "/textarea", "b"]),
        ("<script><!-- <script> </script> <a> --></script><b>", ["script", "/script", "b"]),
        ("<script><!--> <script></script><b>", ["script", "/script", "b"]),
        ("<script>'</scripty>'</script><b>", ["script", "/script", "b"]),
        ("<style><a>", ["style"]),
        ("<plaintext><a></plaintext>", ["plaintext"]),
        ("<a b='>'><c d=\">\"><e f=>><g", ["a", "c", "e"]),
        ("<svg><![CDATA[<a>]]><b>", ["svg", "b"]),
        ("<svg><![CDATA[<a>]]><title><i></title></svg>", ["svg", "title", "i", "/title", "/svg"]),
        ("<![CDATA[<a>]]><b>", ["b"]),
        ("<a/><b/ ><c", ["a", "b"]),
        ("a < b <3 <", []),
        ("<a <b>", ["a"]),
    ],
)
def test_tags_follow_the_standard(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a B=1 b=2 c>", {"b": "1", "c": ""}),
        ("<a b = 'x>y' c= \"z\"d=e/>", {"b": "x>y", "c": "z", "d": "e/"}),
        ("<a/b/=c/d=>", {"b": "", "=c": "", "d": ""}),
        ("<a b='1\r\n2\r3\0'>", {"b": "1\n2\n3\ufffd"}),
        ("<a b='&lt;&#x41;&#65&#0;&#128;&#xD800;&#x110000;'>", {"b": "<AA\ufffd€\ufffd\ufffd"}),
        ("<a b='?x=1&copy=2&copy&copyx&copy;'>", {"b": "?x=1&copy=2©&copyx©"}),
        ("<a b='&notit; &notin; &ampx &; &# &#x &nope;'>", None),
        ("<a \"b'=c>", {"\"b'": "c"}),
    ],
)
def test_attributes_read_as_the_tree_builder_reads_them(
    text: str, expected: dict[str, str] | None
) -> None:
    found = next(tokens.tags(text)).attributes()
    if expected is not None:
        assert found == expected
    node = LexborHTMLParser(text).css_first("a")
    assert node is not None
    assert {name: value or "" for name, value in node.attributes.items()} == found


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="&#xX;=aAm plt1239ucoiyngq\u00e9\n", max_size=30))
def test_values_decode_as_the_tree_builder_decodes_them(value: str) -> None:
    node = html.parse(f'<a b="{value}">').css_first("a")
    assert node is not None
    assert tokens.decode_value(value) == (node.attributes["b"] or "")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *("<p>", "</p>", "<i a=b>", "<!--", "-->", "--!>", "<!x>", "</", "<", ">", "'"),
                *('"', "=", "/", " ", "x", "<title>", "</title>", "<script>", "</script>", "<!"),
                *("<style>", "</style>", "<meta c='d'>", "<link e=f/>", "-", "&", "\n"),
            ]
        ),
        max_size=25,
    )
)
def test_start_tags_are_those_of_the_tree(parts: list[str]) -> None:
    text = "<body>" + "".join(parts)
    kinds = ("meta", "link", "script", "style", "title", "i")
    spans = [tag for tag in tokens.tags(text) if not tag.closing and tag.name in ("meta", "link")]
    nodes = html.parse(text).css("meta, link")
    assert [tag.name for tag in spans] == [node.tag for node in nodes]
    for tag in spans:
        assert text[tag.start] == "<"
        assert text[tag.end - 1] == ">"
    assert all(tag.name in (*kinds, "p", "body") or tag.raw is not None for tag in spans)
