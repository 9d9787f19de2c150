"""`resolve` on an index: where the walk goes and every way it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reads import fill, indexed, link, meta, plan
from tests.support.session import page

from memhtml.index.database import Index
from memhtml.retrieve import resolve as subject
from memhtml.retrieve.resolve import resolve

OLD = "areas/inbox/x.html"
TWIN = "archive/2026/areas/inbox/x.html"
NEW = "areas/inbox/x-after-fix.html"
COMMIT = "ab" * 20


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of a record that was corrected: its twin in the archive, its successor live."""
    files = {
        TWIN: page("X is 1.", head=meta("archived", "2026-05-05T00:00:00Z")),
        NEW: page("X is 2.", title="X after fix", head=link("supersedes", TWIN)),
    }
    with indexed(str(tmp_path), files) as opened:
        yield opened


def ended(index: Index, path: str) -> tuple[str, str, int]:
    answer = resolve(index.conn, path, None)
    return answer["path"], answer["stopReason"], answer["hops"]


def dated(claim: str, updated: str, *links: str) -> str:
    """A record that was last changed at an instant."""
    return page(claim, head="".join(links)).replace(
        'memhtml-updated" content="2026-05-04T09:00:00Z"', f'memhtml-updated" content="{updated}"'
    )


def test_an_old_path_leads_through_the_archive_to_what_holds_now(index: Index) -> None:
    assert resolve(index.conn, OLD, COMMIT) == {
        "requested": OLD,
        "path": NEW,
        "hops": 2,
        "steps": [
            {"from": OLD, "to": TWIN, "via": "archive_move"},
            {"from": TWIN, "to": NEW, "via": "supersedes"},
        ],
        "stopReason": "live",
        "title": "X after fix",
        "indexedCommit": COMMIT,
    }


def test_a_live_path_is_its_own_answer(index: Index) -> None:
    assert ended(index, NEW) == (NEW, "live", 0)


def test_an_archived_record_without_a_successor_is_where_the_walk_ends(index: Index) -> None:
    fill(index, {NEW: page("X is 2.")})
    assert ended(index, OLD) == (TWIN, "archived", 1)


def test_an_unknown_path_is_unindexed_and_has_no_title(index: Index) -> None:
    answer: dict[str, Any] = resolve(index.conn, "areas/never.html", None)
    assert (answer["stopReason"], answer["title"], answer["indexedCommit"]) == (
        "unindexed",
        None,
        None,
    )


def test_a_live_record_that_another_supersedes_leads_on(index: Index) -> None:
    fill(index, {"areas/newer.html": page("X is 3.", head=link("supersedes", NEW))})
    assert ended(index, OLD) == ("areas/newer.html", "live", 3)


def test_the_newest_of_several_successors_wins_and_ties_go_by_path(index: Index) -> None:
    late, early = "2026-08-01T00:00:00Z", "2026-07-01T00:00:00Z"
    edge = link("supersedes", NEW)
    fill(
        index,
        {
            "areas/a.html": dated("X is 3.", early, edge),
            "areas/c.html": dated("X is 4.", late, edge),
            "areas/b.html": dated("X is 5.", late, edge),
        },
    )
    assert ended(index, NEW)[0] == "areas/b.html"


def test_a_mined_edge_is_no_way_on(index: Index) -> None:
    index.conn.execute(
        "INSERT INTO edges(src_path, rel, dst_path, edge_class, derived, created_at)"
        " VALUES('areas/m.html', 'supersedes', ?, 'memory', 1, '2027-01-01T00:00:00Z')",
        (NEW,),
    )
    assert ended(index, NEW) == (NEW, "live", 0)


def test_the_newest_slot_of_a_path_archived_twice_is_taken(index: Index) -> None:
    first, second, tenth = (f"archive/2026{slot}/areas/y.html" for slot in ("", ".2", ".10"))
    same = meta("archived", "2026-05-05T00:00:00Z")
    fill(index, {first: page("Y is 1.", head=same), second: page("Y is 2.", head=same)})
    assert ended(index, "areas/y.html")[0] == second
    fill(index, {tenth: page("Y is 3.", head=same)})
    assert ended(index, "areas/y.html")[0] == tenth
    later = meta("archived", "2026-05-06T00:00:00Z")
    fill(index, {first: page("Y is 4.", head=later)})
    assert ended(index, "areas/y.html")[0] == first


def test_two_records_that_supersede_each_other_are_a_cycle(index: Index) -> None:
    fill(
        index,
        {
            "areas/a.html": page("A is 1.", head=link("supersedes", "areas/b.html")),
            "areas/b.html": page("A is 2.", head=link("supersedes", "areas/a.html")),
        },
    )
    answer: dict[str, Any] = resolve(index.conn, "areas/a.html", None)
    assert (answer["stopReason"], answer["path"], answer["hops"]) == ("cycle", "areas/b.html", 1)
    assert answer["title"] == "A is 2."


@pytest.mark.parametrize(("length", "reason"), [(16, "live"), (17, "hop_limit")])
def test_the_walk_ends_after_sixteen_hops(index: Index, length: int, reason: str) -> None:
    chain = {
        f"areas/n{number}.html": page(
            f"N is {number}.",
            head=link("supersedes", f"areas/n{number - 1}.html") if number else "",
        )
        for number in range(length + 1)
    }
    fill(index, chain)
    assert ended(index, "areas/n0.html") == ("areas/n16.html", reason, 16)


def test_every_step_is_a_look_up(index: Index) -> None:
    for statement in (subject._FILE, subject._SUCCESSOR, subject._ARCHIVED):
        said = plan(index, statement, ("x",))
        assert said.startswith("SEARCH"), said
        assert "SCAN" not in said
