"""Git children: their environment, and what becomes of them when their parent ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.store import commit_on, git, line, make_repository

from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import child, refs
from memhtml.store.child import asking, git_env, run_git
from memhtml.store.lock import checkout_lock, session_lock
from memhtml.store.repo import Repo

MAIN = "refs/heads/main"
DEAF_GIT = """#!/bin/sh
trap '' TERM
echo $$ > "$MARKS/started"
n=0
while [ $n -lt 2000 ]; do n=$((n + 1)); sleep 0.01; done
"""
TIDY_GIT = """#!/bin/sh
trap 'rm "$MARKS/index.lock"; exit 1' TERM
touch "$MARKS/index.lock"
echo $$ > "$MARKS/started"
n=0
while [ $n -lt 2000 ]; do n=$((n + 1)); sleep 0.01; done
"""

SLOW_GIT = """#!/bin/sh
echo $$ > "$MARKS/started"
sleep 0.5
touch "$MARKS/ended"
"""


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    make_repository(path, {"areas/a.html": b"a\n"})
    os.makedirs(os.path.join(path, ".memhtml", "sessions"))
    return path


def test_inherited_git_variables_lead_nowhere_else(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(tmp_path / "other")
    make_repository(other, {"x": b"x"})
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, os.path.join(other, ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    run = run_git(root, "rev-parse", "--show-toplevel")
    assert os.fsdecode(run.stdout).strip() == root
    assert not any(name in git_env(root) for name in ("GIT_DIR", "GIT_CONFIG_COUNT"))


def in_child(act: Callable[[], None]) -> int:
    """The number of a forked child that does `act` and nothing else."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return pid


def wait_for(path: Path) -> str:
    """The text of a file as soon as it has one."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text().strip()):
            return text
        time.sleep(0.005)
    raise AssertionError(f"{path} never came")


def alive(pid: int) -> bool:
    """Whether a process that is not ours to wait for still runs."""
    return state_of(pid)[0] not in ("Z", "X")


def parent_of(pid: int) -> int:
    """The number of a process's parent."""
    return int(state_of(pid)[1])


def state_of(pid: int) -> list[str]:
    """What the kernel says of a process behind its name: its state, its parent and more."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


def command_of(pid: int) -> list[bytes]:
    """A process's command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Puts `script` in git's place; the folder it leaves its marks in."""
    for name in ("bin", "marks"):
        (tmp_path / name).mkdir()
    git_file = tmp_path / "bin" / "git"
    git_file.write_text(script)
    git_file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("MARKS", str(tmp_path / "marks"))
    return tmp_path / "marks"


def interrupted_call(root: str, *, changes: bool = False) -> None:
    """A git child that never ends by itself, in a process that unwinds on SIGTERM."""

    def unwind(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, unwind)
    run_git(root, "update-index", changes=changes)


def test_an_interrupted_child_removes_its_own_lock_before_it_ends(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = stand_in(tmp_path, monkeypatch, TIDY_GIT)
    pid = in_child(lambda: interrupted_call(root))
    git_pid = int(wait_for(marks / "started"))
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    assert not alive(git_pid)
    assert not (marks / "index.lock").exists()


def test_a_child_that_does_not_end_when_asked_is_killed(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_END_WAIT_S", 0.3)
    marks = stand_in(tmp_path, monkeypatch, DEAF_GIT)
    pid = in_child(lambda: interrupted_call(root))
    git_pid = int(wait_for(marks / "started"))
    started = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    assert 0.2 < time.monotonic() - started < 5
    assert not alive(git_pid)


def test_a_child_that_moves_something_comes_to_its_end_before_a_signal_arrives(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = stand_in(tmp_path, monkeypatch, SLOW_GIT)
    pid = in_child(lambda: interrupted_call(root, changes=True))
    git_pid = int(wait_for(marks / "started"))
    # Ctrl-C reaches the whole group of the terminal: the child is in none with this process.
    assert os.getpgid(git_pid) != os.getpgid(pid)
    os.kill(pid, signal.SIGTERM)
    _pid, status = os.waitpid(pid, 0)
    assert status != 0
    assert (marks / "ended").exists()


def test_a_child_that_moves_something_for_too_long_is_asked_to_end(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_SIGNALS_WAIT_S", 0.3)
    marks = stand_in(tmp_path, monkeypatch, TIDY_GIT)
    pid = in_child(lambda: interrupted_call(root, changes=True))
    git_pid = int(wait_for(marks / "started"))
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    assert not alive(git_pid)
    assert not (marks / "index.lock").exists()


def test_a_signal_while_a_child_is_being_started_is_not_lost_and_leaves_no_child(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = stand_in(tmp_path, monkeypatch, SLOW_GIT)
    real = child._start

    def started(*words: Any, **options: Any) -> Any:
        found = real(*words, **options)
        os.kill(os.getpid(), signal.SIGTERM)  # The child runs, and nobody holds it yet.
        return found

    monkeypatch.setattr(child, "_start", started)
    pid = in_child(lambda: interrupted_call(root, changes=True))
    _pid, status = os.waitpid(pid, 0)
    assert status != 0
    assert (marks / "ended").exists()


def killed_in_swap(root: str, new: str, old: str) -> int:
    """Kill a holder of both locks while its git child waits for the branch's lock file."""
    branch_lock(root).touch()

    def act() -> None:
        with session_lock(root, "s"), checkout_lock(root):
            refs.swap(root, MAIN, new, old, "late")

    pid = in_child(act)
    git_pid = child_of(pid, "update-ref")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return git_pid


