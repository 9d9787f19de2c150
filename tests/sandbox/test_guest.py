"""The helper that scripts import, run by plain node over a small tree with odd markup."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import memhtml_sandbox.lower

HELPER = Path(memhtml_sandbox.lower.__file__).parent / "guest/corpus.mjs"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")

PLAIN = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Pool size</title>
<meta name="memhtml-type" content="semantic">
<meta name="memhtml-status" content="active">
<meta name="memhtml-entity" content="system:pool">
<meta name="memhtml-tag" content="infra">
<meta name="memhtml-tag" content="">
<link rel="memhtml-supports" href="/areas/inbox/odd.html">
<link rel="memhtml-part-of" href="/areas/inbox/gone.html#top">
<link rel="stylesheet" href="/style.css">
</head>
<body>
<article>
<p>Seen on <time datetime="2026-07-28">July 28</time>,
<mark>the <dfn>pool size</dfn> is 20</mark>.</p>
<dl><dt>Limit</dt><dd><data value="20">twenty</data></dd></dl>
<p><cite>The manual</cite> and <q cite="https://example.org/">a saying</q>.</p>
</article>
</body>
</html>
"""

ODD = """<!DOCTYPE HTML><HTML><HEAD>
<!-- <meta name="memhtml-tag" content="in a comment"> --><!---->
<TITLE>Fish &amp; chips &lt;b&gt; <i>not a tag</i>
  second line</TITLE>
<META CONTENT='semantic'
      NAME=memhtml-type><meta name=memhtml-status content=active>
<meta name="memhtml-tag" content="a > b &quot;quoted&quot; &#x41;&#66;&eacute;&nbsp;&unknown; it's"
  content="second" /><meta name="memhtml-tag/" content="another name">
<meta name='memhtml-tag' content='say "hi"'>
<meta name="memhtml-entity" content=it's:fine>
<LINK HREF='/areas/inbox/plain.html' REL="memhtml-part-of">
<link rel="memhtml-part_of" href="/areas/x.html?q"><link rel="MEMHTML-SUPPORTS" href="/no.html">
<template><meta name="memhtml-tag" content="in a template"></template>
<noscript><meta name="memhtml-tag" content="in a noscript"></noscript>
</HEAD><BODY>
<meta name="memhtml-tag" content="in the body"><mark>outside</mark>
<article><P>1 < 2 &amp; <MARK>the <code>hidden</code> answer
   is <!-- not --> 42</MARK>
<ul><li>one<li>two</ul>
<dl><dt>First<dd>1<dt>__proto__<dd>2</dd><div><dt>no<dd>no</div></dl>
<script>"</article><mark>"</script>
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inbox = tmp_path / "corpus/areas/inbox"
    inbox.mkdir(parents=True)
    (inbox / "plain.html").write_text(PLAIN, encoding="utf-8")
    (inbox / "odd.html").write_text(ODD, encoding="utf-8", newline="")
    (inbox / "index.html").write_text("<title>generated</title>")
    (inbox / "note.txt").write_text("no memory")
    os.symlink("plain.html", inbox / "link.html")
    (tmp_path / "corpus/empty").mkdir()
    return tmp_path / "corpus"


def _ask(root: Path, expression: str) -> Any:
    """What an expression over the helper's exports gives, as JSON."""
    assert NODE is not None
    script = (
        f"import * as lib from {json.dumps(str(HELPER))};"
        f"const root = {json.dumps(str(root))};"
        f"console.log(JSON.stringify({expression}))"
    )
    answer = subprocess.run(
        [NODE, "--input-type=module", "-e", script], capture_output=True, check=False, timeout=30
    )
    assert answer.returncode == 0, answer.stderr.decode()
    return json.loads(answer.stdout)


def test_walk_gives_records_in_order_and_no_generated_page(root: Path) -> None:
    assert _ask(root, "lib.walk(root)") == [
        f"{root}/areas/inbox/odd.html",
        f"{root}/areas/inbox/plain.html",
    ]
    assert _ask(root, "lib.ROOT") == "/mnt/memhtml"


