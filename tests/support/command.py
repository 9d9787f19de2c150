"""Run the command as a user would: a process, its envelope, its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
ROOTS = tuple(str(PROJECT / part) for part in ("src", "sandbox", "harvest"))


class Said(NamedTuple):
    """What one call gave back."""

    status: int
    envelope: dict[str, Any]
    stdout: str
    stderr: str

    @property
    def data(self) -> dict[str, Any]:
        """The payload of a success."""
        found: dict[str, Any] = self.envelope["data"]
        return found


def memhtml(*words: str, text: str | bytes = "", env: dict[str, str] | None = None) -> Said:
    """Run `memhtml …` with `text` on standard input; standard output is one JSON object."""
    given = text.encode() if isinstance(text, str) else text
    variables = {**os.environ, **(env or {})}
    variables["PYTHONPATH"] = os.pathsep.join(ROOTS)
    done = subprocess.run(
        [sys.executable, "-m", "memhtml", *words], input=given, capture_output=True, env=variables
    )
    out = done.stdout.decode()
    return Said(done.returncode, json.loads(out) if out else {}, out, done.stderr.decode())
