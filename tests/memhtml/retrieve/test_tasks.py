"""`task list` on an index: filters, days, blockers and pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reads import fill, indexed, link, plan, task
from tests.support.session import page

from memhtml.errors import MemhtmlError
from memhtml.index.database import Index
from memhtml.retrieve import tasks
from memhtml.retrieve.tasks import WantedTasks, is_detected, list_tasks

KEY = "projects/payments/tasks/rotate-the-key.html"
CALL = "areas/inbox/tasks/call-the-bank.html"
NOTE = "areas/inbox/tasks/write-it-down.html"
DONE = "archive/2026/areas/inbox/tasks/done.html"

FILES = {
    KEY: task("Rotate the key", due="2026-12-24"),
    CALL: task("Call the bank", status="doing", due="2026-12-24T18:00:00Z"),
    NOTE: task("Write it down", status="blocked"),
    DONE: task("Done long ago", status="done", due="2026-01-01"),
    "areas/inbox/fact.html": page("No task at all."),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of three open tasks, an archived one and a fact."""
    with indexed(str(tmp_path), FILES) as opened:
        yield opened


def listed(index: Index, limit: int = 50, **wanted: Any) -> list[str]:
    answer = list_tasks(index.conn, WantedTasks(**wanted), limit)
    return [each["path"] for each in answer["tasks"]]


def test_a_task_is_listed_with_every_field(index: Index) -> None:
    assert list_tasks(index.conn, WantedTasks(workspace="payments"), 50) == {
        "tasks": [
            {
                "path": KEY,
                "title": "Rotate the key",
                "taskStatus": "todo",
                "dueAt": "2026-12-24",
                "workspace": "payments",
                "archived": False,
                "updatedAt": "2026-05-04T09:00:00Z",
                "blockedBy": [],
                "estTokens": 4,
            }
        ],
        "nextCursor": None,
    }


def test_only_tasks_are_listed_by_path_and_the_archive_when_asked(index: Index) -> None:
    assert listed(index) == [CALL, NOTE, KEY]
    assert listed(index, include_archived=True) == [DONE, CALL, NOTE, KEY]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"status": "doing"}, [CALL]),
        ({"status": "done"}, []),
        ({"status": "done", "include_archived": True}, [DONE]),
        ({"workspace": "payments"}, [KEY]),
        ({"workspace": "payment"}, []),
        ({"detected": True}, []),
        ({"due_before": "2026-12-25"}, [CALL, KEY]),
        ({"due_before": "2026-12-24"}, []),
        ({"due_before": "2026-12-24T23:59:59Z"}, []),
        ({"due_before": "2026-12-25T00:00:00Z"}, [CALL, KEY]),
        ({"due_before": "  "}, [CALL, NOTE, KEY]),
    ],
)
def test_each_filter_narrows(index: Index, wanted: dict[str, Any], found: list[str]) -> None:
    assert listed(index, **wanted) == found


def test_a_due_before_that_is_no_instant_is_refused(index: Index) -> None:
    with pytest.raises(MemhtmlError) as caught:
        listed(index, due_before="tomorrow")
    assert (caught.value.code, caught.value.exit_status) == ("ERR_INVALID_MEMORY", 1)
    assert "'tomorrow'" in str(caught.value)


def test_live_tasks_with_a_blocks_edge_are_named_and_nothing_else(index: Index) -> None:
    fill(
        index,
        {
            CALL: task("Call the bank", head=link("blocks", NOTE)),
            KEY: task("Rotate the key", head=link("blocks", NOTE) + link("subtask_of", CALL)),
            DONE: task("Done long ago", status="done", head=link("blocks", NOTE)),
        },
    )
    answer = list_tasks(index.conn, WantedTasks(), 50)
    blocked = {each["path"]: each["blockedBy"] for each in answer["tasks"]}
    assert blocked == {CALL: [], NOTE: [CALL, KEY], KEY: []}


def test_pages_count_what_matches_and_not_what_was_looked_at(index: Index) -> None:
    first = list_tasks(index.conn, WantedTasks(due_before="2027-01-01"), 1)
    assert ([each["path"] for each in first["tasks"]], first["nextCursor"]) == ([CALL], CALL)
    second = list_tasks(index.conn, WantedTasks(due_before="2027-01-01", cursor=CALL), 1)
    assert ([each["path"] for each in second["tasks"]], second["nextCursor"]) == ([KEY], None)


def test_a_limit_out_of_range_is_brought_into_it(index: Index) -> None:
    assert listed(index, limit=0) == [CALL]
    assert len(listed(index, limit=100_000)) == 3


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("areas/inbox/tasks/det-0a1b-call.html", True),
        ("areas/inbox/tasks/det-ff-.html", True),
        ("areas/inbox/tasks/det-0a1b.html", False),
        ("areas/inbox/tasks/det--call.html", False),
        ("areas/inbox/tasks/det-XYZ-call.html", False),
        ("areas/inbox/tasks/detail-0a-call.html", False),
        ("det-0a-x/tasks/call.html", False),
    ],
)
def test_a_detected_task_is_known_by_its_file_name(path: str, is_one: bool) -> None:
    assert is_detected(path) is is_one


def test_detected_tasks_are_listed_alone_when_asked(index: Index) -> None:
    found = "areas/inbox/tasks/det-0a1b2c-ask-again.html"
    fill(index, {found: task("Ask again")})
    assert listed(index, detected=True) == [found]


def test_blockers_are_looked_up_and_not_searched_for(index: Index) -> None:
    said = plan(index, tasks._BLOCKERS, ("x",))
    assert "dst_path=?" in said
    assert "SCAN" not in said
