"""The spawner's life: threads, the end of its caller, and what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.sandbox import (
    command_lines,
    commands,
    processes,
    support_for,
    write_corpus,
)

from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.lower import NO_LAYER, Lower
from memhtml_sandbox.probe import Support
from memhtml_sandbox.processes import children
from memhtml_sandbox.sandbox import Sandbox
from memhtml_sandbox.spawner import Spawner


@pytest.fixture
def support(tmp_path: Path) -> Support:
    return support_for(str(tmp_path))


def wait_until_gone(pids: set[int], seconds: float = 5.0) -> dict[int, str]:
    """Those of the processes that are still there after a while."""
    deadline_s = time.monotonic() + seconds
    while commands(pids) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return commands(pids)


def below(pid: int) -> set[int]:
    """All processes below one, by their parents in `/proc`."""
    parents = {}
    for candidate in processes():
        try:
            stat = Path(f"/proc/{candidate}/stat").read_text()
        except OSError:
            continue
        parents[candidate] = int(stat.rpartition(")")[2].split()[1])
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {pid}


def test_threads_run_at_once_and_do_not_see_each_others_files(
    support: Support, tmp_path: Path
) -> None:
    lower = write_corpus(f"{tmp_path}/lower", support)
    spawner = Spawner.start()
    sandbox = Sandbox(support, spawner=spawner)
    seen: dict[int, tuple[bytes, set[bytes]]] = {}

    def work(number: int) -> None:
        script = (
            f"cd /mnt/memhtml; echo {number} > own-{number}.html; sleep 0.2; ls; ls /tmp\n"
            f"touch /tmp/{number}; rm areas/inbox/a.html"
        )
        with sandbox.run(lower, NO_LAYER, script=script.encode()) as run:
            seen[number] = run.stdout, set(run.changes().changed)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spawner.close()
    assert {number: stdout for number, (stdout, _) in seen.items()} == {
        number: f"areas\nown-{number}.html\nprojects\n".encode() for number in range(4)
    }
    assert all(changed == {b"own-%d.html" % number} for number, (_, changed) in seen.items())


def test_a_run_from_a_thread_that_ends_does_not_end_the_spawner(
    support: Support, tmp_path: Path
) -> None:
    lower = write_corpus(f"{tmp_path}/lower", support)
    with Sandbox(support) as sandbox:
        codes: list[int] = []

        def work() -> None:
            with sandbox.run(lower, NO_LAYER, script=b"exit 3") as run:
                codes.append(run.exit_code)

        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert sandbox._own is not None
        assert commands({sandbox._own.pid})
        work()
    assert codes == [3, 3, 3]


def test_a_sandbox_whose_spawner_died_starts_another(support: Support, tmp_path: Path) -> None:
    lower = write_corpus(f"{tmp_path}/lower", support)
    with Sandbox(support) as sandbox:
        with sandbox.run(lower, NO_LAYER, script=b"true") as run:
            assert run.exit_code == 0
        assert sandbox._own is not None
        os.kill(sandbox._own.pid, signal.SIGKILL)
        with sandbox.run(lower, NO_LAYER, script=b"exit 5") as run:
            assert run.exit_code == 5


def test_closing_leaves_no_process_and_no_descriptor(support: Support, tmp_path: Path) -> None:
    lower = write_corpus(f"{tmp_path}/lower", support)
    before = sorted(os.listdir("/proc/self/fd"))
    sandbox = Sandbox(support)
    with sandbox.run(lower, NO_LAYER, script=b"true") as run:
        assert run.exit_code == 0
    assert sandbox._own is not None
    pid = sandbox._own.pid
    sandbox.close()
    sandbox.close()
    assert commands({pid}) == {}
    assert sorted(os.listdir("/proc/self/fd")) == before


CALLER = """
import os, sys, time
from memhtml_sandbox.lower import NO_LAYER, Lower
from memhtml_sandbox.probe import probe
from memhtml_sandbox.sandbox import Sandbox
support = probe(cache_dir=sys.argv[1])
lower = Lower("a" * 40, (sys.argv[2],))
script = b"(setsid nohup sleep 300 >/dev/null 2>&1 &) ; trap '' TERM HUP INT; sleep 300"
with Sandbox(support) as sandbox:
    if sys.argv[3] == "fork":
        with sandbox.run(lower, NO_LAYER, script=b"true"):
            pass
        # This one keeps the socket to the spawner open when the caller dies.
        if os.fork() == 0:
            time.sleep(4)
            os._exit(0)
    with sandbox.run(lower, NO_LAYER, script=script):
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("after_s", [0.35, 0.0])
def test_the_death_of_the_caller_is_the_end_of_everything(
    support: Support, tmp_path: Path, number: int, after_s: float
) -> None:
    write_corpus(f"{tmp_path}/lower", support)
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, f"{tmp_path}/cache", f"{tmp_path}/lower", "plain"]
    )
    found: set[int] = set()
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and "bwrap" not in commands(found).values():
        found |= below(caller.pid)
        time.sleep(0.001)
    time.sleep(after_s)
    found |= below(caller.pid)
    caller.send_signal(number)
    caller.wait()
    assert found
    assert wait_until_gone(found) == {}


