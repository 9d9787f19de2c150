"""The pass after a door's commit, several writers at once, and passes that are cut short."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from tests.support.index import (
    A,
    B,
    C,
    claims,
    commit,
    counts,
    forward,
    index_paths,
    refresh,
    state_of,
    write_file,
)
from tests.support.session import git, make_store, page, tip

from memhtml.index import changes, database, files, follow
from memhtml.index.database import open_index
from memhtml.index.writer import Writer
from memhtml.store.repo import Repo
from memhtml_format.record import Detail, read_detail


def test_a_doors_pass_takes_commits_and_leaves_edits(root: str) -> None:
    write_file(root, C, page("The host is new."))
    commit(root)
    write_file(root, A, page("The limit is 12."))
    forward(root)
    assert claims(root) == {
        A: "The limit is 11.",
        B: "The port is 8080.",
        C: "The host is new.",
    }
    assert state_of(root).head_sha == tip(root)


def test_a_doors_pass_starts_no_git_for_what_was_only_added(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(root, C, page("The host is new."))
    commit(root)
    repo = Repo(root)
    repo.files(tip(root))
    monkeypatch.setattr("memhtml.store.child._start", None)
    forward(root, repo=repo)
    monkeypatch.undo()
    assert C in index_paths(root)


def test_a_doors_pass_uses_the_readings_it_is_given(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(root, C, page("The host is new."))
    write_file(root, A, page("The limit is 12."))
    commit(root)
    known = {C: reading(root, C), A: reading(root, B)}  # The second is of other bytes.
    parsed: list[str] = []

    def read(path: str, data: bytes) -> object:
        parsed.append(path)
        return read_detail(path, data)

    monkeypatch.setattr("memhtml_format.record.read_detail", read)
    follow.bring_forward(root, Repo(root), None, known)
    assert parsed == [A]
    assert claims(root)[C] == "The host is new."
    assert claims(root)[A] == "The limit is 12."


def reading(root: str, path: str) -> Detail:
    found = read_detail(path, Path(root, path).read_bytes()).detail
    assert found is not None
    return found


def test_a_doors_pass_on_an_empty_index_projects_the_whole_tree(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "s"), {A: page("The limit is 11.")})
    forward(root)
    assert index_paths(root) == [A]


def test_a_doors_pass_that_fails_is_a_warning_with_the_remedy(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = b"garbage " * 100
    Path(files.index_path(root)).write_bytes(before)
    forward(root)
    said = capsys.readouterr().err
    assert "was not brought forward" in said
    assert "index.open" in said
    assert Path(files.index_path(root)).read_bytes() == before


def test_a_doors_pass_does_not_wait_long_for_another_writer(
    root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "DOOR_WAIT_S", 0.05)
    guard = files.hold(root, files.WRITE_LOCK, exclusive=True, wait_s=0)
    assert guard is not None
    with guard:
        forward(root)
    assert "index.locked" in capsys.readouterr().err


def test_a_long_update_that_was_cut_short_is_finished_even_after_git_went_back(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "BATCH_STEPS", 1)
    before = tip(root)
    write_file(root, A, page("The limit is 12."))
    write_file(root, B, page("The port is 9090."))
    commit(root)
    whole = Writer.settle
    calls = []

    def settle(self: Writer) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        whole(self)

    monkeypatch.setattr(Writer, "settle", settle)
    with pytest.raises(KeyboardInterrupt):
        refresh(root)
    monkeypatch.setattr(Writer, "settle", whole)
    assert state_of(root).unfinished
    git(root, "reset", "-q", "--hard", before)
    refresh(root)
    assert claims(root) == {A: "The limit is 11.", B: "The port is 8080."}
    assert not state_of(root).unfinished


def test_edits_that_were_half_taken_are_known_as_edits(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "BATCH_STEPS", 1)
    write_file(root, A, page("The limit is 12."))
    write_file(root, B, page("The port is 9090."))
    whole = Writer.settle
    calls = []

    def settle(self: Writer) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        whole(self)

    monkeypatch.setattr(Writer, "settle", settle)
    with pytest.raises(KeyboardInterrupt):
        refresh(root)
    monkeypatch.setattr(Writer, "settle", whole)
    git(root, "checkout", "-q", "--", ".")
    refresh(root)
    assert claims(root) == {A: "The limit is 11.", B: "The port is 8080."}


def test_an_index_of_a_commit_git_no_longer_has_is_compared_with_the_tree(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET head_sha = ?", ("1" * 40,))
        index.conn.execute("UPDATE files SET blob_sha = ? WHERE path = ?", ("2" * 40, A))
    done = refresh(root)
    assert counts(done) == (0, 1, 0, 0, 0)
    assert state_of(root).head_sha == tip(root)


def test_a_difference_too_long_to_hold_is_read_twice(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "LISTED", 2)
    for number in range(5):
        write_file(root, f"areas/n{number}.html", page(f"Number {number}."))
    os.replace(f"{root}/{A}", f"{root}/{C}")
    commit(root)
    assert counts(refresh(root)) == (5, 0, 0, 1, 0)
    assert len(index_paths(root)) == 7


def _land_and_follow(root: str, name: str) -> None:
    for number in range(4):
        path = f"areas/{name}{number}.html"
        write_file(root, path, page(f"{name} says {number}."))
        while True:
            try:
                git(root, "add", path)
                git(root, "commit", "-qm", path, "--", path)
                break
            except Exception:  # The other one has git's lock.
                continue
        follow.bring_forward(root, Repo(root), None)


def test_writers_at_once_leave_one_whole_index(root: str) -> None:
    fork = multiprocessing.get_context("fork")
    names = ("p", "q", "r")
    children = [fork.Process(target=_land_and_follow, args=(root, name)) for name in names]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    done = refresh(root)
    assert done.unchanged
    assert len(index_paths(root)) == 14


def test_a_commit_that_lands_during_a_pass_is_taken_along(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(root, C, page("The host is new."))
    commit(root)
    whole = Writer.settle
    calls = []

    def settle(self: Writer) -> None:
        whole(self)
        calls.append(1)
        if len(calls) == 1:
            write_file(root, "areas/late.html", page("Just in time."))
            commit(root)

    monkeypatch.setattr(Writer, "settle", settle)
    done = refresh(root)
    assert done.added == 2
    assert done.head_sha == tip(root)
    assert "areas/late.html" in index_paths(root)


def test_the_index_is_not_kept_open_by_what_followed(root: str) -> None:
    refresh(root)
    database.replace(root, "a test")
    assert not os.path.exists(files.index_path(root))
