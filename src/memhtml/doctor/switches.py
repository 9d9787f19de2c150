"""Whether the two settings files of a store say what their readers understand (`cli` §11).

`memhtml.config.json` is judged by `policy`; of `.memhtml/hooks.json` (spec `servers` §5.7) only
what is wrong is said here, because its readers go on with their defaults.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from typing import Any

from memhtml import policy
from memhtml.errors import StorageError

HOOKS_FILE = ".memhtml/hooks.json"
MOST_BYTES = 1 << 20
NUMBERS: dict[str, tuple[str, ...]] = {
    "brief": ("budgetChars",),
    "hold": ("refusals",),
    "guard": (),
    "checkpointNudge": ("minutes",),
    "taskReminder": ("minutes",),
    "warden": ("minutes",),
}
"""Each switch and its settings that are whole numbers of at least 0; all have `enabled`."""


class _Bad(Exception):
    """The file does not say what it should; the text is for people."""


def policy_state(root: str) -> dict[str, Any]:
    """`{ok, error}` of the store policy."""
    try:
        policy.load(root)
    except StorageError as failure:
        return {"ok": False, "error": failure.detail}
    return {"ok": True, "error": None}


def hooks_state(root: str) -> dict[str, Any]:
    """`{ok, error}` of the hook switches; no file is fine, and so is a key that nobody reads."""
    try:
        wrong = next(_wrong(_parsed(os.path.join(root, HOOKS_FILE))), None)
    except _Bad as bad:
        wrong = str(bad)
    if wrong is None:
        return {"ok": True, "error": None}
    return {"ok": False, "error": f"{HOOKS_FILE}: {wrong}"}


def _parsed(path: str) -> object:
    """The value in the file, an empty object when there is none. Links are not followed."""
    try:
        # O_NONBLOCK: a pipe in its place must be refused, not waited for.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as failure:
        text = "is a link" if failure.errno == errno.ELOOP else failure.strerror
        raise _Bad(text) from failure
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _Bad("is no regular file")
    try:
        with open(file, "rb") as stream:
            return json.loads(stream.read(MOST_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as failure:
        raise _Bad("is no JSON") from failure


def _wrong(value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "is no JSON object"
        return
    for name, numbers in NUMBERS.items():
        switch = value.get(name, {})
        if not isinstance(switch, dict):
            yield f"{name} is no object"
            continue
        if not isinstance(switch.get("enabled", True), bool):
            yield f"{name}.enabled is neither true nor false"
        for number in numbers:
            given = switch.get(number, 0)
            if not isinstance(given, int) or isinstance(given, bool) or given < 0:
                yield f"{name}.{number} is no whole number of at least 0"
