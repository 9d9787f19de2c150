"""Decodes the JSONL of `apply` and `session put` (spec `cli` §10 `apply`, `sessions` §6).

The whole text is judged before anything is done with it; the first bad line is the error.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, NoReturn, TypeAlias

from memhtml_format import paths
from memhtml_format.render import Draft
from memhtml_format.text import is_blank, number, scrub

_WRITE_FIELDS = frozenset(
    {
        *("op", "title", "type", "body", "article_html", "path", "strict_path", "workspace"),
        *("session_id", "prompt_id", "turn_uuid", "status", "due"),
        *("tag", "tags", "entity", "entities", "importance", "confidence"),
    }
)
_LABEL_FIELDS = frozenset({"op", "path", "entity"})


class BadLine(ValueError):
    """A line that cannot be decoded; `code` is a usage code, `line` is None for an empty stream."""

    def __init__(self, code: str, message: str, line: int | None) -> None:
        super().__init__(message)
        self.code = code
        self.line = line


class WriteLine(NamedTuple):
    """A memory to be written; `number` counts lines from 1, blank ones included."""

    number: int
    draft: Draft


class LabelLine(NamedTuple):
    """An entity to be put on or taken off a record; `op` is `label` or `unlabel`."""

    number: int
    op: str
    path: str
    entity: str


Line: TypeAlias = WriteLine | LabelLine


class _Fault(ValueError):
    """What is wrong with one line, before its number is known."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def decode_lines(
    text: str | bytes,
    *,
    ops: frozenset[str] = frozenset({"write"}),
    command: str = "apply",
    judge_values: bool = True,
) -> list[Line]:
    """The lines of a stream; `command` is the command's name as errors spell it.

    With `judge_values` a number out of range, or prose beside markup, is a bad line, as
    `session put` has it; without, they are left to the caller, as `apply` reports them per
    operation. Lone surrogates become U+FFFD. Raises `BadLine`.
    """
    if isinstance(text, bytes):
        text = _decoded(text, command)
    lines: list[Line] = []
    for place, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if is_blank(line):
            continue
        try:
            lines.append(_decode_line(place, line, ops, judge_values))
        except _Fault as fault:
            message = f"memhtml {command}: line {place}: {fault}"
            raise BadLine(fault.code, message, place) from None
    if not lines:
        raise BadLine("ERR_MISSING_ARGUMENT", f"memhtml {command}: no operations given", None)
    return lines


def _decoded(data: bytes, command: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        message = f"memhtml {command}: line {place}: not valid UTF-8"
        raise BadLine("ERR_INVALID_FLAG", message, place) from None


def _decode_line(place: int, line: str, ops: frozenset[str], judge_values: bool) -> Line:
    fields = _object(line)
    op = fields.get("op")
    if op is None:
        _missing("op")
    if not isinstance(op, str) or op not in ops:
        _invalid(f"op must be one of {', '.join(sorted(ops))}")
    allowed = _WRITE_FIELDS if op == "write" else _LABEL_FIELDS
    for name in fields:
        if name not in allowed:
            _invalid(f"unknown field {name!r}")
    if op == "write":
        return WriteLine(place, _draft(fields, judge_values))
    path, entity = (_required_text(fields, name) for name in ("path", "entity"))
    return LabelLine(place, op, paths.normalise(path), entity)


def _object(line: str) -> dict[str, Any]:
    """The JSON object of a line; a repeated key, NaN and Infinity are no JSON here."""
    try:
        value = json.loads(line, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except _Fault:
        raise
    except json.JSONDecodeError:
        _invalid("not valid JSON")
    except RecursionError:
        _invalid("not valid JSON: it is nested too deeply")
    except ValueError:  # Python reads no integer of more than 4,300 digits.
        _invalid("a number has too many digits")
    if not isinstance(value, dict):
        _invalid("not a JSON object")
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        _invalid(f"the field {twice!r} is given twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    _invalid(f"{name} is not valid JSON")


def _draft(fields: dict[str, Any], judge_values: bool) -> Draft:
    title, memory_type = (_required_text(fields, name) for name in ("title", "type"))
    for name, value in (("title", title), ("type", memory_type)):
        if is_blank(value):
            _missing(name)
    body, markup = _stated(fields, "body"), _stated(fields, "article_html")
    if judge_values and body is not None and markup is not None:
        _invalid("body and article_html exclude each other")
    strict_path = _of_type(fields, "strict_path", bool, "true or false") or False
    importance = _number(fields, "importance")
    confidence = _number(fields, "confidence")
    if judge_values:
        if importance is not None and not is_importance(importance):
            _invalid("importance must be an integer from 1 to 10")
        if confidence is not None and not 0 <= confidence <= 1:
            _invalid("confidence must be a number from 0 to 1")
    return Draft(
        title=title,
        memory_type=memory_type,
        body=body,
        article_html=markup,
        path=_text(fields, "path"),
        strict_path=strict_path,
        workspace=_stated(fields, "workspace"),
        status=_stated(fields, "status"),
        due=_stated(fields, "due"),
        tags=_list(fields, "tag", "tags"),
        entities=_list(fields, "entity", "entities"),
        importance=_whole(importance),
        confidence=confidence,
        session_id=_stated(fields, "session_id"),
        prompt_id=_stated(fields, "prompt_id"),
        turn_uuid=_stated(fields, "turn_uuid"),
    )


def is_importance(value: float) -> bool:
    """Whether a write door takes the number as an importance (spec `format` §3.2)."""
    return value == int(value) and 1 <= value <= 10


def _whole(value: float | None) -> int | None:
    """An importance; a fraction becomes 0, which every door refuses as out of range."""
    if value is None:
        return None
    return int(value) if value == int(value) else 0


# Single fields. A null optional field counts as absent.


def _of_type(fields: dict[str, Any], name: str, kind: type[Any], wanted: str) -> Any:
    value = fields.get(name)
    if value is not None and not isinstance(value, kind):
        _invalid(f"{name} must be {wanted}")
    return value


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = _of_type(fields, name, str, "a string")
    return None if value is None else scrub(value)


def _stated(fields: dict[str, Any], name: str) -> str | None:
    """A text field; blank counts as absent."""
    value = _text(fields, name)
    return None if value is None or is_blank(value) else value


def _required_text(fields: dict[str, Any], name: str) -> str:
    value = _text(fields, name)
    if value is None:
        _missing(name)
    return value


def _list(fields: dict[str, Any], *names: str) -> tuple[str, ...]:
    """The values of both spellings, singular first, empty ones dropped."""
    found: list[str] = []
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            _invalid(f"{name} must be a string or an array of strings")
        found += [scrub(each) for each in values if each]
    return tuple(found)


def _number(fields: dict[str, Any], name: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    read: float | None = None
    if isinstance(value, str):
        read = number(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        read = number(str(value))
    if read is None:
        _invalid(f"{name} must be a finite number")
    return read


def _missing(name: str) -> NoReturn:
    raise _Fault("ERR_MISSING_ARGUMENT", f"{name} is required")


def _invalid(text: str) -> NoReturn:
    raise _Fault("ERR_INVALID_FLAG", text)
