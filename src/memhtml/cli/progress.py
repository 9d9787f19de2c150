"""A bar on standard error for work that takes minutes; nothing when nobody watches."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_CELLS = 30
_EVERY_S = 0.1


class Bar:
    """Shows `done` of `total` after a label. Used in a `with` block, which clears the line."""

    __slots__ = ("_label", "_last_s", "_shown")

    def __init__(self, label: str) -> None:
        self._label = label
        self._shown = False
        self._last_s = 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            _say("\r\x1b[K")

    def __call__(self, done: int, total: int) -> None:
        """Draw it, a few times a second."""
        now_s = time.monotonic()
        if total <= 0 or (now_s - self._last_s < _EVERY_S and done < total) or not _is_terminal():
            return
        self._last_s, self._shown = now_s, True
        full = _CELLS * done // total
        cells = "#" * full + "." * (_CELLS - full)
        _say(f"\r{self._label} [{cells}] {done}/{total}\x1b[K")


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False  # Closed, or taken away.


def _say(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # As for log lines: a closed standard error changes no answer.
