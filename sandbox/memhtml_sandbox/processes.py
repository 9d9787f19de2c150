"""Processes below another one, and the memory they hold, read from `/proc`."""

from __future__ import annotations

import os
import resource

_PAGE_BYTES = resource.getpagesize()


def resident_bytes(init_pid: int) -> int:
    """Resident memory of a process and all below it; what is gone by now counts 0."""
    return _PAGE_BYTES * sum(map(_resident_pages, family(init_pid)))


def family(init_pid: int) -> list[int]:
    """A process and all below it. Orphans of a sandbox hang below its init, so none is missed."""
    found = [init_pid]
    for pid in found:
        found += children(pid)
    return found


def children(pid: int) -> list[int]:
    """Children of every thread of a process; none when it is gone."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
        except FileNotFoundError:
            if os.path.exists(f"/proc/{pid}/task/{thread}"):
                # A kernel without that file.
                return _children_by_parent(pid)
        except OSError:
            continue
    return found


def _children_by_parent(parent: int) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            # The command's name stands in brackets and may hold anything.
            fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(name))
        except (OSError, IndexError):
            continue
    return found


def _resident_pages(pid: int) -> int:
    """A process whose first thread has ended shows nothing under its own name; others live on."""
    pages = _pages_at(f"/proc/{pid}/statm")
    if pages:
        return pages
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0
    # They share their memory, so the first one that shows it speaks for all.
    each = (_pages_at(f"/proc/{pid}/task/{thread}/statm") for thread in threads)
    return next(filter(None, each), 0)


def _pages_at(path: str) -> int:
    try:
        return int(_read(path).split()[1])
    except (OSError, IndexError):
        return 0


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)
