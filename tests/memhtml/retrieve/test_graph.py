"""`neighbors` on an index: hops, rels, the order and the bounds of the walk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reads import fill, indexed, link, plan, task
from tests.support.session import page

from memhtml.index.database import Index
from memhtml.retrieve import graph
from memhtml.retrieve.graph import neighbors

A, B, C, D = (f"areas/{name}.html" for name in "abcd")

FILES = {
    A: page("Fact a.", head=link("supports", B)),
    B: page("Fact b.", head=link("relates_to", C)),
    C: page("Fact c."),
    D: page("Fact d.", head=link("supports", A) + link("contradicts", A)),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of d → a → b → c."""
    with indexed(str(tmp_path), FILES) as opened:
        yield opened


def walked(index: Index, center: str = A, depth: int = 1, limit: int = 200, *rels: str) -> Any:
    return neighbors(index.conn, center, depth, limit, rels)


def derive(index: Index, source: str, rel: str, target: str) -> None:
    """A mined edge."""
    index.conn.execute(
        "INSERT INTO edges(src_path, rel, dst_path, edge_class, derived, provenance, created_at)"
        " VALUES(?, ?, ?, 'memory', 1, 'mined', '2026-01-01T00:00:00Z')",
        (source, rel, target),
    )


def test_edges_are_followed_in_both_directions(index: Index) -> None:
    assert walked(index) == {
        "center": A,
        "depth": 1,
        "limit": 200,
        "nodes": [
            {"path": B, "title": "Fact b.", "hop": 1, "rel": "supports", "derived": False},
            {"path": D, "title": "Fact d.", "hop": 1, "rel": "contradicts", "derived": False},
        ],
        "edges": 3,
        "nodesDropped": 0,
        "scanSaturated": False,
    }


def test_the_second_hop_comes_after_the_first(index: Index) -> None:
    answer = walked(index, depth=2)
    assert [(node["path"], node["hop"]) for node in answer["nodes"]] == [(B, 1), (D, 1), (C, 2)]
    assert answer["edges"] == 4


def test_a_record_that_two_ways_lead_to_has_the_shorter_one(index: Index) -> None:
    fill(index, {C: page("Fact c.", head=link("part_of", A))})
    hops = {node["path"]: node["hop"] for node in walked(index, depth=2)["nodes"]}
    assert hops == {B: 1, C: 1, D: 1}


def test_only_the_wanted_rels_are_walked(index: Index) -> None:
    answer = walked(index, A, 2, 200, "supports")
    assert [(node["path"], node["rel"]) for node in answer["nodes"]] == [
        (B, "supports"),
        (D, "supports"),
    ]
    assert answer["edges"] == 2


def test_a_mined_edge_marks_the_record_it_leads_to(index: Index) -> None:
    derive(index, A, "relates_to", C)
    derive(index, A, "relates_to", B)
    nodes = {node["path"]: node for node in walked(index)["nodes"]}
    assert (nodes[C]["derived"], nodes[B]["derived"], nodes[D]["derived"]) == (True, True, False)
    assert nodes[B]["rel"] == "relates_to"  # The first of two edges in the order of rels.


def test_a_mined_edge_between_two_neighbours_marks_neither(index: Index) -> None:
    derive(index, B, "relates_to", D)
    assert not any(node["derived"] for node in walked(index, depth=2)["nodes"])


def test_the_limit_turns_away_what_comes_last(index: Index) -> None:
    answer = walked(index, A, 2, 1)
    assert [node["path"] for node in answer["nodes"]] == [B]
    assert answer["nodesDropped"] == 2


@pytest.mark.parametrize(
    ("depth", "limit", "used"), [(0, 0, (1, 1)), (9, 999, (2, 200)), (-1, -1, (1, 1))]
)
def test_depth_and_limit_are_brought_into_their_ranges(
    index: Index, depth: int, limit: int, used: tuple[int, int]
) -> None:
    answer = walked(index, A, depth, limit)
    assert (answer["depth"], answer["limit"]) == used


def test_a_path_without_a_row_is_no_neighbour_and_has_none(index: Index) -> None:
    fill(index, {C: page("Fact c.", head=link("supports", "areas/gone.html"))})
    assert walked(index, C)["nodes"] == [
        {"path": B, "title": "Fact b.", "hop": 1, "rel": "relates_to", "derived": False}
    ]
    gone = walked(index, "areas/gone.html", 2)
    assert (gone["nodes"], gone["edges"]) == ([], 0)


def test_edges_of_other_classes_are_not_walked(index: Index) -> None:
    fill(
        index,
        {
            "areas/t.html": task("Task t", head=link("blocks", "areas/u.html")),
            "areas/u.html": task("Task u"),
            C: page("Fact c.", head=link("about_person", A)),
        },
    )
    assert walked(index, "areas/t.html")["nodes"] == []
    assert [node["path"] for node in walked(index, C)["nodes"]] == [B]


def test_the_walk_stops_after_ten_thousand_rows(index: Index) -> None:
    rows = [(A, "relates_to", f"areas/x{number:05d}.html") for number in range(10_050)]
    index.conn.execute("BEGIN")
    for row in rows:
        derive(index, *row)
    fill(index, {path: page(f"Fact {path}.") for _, _, path in rows[:30]})
    index.conn.execute("COMMIT")
    answer = walked(index, A, 2, 10)
    assert answer["scanSaturated"] is True
    assert (len(answer["nodes"]), answer["nodesDropped"]) == (10, 20)
    assert answer["edges"] == 30


def test_exactly_as_many_rows_as_allowed_are_no_saturation(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "MOST_ROWS", 3)
    assert walked(index)["scanSaturated"] is False
    monkeypatch.setattr(graph, "MOST_ROWS", 2)
    assert walked(index)["scanSaturated"] is True


@pytest.mark.parametrize("rels", ["", " AND rel IN (?, ?)"])
def test_edges_are_looked_up_by_either_end(index: Index, rels: str) -> None:
    values = ("x", *(["supports"] * rels.count("?")))
    for statement, name in ((graph._OUTGOING, "src"), (graph._INCOMING, "dst")):
        said = plan(index, statement.format(rels=rels), values)
        assert f"{name}_path=?" in said, said
        assert "SCAN" not in said
