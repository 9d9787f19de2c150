"""A commit that meets others half way: locks lost, refs and HEAD moved, files committed by hand."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.session import (
    checkout_state,
    commit_killed_at,
    git,
    land,
    make_store,
    page,
    put_op,
    start_log,
    tip,
    who,
)

from memhtml.errors import MemhtmlError, StorageError
from memhtml.session import landing, settle
from memhtml.session.log import log_path, read_log, sessions_folder
from memhtml.session.rebase import rebase
from memhtml.session.trail import append_trail
from memhtml.store import lock as locks
from memhtml.store import refs
from memhtml.store.snapshot import stands_at
from memhtml_format.ops import AddLabel, Put

A = "areas/inbox/a.html"
ONE = "areas/inbox/one.html"
MAIN = "refs/heads/main"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one record."""
    return make_store(str(tmp_path / "store"), {A: page("Fact a holds.")})


def at_step(patch: pytest.MonkeyPatch, step: str, act: Any) -> None:
    """Do something once, right after the named step."""
    done: list[str] = []

    def on_step(name: str) -> None:
        if name == step and not done:
            done.append(name)
            act()

    patch.setattr(landing, "on_step", on_step)


# Committed by hand.


def test_what_a_person_committed_after_the_kill_stays_in_the_checkout(store: str) -> None:
    start_log(store, "s1", [put_op("one"), AddLabel(A, "team:ops")])
    assert commit_killed_at(store, "s1", "followed") == -signal.SIGKILL
    git(store, "commit", "-qam", "a person takes it")
    answer = land(store, "s1")
    assert answer["kind"] == "rebase-needed"
    assert answer["overlapping"] == [A, ONE]
    assert Path(store, ONE).is_file()
    assert checkout_state(store) == ""
    assert read_log(store, "s1").pending is None


def test_only_what_the_branch_does_not_have_goes_back(store: str) -> None:
    start_log(store, "s1", [put_op("one"), put_op("two"), AddLabel(A, "team:ops")])
    assert commit_killed_at(store, "s1", "followed") == -signal.SIGKILL
    git(store, "commit", "-qm", "a person takes one", "--", ONE)
    assert land(store, "s1")["kind"] == "rebase-needed"
    assert Path(store, ONE).is_file()
    assert not Path(store, "areas/inbox/two.html").exists()
    assert checkout_state(store) == ""


