"""The lines of `apply` and `session put`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml_format import jsonl
from memhtml_format.render import Draft

PUT = frozenset({"write", "label", "unlabel"})
WRITE: dict[str, Any] = {"op": "write", "title": "T", "type": "semantic", "body": "A."}
LABEL: dict[str, Any] = {"op": "label", "path": "/areas//x.html", "entity": "a:b"}


def decode(*lines: object, judge_values: bool = True) -> list[jsonl.Line]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return jsonl.decode_lines(text, ops=PUT, command="session put", judge_values=judge_values)


def refusal(*lines: object) -> jsonl.BadLine:
    with pytest.raises(jsonl.BadLine) as caught:
        decode(*lines)
    return caught.value


def test_a_full_write_line_becomes_a_draft() -> None:
    line = {
        **WRITE,
        "path": " x ",
        "strict_path": True,
        "workspace": "w",
        "session_id": "s",
        "prompt_id": "p",
        "turn_uuid": "t",
        "status": "todo",
        "due": "2026-01-01",
        "tag": "a",
        "tags": ["b", ""],
        "entities": "c:d",
        "entity": ["e:f"],
        "importance": "5",
        "confidence": 1,
    }
    assert decode(line) == [
        jsonl.WriteLine(
            1,
            Draft(
                *("T", "semantic", "A."),
                path=" x ",
                strict_path=True,
                workspace="w",
                status="todo",
                due="2026-01-01",
                tags=("a", "b"),
                entities=("e:f", "c:d"),
                importance=5,
                confidence=1.0,
                session_id="s",
                prompt_id="p",
                turn_uuid="t",
            ),
        )
    ]


def test_null_and_blank_optional_fields_count_as_absent() -> None:
    line = dict.fromkeys(("path", "strict_path", "tags", "importance", "article_html", "due"))
    blank = {"session_id": " ", "workspace": "", "status": "\n", "article_html": " "}
    assert decode({**line, **WRITE, **blank}) == [
        jsonl.WriteLine(1, Draft("T", "semantic", body="A."))
    ]


def test_label_lines_have_their_path_normalised() -> None:
    assert decode("", " \r", LABEL, {**LABEL, "op": "unlabel"}) == [
        jsonl.LabelLine(3, "label", "areas/x.html", "a:b"),
        jsonl.LabelLine(4, "unlabel", "areas/x.html", "a:b"),
    ]


def test_carriage_returns_and_a_byte_order_mark_are_allowed() -> None:
    data = b"\xef\xbb\xbf" + json.dumps(WRITE).encode() + b"\r\n\r\n"
    assert len(jsonl.decode_lines(data)) == 1


def test_lone_surrogates_become_replacement_characters() -> None:
    (line,) = decode('{"op":"write","title":"a\\ud800","type":"semantic","tags":["\\udfff"]}')
    assert isinstance(line, jsonl.WriteLine)
    assert line.draft.title == "a\ufffd"
    assert line.draft.tags == ("\ufffd",)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"x"',
        "{} {}",
        '{"op":"write","op":"write"}',
        '{"op":"write","title":NaN}',
        "[" * 100_000,
        '{"op":' + "9" * 5000 + "}",
        {**WRITE, "op": "delete"},
        {**WRITE, "op": 1},
        {**WRITE, "colour": "red"},
        {**WRITE, "title": 1},
        {**WRITE, "body": ["a"]},
        {**WRITE, "strict_path": "true"},
        {**WRITE, "tags": [1]},
        {**WRITE, "tags": {}},
        {**WRITE, "importance": True},
        {**WRITE, "importance": ""},
        {**WRITE, "importance": "high"},
        {**WRITE, "importance": 11},
        {**WRITE, "importance": 5.5},
        {**WRITE, "confidence": -0.1},
        {**WRITE, "confidence": "1e999"},
        {**WRITE, "article_html": "<p>"},
        {**LABEL, "title": "x"},
        {**LABEL, "entity": 1},
    ],
)
def test_a_bad_line_is_named_with_its_number(line: object) -> None:
    found = refusal(WRITE, "", line)
    assert found.code == "ERR_INVALID_FLAG"
    assert found.line == 3
    assert str(found).startswith("memhtml session put: line 3: ")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({"title": "T", "type": "semantic"}, "op"),
        ({"op": "write", "type": "semantic"}, "title"),
        ({"op": "write", "title": None, "type": "semantic"}, "title"),
        ({"op": "write", "title": " ", "type": "semantic"}, "title"),
        ({"op": "write", "title": "T"}, "type"),
        ({"op": "label", "entity": "a:b"}, "path"),
        ({"op": "unlabel", "path": "areas/x.html", "entity": None}, "entity"),
    ],
)
def test_an_absent_required_field_is_missing(line: object, field: str) -> None:
    found = refusal(line)
    assert found.code == "ERR_MISSING_ARGUMENT"
    assert str(found) == f"memhtml session put: line 1: {field} is required"


@pytest.mark.parametrize("text", ["", "\n \r\n", "\ufeff"])
def test_no_line_at_all_is_missing(text: str) -> None:
    with pytest.raises(jsonl.BadLine) as caught:
        jsonl.decode_lines(text)
    assert caught.value.code == "ERR_MISSING_ARGUMENT"
    assert caught.value.line is None


def test_bytes_that_are_not_utf8_name_their_line() -> None:
    with pytest.raises(jsonl.BadLine) as caught:
        jsonl.decode_lines(json.dumps(WRITE).encode() + b"\n\xff")
    assert (caught.value.code, caught.value.line) == ("ERR_INVALID_FLAG", 2)


def test_apply_knows_writes_only_and_leaves_values_to_its_caller() -> None:
    with pytest.raises(jsonl.BadLine, match=r"memhtml apply: line 1: op must be one of write"):
        jsonl.decode_lines(json.dumps(LABEL))
    odd = {**WRITE, "article_html": "<p>", "importance": 5.5, "confidence": 2}
    (line,) = decode(odd, judge_values=False)
    assert isinstance(line, jsonl.WriteLine)
    assert (line.draft.importance, line.draft.confidence) == (0, 2.0)
    assert line.draft.article_html == "<p>"


@given(st.text(max_size=40))
def test_any_text_decodes_or_names_a_line(text: str) -> None:
    try:
        jsonl.decode_lines(text)
    except jsonl.BadLine as error:
        assert error.code in ("ERR_INVALID_FLAG", "ERR_MISSING_ARGUMENT")
