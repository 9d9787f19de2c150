"""`list` on an index: what narrows it, its pages, and the plans behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reads import fill, indexed, meta, plan
from tests.support.session import page

from memhtml.index.database import Index
from memhtml.retrieve import listing, pages
from memhtml.retrieve.listing import Wanted, list_files
from memhtml_format import vocab

RELAY = "projects/relay/limit.html"
QUEUE = "resources/queue/depth.html"
DRAIN = "areas/inbox/drain.html"
OLD = "archive/2026/areas/inbox/old.html"
OLD_CLAIM = "The old queue had no limit."


def facets(**values: str) -> str:
    """An article's definition list, as markup to put behind a claim."""
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in values.items())
    return f"</p><dl>{rows}</dl><p>"


FILES = {
    RELAY: page("The relay batch limit is 11.", head=meta("tag", "limits")),
    QUEUE: page("The queue depth is 4096.", kind="procedural", head=meta("tag", "limits")),
    DRAIN: page("Drain first.", head=meta("tag", "Runbook") + meta("entity", "Service:Relay")),
    OLD: page(OLD_CLAIM, head=meta("tag", "limits")),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of four files, one of them archived."""
    with indexed(str(tmp_path), FILES) as opened:
        yield opened


def listed(index: Index, limit: int = 50, **wanted: Any) -> list[str]:
    return [file["path"] for file in list_files(index.conn, Wanted(**wanted), limit)["files"]]


def test_a_file_is_listed_with_every_field(index: Index) -> None:
    answer = list_files(index.conn, Wanted(workspace="relay"), 50)
    assert answer == {
        "files": [
            {
                "path": RELAY,
                "title": "The relay batch limit is 11.",
                "memoryType": "semantic",
                "gist": "The relay batch limit is 11.",
                "workspace": "relay",
                "para": "projects",
                "confidence": 1.0,
                "importance": 5,
                "archived": False,
                "updatedAt": "2026-05-04T09:00:00Z",
                "estTokens": 7,
            }
        ],
        "nextCursor": None,
    }


def test_stated_confidence_and_importance_are_listed(index: Index) -> None:
    stated = meta("confidence", "0.25") + meta("importance", "9")
    fill(index, {DRAIN: page("Drain first.", head=stated)})
    (file,) = list_files(index.conn, Wanted(para="areas"), 50)["files"]
    assert (file["confidence"], file["importance"]) == (0.25, 9)


def test_live_files_are_listed_by_path(index: Index) -> None:
    assert listed(index) == [DRAIN, RELAY, QUEUE]


def test_the_archive_is_listed_when_it_is_asked_for(index: Index) -> None:
    assert listed(index, include_archived=True) == [OLD, DRAIN, RELAY, QUEUE]
    assert listed(index, para="archive") == [OLD]
    assert list_files(index.conn, Wanted(para="archive"), 50)["files"][0]["archived"] is True


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"memory_type": "procedural"}, [QUEUE]),
        ({"memory_type": "semantic", "include_archived": True}, [OLD, DRAIN, RELAY]),
        ({"memory_type": "arc"}, []),
        ({"workspace": "relay"}, [RELAY]),
        ({"workspace": "rela"}, []),
        ({"workspace": "relay", "include_archived": True}, [RELAY]),
        ({"tag": "limits"}, [RELAY, QUEUE]),
        ({"tag": "Limits"}, []),
        ({"tag": "limits", "para": "archive"}, [OLD]),
        ({"entity": "system:billing"}, [DRAIN, RELAY, QUEUE]),
        ({"entity": " service:RELAY "}, [DRAIN]),
        ({"entity": "relay"}, []),
        ({"para": "resources"}, [QUEUE]),
        ({"para": "resources", "workspace": "relay"}, []),
        ({"tag": "limits", "entity": "system:billing", "memory_type": "semantic"}, [RELAY]),
    ],
)
def test_each_filter_narrows(index: Index, wanted: dict[str, Any], found: list[str]) -> None:
    assert listed(index, **wanted) == found


@pytest.mark.parametrize("name", ["memory_type", "workspace", "tag", "entity", "cursor"])
def test_a_blank_filter_is_not_given(index: Index, name: str) -> None:
    wanted: dict[str, Any] = {name: "" if name == "memory_type" else "  "}
    assert listed(index, **wanted) == [DRAIN, RELAY, QUEUE]


def test_facets_of_one_name_widen_and_other_names_narrow(index: Index) -> None:
    def with_facets(claim: str, **values: str) -> str:
        return page(claim).replace("</mark>", "</mark>" + facets(**values))

    fill(
        index,
        {
            "areas/a.html": with_facets("Fact a.", Owner="ops", Tier="one"),
            "areas/b.html": with_facets("Fact b.", Owner="data", Tier="one"),
            "areas/c.html": with_facets("Fact c.", Owner="ops", Tier="two"),
        },
    )
    assert listed(index, facets=("Owner=ops",)) == ["areas/a.html", "areas/c.html"]
    widened = ("Owner=ops", "Owner=data", "Tier=one")
    assert listed(index, facets=widened) == ["areas/a.html", "areas/b.html"]
    assert listed(index, facets=(" Owner = ops ", "Tier=two", "Owner=")) == ["areas/c.html"]
    assert listed(index, facets=("owner=ops",)) == []


def test_an_entity_without_a_type_is_found_under_its_bare_name(index: Index) -> None:
    fill(index, {"areas/x.html": page("Fact x.", head=meta("entity", "Loose"))})
    assert listed(index, entity="loose") == ["areas/x.html"]


def test_pages_follow_each_other_and_the_last_has_no_cursor(index: Index) -> None:
    first = list_files(index.conn, Wanted(), 2)
    assert [file["path"] for file in first["files"]] == [DRAIN, RELAY]
    assert first["nextCursor"] == RELAY
    second = list_files(index.conn, Wanted(cursor=first["nextCursor"]), 2)
    assert [file["path"] for file in second["files"]] == [QUEUE]
    assert second["nextCursor"] is None


def test_a_page_that_holds_exactly_the_rest_is_the_last(index: Index) -> None:
    assert list_files(index.conn, Wanted(), 3)["nextCursor"] is None


def test_a_cursor_that_is_no_stored_path_still_works(index: Index) -> None:
    assert listed(index, cursor="projects/nothing-here.html") == [RELAY, QUEUE]
    assert listed(index, cursor="zzz") == []
    assert listed(index, cursor="archive/2027/x.html", include_archived=True) == [
        *(DRAIN, RELAY, QUEUE)
    ]


def test_a_limit_out_of_range_is_brought_into_it(index: Index) -> None:
    assert listed(index, limit=-7) == [DRAIN]
    assert len(listed(index, limit=9_999)) == 3


@given(st.sets(st.integers(0, 30), max_size=25), st.integers(1, 7), st.booleans())
def test_pages_together_are_the_whole_list(
    tmp_path_factory: pytest.TempPathFactory, numbers: set[int], size: int, archived: bool
) -> None:
    files = {
        f"{'archive/2026/' if number % 3 == 0 else ''}areas/f{number:02d}.html": page(
            f"The fact number {number}."
        )
        for number in numbers
    }
    with indexed(str(tmp_path_factory.mktemp("pages")), files) as index:
        seen: list[str] = []
        cursor: str | None = None
        while True:
            wanted = Wanted(cursor=cursor, include_archived=archived)
            answer = list_files(index.conn, wanted, size)
            seen += [file["path"] for file in answer["files"]]
            cursor = answer["nextCursor"]
            if cursor is None:
                break
            assert len(answer["files"]) == size
    assert seen == sorted(path for path in files if archived or path.startswith("areas/"))


def test_tasks_are_listed_like_anything_else(index: Index) -> None:
    fill(
        index,
        {"areas/inbox/tasks/t.html": page("Do it.", kind="task", head=meta("task-status", "todo"))},
    )
    assert "areas/inbox/tasks/t.html" in listed(index)
    assert listed(index, memory_type="task") == ["areas/inbox/tasks/t.html"]


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_tokens_are_a_quarter_of_the_characters_rounded_up(characters: int, tokens: int) -> None:
    assert listing.est_tokens(characters) == tokens


def test_no_filter_walks_the_store(index: Index) -> None:
    wanted = Wanted(tag="x", entity="a:b", facets=("n=v", "n=w", "m=v"))
    labels = [
        *listing._labels(wanted),
        *(listing.type_label("semantic", archived=each) for each in (False, True)),
    ]
    assert len(labels) == 6
    for label in labels:
        said = plan(index, label.statement(), (*label.choices[0], "a", "b"))
        assert said.startswith(f"SEARCH {label.table} USING"), said
        assert "path>? AND path<?" in said, said
        assert "\n" not in said, said
    assert "SEARCH files USING INDEX" in plan(index, listing._FILE, ("a",))
    assert pages.EVERYTHING.table == "files"


def test_the_table_and_the_format_name_the_same_types() -> None:
    from memhtml.cli.tables import reads, shared

    assert shared.TYPES == vocab.TYPES
    assert shared.TASK_STATUSES == vocab.TASK_STATUSES
    memory = tuple(rel for rel, kind in vocab.RELS.items() if kind == "memory")
    assert memory == reads.MEMORY_RELS
