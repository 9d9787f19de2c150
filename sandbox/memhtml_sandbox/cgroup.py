"""A cgroup for one run, where the host lends a writable v2 subtree. A bonus, never required.

With it the kernel itself counts the memory and the processes of the run (spec `sandbox` §7).
"""

from __future__ import annotations

import contextlib
import itertools
import os

from memhtml_sandbox.limits import Limits

MOUNT = "/sys/fs/cgroup"
NEEDED = frozenset((b"memory", b"pids"))

# bwrap itself and its two helpers stand in the group as well.
_OWN_PROCESSES = 8

_numbers = itertools.count(1)


def find(mount: str = MOUNT, membership: str = "/proc/self/cgroup") -> str | None:
    """A folder where this process may make groups with memory and process caps, or None.

    Looked for at the own group and its parent: a group that has processes can lend nothing.
    """
    try:
        path = own_group(mount, membership)
        if path is None:
            return None
        for candidate in (path, path.rpartition("/")[0]):
            if candidate.startswith(mount) and _lends(candidate):
                return candidate
    except OSError:
        return None
    return None


def own_group(mount: str = MOUNT, membership: str = "/proc/self/cgroup") -> str | None:
    """The folder of this process's own v2 group, or None; raises `OSError`."""
    for line in _read(membership).splitlines():
        if line.startswith(b"0::"):
            return f"{mount}{os.fsdecode(line[3:])}".rstrip("/")
    return None


def _lends(path: str) -> bool:
    offered = set(_read(f"{path}/cgroup.subtree_control").split())
    return offered >= NEEDED and all(
        os.access(name, os.W_OK) for name in (path, f"{path}/cgroup.procs")
    )


def create(parent: str, limits: Limits) -> str | None:
    """A new group with the caps of a run, or None when the host has changed its mind."""
    path = f"{parent}/memhtml-{os.getpid()}-{next(_numbers)}"
    try:
        os.mkdir(path)
    except OSError:
        return None
    try:
        _write(f"{path}/memory.max", limits.run_rss_bytes)
        with contextlib.suppress(FileNotFoundError):
            # Not there where the kernel does not count swap.
            _write(f"{path}/memory.swap.max", 0)
        _write(f"{path}/memory.oom.group", 1)
        _write(f"{path}/pids.max", limits.procs + _OWN_PROCESSES)
    except OSError:
        remove(path)
        return None
    return path


def ran_out_of_memory(path: str) -> bool:
    """Whether the kernel killed the group for its memory."""
    try:
        lines = _read(f"{path}/memory.events").splitlines()
    except OSError:
        return False
    return any(line.startswith(b"oom_kill ") and int(line.split()[1]) > 0 for line in lines)


def kill(path: str) -> None:
    """Kill whatever is left in the group."""
    try:
        _write(f"{path}/cgroup.kill", 1)
    except OSError:
        return


def remove(path: str) -> None:
    """Take the group away; one that still has processes stays."""
    try:
        os.rmdir(path)
    except OSError:
        return


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


def _write(path: str, value: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % value)
    finally:
        os.close(fd)
