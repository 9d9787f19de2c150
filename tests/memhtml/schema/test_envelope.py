"""The published shapes of answers (spec `cli` §1, `sessions`, `harvest` §5)."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support import envelopes
from tests.support.envelopes import ANSWERS, FAILURE
from tests.support.envelopes_search import HITS, NO_HITS, PACK

from memhtml.cli.envelope import plain
from memhtml.errors import USAGE_CODES
from memhtml.schema.envelope import (
    ERROR_CODES,
    PAYLOADS,
    WrongOrder,
    json_schemas,
    validate_envelope,
)

SHARED = Path(__file__).parents[4] / "shared"


def objects(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The place of every JSON object below `value`."""
    if isinstance(value, dict):
        yield where
        for key, inner in value.items():
            yield from objects(inner, (*where, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from objects(inner, (*where, place))


def at(value: Any, where: tuple[str | int, ...]) -> Any:
    """What lies at a place."""
    for step in where:
        value = value[step]
    return value


@pytest.mark.parametrize("name", ANSWERS)
def test_example_answer_validates(name: str) -> None:
    payload = validate_envelope(ANSWERS[name])
    dumped = payload.model_dump(by_alias=True, exclude_unset=True)
    assert json.dumps(plain(dumped, dense=False)) == json.dumps(
        plain(ANSWERS[name]["data"], dense=False)
    )


def test_failure_validates() -> None:
    assert validate_envelope(FAILURE).model_dump(by_alias=True) == FAILURE


def test_every_response_type_has_an_example() -> None:
    assert {answer["type"] for answer in ANSWERS.values()} == set(PAYLOADS)


def is_open(name: str, where: tuple[str | int, ...]) -> bool:
    """Whether any value may stand there: what a replay expected and got."""
    return name == "replay" and {"expected", "got"}.intersection(where) != set()


@pytest.mark.parametrize("name", ANSWERS)
def test_unknown_missing_and_misplaced_keys_are_refused_everywhere(name: str) -> None:
    answer = ANSWERS[name]
    for where in objects(answer):
        if is_open(name, where):
            continue
        more = copy.deepcopy(answer)
        at(more, where)["extra"] = 1
        with pytest.raises(ValidationError):
            validate_envelope(more)
        swapped = copy.deepcopy(answer)
        target = at(swapped, where)
        keys = list(target)
        if len(keys) > 1:
            target[keys[0]] = target.pop(keys[0])
            with pytest.raises(WrongOrder):
                validate_envelope(swapped)


OPTIONAL = {"values", "default", "repeatable", "required"}


@pytest.mark.parametrize("name", ANSWERS)
def test_missing_key_is_refused(name: str) -> None:
    answer = ANSWERS[name]
    for where in objects(answer):
        for key in at(answer, where):
            if is_open(name, where) or key in OPTIONAL:
                continue
            less = copy.deepcopy(answer)
            del at(less, where)[key]
            with pytest.raises((ValidationError, KeyError)):
                validate_envelope(less)


@pytest.mark.parametrize(
    ("answer", "where", "value"),
    [
        (envelopes.STARTED, ("data", "ops"), 1),
        (envelopes.STARTED, ("data", "baseSha"), "4F" * 20),
        (envelopes.STARTED, ("data", "baseSha"), "4f" * 20 + "\n"),
        (envelopes.STARTED, ("data", "id"), "-s1"),
        (envelopes.STARTED, ("data", "ref"), "main"),
        (envelopes.STARTED, ("data", "head", "loadMs"), 1.5),
        (envelopes.STARTED, ("data", "head", "records"), True),
        (envelopes.STARTED, ("data", "head", "source"), "cache"),
        (envelopes.EXEC, ("data", "exitCode"), 256),
        (envelopes.EXEC, ("data", "timeoutMs"), 0),
        (envelopes.EXEC, ("data", "ops"), 2),
        (envelopes.EXEC, ("data", "appended"), 3),
        (envelopes.EXEC, ("data", "rejected"), [{"path": "a", "reason": "no code"}]),
        (envelopes.EXEC, ("data", "server", "used"), True),
        (envelopes.EXEC, ("data", "server", "reason"), None),
        (envelopes.APPENDED, ("data", "vector", "used"), True),
        (envelopes.APPENDED, ("data", "paths"), ["/a.html"]),
        (envelopes.COMMITTED, ("data", "kind"), "merged"),
        (envelopes.COMMITTED, ("data", "kind"), "refused"),
        (envelopes.REFUSED, ("data", "snapshot"), envelopes.COMMITTED["data"]["snapshot"]),
        (envelopes.REFUSED, ("data", "violations", 0, "reasons"), []),
        (envelopes.REBASED, ("data", "moved"), False),
        (envelopes.PRUNED, ("data", "cutoff"), "2026-10-11T05:51:45Z"),
        (envelopes.MANIFEST, ("data", "globalFlags", 0, "default"), None),
        (envelopes.MANIFEST, ("data", "globalFlags", 0, "type"), "float"),
        (envelopes.MANIFEST, ("data", "commands", 0, "supportsJson"), False),
        (envelopes.INIT, ("apiVersion",), 1),
        (HITS, ("data", "degraded"), False),
        (HITS, ("data", "scopeEmpty"), True),
        (HITS, ("data", "hits", 0, "score"), 0.0),
        (HITS, ("data", "hits", 0, "snippet"), "a" * 701),
        (NO_HITS, ("data", "scopeEmpty"), False),
        (PACK, ("data", "spentChars"), 29),
        (PACK, ("data", "truncated"), False),
        (PACK, ("data", "memories", "spentChars"), 27),
        (PACK, ("data", "memories", "truncated"), False),
        (FAILURE, ("code",), "ERR_MADE_UP"),
        (FAILURE, ("suggestions",), None),
    ],
)
def test_wrong_value_is_refused(answer: dict[str, Any], where: tuple[str, ...], value: Any) -> None:
    wrong = copy.deepcopy(answer)
    at(wrong, where[:-1])[where[-1]] = value
    with pytest.raises(ValidationError):
        validate_envelope(wrong)


def test_response_type_without_a_model_is_told_apart() -> None:
    with pytest.raises(KeyError):
        validate_envelope({"apiVersion": "1", "type": "hook.output", "data": {}})


def test_harvested_destination_stands_on_archives_and_moves_alone() -> None:
    moved = copy.deepcopy(envelopes.EXEC)
    moved["data"]["harvested"] = [{"kind": "move", "path": "a.html", "to": "b.html"}]
    validate_envelope(moved)
    for bad in ({"kind": "move", "path": "a.html"}, {"kind": "put", "path": "a", "to": "b"}):
        moved["data"]["harvested"] = [bad]
        with pytest.raises(ValidationError):
            validate_envelope(moved)


def test_error_codes_are_unique_and_hold_every_usage_code() -> None:
    assert len(set(ERROR_CODES)) == len(ERROR_CODES)
    assert set(ERROR_CODES) >= USAGE_CODES


def test_json_schemas_are_closed_and_name_every_response_type() -> None:
    schemas = json_schemas()
    assert set(schemas) == {
        "store-policy",
        "session-log",
        "operation",
        "violation",
        "failure",
        *PAYLOADS,
    }
    text = json.dumps(schemas)
    assert text == json.dumps(json_schemas())
    assert '"additionalProperties": true' not in text
    assert "baseSha" in text
    assert "base_sha" not in text


def shared_text(*names: str) -> str:
    """A page of the shared folder beside the repository."""
    page = SHARED.joinpath(*names)
    if not page.exists():
        pytest.skip("shared cases are not here")
    return page.read_text(encoding="utf-8")


def test_answers_in_the_guide_validate() -> None:
    text = shared_text("seeds", "000_8271b5bb909bbdd0.txt")
    blocks = re.findall(r"^```json\n(\{\n.*?^\})\n```$", text, re.DOTALL | re.MULTILINE)
    answers = [json.loads(block) for block in blocks]
    assert [answer["type"] for answer in answers] == [
        "session.started",
        "session.appended",
        "session.exec.report",
        "session.status",
        "session.committed",
        "session.pruned",
    ]
    for answer in answers:
        validate_envelope(answer)


LATER = {"serve.exit", "head.served", "note.saved", "note.body", "note.list", "hook.output"}
"""Types of a later tier; so are those that begin with one of these words."""
LATER_GROUPS = ("integrations.", "trace.", "migrate.", "curate.")


def test_answers_in_the_command_line_contract_validate() -> None:
    text = shared_text("spec", "cli.md").replace("sha256:…", "sha256:" + "a0" * 32)
    lines = text.splitlines()
    answers = [json.loads(line) for line in lines if line.startswith('{"apiVersion"')]
    met = set()
    for answer in answers:
        name = answer["type"]
        if name in LATER or name.startswith(LATER_GROUPS):
            continue
        met.add(name)
        if name == "doctor.report":  # Ours lists replaced records that are live as well.
            data = list(answer["data"].items())
            place = 1 + [key for key, _value in data].index("unparseable")
            answer["data"] = dict([*data[:place], ("supersededLive", []), *data[place:]])
        validate_envelope(answer)
    sessions = {name for name in PAYLOADS if name.startswith("session.")}
    assert met == PAYLOADS.keys() - sessions
