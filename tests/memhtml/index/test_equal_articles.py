"""Of equal articles one is indexed, and the next comes in when it goes away."""

from __future__ import annotations

import os

import pytest
from tests.support.index import (
    OLD_A,
    A,
    B,
    C,
    claims,
    commit,
    content,
    index_paths,
    refresh,
    write_file,
)
from tests.support.session import git, page

from memhtml.index.database import open_index


def test_of_equal_articles_the_first_path_is_indexed_and_the_other_is_listed(root: str) -> None:
    write_file(root, C, page("The limit is 11.", title="Another head"))
    commit(root)
    assert refresh(root).skipped == ((C, f"duplicate content of {A}"),)
    assert index_paths(root) == [A, B]
    assert refresh(root).skipped == ()


def test_an_earlier_path_takes_the_place_of_a_later_one(root: str) -> None:
    first = "areas/a.html"
    write_file(root, first, page("The limit is 11."))
    commit(root)
    assert refresh(root).skipped == ((A, f"duplicate content of {first}"),)
    assert index_paths(root) == [first, B]


@pytest.mark.parametrize("how", ["delete", "edit", "archive", "task"])
def test_the_next_one_comes_in_when_the_first_goes_away(root: str, how: str) -> None:
    write_file(root, C, page("The limit is 11."))
    commit(root)
    refresh(root)
    if how == "edit":
        write_file(root, A, page("The limit is 12."))
    elif how == "task":
        meta = '<meta name="memhtml-task-status" content="todo">\n'
        write_file(root, A, page("The limit is 11.", kind="task", head=meta))
    else:
        os.makedirs(f"{root}/{os.path.dirname(OLD_A)}")
        os.replace(f"{root}/{A}", f"{root}/{OLD_A}")
        if how == "delete":
            os.unlink(f"{root}/{OLD_A}")
    commit(root)
    done = refresh(root)
    assert done.skipped == ()
    assert claims(root)[C] == "The limit is 11."


def test_a_waiting_file_that_goes_away_waits_no_longer(root: str) -> None:
    write_file(root, C, page("The limit is 11."))
    commit(root)
    refresh(root)
    os.unlink(f"{root}/{C}")
    commit(root)
    refresh(root)
    os.unlink(f"{root}/{A}")
    commit(root)
    refresh(root)
    assert index_paths(root) == [B]


def test_an_edit_can_be_the_equal_one_and_gives_way_when_it_is_reverted(root: str) -> None:
    write_file(root, "areas/a.html", page("The limit is 11."))
    assert refresh(root).skipped == ((A, "duplicate content of areas/a.html"),)
    os.unlink(f"{root}/areas/a.html")
    assert refresh(root).skipped == ()
    assert index_paths(root) == [A, B]


def test_a_waiting_edit_that_is_gone_is_passed_over_for_the_next(root: str) -> None:
    write_file(root, "areas/inbox/d.html", page("The limit is 11."))
    commit(root)
    write_file(root, C, page("The limit is 11."))
    refresh(root)
    os.unlink(f"{root}/{C}")
    git(root, "rm", "-q", A)
    git(root, "commit", "-qm", "the first one goes")
    refresh(root)
    assert index_paths(root) == [B, "areas/inbox/d.html"]


def test_tasks_and_archived_files_may_have_one_article(root: str) -> None:
    meta = '<meta name="memhtml-task-status" content="todo">\n'
    task = page("Renew the key.", kind="task", head=meta)
    for path in ("areas/inbox/tasks/1.html", "areas/inbox/tasks/2.html"):
        write_file(root, path, task)
    for path in (OLD_A, "archive/2026.2/areas/inbox/a.html"):
        write_file(root, path, page("The limit is 11."))
    commit(root)
    done = refresh(root)
    assert (done.added, done.skipped) == (4, ())
    with open_index(root) as index:
        assert len(content(index.conn)["chunks"]) == 6
