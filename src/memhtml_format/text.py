"""White space, numbers and entity names as the format counts them (spec `format` §4.3, §10).

The sets are named here once because `str.strip()` and `\\s` know other characters.
"""

from __future__ import annotations

import re

ASCII_SPACE = " \t\n\f\r"
"""What the content hash, the claim and the title collapse."""

WIDE_SPACE = (
    ASCII_SPACE + "\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What trimming takes off, and what the frame key collapses."""

_ASCII_RUN = re.compile(f"[{ASCII_SPACE}]+")
_WIDE_RUN = re.compile(f"[{WIDE_SPACE}]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
_SURROGATE = re.compile("[\ud800-\udfff]")


def words(text: str) -> frozenset[str]:
    """The words of a table written as text."""
    return frozenset(text.split())


def collapse_ascii(text: str) -> str:
    """Every run of ASCII white space made one space; the ends are kept."""
    return _ASCII_RUN.sub(" ", text)


def collapse_wide(text: str) -> str:
    """Every run of the wide set made one space; the ends are kept."""
    return _WIDE_RUN.sub(" ", text)


def trim_ascii(text: str) -> str:
    """`text` without ASCII white space at both ends."""
    return text.strip(ASCII_SPACE)


def trim(text: str) -> str:
    """`text` without white space of the wide set at both ends (no-break spaces included)."""
    return text.strip(WIDE_SPACE)


def is_blank(text: str) -> bool:
    """Whether nothing but white space of the wide set is there."""
    return not text.strip(WIDE_SPACE)


def number(text: str) -> float | None:
    """The finite decimal number that `text` spells after trimming, else None."""
    bare = trim(text)
    if len(bare) > _LONGEST_NUMBER or _NUMBER.fullmatch(bare) is None:
        return None
    value = float(bare)
    return value if abs(value) != float("inf") else None


def two_decimals(value: float) -> str:
    """`value` ≥ 0 with two decimals, exact binary ties rounded up (spec `format` §3.2)."""
    numerator, denominator = value.as_integer_ratio()
    hundredths = (numerator * 200 + denominator) // (2 * denominator)
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def scrub(text: str) -> str:
    """`text` with lone surrogates, which no file can hold, made U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def split_entity(reference: str) -> tuple[str, str] | None:
    """Type and name of `type:name`, cut at the first colon; None when either half is empty."""
    kind, colon, name = reference.partition(":")
    return (kind, name) if colon and kind and name else None


def normal_name(name: str) -> str:
    """An entity half for comparison: NFC, lower case, single spaces, trimmed."""
    from unicodedata import normalize

    return trim(collapse_wide(normalize("NFC", name).lower()))


def normal_entity(reference: str) -> str:
    """The normalised reference (§4.3); without a separator the whole is normalised."""
    bare = trim(reference)
    halves = split_entity(bare)
    if halves is None:
        return normal_name(bare)
    return f"{normal_name(halves[0])}:{normal_name(halves[1])}"


def well_formed_entity(reference: str) -> bool:
    """Whether the `label` operation accepts the value: it splits and is its own normal form."""
    return split_entity(reference) is not None and normal_entity(reference) == reference
