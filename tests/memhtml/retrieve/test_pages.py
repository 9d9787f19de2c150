"""Pages of paths: order, labels, bounds, and that no store is walked for them."""

from __future__ import annotations

import _sqlite3 as sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reads import indexed, plan
from tests.support.session import page

from memhtml.index.database import Index
from memhtml.retrieve import pages
from memhtml.retrieve.pages import Label, Segment

NAMES = ("a", "b", "c", "d", "e", "f", "g", "é")
WHOLE = Segment(False, "", "\U0010ffff")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index with a table of labels."""
    with indexed(str(tmp_path)) as opened:
        opened.conn.execute("CREATE TEMP TABLE labels(label TEXT, path TEXT)")
        opened.conn.execute("CREATE INDEX temp.labels_label ON labels(label, path)")
        yield opened


def label(*names: str) -> Label:
    return Label("labels", "label = ?", tuple((name,) for name in names))


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(NAMES)), max_size=30))
def test_pages_hold_what_carries_every_label_once_and_in_order(
    rows: list[tuple[str, str]],
) -> None:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.execute("CREATE TABLE labels(label TEXT, path TEXT)")
    conn.executemany("INSERT INTO labels VALUES(?, ?)", rows)
    held = {name: {path for kind, path in rows if kind == name} for name in "xyz"}
    assert list(pages.paths(conn, [label("x")], WHOLE)) == sorted(held["x"])
    both = pages.paths(conn, [label("x"), label("y"), label("z")], WHOLE)
    assert list(both) == sorted(held["x"] & held["y"] & held["z"])
    either = pages.paths(conn, [label("x", "y"), label("z")], WHOLE)
    assert list(either) == sorted((held["x"] | held["y"]) & held["z"])
    conn.close()


def test_a_page_begins_behind_its_low_end_and_ends_before_its_high_one(index: Index) -> None:
    index.conn.executemany("INSERT INTO labels VALUES('x', ?)", [("a",), ("b",), ("c",), ("d",)])
    assert list(pages.paths(index.conn, [label("x")], Segment(False, "a", "d"))) == ["b", "c"]


def test_without_a_label_every_file_is_in_the_page(tmp_path: Path) -> None:
    files = {f"areas/{name}.html": page(f"The fact {name}.") for name in "ba"}
    with indexed(str(tmp_path), files) as filled:
        assert list(pages.paths(filled.conn, [], WHOLE)) == ["areas/a.html", "areas/b.html"]


def test_a_rare_label_bounds_the_look_ups_of_a_common_one(index: Index) -> None:
    rows = [("common", f"p{number:05d}") for number in range(5_000)]
    rows += [("rare", "p00007"), ("rare", "p04000"), ("rare", "q")]
    index.conn.executemany("INSERT INTO labels VALUES(?, ?)", rows)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    index.conn.set_progress_handler(count, 1_000)
    found = list(pages.paths(index.conn, [label("common"), label("rare")], WHOLE))
    index.conn.set_progress_handler(None, 0)
    assert found == ["p00007", "p04000"]
    assert steps < 2  # Thousands of instructions would be a walk over the 5,000.


@pytest.mark.parametrize(("given_limit", "used"), [(-3, 1), (0, 1), (1, 1), (500, 500), (501, 500)])
def test_a_limit_is_brought_into_its_range(given_limit: int, used: int) -> None:
    assert pages.bound(given_limit) == used


def test_the_whole_store_is_two_segments_only_when_the_archive_is_wanted() -> None:
    live = pages.segments(None, None, archived=False, cursor=None)
    assert live == [Segment(False, "archive0", "resources0")]
    both = pages.segments(None, None, archived=True, cursor=None)
    assert both == [Segment(True, "archive/", "archive0"), *live]
    assert pages.segments("archive", None, archived=False, cursor=None) == both[:1]
    assert pages.segments("areas", None, archived=True, cursor=None) == [
        Segment(False, "areas/", "areas0")
    ]


def test_a_workspace_is_looked_for_in_its_own_folder_alone() -> None:
    own = Segment(False, "projects/relay/", "projects/relay0")
    assert pages.segments(None, "relay", archived=True, cursor=None) == [own]
    assert pages.segments("projects", "relay", archived=False, cursor=None) == [own]
    assert pages.segments("areas", "relay", archived=False, cursor=None) == []


def test_a_cursor_leaves_what_comes_behind_it() -> None:
    behind = pages.segments(None, None, archived=True, cursor="areas/x.html")
    assert behind == [Segment(False, "areas/x.html", "resources0")]
    inside = pages.segments(None, None, archived=True, cursor="archive/2026/areas/x.html")
    assert [each.low for each in inside] == ["archive/2026/areas/x.html", "archive0"]
    assert pages.segments(None, None, archived=True, cursor="zz") == []


def test_the_page_without_a_label_walks_the_index_of_paths(index: Index) -> None:
    said = plan(index, pages.EVERYTHING.statement(), ("a", "b"))
    assert "SEARCH files USING COVERING INDEX" in said
    assert "SCAN" not in said
    assert "TEMP B-TREE" not in said
