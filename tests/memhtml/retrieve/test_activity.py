"""`entity activity` on an index: counts, instants, order and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reads import indexed, meta
from tests.support.session import page

from memhtml.index.database import Index
from memhtml.retrieve.activity import entity_activity


def about(claim: str, *entities: str, updated: str, event: str = "") -> str:
    """A record about entities alone."""
    html = page(claim, head="".join(meta("entity", each) for each in entities))
    html = html.replace('<meta name="memhtml-entity" content="system:billing">\n', "")
    html = html.replace(
        'memhtml-updated" content="2026-05-04T09:00:00Z"', f'memhtml-updated" content="{updated}"'
    )
    return html.replace(
        "</mark>", f'</mark> <time datetime="{event}">then</time>' if event else "</mark>"
    )


FILES = {
    "areas/a.html": about("Fact a.", "service:ingest", updated="2026-03-01T00:00:00Z"),
    "areas/b.html": about(
        "Fact b.",
        "service:ingest",
        "person:ada",
        updated="2026-01-01T00:00:00Z",
        event="2026-09-09",
    ),
    "areas/c.html": about("Fact c.", "Service:ingest", updated="2026-02-01T00:00:00Z"),
    "areas/d.html": about("Fact d.", "loose", updated="2026-01-05T00:00:00Z"),
    "archive/2026/areas/e.html": about(
        "Fact e.", "service:ingest", "service:gone", updated="2026-12-01T00:00:00Z"
    ),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of five records about five entities."""
    with indexed(str(tmp_path), FILES) as opened:
        yield opened


def listed(index: Index, kind: str | None = None, limit: int = 50, archived: bool = False) -> Any:
    return entity_activity(index.conn, kind, limit, archived=archived)


def test_entities_are_listed_with_every_field_newest_activity_first(index: Index) -> None:
    answer = listed(index)
    assert answer["entities"][0] == {
        "entity": "person:ada",
        "entityType": "person",
        "entityName": "ada",
        "fileCount": 1,
        "lastActivityAt": "2026-09-09",
        "lastEventAt": "2026-09-09",
        "lastWrittenAt": "2026-01-01T00:00:00Z",
    }
    assert [each["entity"] for each in answer["entities"]] == [
        *("person:ada", "service:ingest", "Service:ingest", "unknown:loose")
    ]
    assert (answer["entityCount"], answer["limit"]) == (4, 50)


def test_the_newest_event_and_the_newest_write_may_be_of_two_files(index: Index) -> None:
    ingest = listed(index)["entities"][1]
    assert (ingest["fileCount"], ingest["lastEventAt"], ingest["lastWrittenAt"]) == (
        2,
        "2026-09-09",
        "2026-03-01T00:00:00Z",
    )
    assert listed(index)["entities"][2]["lastEventAt"] is None


def test_archived_files_count_when_they_are_asked_for(index: Index) -> None:
    entities = listed(index, archived=True)["entities"]
    assert [each["entity"] for each in entities[:2]] == ["service:gone", "service:ingest"]
    assert entities[1]["fileCount"] == 3


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("SERVICE", ["service:ingest", "Service:ingest"]),
        (" person ", ["person:ada"]),
        ("unknown", ["unknown:loose"]),
        ("nothing", []),
        ("serv", []),
        ("", ["person:ada", "service:ingest", "Service:ingest", "unknown:loose"]),
    ],
)
def test_a_type_is_compared_without_case(index: Index, kind: str, found: list[str]) -> None:
    answer = listed(index, kind)
    assert [each["entity"] for each in answer["entities"]] == found
    assert answer["entityCount"] == len(found)


@pytest.mark.parametrize(("limit", "used"), [(-1, 1), (2, 2), (900, 500)])
def test_the_limit_used_is_shown_and_all_are_counted(index: Index, limit: int, used: int) -> None:
    answer = listed(index, limit=limit)
    assert (answer["limit"], answer["entityCount"]) == (used, 4)
    assert len(answer["entities"]) == min(used, 4)
