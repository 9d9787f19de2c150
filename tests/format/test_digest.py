"""Blob ids and the content hash vectors of spec `format` §5."""

from __future__ import annotations

import pytest

from memhtml_format import digest, record
from memhtml_format.html import canonical_of_markup

VECTORS = [
    ("<p><mark>It is fixed.</mark></p>", "It is fixed.", "ed478319"),
    (
        '<p>Seen on <time datetime="2026-07-28">July 28</time>, <mark>the <dfn>pool size</dfn> '
        'is 20</mark>.</p><dl><dt>Limit</dt><dd><data value="20">twenty</data></dd></dl>',
        "Seen on July 28, the pool size is 20. Limit twenty",
        "388b6d0b",
    ),
    ("<p><mark>multi\nline   claim</mark></p>", "multi line claim", "207ea85e"),
    (
        "<p><mark>The snippet greets.</mark></p><figure><pre><code>const a = 1 &lt; 2 &amp;&amp; "
        '"x"\n\n  indented</code></pre></figure><p>tail text</p>',
        'The snippet greets. const a = 1 < 2 && "x"\n\n  indented tail text',
        "9c4fc4cd",
    ),
    (
        "<p><mark>Claim &nbsp; with&nbsp;nbsp © &lt;</mark> <br> <a>l</a></p>\n<div>d</div>"
        "<pre>\n\n lead</pre><table><tr><td>1</td></tr></table>",
        "Claim \u00a0 with\u00a0nbsp © < l d \n lead 1",
        "a7f437db",
    ),
]


@pytest.mark.parametrize(("article", "canonical", "start"), VECTORS)
def test_content_hash_vectors(article: str, canonical: str, start: str) -> None:
    assert canonical_of_markup(article) == canonical
    assert digest.article_hash(article).startswith(f"sha256:{start}")
    document = f"<!doctype html><title>x</title><p>out</p><article>{article}</article>"
    assert digest.article_hash(document) == digest.article_hash(article)
    assert record.content_hash(document.encode()) == digest.article_hash(article)


@pytest.mark.parametrize(
    ("article", "canonical"),
    [
        ("<pre>  a\n</pre>", "  a\n"),
        ("<pre>a <br>b </pre>", "a  b "),
        ("<p>a<strong>b</strong><em>c</em></p>", "abc"),
        ("<p>a</p><p>b</p>", "a b"),
        ("a<!-- c -->b", "ab"),
        ("a<template>b</template>c", "a c"),
        ("", ""),
    ],
)
def test_canonical_text_of_corner_cases(article: str, canonical: str) -> None:
    assert canonical_of_markup(f"<article>{article}</article>") == canonical


def test_content_hash_ignores_line_ends_nul_and_byte_order_mark() -> None:
    plain = b"<article><p>a\nb</p><pre>c\nd</pre></article>"
    folded = plain.replace(b"\n", b"\r\n").replace(b"a", b"a\0")
    assert record.content_hash(b"\xef\xbb\xbf" + folded) == record.content_hash(plain)


def test_content_hash_is_none_when_the_file_is_not_utf8() -> None:
    assert record.content_hash(b"<article>\xff</article>") is None


def test_blob_sha_is_the_git_id() -> None:
    assert digest.blob_sha(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert digest.blob_sha(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
