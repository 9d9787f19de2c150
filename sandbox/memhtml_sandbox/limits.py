"""The caps of one run, their defaults and their hard maxima, and their check.

Values only: who enforces which cap is in `launch` and `supervise` (spec `sandbox` §7).
"""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20
GIB = 1 << 30


class Limits(NamedTuple):
    """Caps of one run, in bytes, counts and milliseconds (spec `sandbox` §7 and §11)."""

    timeout_ms: int = 30_000
    grace_ms: int = 5_000
    upper_bytes: int = 64 * MIB
    upper_inodes: int = 20_000
    scratch_bytes: int = 64 * MIB
    scratch_inodes: int = 20_000
    file_bytes: int = 16 * MIB
    procs: int = 128
    data_bytes: int = 1 * GIB
    run_rss_bytes: int = 2 * GIB
    heap_mib: int = 512
    open_files: int = 1_024
    stdout_bytes: int = 1 * MIB
    stderr_bytes: int = 1 * MIB
    walk_entries: int = 20_000
    walk_depth: int = 64


# A cap that depends on another one is checked in `check`; memory of the run has the host's.
MAXIMA = Limits(
    timeout_ms=600_000,
    grace_ms=5_000,
    upper_bytes=1 * GIB,
    upper_inodes=200_000,
    scratch_bytes=1 * GIB,
    scratch_inodes=200_000,
    file_bytes=1 * GIB,
    procs=1_024,
    data_bytes=16 * GIB,
    run_rss_bytes=1 << 62,
    heap_mib=16 * 1_024,
    open_files=4_096,
    stdout_bytes=16 * MIB,
    stderr_bytes=16 * MIB,
    walk_entries=200_000,
    walk_depth=64,
)

DEFAULT = Limits()


def check(limits: Limits) -> Limits:
    """The same limits, or a `ValueError` naming the first one that is out of range.

    Each is a whole number from 1 to its hard maximum (spec `sandbox` §7). Nothing is clamped.
    """
    if limits is DEFAULT:
        return limits
    for name, value, maximum in zip(Limits._fields, limits, MAXIMA, strict=True):
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if value > maximum:
            raise ValueError(f"{name} must be at most {maximum}, not {value}")
    if limits.file_bytes > limits.upper_bytes:
        raise ValueError(f"file_bytes must be at most upper_bytes ({limits.upper_bytes})")
    if limits.heap_mib * MIB > limits.data_bytes:
        raise ValueError(f"heap_mib must fit into data_bytes ({limits.data_bytes} bytes)")
    return limits
