"""Edits of the working tree are indexed before they are committed, and forgotten when reverted."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.index import (
    A,
    B,
    C,
    claims,
    commit,
    counts,
    index_paths,
    refresh,
    state_of,
    write_file,
)
from tests.support.session import git, page

from memhtml.index.database import open_index
from memhtml.index.state import bump

NOW_S = 1_790_000_000


def test_edits_are_found_before_they_are_committed(root: str) -> None:
    write_file(root, A, page("The limit is 12."))
    write_file(root, C, page("The host is new."))
    os.unlink(f"{root}/{B}")
    done = refresh(root)
    assert counts(done) == (0, 0, 0, 0, 3)
    assert not done.unchanged
    assert claims(root) == {A: "The limit is 12.", C: "The host is new."}
    assert state_of(root).dirty_paths == (A, B, C)


def test_a_staged_rename_is_two_edits_and_becomes_a_rename_when_it_lands(root: str) -> None:
    with open_index(root) as index:
        bump(index.conn, [A], "neutral", NOW_S)
    git(root, "mv", A, C)
    assert counts(refresh(root)) == (0, 0, 0, 0, 2)
    with open_index(root) as index:
        assert index.conn.execute("SELECT path FROM state.access").fetchall() == [(A,)]
    commit(root)
    assert counts(refresh(root)) == (0, 0, 0, 1, 0)
    with open_index(root) as index:
        assert index.conn.execute("SELECT path FROM state.access").fetchall() == [(C,)]


def test_a_reverted_edit_leaves_no_text_behind(root: str) -> None:
    write_file(root, A, page("The limit is 12."))
    write_file(root, C, page("The host is new."))
    os.unlink(f"{root}/{B}")
    refresh(root)
    git(root, "checkout", "-q", "--", ".")
    os.unlink(f"{root}/{C}")
    done = refresh(root)
    assert not done.unchanged
    assert claims(root) == {A: "The limit is 11.", B: "The port is 8080."}
    assert state_of(root).dirty_paths == ()
    assert refresh(root).unchanged


def test_an_edit_that_does_not_parse_is_listed_each_time(root: str) -> None:
    write_file(root, A, "<p>half written</p>")
    for _ in range(2):
        assert [path for path, _reason in refresh(root).skipped] == [A]
    assert claims(root)[A] == "The limit is 11."


def test_an_edit_through_a_link_is_not_followed(root: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.html"
    secret.write_text(page("A secret of another place."))
    os.unlink(f"{root}/{A}")
    os.symlink(secret, f"{root}/{A}")
    refresh(root)
    assert index_paths(root) == [B]


def test_ignored_files_are_no_part_of_the_store(root: str) -> None:
    write_file(root, ".git/info/exclude", "c.html\n")
    write_file(root, C, page("The host is new."))
    assert refresh(root).unchanged


def test_names_with_odd_characters_are_followed(root: str) -> None:
    odd = 'areas/inbox/sp ace "quoted" ü\t.html'
    write_file(root, odd, page("The host is new."))
    assert refresh(root).dirty == 1
    commit(root)
    assert refresh(root).added == 1
    assert odd in index_paths(root)


def test_edits_of_a_branch_without_a_commit_are_found(tmp_path: Path) -> None:
    root = str(tmp_path)
    git(root, "init", "-q")
    write_file(root, A, page("The limit is 11."))
    for _ in range(2):
        done = refresh(root)
        assert (done.head_sha, done.dirty) == (None, 1)
        assert claims(root) == {A: "The limit is 11."}
    os.unlink(f"{root}/{A}")
    assert refresh(root).unchanged
    assert index_paths(root) == []
