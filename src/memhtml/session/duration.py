"""Durations with a unit, as `session prune --older-than` takes them (spec `sessions` §12)."""

from __future__ import annotations

import re

UNIT_MS = {
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "seconds": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "minutes": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "hours": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "days": 86_400_000,
    "w": 604_800_000,
    "week": 604_800_000,
    "weeks": 604_800_000,
}
SHAPE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})[ \t]*([a-z]+)", re.ASCII)


LONG = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)[ \t]*([a-z]+)", re.ASCII)


def too_long(text: str) -> bool:
    """Whether a text that is no duration would be one with fewer digits."""
    match = LONG.fullmatch(text.strip().lower())
    return match is not None and match[2] in UNIT_MS


def duration_ms(text: str) -> int | None:
    """Whole milliseconds of `7d`, `1.5 hours`, `2 weeks`; None when it is no duration."""
    match = SHAPE.fullmatch(text.strip().lower())
    if match is None or match[2] not in UNIT_MS:
        return None
    return round(float(match[1]) * UNIT_MS[match[2]])
