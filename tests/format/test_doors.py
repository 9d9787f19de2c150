"""Active content: what every door refuses (spec `format` §3.7)."""

from __future__ import annotations

import pytest
from tests.support.format import CLAIM, page

from memhtml_format import record


def findings(markup: str, head: str = "") -> list[str]:
    return [
        problem.text for problem in record.active_content(page(CLAIM + markup, head=head).encode())
    ]


def test_an_ordinary_memory_is_quiet() -> None:
    quiet = (
        '<p><a href="/areas/x.html">a</a> <a href="https://x.example/">b</a> '
        '<a href="mailto:a@b.example">c</a> <a href="#d">d</a> <q cite="http://x.example">e</q> '
        '<img src="/areas/x.png"> <img alt="none">'
        '<img src="data:image/png;base64,iVBORw0KGgo="></p>'
    )
    head = '<link rel="memhtml-supports" href="/a"><link rel="Canonical" href="/b">'
    assert findings(quiet, head) == []


@pytest.mark.parametrize(
    "element",
    [
        *("iframe", "object", "embed", "applet", "portal", "form", "input", "button", "textarea"),
        *("select", "noscript", "audio", "video", "source", "track", "canvas", "svg", "math"),
    ],
)
def test_elements_that_run_frame_or_fetch_are_named(element: str) -> None:
    assert f"a {element} element is active content" in findings(f"<{element}></{element}>")


def test_frames_and_base_are_named() -> None:
    source = b"<head><base href=x></head><frameset><frame></frameset>"
    said = " ".join(problem.text for problem in record.active_content(source))
    assert "a base element" in said
    assert "a frameset element" in said
    assert "a frame element" in said


@pytest.mark.parametrize(
    "markup",
    [
        "<p srcdoc=x>",
        "<p srcset=x>",
        "<a ping=/x>",
        "<p formaction=/x>",
        "<table background=/x>",
        "<p autofocus>",
        '<a href="javascript:alert(1)">',
        '<a href=" &#1;java\nscr&#9;ipt:alert(1)">',
        '<a href="JAVASCRIPT:alert(1)">',
        '<a href="data:text/html,x">',
        '<a href="vbscript:x">',
        '<a href="file:///etc/passwd">',
        '<q cite="javascript:x">',
        '<p longdesc="javascript:x">',
        '<img src="https://x.example/a.png">',
        '<img src="//x.example/a.png">',
        '<img src="/\t/x.example/a.png">',
        '<img src="/\\x.example/a.png">',
        '<img src="a.png">',
        '<img src="data:image/svg+xml;base64,AA==">',
        '<img src="data:image/png,AA==">',
        f'<img src="data:image/png;base64,{"A" * 65536}">',
        '<link rel=stylesheet href="/x">',
        '<link rel="alternate stylesheet" href="/x">',
        '<link rel="memhtml-supports stylesheet" href="/x">',
        "<link href=/x>",
        '<meta http-equiv=refresh content="0;url=/x">',
        "<template shadowrootmode=open><iframe></iframe></template>",
        "<template><template><a href='javascript:x'>",
    ],
)
def test_each_active_thing_is_one_finding(markup: str) -> None:
    assert len(findings(markup)) == 1
    assert record.read("areas/x.html", page(CLAIM + markup).encode()).record is not None


def test_equal_findings_are_said_once() -> None:
    assert len(findings("<iframe></iframe><iframe></iframe>")) == 1
