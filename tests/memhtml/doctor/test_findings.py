"""What rows say is wrong: links, accesses, the inbox, tasks, entities, replaced memories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.health import accessed, follow, indexed_store, land
from tests.support.reads import link, meta, task
from tests.support.session import page

from memhtml.doctor import findings
from memhtml.index.database import open_index
from memhtml.store.worktree import WorkTree

A, B = "areas/inbox/a.html", "areas/inbox/b.html"
TASKS = "areas/inbox/tasks"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """The folder of a store still to be made."""
    return str(tmp_path / "store")


def ask(root: str, question: Any, *values: object) -> Any:
    """What a finding says about the store."""
    with open_index(root) as index:
        return question(index.conn, *values)


def dangling(root: str) -> list[tuple[str, str, str, str | None]]:
    """The dangling edges as plain tuples."""
    with WorkTree(root) as files:
        return [tuple(edge) for edge in ask(root, findings.dangling, files)]


def test_edge_dangles_when_its_target_has_no_file(root: str) -> None:
    head = link("supports", "areas/gone.html") + link("relates_to", B)
    indexed_store(root, {A: page("Fact a.", head=head), B: page("Fact b.")})
    assert dangling(root) == [(A, "supports", "areas/gone.html", None)]


def test_edge_to_a_file_that_is_no_memory_does_not_dangle(root: str) -> None:
    head = link("supports", "README.html") + link("supports", "areas/broken.html")
    head += link("supports", "resources") + link("from_session", "sessions/42")
    indexed_store(root, {A: page("Fact a.", head=head), "areas/broken.html": "<p>no memory</p>"})
    assert dangling(root) == [(A, "supports", "resources", None)]


def test_edge_to_a_file_that_another_stands_for_does_not_dangle(root: str) -> None:
    files = {
        A: page("Same."),
        B: page("Same."),
        "areas/c.html": page("C.", head=link("part_of", B)),
    }
    indexed_store(root, files)
    assert dangling(root) == []


def test_target_with_a_name_that_no_disk_holds_dangles(root: str) -> None:
    target = f"areas/{'x' * 300}.html"
    indexed_store(root, {A: page("Fact a.", head=link("supports", target))})
    assert dangling(root) == [(A, "supports", target, None)]


def test_archived_form_is_the_newest_slot(root: str) -> None:
    slots = ("2025", "2026", "2026.2", "2026.10")
    files = {f"archive/{slot}/{B}": page(f"Slot {slot}.") for slot in slots}
    indexed_store(root, {A: page("Fact a.", head=link("supports", B)), **files})
    assert dangling(root) == [(A, "supports", B, f"archive/2026.10/{B}")]


def test_holder_is_never_the_archived_form_of_its_own_target(root: str) -> None:
    holder = f"archive/2026/{B}"
    indexed_store(root, {holder: page("Fact b.", head=link("supersedes", B))})
    assert dangling(root) == [(holder, "supersedes", B, None)]


def test_archived_form_that_no_link_can_name_is_none(root: str) -> None:
    odd = "areas/why?.html"
    files = {
        A: page("Fact a.", head=link("supports", "areas/why")),
        f"archive/2026/{odd}": page("B."),
    }
    indexed_store(root, files)
    with open_index(root) as index:
        assert findings.archived_form(index.conn, A, odd) is None


def test_access_row_without_a_file_is_an_orphan(root: str) -> None:
    indexed_store(root, {A: page("Same."), B: page("Same."), "areas/x.html": "<p>no memory</p>"})
    accessed(root, A, B, "areas/gone.html", "areas/x.html", "", "x" * 5000)
    with WorkTree(root) as files:
        assert ask(root, findings.orphan_access_rows, files) == ["", "areas/gone.html", "x" * 5000]


@pytest.mark.parametrize("count", [20, 21])
def test_inbox_is_crowded_above_twenty_files_of_its_own(root: str, count: int) -> None:
    files = {f"areas/inbox/f{number}.html": page(f"Fact {number}.") for number in range(count - 1)}
    files["areas/inbox/twin.html"] = page("Fact 0.")
    others = {
        "areas/inbox/deeper/a.html": page("Deeper."),
        "areas/inbox0.html": page("Beside."),
        "areas/inbox/task.html": task("A task beside the facts."),
        "archive/2026/areas/inbox/a.html": page("Archived."),
    }
    indexed_store(root, files | others)
    found = ask(root, findings.inbox)
    assert (found["inboxDepth"], found["inboxCrowded"]) == (count, count > 20)


@pytest.mark.parametrize("count", [10, 11])
def test_inbox_tasks_are_crowded_above_ten_open_ones(root: str, count: int) -> None:
    files = {f"{TASKS}/t{number}.html": task(f"Do {number}.") for number in range(count - 1)}
    files[f"{TASKS}/doing.html"] = task("Doing.", status="doing")
    files[f"{TASKS}/done.html"] = task("Done.", status="done")
    files[f"archive/2026/{TASKS}/old.html"] = task("Old.")
    indexed_store(root, files)
    found = ask(root, findings.inbox)
    assert (found["inboxTaskDepth"], found["inboxTasksCrowded"]) == (count, count > 10)


def test_open_task_is_overdue_the_day_after_its_due_day(root: str) -> None:
    files = {
        f"{TASKS}/late.html": task("Late.", due="2026-11-29T23:00:00Z"),
        f"{TASKS}/later.html": task("Later.", status="blocked", due="2026-11-28"),
        f"{TASKS}/today.html": task("Today.", due="2026-11-30T00:00:00Z"),
        f"{TASKS}/done.html": task("Done.", status="done", due="2026-11-01"),
        f"{TASKS}/whenever.html": task("Whenever."),
        f"archive/2026/{TASKS}/old.html": task("Old.", due="2026-11-01"),
    }
    indexed_store(root, files)
    assert ask(root, findings.overdue_tasks, "2026-11-30") == [
        {"path": f"{TASKS}/later.html", "taskStatus": "blocked", "dueAt": "2026-11-28"},
        {"path": f"{TASKS}/late.html", "taskStatus": "todo", "dueAt": "2026-11-29T23:00:00Z"},
    ]


def test_blocker_is_stale_when_it_is_archived_or_gone(root: str) -> None:
    waiting, done = f"{TASKS}/waiting.html", f"{TASKS}/done.html"
    archived, live, gone = (
        f"archive/2026/{TASKS}/a.html",
        f"{TASKS}/live.html",
        f"{TASKS}/gone.html",
    )
    head = link("blocks", waiting)
    files = {
        waiting: task("Waiting.", status="blocked"),
        done: task("Done.", status="done"),
        archived: task("Archived.", status="done", head=head + link("blocks", done)),
        live: task("Live.", head=head),
        gone: task("Gone.", head=head),
    }
    indexed_store(root, files)
    Path(root, gone).unlink()
    with WorkTree(root) as tree:
        found = ask(root, findings.stale_blockers, tree)
    assert found == [
        {"path": waiting, "blockerPath": archived, "blockerState": "archived"},
        {"path": waiting, "blockerPath": gone, "blockerState": "missing"},
    ]


def test_entities_without_a_type_are_counted_and_the_commonest_shown(root: str) -> None:
    files = {}
    for number in range(25):
        names = [f"name {number:02}", *(["relay"] if number < 2 else [])]
        head = "".join(meta("entity", name) for name in names)
        files[f"areas/f{number}.html"] = page(f"Fact {number}.", head=head)
    files["archive/2026/areas/old.html"] = page("Old.", head=meta("entity", "forgotten"))
    indexed_store(root, files)
    shown, total = ask(root, findings.untyped_entities)
    assert total == 26
    assert len(shown) == 20
    assert shown[:2] == [
        {"entityName": "relay", "files": 2},
        {"entityName": "name 00", "files": 1},
    ]


def test_live_memory_that_a_live_one_supersedes_is_listed(root: str) -> None:
    new, newer, old = "areas/new.html", "areas/newer.html", "archive/2026/areas/old.html"
    files = {
        A: page("Fact a."),
        B: page("Fact b."),
        old: page("Old.", head=link("supersedes", B)),
        new: page("New.", head=link("supersedes", A) + link("supersedes", old)),
        newer: page("Newer.", head=link("supersedes", A) + link("relates_to", B)),
    }
    indexed_store(root, files)
    assert ask(root, findings.superseded_live) == [{"path": A, "supersededBy": new}]


def test_file_made_by_hand_ends_what_was_found(root: str) -> None:
    indexed_store(root, {A: page("Fact a.", head=link("supports", B))})
    assert len(dangling(root)) == 1
    Path(root, B).write_text(page("Fact b."))
    assert dangling(root) == []
    Path(root, B).unlink()
    land(root, {B: page("Fact b.")})
    Path(root, B).unlink()
    follow(root, dirty=True)
    assert len(dangling(root)) == 1
