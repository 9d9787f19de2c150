"""The trail of `--drop-refused`: one JSON line an operation, best effort, never pruned."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memhtml import log as report
from memhtml.session.log import sessions_folder

if TYPE_CHECKING:
    from memhtml.bar.drop import Dropped


def append_trail(root: str, session_id: str, dropped: Sequence[Dropped]) -> None:
    """Append to `<id>.dropped.jsonl` (spec `sessions` §9.4); a failure is a warning."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    at = f"{stamp}.{int(now * 1000) % 1000:03d}Z"
    lines = [
        json.dumps(
            {"at": at, "kind": item.kind, "path": item.path, "reasons": list(item.reasons)},
            ensure_ascii=False,
        )
        for item in dropped
    ]
    path = os.path.join(sessions_folder(root), f"{session_id}.dropped.jsonl")
    try:
        with open(path, "ab") as file:
            file.write(("\n".join(lines) + "\n").encode())
    except OSError as error:
        report.warn(f"the trail of dropped operations was not written: {error.strerror}")
