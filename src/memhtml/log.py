"""Log lines on standard error, `[hh:mm:ss.mmm] LEVEL: text` (spec `cli` §1). Never standard output.

Not the `logging` module: importing it costs 8 ms and every command would pay.
"""

from __future__ import annotations

import sys
import time


def _line(level: str, text: str) -> None:
    now = time.time()
    stamp = time.strftime("%H:%M:%S", time.gmtime(now))
    flat = text.replace("\r", " ").replace("\n", " ")
    try:
        sys.stderr.write(f"[{stamp}.{int(now * 1000) % 1000:03d}] {level}: {flat}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # A closed standard error must never change an answer.


def info(text: str) -> None:
    """Progress that a person may want to see."""
    _line("INFO", text)


def warn(text: str) -> None:
    """Something was skipped or repaired; the call went on."""
    _line("WARN", text)


def error(text: str) -> None:
    """Detail behind a failure envelope."""
    _line("ERROR", text)
