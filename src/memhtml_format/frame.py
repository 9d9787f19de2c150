"""Frame keys: which slot a claim fills, and when two fillings agree.

Spec `format` §8 and `write-bar` §8. Both comparisons look at letters only.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memhtml_format.text import collapse_wide, normal_name, trim

# White space is collapsed before the match, so one blank separates words and nothing backtracks.
_FRAME = re.compile(r"(.*\b(?:of|is|in|to|by|as)\b) +(.+?)\.?", re.ASCII | re.DOTALL)
_FRAME_WORDS = 3
_VALUE_WORDS = 6


class Frame(NamedTuple):
    """The lower-cased frame of a claim and the value in it."""

    key: str
    value: str


def frame(claim: str) -> Frame | None:
    """The frame of a claim, or None when it has none or the value is long."""
    found = _FRAME.fullmatch(trim(collapse_wide(claim)))
    if found is None:
        return None
    key, value = found[1], found[2]
    if key.count(" ") + 1 < _FRAME_WORDS or value.count(" ") + 1 > _VALUE_WORDS:
        return None
    return Frame(key.lower(), value)


def values_agree(one: str, other: str) -> bool:
    """Whether two values (or two titles) say the same, compared by letters only."""
    return _comparable(one) == _comparable(other)


def _comparable(value: str) -> str:
    return trim(normal_name(value).rstrip(".!?"))
