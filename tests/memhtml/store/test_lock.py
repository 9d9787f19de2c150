"""The session lock and the checkout lock (spec `sessions` §2)."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from memhtml.errors import StorageError
from memhtml.store import lock as locks
from memhtml.store.lock import DirectoryLock, checkout_lock, is_stale, session_lock

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / ".memhtml" / "sessions").mkdir(parents=True)
    return str(tmp_path)


def age(path: str, seconds: float) -> None:
    """Make a lock look untouched for so long."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def leave(path: str, **holder: object) -> None:
    """A lock folder as another process leaves it, its holder's fields changed."""
    with DirectoryLock(path, stale_s=1000.0), open(os.path.join(path, "holder")) as file:
        found = json.load(file) | holder
    os.mkdir(path)
    with open(os.path.join(path, "holder"), "w") as file:
        json.dump(found, file)


def ended_process() -> int:
    """The number of a process that is gone."""
    done = subprocess.Popen(["true"])
    done.wait()
    return done.pid


def test_a_lock_is_taken_named_and_given_back(root: str) -> None:
    with session_lock(root, "s1") as lock:
        assert lock.still_ours()
        with open(os.path.join(lock.path, "holder")) as file:
            holder = json.load(file)
        assert holder["pid"] == os.getpid()
        assert {"started", "host", "pidNamespace", "token"} <= set(holder)
        assert os.listdir(lock.path) == ["holder"]
    assert not lock.still_ours()
    assert os.listdir(os.path.join(root, ".memhtml", "sessions")) == []


def test_a_busy_session_lock_fails_at_once(root: str) -> None:
    started = time.monotonic()
    with session_lock(root, "s1"), pytest.raises(StorageError) as caught:
        session_lock(root, "s1").__enter__()
    assert caught.value.reason == "session.locked"
    assert str(os.getpid()) in str(caught.value)
    assert time.monotonic() - started < 1


def test_sessions_do_not_lock_each_other(root: str) -> None:
    with session_lock(root, "s1"), session_lock(root, "s1.lock"), session_lock(root, "s2") as last:
        assert last.still_ours()


def test_a_busy_checkout_lock_is_waited_for(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "CHECKOUT_WAIT_S", 0.3)
    with checkout_lock(root):
        started = time.monotonic()
        with pytest.raises(StorageError) as caught:
            checkout_lock(root).__enter__()
        assert caught.value.reason == "checkout.locked"
        assert time.monotonic() - started >= 0.3


def test_the_checkout_lock_makes_the_folder_it_lies_in(tmp_path: Path) -> None:
    with checkout_lock(str(tmp_path)) as lock:
        assert os.path.isdir(lock.path)


def test_a_session_lock_without_its_folder_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        session_lock(str(tmp_path), "s1").__enter__()


