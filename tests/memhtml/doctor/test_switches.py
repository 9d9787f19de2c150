"""Whether the settings files of a store can be understood."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memhtml.doctor.switches import hooks_state, policy_state

FINE = {"ok": True, "error": None}


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A folder with room for the settings."""
    (tmp_path / ".memhtml").mkdir()
    return str(tmp_path)


def hooks(root: str, value: Any) -> dict[str, Any]:
    """What is said about this value in the file."""
    Path(root, ".memhtml/hooks.json").write_text(json.dumps(value))
    return hooks_state(root)


def test_store_without_settings_is_fine(root: str) -> None:
    assert hooks_state(root) == policy_state(root) == FINE


@pytest.mark.parametrize(
    "value",
    [
        {},
        {
            "brief": {"enabled": True, "budgetChars": 2400},
            "hold": {"enabled": True, "refusals": 3},
            "guard": {"enabled": False},
            "checkpointNudge": {"enabled": True, "minutes": 45},
            "taskReminder": {"minutes": 0},
            "warden": {},
        },
        {"somebodyElses": 7, "guard": {"note": "kept"}},
    ],
)
def test_switches_that_are_understood_are_fine(root: str, value: Any) -> None:
    assert hooks(root, value) == FINE


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "is no JSON object"),
        ({"guard": True}, "guard is no object"),
        ({"guard": {"enabled": "yes"}}, "guard.enabled is neither true nor false"),
        ({"guard": {"enabled": None}}, "guard.enabled is neither true nor false"),
        ({"warden": {"minutes": -1}}, "warden.minutes is no whole number of at least 0"),
        ({"warden": {"minutes": 1.5}}, "warden.minutes is no whole number of at least 0"),
        ({"hold": {"refusals": True}}, "hold.refusals is no whole number of at least 0"),
        ({"brief": {"budgetChars": "9"}}, "brief.budgetChars is no whole number of at least 0"),
    ],
)
def test_bad_switch_is_named(root: str, value: Any, said: str) -> None:
    assert hooks(root, value) == {"ok": False, "error": f".memhtml/hooks.json: {said}"}


@pytest.mark.parametrize("data", [b"{", b"\xff", b"", b"[" * 100_000, b'{"a":' + b"9" * 6000])
def test_switches_that_are_no_json_are_told_so(root: str, data: bytes) -> None:
    Path(root, ".memhtml/hooks.json").write_bytes(data)
    assert hooks_state(root) == {"ok": False, "error": ".memhtml/hooks.json: is no JSON"}


def test_switches_behind_a_link_or_a_pipe_are_not_read(root: str) -> None:
    file = Path(root, ".memhtml/hooks.json")
    file.symlink_to("/etc/passwd")
    assert hooks_state(root)["error"] == ".memhtml/hooks.json: is a link"
    file.unlink()
    os.mkfifo(file)
    assert hooks_state(root)["error"] == ".memhtml/hooks.json: is no regular file"


def test_bad_policy_is_named_with_its_key(root: str) -> None:
    Path(root, "memhtml.config.json").write_text('{"v1Doors": "ajar"}')
    state = policy_state(root)
    assert state["ok"] is False
    assert str(state["error"]).startswith("memhtml.config.json: v1Doors: expected one of")
