"""What failures say to people: no raw text of Python, and enough to act on."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.support.cli import here

from memhtml import policy
from memhtml.errors import StorageError
from memhtml.execute.mount import storage_errors
from memhtml.replay.run import SHOWN_LINES, as_text
from memhtml_format.jsonl import BadLine, decode_lines
from memhtml_sandbox.cache import _as_seed_failure
from memhtml_sandbox.errors import NodeMissing, SandboxFailed


def test_a_folder_that_is_no_fixture_is_told_without_an_error_number(tmp_path: Path) -> None:
    ran = here("replay", str(tmp_path))
    error = str(ran.envelope["error"])
    assert "replay.read" in error
    assert error.endswith("no fixture: fixture.json: No such file or directory")


def test_a_policy_that_is_no_json_names_line_and_column() -> None:
    with pytest.raises(StorageError, match="line 2 column 14"):
        policy.decode(b'{\n  "v1Doors": ]\n}')


@pytest.mark.parametrize(
    ("age", "part"), [("9999999999999999999d", "too large"), ("7 cats", "a number and a unit")]
)
def test_an_age_that_cannot_be_read_says_why(age: str, part: str) -> None:
    ran = here("session", "prune", f"--older-than={age}")
    assert (ran.code, part in str(ran.envelope["error"])) == ("ERR_INVALID_FLAG", True)
    assert ran.suggestions[0] == "memhtml session prune --older-than 7d"


def test_a_number_of_too_many_digits_is_told_as_one() -> None:
    with pytest.raises(BadLine, match="line 1: a number has too many digits"):
        decode_lines(f'{{"op":"write","title":"a","type":"semantic","importance":{"9" * 6000}}}')


@pytest.mark.parametrize(
    ("failure", "part"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/c"), "give it to this user"),
        (OSError(errno.EROFS, "Read-only file system", "/c"), "Read-only file system"),
    ],
)
def test_a_cache_that_cannot_be_written_names_a_way_out(failure: OSError, part: str) -> None:
    with pytest.raises(SandboxFailed) as caught, _as_seed_failure("/c"):
        raise failure
    for each in (part, "MEMHTML_SANDBOX_CACHE"):
        assert each in str(caught.value)
    for raw in ("[Errno", "remove it"):
        assert raw not in str(caught.value)


def test_a_missing_node_suggests_bash() -> None:
    with pytest.raises(StorageError) as caught, storage_errors():
        raise NodeMissing("there is no node")
    assert caught.value.suggestions == ("memhtml session exec --id <id> --lang bash <<'SH'",)


def changed(expected: object, got: object) -> str:
    """The text on one differing field."""
    item = {"field": "stdout", "expected": expected, "got": got}
    fixture = {"name": "a", "dir": "d", "state": "failed", "differences": [item]}
    return as_text({"fixtures": [fixture]})


def test_a_changed_text_is_compared_by_its_lines() -> None:
    text = changed("one\ntwo\n", "one\nthree\n")
    for part in ("     one\n", "    -two\n", "    +three"):
        assert part in text
    assert "no newline" in changed("one\n", "one")


def test_a_changed_value_is_compared_as_json_and_a_long_one_is_cut() -> None:
    assert '    -  "a": 1\n' in changed({"a": 1}, {"a": 2})
    lines = changed(list(range(500)), []).splitlines()
    assert len(lines) == SHOWN_LINES + 3
    assert lines[-1].endswith("more lines")
