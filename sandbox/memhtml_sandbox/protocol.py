"""What the two sides of a launch say to each other: the job, and how it went.

Values only, light to import: the side that asks never needs `subprocess`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

# Machines that `seccomp` has a table for; that module is not worth importing for the question.
FILTERED_MACHINES = ("x86_64", "aarch64")

# Where a run's own mounts are, in the small root that bwrap starts from.
STAGE = "/stage"

# How long after the end of a run's whole time the spawner ends it, if nobody else has.
LATE_S = 1.0


class Job(NamedTuple):
    """Everything about one run that the launcher needs, as plain values that can be marshalled.

    `uid` and `gid` are those the run has on the host. `binds` holds a host path, a name below the
    stage and whether it is a folder; `lowers` the names of the layers among them. With `upper` the
    run has a writable tree.
    """

    uid: int
    gid: int
    upper_bytes: int
    upper_inodes: int
    scratch_bytes: int
    scratch_inodes: int
    binds: tuple[tuple[str, str, bool], ...]
    lowers: tuple[str, ...]
    upper: bool
    cgroup: str | None
    bwrap: str
    words: tuple[str, ...]
    command: tuple[str, ...]


class Forked(NamedTuple):
    """A bwrap that runs: its pid, a pidfd of it, and a descriptor of the upper if there is one."""

    pid: int
    pidfd: int
    upper: int | None


class StepFailed(Exception):
    """A step before bwrap was refused; `step` names it, `errno` is the system's number."""

    def __init__(self, step: str, errno: int) -> None:
        super().__init__(f"{step}: {os.strerror(errno)}")
        self.step = step
        self.errno = errno


def memory_file(name: str, data: bytes) -> int:
    """A descriptor with these bytes to read from its start, close-on-exec."""
    fd = os.memfd_create(name)
    offset = 0
    while offset < len(data):
        # `pwrite` leaves the position at 0, where the reader starts.
        offset += os.pwrite(fd, memoryview(data)[offset:], offset)
    return fd
