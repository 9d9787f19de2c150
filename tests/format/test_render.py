"""Prose into files, and where they go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.format import AT, CLAIM, page

from memhtml_format import record, render
from memhtml_format.render import Draft


@pytest.mark.parametrize(
    ("body", "claim", "paragraphs"),
    [
        ("Version 1.5 is out! Yes", "Version 1.5 is out!", ["Yes"]),
        ("The limit applies e.g. to x. It is.", "The limit applies e.g.", ["to x. It is."]),
        ("no terminator here", "no terminator here", []),
        ("a\nb.\n\nc\n \nd", "a\nb.", ["c", "d"]),
        ("Really?!", "Really?!", []),
        ("A heading\n\nThen. More", "A heading\n\nThen.", ["More"]),
        ("A.\n\n```\nx\n\ny\n```\n\nz", "A.", ["```\nx\n\ny\n```", "z"]),
        ("A.\n\n```\nx\n\ny", "A.", ["```\nx\n\ny"]),
        ("A.\u00a0B", "A.", ["B"]),
        ("  \n ", "", []),
        ("", "", []),
    ],
)
def test_claim_and_paragraphs_of_a_body(body: str, claim: str, paragraphs: list[str]) -> None:
    assert render.claim_from_body(body) == (claim, paragraphs)


@pytest.mark.parametrize(
    ("body", "markup"),
    [
        ("A. b\n\nc", "<p><mark>A.</mark> b</p>\n<p>c</p>"),
        ("A <b> & c.", "<p><mark>A &lt;b&gt; &amp; c.</mark></p>"),
        (
            "A.\n\n```Python x\na < b\n```",
            '<p><mark>A.</mark></p>\n<figure><pre><code data-lang="python">a &lt; b</code></pre>'
            "</figure>",
        ),
        (
            "A.\n\n```\n\nx\n```",
            "<p><mark>A.</mark></p>\n<figure><pre><code>\nx</code></pre></figure>",
        ),
        (
            "A.\n\n```(x)\ny\n````",
            "<p><mark>A.</mark></p>\n<figure><pre><code>y</code></pre></figure>",
        ),
        ("A.\n\n````\nx\n```", "<p><mark>A.</mark> ````\nx\n```</p>"),
        ("A.\n\n```a`b\nx\n```", "<p><mark>A.</mark> ```a`b\nx\n```</p>"),
        ("A.\n\n```", "<p><mark>A.</mark> ```</p>"),
        ("A.\n\n~~~\nx\n~~~", "<p><mark>A.</mark> ~~~\nx\n~~~</p>"),
        ("", "<p><mark></mark></p>"),
    ],
)
def test_article_markup_of_prose(body: str, markup: str) -> None:
    assert render.article_markup(Draft("t", "semantic", body=body)) == markup


def test_claim_and_paragraphs_given_apart_are_not_split() -> None:
    draft = Draft("t", "semantic", claim=" A. B. ", paragraphs=("c\n\nd", " ", "```\nx\n```"))
    assert render.article_markup(draft) == (
        "<p><mark>A. B.</mark> c\n\nd</p>\n<figure><pre><code>x</code></pre></figure>"
    )


def test_rendered_file_has_the_canonical_shape() -> None:
    made = render.render(
        Draft(
            'A "t" &\n<b>',
            "task",
            body="The cache ttl is five minutes. It was ten.",
            importance=3,
            confidence=0.125,
            author="human:x",
            session_id="s",
            prompt_id="p",
            turn_uuid='t"',
            valid_from="2026-01-01",
            valid_until="2026-02-01",
            due="2026-12-24",
            entities=("a:b", "", " "),
            tags=("x",),
            aliases=("y",),
            links=(record.Link("relates_to", "/areas/b.html"),),
        ),
        AT,
    )
    head = (
        '<meta name="memhtml-confidence" content="0.13">\n'
        '<meta name="memhtml-importance" content="3">\n'
        f'<meta name="memhtml-content-hash" content="{made.content_hash}">\n'
        '<meta name="memhtml-author" content="human:x">\n'
        '<meta name="memhtml-session" content="s">\n'
        '<meta name="memhtml-prompt" content="p">\n'
        '<meta name="memhtml-turn" content="t&quot;">\n'
        '<meta name="memhtml-valid-from" content="2026-01-01">\n'
        '<meta name="memhtml-valid-until" content="2026-02-01">\n'
        '<meta name="memhtml-task-status" content="todo">\n'
        '<meta name="memhtml-due" content="2026-12-24">\n'
        '<meta name="memhtml-entity" content="a:b">\n'
        '<meta name="memhtml-tag" content="x">\n'
        '<meta name="memhtml-alias" content="y">\n'
        '<link rel="memhtml-relates-to" href="/areas/b.html">\n'
    )
    title = 'A "t" &amp;\n&lt;b&gt;'
    assert made.html == page(CLAIM, title=title, head=head, memory_type="task")
    assert made.problems == ()


def test_task_fields_are_written_for_tasks_only() -> None:
    made = render.render(Draft("t", "semantic", body="A.", status="doing", due="2026-01-01"), AT)
    assert "memhtml-task-status" not in made.html
    assert "memhtml-due" not in made.html
    assert made.problems == ()


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Draft("t", "semantic"), "the mark is empty"),
        (Draft("t", "semantic", body=" ", article_html="\n"), "the mark is empty"),
        (Draft(" ", "semantic", body="A."), "the title is blank"),
        (Draft("t", "essay", body="A."), "memhtml-type is 'essay'"),
        (Draft("t", "task", body="A.", status="later"), "memhtml-task-status"),
        (Draft("t", "semantic", article_html="<p><mark>a</mark><iframe>"), "iframe"),
        (Draft("t", "semantic", article_html="<article><p><mark>a</mark></article>"), "article"),
        (Draft("t", "semantic", article_html="<div>" * 50_000), "nesting"),
    ],
)
def test_problems_say_what_a_door_refuses(draft: Draft, said: str) -> None:
    assert any(said in problem for problem in render.render(draft, AT).problems)


def test_markup_cannot_leave_its_article() -> None:
    made = render.render(
        Draft("t", "semantic", article_html="<p><mark>a</mark></p></article><script>x"), AT
    )
    assert made.html.count("</article>") == 1
    assert made.problems != ()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30), st.text(max_size=80), st.booleans())
def test_rendering_is_total_and_hashes_what_it_wrote(
    title: str, body: str, as_markup: bool
) -> None:
    draft = Draft(title, "semantic", body=body)
    if as_markup:
        draft = Draft(title, "semantic", article_html=f"<p><mark>{body}</mark></p>")
    made = render.render(draft, AT)
    data = made.html.encode()
    assert record.content_hash(data) == made.content_hash
    if not made.problems:
        assert made.detail == record.read_detail("", data).detail
        assert made.detail is not None
        assert made.detail.record.content_hash == made.content_hash


def test_the_hash_in_the_head_is_that_of_the_file_as_it_is_read_back() -> None:
    # Whatever follows a plaintext element is its text, the closing tags of the page included.
    draft = Draft("t", "semantic", article_html="<p><mark>a</mark></p><plaintext>b")
    made = render.render(draft, AT)
    assert made.content_hash == record.content_hash(made.html.encode())
    assert f'"memhtml-content-hash" content="{made.content_hash}"' in made.html


def plan(draft: Draft, *taken: str) -> str:
    return render.plan_path(draft, AT, set(taken).__contains__)


def test_a_usable_path_of_the_caller_is_taken_without_a_suffix() -> None:
    draft = Draft("t", "semantic", path="/areas//oncall/pager.html")
    assert plan(draft, "areas/oncall/pager.html") == "areas/oncall/pager.html"


def test_an_unusable_path_is_ignored_unless_it_is_strict() -> None:
    draft = Draft("Pager", "semantic", path="notes/pager.html")
    assert plan(draft) == "areas/inbox/pager.html"
    with pytest.raises(render.StrictPath) as caught:
        plan(draft._replace(strict_path=True))
    assert "PARA bucket" in caught.value.reason
    with pytest.raises(render.StrictPath) as caught:
        plan(draft._replace(path=" ", strict_path=True))
    assert caught.value.reason == "is blank"
    assert plan(draft._replace(path=None, strict_path=True)) == "areas/inbox/pager.html"


def test_a_taken_name_gets_the_next_ordinal() -> None:
    draft = Draft("Pager", "episodic")
    first = plan(draft)
    assert first == "areas/inbox/20261201-pager.html"
    assert plan(draft, first) == "areas/inbox/20261201-pager-2.html"


def test_names_run_out_after_the_last_ordinal() -> None:
    asked: list[str] = []

    def taken(path: str) -> bool:
        asked.append(path)
        return True

    with pytest.raises(render.PathExhausted) as caught:
        render.plan_path(Draft("Pager", "semantic"), AT, taken)
    assert (caught.value.folder, caught.value.stem) == ("areas/inbox", "pager")
    assert len(asked) == 1000
    assert asked[-1] == "areas/inbox/pager-1000.html"
