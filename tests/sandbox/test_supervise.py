"""Watching a run, with plain processes in the place of bwrap."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.processes import children, family, resident_bytes
from memhtml_sandbox.supervise import Outcome, Started, Supervisor

# Says what bwrap would: the pid of the "init", its end, and in between waits for the byte.
# Like bwrap, it does not outlive its init. Whoever watches kills that init as well, and the shell's
# words about it are none of the run's.
PREFACE = """
status=$1 block=$2; shift 2
sleep 60 >/dev/null 2>&1 & init=$!
(eval "exec $status>&-"
 while kill -0 $init; do sleep 0.01; done; kill -9 $$) >/dev/null 2>&1 &
printf '{ "child-pid": %s' $init >&$status
printf ', "net-namespace": 1 }\\n' >&$status
head -c 1 <&$block >/dev/null
"""
EPILOGUE = """
exec 2>/dev/null
printf '{ "exit-code": %s }\\n' $code >&$status
kill -9 $init
"""


class Fake:
    """A shell script in the place of bwrap, and this side's ends of its pipes."""

    def __init__(self, body: str) -> None:
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        self.status, status = os.pipe()
        block, self.block = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", body, "fake", str(status), str(block)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            pass_fds=(status, block),
        )
        for fd in (out, err, status, block):
            os.close(fd)
        self.pidfd = os.pidfd_open(self.process.pid)

    def started(self) -> Started:
        return Started(
            self.process.pid,
            self.pidfd,
            self.stdout,
            self.stderr,
            self.status,
            self.block,
            sampled=True,
        )

    def close(self) -> None:
        for fd in (self.stdout, self.stderr, self.status, self.block, self.pidfd):
            os.close(fd)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def fake() -> Iterator[Callable[[str], Fake]]:
    made: list[Fake] = []

    def make(body: str) -> Fake:
        made.append(Fake(body))
        return made[-1]

    yield make
    for each in made:
        each.close()


def nothing(_pid: int) -> None:
    return


def watch(fake: Fake, limits: Limits | None = None, begun_s: float | None = None) -> Outcome:
    begun_s = time.monotonic() if begun_s is None else begun_s
    return Supervisor(fake.started(), limits or Limits(), begun_s, nothing).watch()


def test_the_exit_code_comes_from_the_status_pipe(fake: Callable[[str], Fake]) -> None:
    outcome = watch(fake(PREFACE + "echo out; echo err >&2; code=7" + EPILOGUE + "exit 1"))
    assert (outcome.exit_code, outcome.killed) == (7, None)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")
    assert outcome.began_s is not None
    assert outcome.began_s <= outcome.ended_s


def test_without_an_exit_code_there_is_none_whatever_bwrap_exits_with(
    fake: Callable[[str], Fake],
) -> None:
    outcome = watch(fake("echo 'bwrap: no' >&2; exit 1"))
    assert (outcome.exit_code, outcome.began_s, outcome.init_pid) == (None, None, 0)
    assert outcome.stderr == b"bwrap: no\n"


def test_the_init_is_shown_before_the_script_may_start(fake: Callable[[str], Fake]) -> None:
    seen: list[int] = []
    run = fake(PREFACE + "echo $init; code=0" + EPILOGUE)
    outcome = Supervisor(run.started(), Limits(), time.monotonic(), seen.append).watch()
    assert outcome.stdout.split() == [str(seen[0]).encode()]
    assert outcome.init_pid == seen[0]


def test_what_may_be_done_meanwhile_is_done_in_turn_and_no_longer_than_the_run(
    fake: Callable[[str], Fake],
) -> None:
    done: list[int] = []

    def step(number: int) -> None:
        time.sleep(0.02)
        done.append(number)

    run = fake(PREFACE + "sleep 0.2; code=5" + EPILOGUE)
    steps = [partial(step, number) for number in range(1_000)]
    outcome = Supervisor(run.started(), Limits(), time.monotonic(), nothing, steps).watch()
    assert outcome.exit_code == 5
    assert done == list(range(len(done)))
    assert 3 <= len(done) < 500


def test_deadline_is_kept_between_the_steps_of_what_is_done_meanwhile(
    fake: Callable[[str], Fake],
) -> None:
    steps = [partial(time.sleep, 0.01)] * 1_000
    run = fake(PREFACE + "wait" + EPILOGUE)
    limits, begun_s = Limits(timeout_ms=100), time.monotonic()
    assert Supervisor(run.started(), limits, begun_s, nothing, steps).watch().killed == "timeout"
    assert time.monotonic() - begun_s < 5


def test_failure_of_what_is_done_meanwhile_kills_and_goes_on(fake: Callable[[str], Fake]) -> None:
    def fail() -> None:
        raise LookupError

    run = fake(PREFACE + "wait; code=0" + EPILOGUE)
    with pytest.raises(LookupError):
        Supervisor(run.started(), Limits(), time.monotonic(), nothing, [fail]).watch()
    assert run.process.wait(timeout=5) != 0


def test_whoever_outlives_the_main_process_is_killed_with_the_init(
    fake: Callable[[str], Fake],
) -> None:
    # This "bwrap" reports the end and leaves its init alone, as a forged reaper would have it.
    left = "printf '{ \"exit-code\": 4 }\\n' >&$status; wait; sleep 30"
    begun_s = time.monotonic()
    outcome = watch(fake(PREFACE + left))
    assert (outcome.exit_code, outcome.killed) == (4, None)
    assert time.monotonic() - begun_s < 5


