"""A word as somebody typed it: what it says, and how a sentence shows it."""

from __future__ import annotations

LONGEST_SHOWN = 80


def shortened(text: str) -> str:
    """A typed word at a length that a sentence can carry."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def word(text: str) -> str:
    """A typed word in quotes, shortened."""
    return repr(shortened(text))


def is_share(text: str) -> bool:
    """Whether a text is a decimal from 0 to 1."""
    from memhtml_format.text import number

    value = number(text)
    return value is not None and 0 <= value <= 1
