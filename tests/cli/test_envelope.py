"""The text of the one object a call prints (spec `cli` §1)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cli import Ran, here

from memhtml.cli import envelope, main, registry
from memhtml.cli.call import Answer, Call
from memhtml.errors import MemhtmlError, StorageError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Any text, lone surrogates included.
    | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def test_the_default_text_is_indented_and_keeps_the_order_of_keys() -> None:
    text = envelope.success("a.type", {"z": "é—\u2028", "a": None, "list": [1, None], "none": {}})
    assert text.decode() == (
        '{\n  "apiVersion": "1",\n  "type": "a.type",\n  "data": {\n    "z": "é—\\u2028",\n'
        '    "a": null,\n    "list": [\n      1,\n      null\n    ],\n    "none": {}\n  }\n}\n'
    )


def test_dense_text_has_no_white_space_and_no_null_keys_at_any_depth() -> None:
    data = {
        "gone": None,
        "kept": [None, {"gone": None, "x": False}],
        "zero": 0,
        "text": "",
        "list": [],
        "object": {},
        "deep": {"deep": {"gone": None}},
        "é": ({"gone": None},),
    }
    assert envelope.success("t", data, dense=True).decode() == (
        '{"apiVersion":"1","type":"t","data":{"kept":[null,{"x":false}],"zero":0,"text":"",'
        '"list":[],"object":{},"deep":{"deep":{}},"é":[{}]}}\n'
    )


STEERING = "".join(map(chr, [*range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]))


@pytest.mark.parametrize("dense", [False, True])
def test_what_steers_a_terminal_is_escaped_and_stays_the_same_value(dense: bool) -> None:
    value = {f"k{STEERING}": [f"é—{STEERING}\u2027\u202f\u2065\u206a\xa0\x1b"]}
    text = envelope.success("t", value, dense=dense).decode()
    assert not set(STEERING) & set(text)
    assert json.loads(text)["data"] == value
    assert "\\u007f\\u0080" in text
    assert "\\u202e\\u2066" in text
    assert "é—" in text
    assert "\\u2069\u2027\u202f\u2065\u206a\xa0\\u001b" in text


def test_what_steers_a_terminal_is_escaped_in_a_failure_as_well() -> None:
    assert b'"error": "a\\u009bb"' in envelope.failure("ERR_GIT", "a\x9bb")


def test_a_failure_has_its_four_keys_in_order() -> None:
    value = json.loads(envelope.failure("ERR_GIT", "no", ["memhtml init"]))
    assert list(value.items()) == [
        ("apiVersion", "1"),
        ("error", "no"),
        ("code", "ERR_GIT"),
        ("suggestions", ["memhtml init"]),
    ]


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    data = envelope.success("t", {"a\ud800": "x\udfffy\U0001f600"}, dense=True)
    assert json.loads(data)["data"] == {"a\ufffd": "x\ufffdy\U0001f600"}


@given(JSON, st.booleans())
def test_any_value_is_printed_as_one_utf8_object_and_a_newline(value: object, dense: bool) -> None:
    data = envelope.success("t", {"value": value}, dense=dense)
    assert data.endswith(b"}\n")
    assert data.count(b"\n") == 1 or not dense
    json.loads(data.decode("utf-8"))


@given(JSON)
def test_dropping_nulls_leaves_everything_else(value: object) -> None:
    def nulls(each: object) -> int:
        if isinstance(each, dict):
            return sum((v is None) + nulls(v) for v in each.values())
        return sum(nulls(v) for v in each) if isinstance(each, list) else 0

    assert nulls(envelope.plain(value, dense=True)) == 0
    if nulls(value) == 0:
        assert envelope.plain(value, dense=True) == value


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the next call of `manifest` answers or raises."""
    queue: list[object] = []

    def handler(command: registry.Command) -> object:
        def run(call: Call) -> Answer:
            answer = queue.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            assert isinstance(answer, Answer)
            return answer

        return run

    monkeypatch.setattr(main, "handler", handler)
    return queue


def test_an_answer_carries_its_exit_status_and_text_for_people(answering: list[object]) -> None:
    answering.append(Answer("replay.report", {"failed": 1}, exit_status=1, stderr="changed"))
    ran = here("manifest", "--dense")
    assert (ran.status, ran.stderr) == (1, "changed")
    assert ran.stdout == b'{"apiVersion":"1","type":"replay.report","data":{"failed":1}}\n'


@pytest.mark.parametrize(
    ("error", "status", "suggestions"),
    [
        (StorageError("session.read", suggestions=("memhtml manifest",)), 1, ["memhtml manifest"]),
        (MemhtmlError("ERR_GIT", "no"), 1, []),
        (MemhtmlError("ERR_INVALID_FLAG", "no"), 2, ["memhtml help manifest"]),
        (
            MemhtmlError("ERR_PATH_NOT_FOUND", "no", exit_status=2),
            2,
            ["memhtml help manifest"],
        ),
        (
            MemhtmlError(
                "ERR_INVALID_FLAG", "no", suggestions=("memhtml help manifest", "memhtml")
            ),
            2,
            ["memhtml", "memhtml help manifest"],
        ),
    ],
)
def test_a_failure_exits_by_its_code_and_a_usage_failure_ends_with_help(
    answering: list[object], error: MemhtmlError, status: int, suggestions: list[str]
) -> None:
    answering.append(error)
    ran = here("manifest")
    assert (ran.status, ran.code, ran.suggestions) == (status, error.code, suggestions)


def test_an_unexpected_failure_names_its_class_and_keeps_the_trace_off_the_output(
    answering: list[object],
) -> None:
    answering.append(ZeroDivisionError("secret detail"))
    ran: Ran = here("manifest")
    assert (ran.status, ran.code) == (1, "ERR_UNKNOWN")
    assert "ZeroDivisionError" in ran.envelope["error"]
    assert b"secret detail" not in ran.stdout
    assert "Traceback" in ran.stderr
    assert "secret detail" in ran.stderr


def test_a_whole_number_is_printed_without_a_point() -> None:
    data = {"score": 1.0, "half": 0.5, "big": 1e15, "none": -0.0, "list": [2.0, {"x": 3.0}]}
    shown = envelope.success("memory.hits", data, dense=True).decode()
    assert (
        '"data":{"score":1,"half":0.5,"big":1000000000000000,"none":0,"list":[2,{"x":3}]}' in shown
    )