def test_a_run_that_somebody_else_ended_long_after_its_time_timed_out(
    fake: Callable[[str], Fake],
) -> None:
    run = fake("exit 1")
    run.process.wait()
    begun_s = time.monotonic() - 60
    supervisor = Supervisor(run.started(), Limits(timeout_ms=1_000), begun_s, nothing)
    # As if this process had been stopped right behind its look at the clock.
    supervisor._deadline_s = time.monotonic() + 60
    assert supervisor.watch().killed == "timeout"


def test_output_beyond_the_cap_is_read_counted_and_dropped(fake: Callable[[str], Fake]) -> None:
    body = "head -c 300000 /dev/zero; head -c 70 /dev/zero >&2; code=0"
    limits = Limits(stdout_bytes=100_000, stderr_bytes=70)
    outcome = watch(fake(PREFACE + body + EPILOGUE), limits)
    assert (len(outcome.stdout), outcome.stdout_cut) == (100_000, 200_000)
    assert (len(outcome.stderr), outcome.stderr_cut) == (70, 0)


def test_a_run_over_its_time_is_killed(fake: Callable[[str], Fake]) -> None:
    run = fake(PREFACE + "echo before; trap '' TERM; wait" + EPILOGUE)
    outcome = watch(run, Limits(timeout_ms=100))
    assert (outcome.killed, outcome.exit_code) == ("timeout", None)
    assert outcome.stdout == b"before\n"
    assert outcome.began_s is not None
    assert 0.09 <= outcome.ended_s - outcome.began_s < 1.5


def test_the_time_of_the_whole_run_counts_from_the_call(fake: Callable[[str], Fake]) -> None:
    begun_s = time.monotonic() - 60
    outcome = watch(fake("exec sleep 30"), Limits(timeout_ms=1_000), begun_s)
    assert (outcome.killed, outcome.began_s) == ("timeout", None)


def test_a_run_above_its_memory_is_killed(fake: Callable[[str], Fake]) -> None:
    body = 'x=$(head -c 60000000 /dev/zero | tr "\\0" a); kill -STOP $$; code=0'
    # The "init" is the whole family here, so it is the one that has to grow.
    preface = PREFACE.replace("sleep 60", f"bash -c '{body}'")
    outcome = watch(fake(preface + "wait"), Limits(run_rss_bytes=40 << 20))
    assert outcome.killed == "memory"


def test_processes_that_do_not_die_are_an_error_of_the_runtime(
    fake: Callable[[str], Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml_sandbox.supervise.DEATH_MS", 100)
    # This "bwrap" survives the death of its init.
    run = fake(PREFACE.replace("kill -9 $$", ":") + "sleep 30; code=0" + EPILOGUE)
    with pytest.raises(SandboxFailed, match="does not die") as caught:
        watch(run, Limits(timeout_ms=50))
    assert caught.value.code == "exec.run"


def test_an_exception_before_the_start_kills_and_goes_on(fake: Callable[[str], Fake]) -> None:
    def refuse(pid: int) -> None:
        raise KeyboardInterrupt(pid)

    run = fake(PREFACE + "echo started; code=0" + EPILOGUE)
    supervisor = Supervisor(run.started(), Limits(), time.monotonic(), refuse)
    with pytest.raises(KeyboardInterrupt) as caught:
        supervisor.watch()
    with pytest.raises(ProcessLookupError):
        os.kill(caught.value.args[0], 0)
    assert run.process.wait(timeout=5) == -signal.SIGKILL


def test_an_interrupt_while_waiting_kills_and_goes_on(fake: Callable[[str], Fake]) -> None:
    run = fake(PREFACE + "wait; code=0" + EPILOGUE)

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            watch(run)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_memory_is_added_up_over_a_whole_family() -> None:
    code = "import os, time\nfor _ in range(3):\n if os.fork() == 0: break\ntime.sleep(30)"
    top = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline_s = time.monotonic() + 10
        while len(family(top.pid)) < 4 and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert len(children(top.pid)) == 3
        assert resident_bytes(top.pid) > 2 * resident_bytes(children(top.pid)[0]) > 0
    finally:
        for pid in (*children(top.pid), top.pid):
            os.kill(pid, signal.SIGKILL)
        top.wait()
    assert resident_bytes(top.pid) == 0
    assert children(top.pid) == []


HOARD = """
import ctypes, os, threading, time
kept = []
def hoard():
    kept.append(b"x" * (60 << 20))
    print("full", flush=True)
    time.sleep(30)
threading.Thread(target=hoard).start()
exit_thread = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
ctypes.CDLL(None).syscall(exit_thread, 0)
"""


def test_memory_behind_a_first_thread_that_has_ended_is_counted() -> None:
    hoard = subprocess.Popen([sys.executable, "-c", HOARD], stdout=subprocess.PIPE)
    try:
        assert hoard.stdout is not None
        assert hoard.stdout.readline() == b"full\n"
        deadline_s = time.monotonic() + 5
        # Its own entry shows nothing once the first thread is gone.
        while _shown(hoard.pid) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert _shown(hoard.pid) == 0
        assert resident_bytes(hoard.pid) > 60 << 20
    finally:
        hoard.kill()
        hoard.wait()
        if hoard.stdout is not None:
            hoard.stdout.close()


def _shown(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1])