def branch_lock(root: str) -> Path:
    """Git's lock on main."""
    return Path(root, ".git", MAIN + ".lock")


def child_of(pid: int, word: str) -> int:
    """The git child of a process with `word` on its command line, once it waits for something."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for found in filter(str.isdigit, os.listdir("/proc")):
            if parent_of(int(found)) == pid and word.encode() in command_of(int(found)):
                time.sleep(0.05)
                return int(found)
        time.sleep(0.005)
    raise AssertionError("no git child")


def test_a_lock_is_not_taken_over_while_a_child_of_its_dead_holder_lives(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refs, "_REF_LOCK_WAIT_MS", 30_000)
    old = line(root, "rev-parse", "HEAD")
    new = commit_on(Repo(root), old, {"areas/b.html": b"b\n"})
    git_pid = killed_in_swap(root, new, old)
    os.kill(git_pid, signal.SIGSTOP)
    branch_lock(root).unlink()
    try:
        for lock in (session_lock(root, "s"), checkout_lock(root)):
            os.utime(lock.path, (1, 1))
            lock.wait_s = 0.1
            with pytest.raises(StorageError, match=r"git child of process \d+, which ended"):
                lock.__enter__()
            assert not lock.remove_if_stale()
        assert refs.resolve(root, MAIN) == old
    finally:
        os.kill(git_pid, signal.SIGCONT)
    started = time.monotonic()
    with checkout_lock(root), session_lock(root, "s"):
        assert time.monotonic() - started < 3
        assert not alive(git_pid)
        assert refs.resolve(root, MAIN) == new


def test_a_child_that_was_let_go_cannot_move_a_ref_after_a_takeover(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is free only when the child has ended: what it did is seen by the successor."""
    old = line(root, "rev-parse", "HEAD")
    new = commit_on(Repo(root), old, {"areas/b.html": b"b\n"})
    monkeypatch.setattr(refs, "_REF_LOCK_WAIT_MS", 30_000)
    killed_in_swap(root, new, old)
    branch_lock(root).unlink()
    with checkout_lock(root):
        seen = refs.resolve(root, MAIN)
        time.sleep(0.2)
        assert refs.resolve(root, MAIN) == seen == new


def test_a_writer_that_lost_its_lock_starts_no_child_that_moves_something(root: str) -> None:
    old = line(root, "rev-parse", "HEAD")
    new = commit_on(Repo(root), old, {"areas/b.html": b"b\n"})
    with checkout_lock(root) as first:
        os.rename(first.path, f"{first.path}.aside")
        with pytest.raises(StorageError) as caught:
            refs.swap(root, MAIN, new, old, "late")
        with checkout_lock(root):
            # As another process would hold it: ours must not pass for it.
            assert not first.still_ours()
    assert caught.value.reason == "checkout.locked"
    assert refs.resolve(root, MAIN) == old


def test_a_lock_is_free_again_once_its_children_are_done(root: str) -> None:
    old = line(root, "rev-parse", "HEAD")
    new = commit_on(Repo(root), old, {"areas/b.html": b"b\n"})
    with checkout_lock(root) as lock:
        assert refs.swap(root, MAIN, new, old, "moved")
        assert lock.still_ours()
    assert os.listdir(os.path.join(root, ".memhtml")) == ["sessions"]
    git(root, "fsck")


def test_a_git_that_cannot_be_run_is_said(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MemhtmlError, match="git is not installed"):
        run_git(root, "version")
    with pytest.raises(MemhtmlError, match="git is not installed"), asking(root, "version"):
        pass


def test_a_git_that_was_asked_answers_when_it_is_wanted(root: str) -> None:
    with asking(root, "rev-parse", "HEAD") as head, asking(root, "rev-parse", "no-such") as none:
        assert none().status != 0
        assert head().stdout.decode().strip() == line(root, "rev-parse", "HEAD")


def test_a_git_whose_answer_nobody_wants_is_ended(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = stand_in(tmp_path, monkeypatch, DEAF_GIT)
    with pytest.raises(KeyboardInterrupt), asking(root, "version"):
        pid = int(wait_for(marks / "started"))
        raise KeyboardInterrupt
    assert not os.path.exists(f"/proc/{pid}")
