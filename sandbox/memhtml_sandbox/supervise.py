"""Watches one run from the fork to the end of its last process.

Reads the output under its caps, lets the script start, holds the deadlines and the memory cap,
kills, and reaps. It never waits for any process but the one it was given, and it never reads the
change set (spec `sandbox` §8).
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.processes import resident_bytes
from memhtml_sandbox.protocol import LATE_S

# How long everything may take to be gone after the kill, or after the main process ended.
DEATH_MS = 2_000
SAMPLE_MS = 100

_CHUNK_BYTES = 1 << 16

# What bwrap reports of a process that ended by SIGKILL.
_KILLED = 128 + 9


class Started(NamedTuple):
    """A running bwrap, by pid and pidfd, and this side's ends of its pipes.

    `sampled` says that nobody but this process counts the memory of the run.
    """

    pid: int
    pidfd: int
    stdout: int
    stderr: int
    status: int
    block: int
    sampled: bool


class Outcome(NamedTuple):
    """How a run ended. `exit_code` is None when the script never ran.

    `began_s` is the instant on the monotonic clock when the script was let go, None before that;
    `init_pid` is the sandbox's init, 0 if there never was one.
    """

    exit_code: int | None
    killed: Literal["timeout", "memory"] | None
    stdout: bytes
    stderr: bytes
    stdout_cut: int
    stderr_cut: int
    began_s: float | None
    ended_s: float
    init_pid: int


class _Capture:
    """Keeps the first bytes of a stream and counts the others."""

    __slots__ = ("cut_bytes", "data", "room_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.data = bytearray()
        self.room_bytes = limit_bytes
        self.cut_bytes = 0

    def add(self, chunk: bytes) -> None:
        kept = chunk[: self.room_bytes]
        self.data += kept
        self.room_bytes -= len(kept)
        self.cut_bytes += len(chunk) - len(kept)


class Supervisor:
    """One run. `watch` returns when every process of it is dead, whatever happened.

    `init_pid` is the sandbox's init, 0 until it is known.
    """

    def __init__(
        self,
        started: Started,
        limits: Limits,
        begun_s: float,
        before: Callable[[int], None],
        meanwhile: Sequence[Callable[[], object]] = (),
    ) -> None:
        """`before` gets the pid of the sandbox's init while that waits for the script to start.

        The calls of `meanwhile` are made in turn, each when nothing else is to be done.
        """
        self._run = started
        self._limits = limits
        self._before = before
        self._spare = list(reversed(meanwhile))
        self._out = _Capture(limits.stdout_bytes)
        self._err = _Capture(limits.stderr_bytes)
        self._status = b""
        self._init: int | None = None
        self.init_pid = 0
        self._exit_code: int | None = None
        self._killed: Literal["timeout", "memory"] | None = None
        self._began_s: float | None = None
        self._ended_s: float | None = None
        self._until_s = begun_s + (limits.timeout_ms + limits.grace_ms) / 1_000
        self._deadline_s = self._until_s
        self._sample_s: float | None = None
        self._dying = False
        self._poll = select.poll()
        self._open = {started.stdout, started.stderr, started.status, started.pidfd}

    def watch(self) -> Outcome:
        """Let the script run and end.

        Raises `SandboxFailed("exec.run")` when its processes do not die, and what `before` raises.
        On any exception, an interrupt too, everything is killed before it goes on.
        """
        for fd in self._open:
            self._poll.register(fd, select.POLLIN)
        try:
            self._drain()
        except BaseException:
            self.kill()
            self._drain_quietly()
            raise
        finally:
            self._close()
        return self._outcome()

    def kill(self) -> None:
        """Kill the sandbox's init, and with it all of the run; before it is known, bwrap.

        Killing bwrap instead would return while the others still write (spec `sandbox` §8).
        """
        self._expect_death()
        target = self._run.pidfd if self._init is None else self._init
        try:
            signal.pidfd_send_signal(target, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _expect_death(self) -> None:
        if not self._dying:
            self._dying = True
            self._spare.clear()
            self._sample_s = None
            self._deadline_s = time.monotonic() + DEATH_MS / 1_000

    def _drain(self) -> None:
        while self._open:
            now = time.monotonic()
            if now >= self._deadline_s:
                self._overdue()
            elif self._sample_s is not None and now >= self._sample_s:
                self._sample(now)
            until = self._deadline_s if self._sample_s is None else self._sample_s
            wait_ms = (min(until, self._deadline_s) - time.monotonic()) * 1_000
            ready = self._poll.poll(0 if self._spare else max(0.0, wait_ms))
            for fd, _ in ready:
                self._take(fd)
            if not ready and self._spare:
                self._spare.pop()()

    def _drain_quietly(self) -> None:
        """After an exception the first one counts, not what the clean-up runs into."""
        try:
            self._drain()
        except Exception:
            return

    def _overdue(self) -> None:
        if self._dying:
            raise SandboxFailed("exec.run", f"process {self._run.pid} does not die when killed")
        self._killed = "timeout"
        self.kill()

    def _take(self, fd: int) -> None:
        run = self._run
        if fd in (run.pidfd, self._init):
            self._forget(fd)
            return
        chunk = os.read(fd, _CHUNK_BYTES)
        if not chunk:
            self._forget(fd)
        elif fd == run.stdout:
            self._out.add(chunk)
        elif fd == run.stderr:
            self._err.add(chunk)
        else:
            *lines, self._status = (self._status + chunk).split(b"\n")
            for line in lines:
                self._document(line)

    def _forget(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._open.discard(fd)

    def _document(self, line: bytes) -> None:
        # Whoever answers in JSON has it loaded; others pay 1 ms.
        import json

        document = json.loads(line)
        if "child-pid" in document:
            self._release(int(document["child-pid"]))
        elif "exit-code" in document:
            self._exit_code = int(document["exit-code"])
            self._ended_s = time.monotonic()
            # Not only waited for: that everything dies with the main process rests on the reaper.
            self.kill()

    def _release(self, pid: int) -> None:
        """Cap the sandbox's init while it waits, then let it go on and start the clock."""
        self._init, self.init_pid = os.pidfd_open(pid), pid
        self._poll.register(self._init, select.POLLIN)
        self._open.add(self._init)
        if self._dying:
            self.kill()
            return
        self._before(pid)
        now = self._began_s = time.monotonic()
        self._deadline_s = min(self._deadline_s, now + self._limits.timeout_ms / 1_000)
        if self._run.sampled:
            self._sample_s = now + SAMPLE_MS / 1_000
        try:
            os.write(self._run.block, b"1")
        except BrokenPipeError:
            return

    def _sample(self, now: float) -> None:
        self._sample_s = now + SAMPLE_MS / 1_000
        if resident_bytes(self.init_pid) > self._limits.run_rss_bytes:
            self._killed = "memory"
            self.kill()

    def _close(self) -> None:
        if self._init is not None:
            os.close(self._init)

    def _outcome(self) -> Outcome:
        ended_s = self._ended_s if self._ended_s is not None else time.monotonic()
        if self._killed is None and self._exit_code in (None, _KILLED):
            # This process was stopped meanwhile, and the spawner kept the time instead.
            self._killed = "timeout" if ended_s >= self._until_s + LATE_S else None
        return Outcome(
            self._exit_code,
            self._killed,
            bytes(self._out.data),
            bytes(self._err.data),
            self._out.cut_bytes,
            self._err.cut_bytes,
            self._began_s,
            ended_s,
            self.init_pid,
        )