def test_a_disk_that_refuses_leaves_no_lock_behind(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(locks, "write_all", full)
    for lock, reason in (
        (session_lock(root, "s"), "session.mkdir"),
        (checkout_lock(root), "write"),
    ):
        with pytest.raises(StorageError) as caught:
            lock.__enter__()
        assert caught.value.reason == reason
        assert not os.path.exists(lock.path)


def test_a_lock_goes_stale_by_age_alone(root: str) -> None:
    lock = session_lock(root, "s1")
    leave(lock.path, boot="another kernel")
    age(lock.path, 29)
    assert not is_stale(lock.path, lock.stale_s)
    assert not lock.acquire()
    age(lock.path, 31)
    assert is_stale(lock.path, lock.stale_s)
    with lock:
        assert lock.still_ours()


def test_the_age_is_judged_by_the_clock_of_the_file_system(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session_lock(root, "s1").path
    leave(path, boot="another kernel")
    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
    assert not is_stale(path, 30.0)


def test_a_lock_whose_holder_is_gone_is_stale_at_once(root: str) -> None:
    path = session_lock(root, "s1").path
    leave(path, pid=ended_process())
    assert is_stale(path, 30.0)
    with session_lock(root, "s1") as lock:
        assert lock.still_ours()


def test_a_process_with_the_same_number_started_later_is_not_the_holder(root: str) -> None:
    path = session_lock(root, "s1").path
    leave(path, started="1")
    assert is_stale(path, 30.0)


@pytest.mark.parametrize("field", ["boot", "pidNamespace"])
def test_a_number_from_another_kernel_or_container_says_nothing(root: str, field: str) -> None:
    path = session_lock(root, "s1").path
    leave(path, pid=ended_process(), **{field: "elsewhere"})
    assert not is_stale(path, 30.0)


@pytest.mark.parametrize("text", [b"", b"not json", b"[]", b'{"pid": "7"}', b'{"pid": -1}'])
def test_a_holder_that_cannot_be_read_goes_stale_by_age(root: str, text: bytes) -> None:
    path = session_lock(root, "s1").path
    os.mkdir(path)
    with open(os.path.join(path, "holder"), "wb") as file:
        file.write(text)
    assert not is_stale(path, 30.0)
    age(path, 40)
    assert is_stale(path, 30.0)
    with session_lock(root, "s1") as lock:
        assert lock.still_ours()


def test_an_absent_lock_is_not_stale(root: str) -> None:
    assert not is_stale(session_lock(root, "s1").path, 30.0)


def test_a_paused_holder_does_not_remove_its_successors_lock(root: str) -> None:
    first, second = session_lock(root, "s1"), session_lock(root, "s1")
    assert first.acquire()
    age(first.path, 40)
    assert second.acquire()
    assert not first.still_ours()
    mark = os.stat(second.path).st_mtime_ns
    age(second.path, 5)
    old = os.stat(second.path).st_mtime_ns
    first.refresh()
    assert os.stat(second.path).st_mtime_ns == old != mark
    first.release()
    assert second.still_ours()
    second.release()
    assert not os.path.exists(second.path)


def test_a_held_lock_is_kept_fresh(root: str) -> None:
    path = os.path.join(root, ".memhtml", "sessions", "quick.lock")
    with DirectoryLock(path, stale_s=0.3):
        time.sleep(0.8)
        assert not is_stale(path, 0.3)
        assert not DirectoryLock(path, stale_s=0.3).acquire()
    assert not os.path.exists(path)


def test_refresh_sets_the_time(root: str) -> None:
    with session_lock(root, "s1") as lock:
        age(lock.path, 20)
        lock.refresh()
        assert time.time() - os.stat(lock.path).st_mtime < 5


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_give_its_parents_lock_back(root: str) -> None:
    with session_lock(root, "s1") as lock:
        pid = os.fork()
        if pid == 0:
            lock.release()
            os._exit(0)
        os.waitpid(pid, 0)
        assert lock.still_ours()


def test_remove_if_stale_leaves_a_fresh_lock(root: str) -> None:
    with session_lock(root, "s1") as lock:
        assert not session_lock(root, "s1").remove_if_stale()
        assert lock.still_ours()
    leave(lock.path, pid=ended_process())
    assert session_lock(root, "s1").remove_if_stale()
    assert not os.path.exists(lock.path)


def test_a_fresh_lock_moved_by_mistake_goes_back(root: str) -> None:
    with session_lock(root, "s1") as lock:
        assert not locks._set_aside(lock.path, lambda aside: False)
        assert lock.still_ours()
    assert os.listdir(os.path.dirname(lock.path)) == []


def test_a_lock_left_as_a_file_is_taken_over(root: str) -> None:
    path = session_lock(root, "s1").path
    Path(path).touch()
    age(path, 40)
    with session_lock(root, "s1") as lock:
        assert lock.still_ours()


def test_a_killed_holder_is_followed_at_once(root: str) -> None:
    pid = os.fork()
    if pid == 0:
        checkout_lock(root).acquire()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert os.path.isdir(os.path.join(root, ".memhtml", "checkout.lock"))
    started = time.monotonic()
    with checkout_lock(root) as lock:
        assert lock.still_ours()
    assert time.monotonic() - started < 2


def _claim(root: str, barrier: Barrier, wins: str) -> None:
    lock = session_lock(root, "s1")
    barrier.wait()
    if lock.acquire():
        with open(wins, "a") as file:
            file.write(f"{os.getpid()}\n")
    barrier.wait()
    if lock._token is not None and not lock.still_ours():
        with open(wins, "a") as file:
            file.write("lost\n")


@pytest.mark.parametrize("round_number", range(5))
def test_a_stale_lock_is_taken_by_exactly_one_of_many(root: str, round_number: int) -> None:
    leave(session_lock(root, "s1").path, pid=ended_process())
    if round_number % 2:
        age(session_lock(root, "s1").path, 40)
    wins = os.path.join(root, "wins")
    barrier = FORK.Barrier(8)
    children = [FORK.Process(target=_claim, args=(root, barrier, wins)) for _ in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    with open(wins) as file:
        lines = file.read().split()
    assert len(lines) == 1
    assert "lost" not in lines


def _count(root: str, rounds: int) -> None:
    path = os.path.join(root, "count")
    for _ in range(rounds):
        with checkout_lock(root):
            with open(path) as file:
                number = int(file.read())
            time.sleep(0.001)
            with open(path, "w") as file:
                file.write(str(number + 1))


def test_no_two_hold_the_lock_at_once(root: str) -> None:
    with open(os.path.join(root, "count"), "w") as file:
        file.write("0")
    children = [FORK.Process(target=_count, args=(root, 5)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    with open(os.path.join(root, "count")) as file:
        assert file.read() == "20"
    assert os.listdir(os.path.join(root, ".memhtml")) == ["sessions"]
