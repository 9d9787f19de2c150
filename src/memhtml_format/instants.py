"""The two spellings of an instant (spec `format` §3.4), and the stamps that programs write."""

from __future__ import annotations

import re
import time

_INSTANT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}):([0-9]{2}):([0-9]{2})Z)?")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_instant(text: str) -> bool:
    """Whether `text` is `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ` with every part in range."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1]:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 2 and day == 29 and not leap:
        return False
    return hour <= 23 and minute <= 59 and second <= 60


def second(at_s: float) -> str:
    """The whole-second UTC stamp of a Unix time in seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def millisecond(at_s: float) -> str:
    """The UTC stamp of a Unix time in seconds, milliseconds included; 1970 for an earlier time."""
    whole_ms = int(max(at_s, 0.0) * 1000)
    return f"{second(whole_ms // 1000)[:-1]}.{whole_ms % 1000:03d}Z"