def test_a_memory_has_every_field(root: Path) -> None:
    file = root / "areas/inbox/plain.html"

    assert _ask(root, f"lib.memoryAt({json.dumps(str(file))}, root)") == {
        "path": "/areas/inbox/plain.html",
        "file": str(file),
        "title": "Pool size",
        "memoryType": "semantic",
        "status": "active",
        "claim": "the pool size is 20",
        "tags": ["infra"],
        "entities": ["system:pool"],
        "links": [
            {"rel": "memhtml-supports", "href": "/areas/inbox/odd.html"},
            {"rel": "memhtml-part-of", "href": "/areas/inbox/gone.html#top"},
        ],
        "facets": {"Limit": "twenty"},
        "citations": [
            {"text": "The manual", "href": None},
            {"text": "a saying", "href": "https://example.org/"},
        ],
        "eventAt": "2026-07-28",
        "html": PLAIN,
    }


def test_odd_spellings_are_read_as_a_browser_reads_them(root: Path) -> None:
    found = _ask(root, "lib.corpus(root).get('/areas/inbox/odd.html')")

    assert found["title"] == "Fish & chips <b> <i>not a tag</i> second line"
    assert found["memoryType"] == "semantic"
    assert found["status"] == "active"
    assert found["tags"] == [
        'a > b "quoted" ABé\u00a0&unknown; it\'s',
        'say "hi"',
        "in a noscript",
    ]
    assert found["entities"] == ["it's:fine"]
    assert found["links"] == [
        {"rel": "memhtml-part-of", "href": "/areas/inbox/plain.html"},
        {"rel": "memhtml-part_of", "href": "/areas/x.html?q"},
    ]
    assert found["claim"] == "the answer is 42"
    assert found["facets"] == {"First": "1", "__proto__": "2"}
    assert found["eventAt"] is None


def test_a_broken_file_gives_empty_texts_and_lists(root: Path) -> None:
    (root / "broken.html").write_bytes(b"\xff<p <mark a='")
    found = _ask(root, "lib.corpus(root).get('/broken.html')")

    assert (found["title"], found["claim"], found["memoryType"], found["status"]) == ("",) * 4
    assert (found["tags"], found["entities"], found["links"], found["citations"]) == ([],) * 4
    assert (found["facets"], found["eventAt"]) == ({}, None)


def test_backlinks_and_edges_go_by_the_path_of_an_href(root: Path) -> None:
    found = _ask(root, "[[...lib.backlinks(lib.corpus(root))], lib.edges(lib.corpus(root))]")
    backlinks = dict(found[0])

    odd, plain = "/areas/inbox/odd.html", "/areas/inbox/plain.html"
    assert backlinks[odd] == [{"from": plain, "rel": "memhtml-supports"}]
    assert backlinks["/areas/inbox/gone.html"] == [{"from": plain, "rel": "memhtml-part-of"}]
    assert [edge["href"] for edge in found[1]["resolved"]] == [plain, odd]
    assert [edge["href"] for edge in found[1]["dangling"]] == [
        "/areas/x.html?q",
        "/areas/inbox/gone.html#top",
    ]


def test_a_chain_follows_one_rel_until_it_ends_or_repeats(root: Path) -> None:
    inbox = root / "areas/inbox"
    for name, target in (("r1", "r2"), ("r2", "r3"), ("r3", "r1")):
        link = f'<link rel="memhtml-leads-to" href="/areas/inbox/{target}.html">'
        (inbox / f"{name}.html").write_text(f"<head>{link}</head>")
    start = "/areas/inbox/r1.html"
    ask = "lib.chain(lib.corpus(root), %s, %s)"

    circle = [f"/areas/inbox/r{n}.html" for n in (1, 2, 3)]
    assert _ask(root, ask % (json.dumps(start), '"memhtml-leads-to"')) == circle
    assert _ask(root, ask % (json.dumps(start), '"leads_to"')) == circle
    assert _ask(root, ask % (json.dumps(start), '"supports"')) == [start]
    assert _ask(root, ask % ('"/nowhere.html"', '"supports"')) == ["/nowhere.html"]


def test_very_deep_nesting_is_read_without_a_stack_overflow(root: Path) -> None:
    depth = 50_000
    (root / "deep.html").write_text(
        "<article><p><mark>" + "<b>" * depth + "deep" + "</b>" * depth + "</mark></article>"
    )

    assert _ask(root, "lib.corpus(root).get('/deep.html').claim") == "deep"
