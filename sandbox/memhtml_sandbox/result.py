"""What a finished run hands to the caller."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from memhtml_sandbox.supervise import Outcome

if TYPE_CHECKING:
    from memhtml_sandbox.changes import ChangeSet

TIMEOUT_EXIT = 124
KILLED_EXIT = 137
MEMORY_NOTE = b"memhtml: killed: memory limit\n"


class Run:
    """A run whose every process is dead (spec `sandbox` §11).

    `stdout` and `stderr` end with a line about what was cut, if anything was (spec `harvest` §2.2);
    `stdout_cut` and `stderr_cut` are those bytes. `started_ms` is the time from the call to the
    script's start, `duration_ms` the script alone.
    """

    __slots__ = (
        "_changes",
        "_deadline_s",
        "_read",
        "duration_ms",
        "exit_code",
        "killed",
        "started_ms",
        "stderr",
        "stderr_cut",
        "stdout",
        "stdout_cut",
        "timed_out",
    )

    def __init__(
        self,
        outcome: Outcome,
        begun_s: float,
        deadline_s: float,
        read: Callable[[], ChangeSet] | None,
    ) -> None:
        began_s = outcome.ended_s if outcome.began_s is None else outcome.began_s
        self.killed: Literal["timeout", "memory"] | None = outcome.killed
        self.timed_out = outcome.killed == "timeout"
        self.exit_code = _exit_code(outcome)
        self.stdout = _closed(outcome.stdout, outcome.stdout_cut)
        self.stderr = _closed(outcome.stderr, outcome.stderr_cut)
        if outcome.killed == "memory":
            self.stderr = _line(self.stderr, MEMORY_NOTE)
        self.stdout_cut = outcome.stdout_cut
        self.stderr_cut = outcome.stderr_cut
        self.started_ms = (began_s - begun_s) * 1_000
        self.duration_ms = (outcome.ended_s - began_s) * 1_000
        self._deadline_s = deadline_s
        self._read = read
        self._changes: ChangeSet | None = None

    def changes(self) -> ChangeSet:
        """What the script changed; the same object each time, empty for a read-only run.

        Only inside the `with` block: afterwards it raises `ValueError` unless it was read before.
        Raises `SandboxFailed("exec.harvest")`. When the whole run is over its time by then, the
        result is empty and the run counts as timed out (spec `sandbox` §7, "whole run").
        """
        if self._changes is None:
            self._changes = self._fresh()
        return self._changes

    def _fresh(self) -> ChangeSet:
        from memhtml_sandbox.changes import ChangeSet

        if self._read is None:
            return ChangeSet({}, frozenset())
        found = self._read()
        if not self.overdue:
            return found
        found.close()
        self._count_as_timed_out()
        return ChangeSet({}, frozenset())

    @property
    def overdue(self) -> bool:
        """Whether the whole run, reading and judging what it changed included, is over its time."""
        return time.monotonic() > self._deadline_s

    def give_up(self) -> None:
        """Count the run as timed out and its change set as empty (spec `harvest` §2.2)."""
        from memhtml_sandbox.changes import ChangeSet

        if self._changes is not None:
            self._changes.close()
        self._changes = ChangeSet({}, frozenset())
        self._count_as_timed_out()

    def _count_as_timed_out(self) -> None:
        self.timed_out, self.killed, self.exit_code = True, "timeout", TIMEOUT_EXIT

    def close(self) -> None:
        """End of the `with` block: from here on nothing can be read that was not read before."""
        if self._read is not None:
            self._read = _too_late
        if self._changes is not None:
            # The tree lives as long as a descriptor of it.
            self._changes.close()


def _too_late() -> ChangeSet:
    raise ValueError("the change set must be read inside the with block")


def _exit_code(outcome: Outcome) -> int:
    if outcome.killed == "timeout":
        return TIMEOUT_EXIT
    if outcome.killed == "memory":
        return KILLED_EXIT
    return KILLED_EXIT if outcome.exit_code is None else outcome.exit_code


def _closed(data: bytes, cut_bytes: int) -> bytes:
    return _line(data, b"memhtml: %d bytes cut\n" % cut_bytes) if cut_bytes else data


def _line(data: bytes, line: bytes) -> bytes:
    return data + line if not data or data.endswith(b"\n") else data + b"\n" + line
