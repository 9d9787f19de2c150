"""One page: what it says, that nothing in it can run, and that its bytes are settled."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from lxml import etree
from lxml import html as lxml_html

from memhtml.publish.folders import Folder, folders_of
from memhtml.publish.marks import is_generated
from memhtml.publish.page import GROUPED_ABOVE, page
from memhtml.publish.rows import Row
from memhtml_format.record import active_content

HOSTILE = '</a><script>alert(1)</script><img src=x onerror="x">&lt;\x01"\''


def row(name: str, **fields: str | None) -> Row:
    """A memory of the inbox."""
    first = Row(
        f"areas/inbox/{name}.html",
        name,
        f"Claim {name}.",
        "semantic",
        "2026-05-04T09:00:00Z",
        None,
        None,
        None,
    )
    return first._replace(**fields)  # type: ignore[arg-type]


def folder_of(path: str, *rows: Row) -> Folder:
    """The folder at a path of a store with these memories."""
    ordered = sorted(rows, key=lambda each: each.path)
    return next(each for each in folders_of(ordered) if each.path == path)


def inbox(*rows: Row) -> lxml_html.HtmlElement:
    """The page of the inbox as a browser reads it."""
    return lxml_html.document_fromstring(page(folder_of("areas/inbox", *rows)))


def text(tree: lxml_html.HtmlElement) -> str:
    """What the page says."""
    return " ".join(tree.find("body").text_content().split())


def test_page_lists_title_claim_type_and_day() -> None:
    tree = inbox(row("a"), row("b", kind="user_preference", updated_at="2026-06-01"))
    assert tree.findtext("head/title") == "areas/inbox – Memories"
    assert text(tree) == (
        "Memories / areas / inbox inbox 2 memories. Memories"
        " bClaim b. user preference · 2026-06-01 aClaim a. semantic · 2026-05-04"
    )
    assert [each.get("href") for each in tree.iter("a")] == [
        "../../index.html",
        "../index.html",
        "b.html",
        "a.html",
    ]


def test_page_tells_the_state_of_tasks_and_what_took_a_place() -> None:
    tree = inbox(
        row("do", kind="task", task_status="todo", due_at="2026-12-24T10:00:00Z"),
        row("old", replaced_by="resources/new.html"),
    )
    assert "task · 2026-05-04 · todo · due 2026-12-24" in text(tree)
    assert "semantic · 2026-05-04 · replaced by new" in text(tree)
    assert "../../resources/new.html" in [each.get("href") for each in tree.iter("a")]


def test_claim_that_only_repeats_the_title_is_left_out() -> None:
    assert "The limit is 4. The limit" not in text(
        inbox(row("a", title="The limit is 4", claim="The limit is 4."))
    )


def test_long_texts_are_cut() -> None:
    tree = inbox(row("a", title="t" * 500, claim="c" * 5000))
    assert f"{'t' * 159}…" in text(tree)
    assert len(text(tree)) < 600


def test_hostile_texts_stay_text() -> None:
    path = "areas/inbox/javascript:alert(1)?#.html"
    hostile = row("x", title=HOSTILE, claim=f"{HOSTILE}!", path=path, due_at=HOSTILE, kind=HOSTILE)
    data = page(folder_of("areas/inbox", hostile))
    tree = lxml_html.document_fromstring(data)
    assert not list(tree.iter("script", "img", "iframe"))
    assert text(tree).count("<script>alert(1)</script>") == 3
    assert [each.get("href") for each in tree.iter("a")][-1] == "javascript%3Aalert(1)%3F%23.html"


def test_page_holds_nothing_active_but_its_own_policy() -> None:
    data = page(folder_of("areas/inbox", row("a")))
    assert [problem.text for problem in active_content(data)] == [
        "a meta with http-equiv is active content"
    ]


def test_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    tree = inbox(row("a"))
    policy = tree.xpath("string(//meta[@http-equiv = 'Content-Security-Policy']/@content)")
    style = str(tree.xpath("string(//style)"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    data = page(folder_of("areas/inbox", row("a")))
    raw = re.search(rb"<style>(.*?)</style>", data, re.DOTALL)
    assert raw is not None
    assert raw[1].decode() == style
    assert not tree.xpath("//@style | //link | //script")


def test_long_listing_is_divided_by_month_with_a_way_to_each() -> None:
    rows = [row(f"n{number}", updated_at=f"2026-{number % 3 + 1:02}-01") for number in range(61)]
    assert len(rows) == GROUPED_ABOVE + 1
    tree = inbox(*rows)
    assert [each.text for each in tree.iter("h2")] == ["2026-03", "2026-02", "2026-01"]
    ways = tree.xpath("//p[@class='months']/a/@href")
    assert ways == ["#2026-03", "#2026-02", "#2026-01"]
    assert tree.xpath("//h2/@id") == ["2026-03", "2026-02", "2026-01"]
    assert tree.xpath("count(//ul[@class='records']/li)") == 61
    assert [each.text for each in inbox(*rows[:60]).iter("h2")] == ["Memories"]


def test_page_of_the_store_shows_its_buckets_and_the_latest() -> None:
    root = folder_of("", row("a"))
    tree = lxml_html.document_fromstring(page(root, latest=[row("a")]))
    assert tree.findtext("head/title") == "Memories"
    assert not list(tree.iter("nav"))
    assert [each.get("href") for each in tree.iter("a")] == [
        "projects/index.html",
        "areas/index.html",
        "resources/index.html",
        "archive/index.html",
        "areas/inbox/a.html",
    ]
    assert "Latest" in text(tree)


def test_folder_names_where_its_archived_memories_are() -> None:
    places = [("archive/2026.2/areas/inbox", 3), ("archive/2026/areas/inbox", 1200)]
    tree = lxml_html.document_fromstring(page(folder_of("areas/inbox", row("a")), places))
    assert text(tree).endswith("Archived from here 2026.23 20261,200")
    assert "../../archive/2026.2/areas/inbox/index.html" in [a.get("href") for a in tree.iter("a")]


def test_archive_says_that_it_no_longer_holds_and_has_the_newest_year_first() -> None:
    years = ("2025", "2026", "2026.2", "2026.10")
    rows = [row("x", path=f"archive/{year}/areas/x.html") for year in years]
    tree = lxml_html.document_fromstring(page(folder_of("archive", *rows)))
    assert "What no longer holds" in text(tree)
    assert tree.xpath("//li/a/text()") == ["2026.10", "2026.2", "2026", "2025"]
    below = lxml_html.document_fromstring(page(folder_of("archive/2026/areas", *rows)))
    assert "What no longer holds" in text(below)
    assert [each.text for each in below.iter("h2")] == ["Archived"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("areas/inbox", "1 memory."),
        ("areas", "What goes on: the inbox, tasks and arcs. 2 memories."),
        ("projects", "What belongs to one piece of work. 0 memories."),
        ("", "2 memories."),
    ],
)
def test_summary_counts(path: str, said: str) -> None:
    rows = [row("a"), row("b", path="areas/b/c.html")]
    tree = lxml_html.document_fromstring(page(folder_of(path, *rows)))
    assert tree.findtext("body/p") == said


def test_page_is_well_formed_for_a_strict_reader_and_is_known_as_generated() -> None:
    data = page(folder_of("areas/inbox", row("a"), row("b", title=HOSTILE)))
    assert data.startswith(b'<!doctype html>\n<html lang="en">')
    assert data.endswith(b"</html>\n")
    assert data.decode() == data.decode("utf-8", "strict")
    parser = etree.HTMLParser(recover=False)
    etree.fromstring(data.replace(b"<nav>", b"<div>").replace(b"</nav>", b"</div>"), parser)
    assert is_generated("areas/inbox/index.html", data)


def test_what_follows_a_title_without_a_claim_has_a_line_of_its_own() -> None:
    data = page(folder_of("areas/inbox", row("a", claim="a", kind="task"))).decode()
    assert "</a><small>task" in data.replace("\n", "")
    assert ".records small { display: block; }" in data


def test_same_rows_give_the_same_bytes() -> None:
    rows = [row(f"n{number}") for number in range(5)]
    assert page(folder_of("areas/inbox", *rows)) == page(folder_of("areas/inbox", *rows[::-1]))
