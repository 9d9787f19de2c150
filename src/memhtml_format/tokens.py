"""The raw text as tags with offsets; the tree builder has none (spec `format` §10.2).

Follows the tokenizer of the HTML standard: comments and what counts as one, raw text elements,
attribute spelling, character references. What depends on the tree (foreign content) is followed
closely enough for heads; `edit` compares the outcome with the tree before it trusts an offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memhtml_format.text import words

_WS = r" \t\n\f\r"
_MARKUP = re.compile(r"<(?:([A-Za-z])|/([A-Za-z])|(!--)|(!\[CDATA\[)|([!?]|/(?!>)))")
_NAME = re.compile(rf"[^{_WS}/>]*")
_ATTRIBUTE = re.compile(
    rf"[{_WS}/]*([^{_WS}/>][^{_WS}/>=]*)"
    rf"(?:[{_WS}]*=[{_WS}]*(?:\"([^\"]*)(?:\"|\Z)|'([^']*)(?:'|\Z)|([^{_WS}>]*)))?"
)
_TAG_END = re.compile(rf"[{_WS}/]*>")
_COMMENT_END = re.compile(r"--!?>")
_SCRIPT_STEP = re.compile(rf"<!--|-->|<(/?)script(?=[{_WS}/>])", re.IGNORECASE | re.ASCII)
_REFERENCE = re.compile(r"&(?:#([0-9]+)|#[xX]([0-9A-Fa-f]+)|([A-Za-z][A-Za-z0-9]{0,40}))(;?)")
_UPPER = str.maketrans({chr(code): chr(code + 32) for code in range(0x41, 0x5B)})

_RAW_TEXT = words("title textarea style xmp iframe noembed noframes script")
_INTEGRATION = words("foreignobject desc title mi mo mn ms mtext annotation-xml")
_BREAKS_OUT = words(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li "
    "listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul "
    "var"
)


class Tag(NamedTuple):
    """A start or end tag and where it stands; `raw` holds the undecoded attributes."""

    name: str
    closing: bool
    start: int
    end: int
    raw: tuple[tuple[str, str], ...]
    self_closing: bool
    in_template: bool

    def attributes(self) -> dict[str, str]:
        """Names in lower case, values decoded; of two with one name the first counts."""
        found: dict[str, str] = {}
        for name, value in self.raw:
            found.setdefault(_lower(name).replace("\0", "\ufffd"), decode_value(value))
        return found


def tags(text: str) -> Iterator[Tag]:
    """The tags of a document, in order; comments, declarations and raw text give none."""
    reader = _Reader()
    at = 0
    while found := _MARKUP.search(text, at):
        if found[1] is None and found[2] is None:
            at = _skip_declaration(text, found, reader.in_foreign)
            continue
        tag = _read_tag(text, found.start(), found[2] is not None, reader.templates > 0)
        if tag is None:
            return
        raw_text = reader.note(tag)
        yield tag
        at = tag.end
        if raw_text == "plaintext":
            return
        if raw_text:
            at = _end_of_raw_text(text, at, raw_text)


class _Reader:
    """How deep in templates and foreign elements the text is."""

    def __init__(self) -> None:
        self.templates = 0
        self.foreign: list[str] = []

    @property
    def in_foreign(self) -> bool:
        return bool(self.foreign) and self.foreign[-1] not in _INTEGRATION

    def note(self, tag: Tag) -> str | None:
        """Takes a tag in; the raw text element that it opens, if any."""
        name = tag.name
        if tag.closing:
            self._close(name)
            return None
        if self.in_foreign:
            if name not in _BREAKS_OUT:
                if not tag.self_closing:
                    self.foreign.append(name)
                return None
            while self.in_foreign:
                self.foreign.pop()
        if name in ("svg", "math") and not tag.self_closing:
            self.foreign.append(name)
        if name == "template":
            self.templates += 1
        return name if name in _RAW_TEXT or name == "plaintext" else None

    def _close(self, name: str) -> None:
        if name == "template" and not self.in_foreign:
            self.templates -= self.templates > 0
        if name in self.foreign:
            while self.foreign.pop() != name:
                pass
        elif name in ("br", "p"):
            while self.in_foreign:
                self.foreign.pop()


def _skip_declaration(text: str, found: re.Match[str], in_foreign: bool) -> int:
    """The place after a comment, a CDATA section, a doctype or a bogus comment."""
    start = found.start()
    if found[3]:
        if text.startswith((">", "->"), start + 4):
            return text.index(">", start) + 1
        closing = _COMMENT_END.search(text, start + 4)
        return closing.end() if closing else len(text)
    if found[4] and in_foreign:
        at = text.find("]]>", start)
        return len(text) if at == -1 else at + 3
    at = text.find(">", start + 1)
    return len(text) if at == -1 else at + 1


def _read_tag(text: str, start: int, closing: bool, in_template: bool) -> Tag | None:
    """The tag that begins at `start`; None when the text ends inside it."""
    name = _NAME.match(text, start + 1 + closing)
    at = name.end() if name else start
    raw: list[tuple[str, str]] = []
    while found := _ATTRIBUTE.match(text, at):
        raw.append((found[1], found[2] or found[3] or found[4] or ""))
        at = found.end()
    end = _TAG_END.match(text, at)
    if end is None or name is None:
        return None
    self_closing = end[0].endswith("/>")
    return Tag(_lower(name[0]), closing, start, end.end(), tuple(raw), self_closing, in_template)


def _end_of_raw_text(text: str, at: int, name: str) -> int:
    """Where the end tag of a raw text element begins, or the end of the text."""
    if name == "script":
        return _end_of_script(text, at)
    closing = re.compile(rf"</{name}(?=[{_WS}/>])", re.IGNORECASE | re.ASCII).search(text, at)
    return closing.start() if closing else len(text)


def _end_of_script(text: str, at: int) -> int:
    """As for other raw text, but `<!-- <script>` hides one end tag (double escaping)."""
    escaped = hidden = False
    while step := _SCRIPT_STEP.search(text, at):
        at = step.end()
        if step[0] == "-->":
            escaped = hidden = False
        elif step[0] == "<!--":
            # The dashes may at once be those of the end: `<!-->`.
            escaped, at = True, at if escaped else at - 2
        elif step[1]:
            if not hidden:
                return step.start()
            hidden = False
        elif escaped:
            hidden = True
    return len(text)


def _lower(name: str) -> str:
    return name.lower() if name.isascii() else name.translate(_UPPER)


def decode_value(raw: str) -> str:
    """An attribute value as the parser reads it: line ends folded, references resolved."""
    if "\r" in raw:
        raw = raw.replace("\r\n", "\n").replace("\r", "\n")
    raw = raw.replace("\0", "\ufffd")
    if "&" not in raw:
        return raw
    return _REFERENCE.sub(_resolve, raw)


def _resolve(found: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon = found.groups()
    if decimal:
        return _code_point(decimal, 10)
    if hexadecimal:
        return _code_point(hexadecimal, 16)
    return _named(found[0], name, semicolon, found.string[found.end() : found.end() + 1])


def _code_point(digits: str, base: int) -> str:
    digits = digits.lstrip("0")
    code = int(digits or "0", base) if len(digits) <= 7 else 0
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if 0x80 <= code <= 0x9F:
        return bytes([code]).decode("cp1252", "ignore") or chr(code)
    return chr(code)


def _named(whole: str, name: str, semicolon: str, following: str) -> str:
    """A named reference by the attribute rule: without its semicolon it may not run on."""
    from html.entities import html5

    if semicolon and (value := html5.get(name + ";")):
        return value
    for length in range(len(name), 1, -1):
        value = html5.get(name[:length])
        if value is None:
            continue
        rest = name[length:] + semicolon
        after = (rest or following)[:1]
        if after == "=" or (after.isascii() and after.isalnum()):
            return whole
        return value + rest
    return whole
