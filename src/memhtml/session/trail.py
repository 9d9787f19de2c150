"""The trail of `--drop-refused`: one JSON line an operation, best effort, never pruned."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from memhtml import log as report
from memhtml.session.log import sessions_folder
from memhtml_format.instants import millisecond

if TYPE_CHECKING:
    from memhtml.bar.drop import Dropped


def append_trail(root: str, session_id: str, dropped: Sequence[Dropped]) -> None:
    """Append to `<id>.dropped.jsonl` (spec `sessions` §9.4); a failure is a warning."""
    at = millisecond(time.time())
    lines = [
        json.dumps(
            {"at": at, "kind": item.kind, "path": item.path, "reasons": list(item.reasons)},
            ensure_ascii=False,
        )
        for item in dropped
    ]
    path = os.path.join(sessions_folder(root), f"{session_id}.dropped.jsonl")
    try:
        with open(path, "a+b") as file:
            # A line that a full disk cut short ends here, not in the middle of the next one.
            torn = file.seek(0, os.SEEK_END) > 0 and _last_byte(file) != b"\n"
            file.write(("\n" * torn + "\n".join(lines) + "\n").encode(errors="backslashreplace"))
    except OSError as error:
        report.warn(f"the trail of dropped operations was not written: {error.strerror}")


def _last_byte(file: IO[bytes]) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)