def test_the_end_is_noticed_even_when_others_hold_the_callers_descriptors(
    support: Support, tmp_path: Path
) -> None:
    write_corpus(f"{tmp_path}/lower", support)
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, f"{tmp_path}/cache", f"{tmp_path}/lower", "fork"]
    )
    deadline_s = time.monotonic() + 10
    found: set[int] = set()
    while time.monotonic() < deadline_s and "sleep" not in commands(found).values():
        found = below(caller.pid)
        time.sleep(0.01)
    mine = {pid for pid, name in commands(found).items() if name in ("bwrap", "bash", "sleep")}
    caller.kill()
    caller.wait()
    assert mine
    assert wait_until_gone(mine, 2) == {}
    wait_until_gone(found)


STOPPED = """
import os, sys
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import NO_LAYER, Lower
from memhtml_sandbox.probe import probe
from memhtml_sandbox.sandbox import Sandbox
support = probe(cache_dir=sys.argv[1])
lower = Lower("a" * 40, (sys.argv[2],))
limits = Limits(timeout_ms=400, grace_ms=100)
with Sandbox(support) as sandbox:
    with sandbox.run(lower, NO_LAYER, script=b"sleep 300", limits=limits) as run:
        print(run.timed_out, run.exit_code, len(run.changes().changed))
    with sandbox.run(lower, NO_LAYER, script=b"exit 6") as run:
        print(run.timed_out, run.exit_code)
"""


def test_a_caller_that_is_stopped_does_not_stop_the_clock(support: Support, tmp_path: Path) -> None:
    write_corpus(f"{tmp_path}/lower", support)
    caller = subprocess.Popen(
        [sys.executable, "-c", STOPPED, f"{tmp_path}/cache", f"{tmp_path}/lower"],
        stdout=subprocess.PIPE,
    )
    found: set[int] = set()
    deadline_s = time.monotonic() + 10
    while "sleep" not in commands(found).values() and time.monotonic() < deadline_s:
        found = below(caller.pid)
        time.sleep(0.005)
    caller.send_signal(signal.SIGSTOP)
    mine = {pid for pid, name in commands(found).items() if name == "sleep"}
    assert mine
    assert wait_until_gone(mine, 4) == {}
    caller.send_signal(signal.SIGCONT)
    told, _ = caller.communicate(timeout=10)
    assert told == b"True 124 0\nFalse 6\n"


def test_whatever_is_left_of_a_run_is_killed_with_the_spawner(
    support: Support, tmp_path: Path
) -> None:
    lower = write_corpus(f"{tmp_path}/lower", support)
    spawner = Spawner.start()
    marker = f"41.{os.getpid()}"
    thread = threading.Thread(target=_hold, args=(support, spawner, lower, f"sleep {marker}"))
    thread.start()
    deadline_s = time.monotonic() + 10
    while not (inits := _inits(spawner.pid, marker)) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    # Orphaned and so a child of the spawner, as one that let go of its parent would be.
    for bwrap in children(spawner.pid):
        os.kill(bwrap, signal.SIGSTOP)
    spawner.close()
    assert inits
    assert wait_until_gone(inits) == {}
    thread.join(timeout=10)


def _hold(support: Support, spawner: Spawner, lower: Lower, script: str) -> None:
    with (
        contextlib.suppress(SandboxFailed),
        Sandbox(support, spawner=spawner) as sandbox,
        sandbox.run(lower, NO_LAYER, script=script.encode()),
    ):
        pass


def _inits(spawner: int, marker: str) -> set[int]:
    """The inits below a spawner, once the script's own process is there."""
    found = {init for bwrap in children(spawner) for init in children(bwrap)}
    return found if any(marker in words for words in command_lines()) else set()


def test_a_forked_copy_of_the_caller_does_not_end_the_spawner(
    support: Support, tmp_path: Path
) -> None:
    lower = write_corpus(f"{tmp_path}/lower", support)
    with Sandbox(support) as sandbox:
        with sandbox.run(lower, NO_LAYER, script=b"true"):
            pass
        pid = os.fork()
        if pid == 0:
            try:
                sandbox.close()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert sandbox._own is not None
        assert commands({sandbox._own.pid})
        with sandbox.run(lower, NO_LAYER, script=b"exit 8") as run:
            assert run.exit_code == 8
