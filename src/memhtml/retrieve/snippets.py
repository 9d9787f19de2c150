"""The piece of text that stands for a hit (spec `retrieval` §12).

With a query vector the chunk nearest to it, else the first. One statement for all hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import _sqlite3 as sqlite3

LONGEST = 700


def snippets(conn: sqlite3.Connection, ordinals: Mapping[int, int]) -> dict[int, str]:
    """The snippet of each file, by id; `ordinals` says which chunk. No chunk, no entry.

    Raises sqlite3.Error.
    """
    listed = ",".join(f"[{number},{ordinal}]" for number, ordinal in ordinals.items())
    rows = conn.execute(
        # One character more than fits shows whether the text was cut.
        f"SELECT f.id, substr(c.text, 1, {LONGEST + 1}) FROM json_each(?) v"
        " CROSS JOIN files f ON f.id = json_extract(v.value, '$[0]')"
        " CROSS JOIN chunks c ON c.path = f.path AND c.ordinal = json_extract(v.value, '$[1]')",
        (f"[{listed}]",),
    )
    return {number: shortened(text) for number, text in rows}


def shortened(text: str) -> str:
    """At most 700 characters, the `…` of a cut included."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