def test_a_person_s_commit_between_follow_and_swap_keeps_its_files(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s1", [put_op("one"), put_op("two")])
    at_step(monkeypatch, "followed", lambda: git(store, "commit", "-qm", "mine", "--", ONE))
    assert land(store, "s1")["kind"] == "rebase-needed"
    assert Path(store, ONE).is_file()
    assert not Path(store, "areas/inbox/two.html").exists()
    assert checkout_state(store) == ""


# Interrupted.


def test_an_interrupt_after_the_swap_takes_nothing_back_when_the_branch_moved_on(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s1", [put_op("one")])
    real = refs.swap

    def interrupted(root: str, ref: str, new: str, old: str | None, message: str) -> bool:
        assert real(root, ref, new, old, message)
        above = git(root, "commit-tree", "-p", new, "-m", "on top", f"{new}^{{tree}}")
        git(root, "update-ref", ref, above)
        raise KeyboardInterrupt

    monkeypatch.setattr(refs, "swap", interrupted)
    with pytest.raises(KeyboardInterrupt):
        land(store, "s1")
    monkeypatch.undo()
    assert checkout_state(store) == ""
    assert Path(store, ONE).is_file()
    answer = land(store, "s1")
    assert answer["recovered"]
    assert git(store, "rev-list", "--count", f"{answer['baseSha']}..main") == "2"


@pytest.mark.parametrize("step", ["pending", "followed"])
def test_an_interrupt_before_the_swap_takes_everything_back(
    store: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    start_log(store, "s1", [put_op("one"), AddLabel(A, "team:ops")])

    def interrupt() -> None:
        raise KeyboardInterrupt

    at_step(monkeypatch, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        land(store, "s1")
    # Right after the write of the log nothing has moved: the next commit settles it.
    assert (read_log(store, "s1").pending is None) == (step == "followed")
    assert checkout_state(store) == ""
    assert land(store, "s1")["kind"] == "committed"


# Locks lost.


def take_over(folder: str) -> None:
    """Be the successor that took a lock over while its holder was paused."""
    os.rename(folder, f"{folder}.old")
    os.mkdir(folder)
    Path(folder, "holder").write_text(json.dumps({"pid": 1, "token": "another"}), encoding="utf-8")


@pytest.mark.parametrize("step", ["checkout-locked", "pending", "followed"])
def test_a_commit_that_lost_its_session_lock_leaves_the_log_to_the_successor(
    store: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    start_log(store, "s1", [put_op("one")])
    theirs: list[bytes] = []

    def succeed() -> None:
        take_over(os.path.join(sessions_folder(store), "s1.lock"))
        path = Path(log_path(store, "s1"))
        value = {**json.loads(path.read_text(encoding="utf-8"))}
        value.update(pending="1" * 40, pendingOps=1)
        path.write_text(json.dumps(value), encoding="utf-8")
        theirs.append(path.read_bytes())

    base = tip(store)
    at_step(monkeypatch, step, succeed)
    with pytest.raises(StorageError) as caught:
        land(store, "s1")
    assert caught.value.reason == "session.locked"
    assert Path(log_path(store, "s1")).read_bytes() == theirs[0]
    assert tip(store) == base


def test_a_roll_back_without_the_checkout_lock_moves_no_file(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s1", [put_op("one")])
    at_step(
        monkeypatch,
        "followed",
        lambda: take_over(os.path.join(store, ".memhtml", "checkout.lock")),
    )
    with pytest.raises(StorageError) as caught:
        land(store, "s1")
    assert caught.value.reason == "checkout.locked"
    assert Path(store, ONE).is_file()
    assert read_log(store, "s1").pending is not None
    for name in ("checkout.lock", "checkout.lock.old"):
        shutil.rmtree(os.path.join(store, ".memhtml", name))
    monkeypatch.undo()
    assert land(store, "s1")["kind"] == "committed"
    assert checkout_state(store) == ""


def test_a_commit_that_landed_while_settlement_waited_is_recovered(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s1", [put_op("one")])
    assert commit_killed_at(store, "s1", "followed") == -signal.SIGKILL
    pending = read_log(store, "s1").pending
    assert pending is not None
    real = locks.checkout_lock

    def late(root: str) -> locks.DirectoryLock:
        git(root, "update-ref", MAIN, pending)
        return real(root)

    monkeypatch.setattr(settle, "checkout_lock", late)
    answer = land(store, "s1")
    assert answer["recovered"]
    assert answer["sha"] == pending
    assert checkout_state(store) == ""
    assert Path(store, ONE).is_file()


# HEAD moved.


def test_a_branch_that_is_left_meanwhile_is_not_followed(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(store, "branch", "other")
    start_log(store, "s1", [put_op("one")])
    at_step(monkeypatch, "pending", lambda: git(store, "checkout", "-q", "other"))
    answer = land(store, "s1")
    assert answer["kind"] == "committed"
    assert not answer["worktreeSynced"]
    assert checkout_state(store) == ""
    assert not Path(store, ONE).exists()


def test_a_branch_that_is_checked_out_meanwhile_is_not_moved_under_the_checkout(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(store, "checkout", "-q", "-b", "other")
    base = tip(store)
    start_log(store, "s1", [put_op("one")])
    at_step(monkeypatch, "pending", lambda: git(store, "checkout", "-q", "main"))
    with pytest.raises(MemhtmlError) as caught:
        land(store, "s1")
    assert caught.value.code == "ERR_GIT"
    assert tip(store) == base
    assert read_log(store, "s1").pending is None
    monkeypatch.undo()
    assert land(store, "s1")["worktreeSynced"]
    assert checkout_state(store) == ""


# Rebase.


def test_a_rebase_never_moves_a_base_back(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from memhtml.corpus import head

    start_log(store, "s1", [])
    git(store, "commit", "-q", "--allow-empty", "-m", "on")
    real = head.open_head

    def slow(root: str, ref: str, sha: str, *, repo: Any) -> head.Head:
        monkeypatch.undo()
        rebase(root, who("s1"))
        start_log(root, "s2", [put_op("one")])
        assert land(root, "s2")["kind"] == "committed"
        rebase(root, who("s1"))
        return real(root, ref, sha, repo=repo)

    monkeypatch.setattr(head, "open_head", slow)
    answer = rebase(store, who("s1"))
    assert answer["baseSha"] == read_log(store, "s1").base_sha == tip(store)
    assert answer["head"]["sha"] == tip(store)


# The head database and the trail.


def test_a_recovered_commit_does_not_move_the_head_database_back(store: str) -> None:
    start_log(store, "s1", [put_op("one")])
    assert commit_killed_at(store, "s1", "swapped") == -signal.SIGKILL
    start_log(store, "s2", [put_op("two")])
    assert land(store, "s2")["kind"] == "committed"
    assert stands_at(store, MAIN, tip(store))
    answer = land(store, "s1")
    assert answer["recovered"]
    assert answer["snapshot"] is None
    assert stands_at(store, MAIN, tip(store))


def test_a_trail_that_was_cut_short_does_not_swallow_the_next_line(store: str) -> None:
    from memhtml.bar.drop import Dropped

    start_log(store, "s1", [])
    path = Path(sessions_folder(store), "s1.dropped.jsonl")
    append_trail(store, "s1", [Dropped("put", "a.html", ("why",))])
    path.write_bytes(path.read_bytes()[:-9])
    append_trail(store, "s1", [Dropped("put", "b.html", ("half a pair: \ud800",))])
    append_trail(store, "s1", [Dropped("put", "c.html", ())])
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["path"] for line in lines[1:-1]] == ["b.html", "c.html"]
    assert lines[-1] == ""


def test_a_log_with_a_lone_surrogate_is_refused_before_anything_is_dropped(store: str) -> None:
    start_log(store, "s1", [Put(A, page("Fact a holds."))])
    path = Path(log_path(store, "s1"))
    path.write_text(
        path.read_text(encoding="utf-8").replace("Fact a", "Fact \\ud800"), encoding="utf-8"
    )
    before = path.read_bytes()
    acts: list[Callable[[], object]] = [
        lambda: land(store, "s1", drop=True),
        lambda: rebase(store, who("s1")),
    ]
    for act in acts:
        with pytest.raises(StorageError) as caught:
            act()
        assert caught.value.reason == "session.decode"
    assert path.read_bytes() == before
