"""The one JSON object a call prints (spec `cli` §1)."""

from __future__ import annotations

import json
import re

from memhtml.cli.registry import API_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPLACEMENT = "\ufffd"
_STEERS_TERMINALS = "[\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
"""Characters that JSON allows unescaped and a terminal obeys: DEL and the C1 controls, line and
paragraph separators, and those that turn the direction of text."""


def success(type: str, data: Mapping[str, object], *, dense: bool = False) -> bytes:
    """The envelope of an answer, final newline included."""
    return render({"apiVersion": API_VERSION, "type": type, "data": data}, dense=dense)


def failure(
    code: str, message: str, suggestions: Sequence[str] = (), *, dense: bool = False
) -> bytes:
    """The envelope of a failure, final newline included."""
    body = {
        "apiVersion": API_VERSION,
        "error": message,
        "code": code,
        "suggestions": list(suggestions),
    }
    return render(body, dense=dense)


def render(value: object, *, dense: bool) -> bytes:
    """UTF-8 JSON and a newline; `dense` has no white space and no null-valued keys.

    What could steer a terminal is written as an escape, which stands for the same value.
    """
    shown = plain(value, dense=dense)
    if dense:
        text = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    else:
        text = json.dumps(shown, ensure_ascii=False, allow_nan=False, indent=2)
    return utf8(_steering_nothing(text) + "\n")


def _steering_nothing(text: str) -> str:
    # Most answers are ASCII, and spare what it takes to compile the expression.
    if text.isascii() and "\x7f" not in text:
        return text
    # All JSON syntax is printable ASCII, so these characters stand in strings alone.
    return re.sub(_STEERS_TERMINALS, lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: object, *, dense: bool) -> object:
    """The same value as it is printed: a whole number without a point, as in the seed's samples.

    With `dense` also without object keys whose value is None; None in an array stays.
    """
    if isinstance(value, dict):
        return {
            key: plain(each, dense=dense)
            for key, each in value.items()
            if each is not None or not dense
        }
    if isinstance(value, (list, tuple)):
        return [plain(each, dense=dense) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def utf8(text: str) -> bytes:
    """The text's bytes; a lone surrogate becomes U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(
            REPLACEMENT if "\ud800" <= each <= "\udfff" else each for each in text
        ).encode("utf-8")
