"""Names close to what was typed (spec `cli` §3.4)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 3
# A name is at most 20 characters, so nothing this long is near one.
LONGEST_TYPED = 100


def matches(typed: str, names: Sequence[str]) -> list[str]:
    """Up to three names by distance on lower-cased text, ties in the order given."""
    if len(typed) > LONGEST_TYPED:
        return []
    limit = max(2, (len(typed) + 1) // 2)
    scored = [(distance(typed.lower(), name.lower()), name) for name in names]
    near = sorted((pair for pair in scored if pair[0] <= limit), key=lambda pair: pair[0])
    return [name for _, name in near[:MOST]]


def distance(left: str, right: str) -> int:
    """The Levenshtein distance: single insertions, deletions and replacements."""
    row = list(range(len(right) + 1))
    for line, a in enumerate(left, 1):
        corner, row[0] = row[0], line
        for column, b in enumerate(right, 1):
            corner, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, corner + (a != b)),
            )
    return row[len(right)]
