"""The script of one call and its bounds (spec `harvest` §1)."""

from __future__ import annotations

from typing import Literal, NamedTuple

MAX_REQUEST_BYTES = 1_048_576
DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 600_000


class Script(NamedTuple):
    """The program text, byte for byte, its language and its wall-clock bound."""

    text: str
    lang: Literal["bash", "js"] = "bash"
    timeout_ms: int = DEFAULT_TIMEOUT_MS
