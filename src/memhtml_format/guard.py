"""Refuses markup that a tree builder answers with a tree far larger than the text.

An HTML5 parser rebuilds unclosed formatting elements in every paragraph, looks through all open
elements at every tag and compares every attribute name of a tag with the others: a few kilobytes
can ask for gigabytes, a megabyte for minutes. The checks read the raw text and count more than
the parser can see, so nothing gets past them; an ordinary record is let through by one count.
"""

from __future__ import annotations

import re
from collections import Counter

from memhtml_format.text import words

_SMALL_TAGS = 300
_SMALL_CHARS = 32_768
_CLONES = 1_000_000
"""Unclosed formatting elements times tags: what the parser might build."""
_STEPS = 300_000_000
"""Open elements looked at, summed over the tags; about half a second of the parser."""
_ATTRIBUTES = 4_096
"""Attributes on one element."""
_ROUNDS = 16

_BLOCK_TAGS = 256
"""Tags that the quick estimate of the steps takes together."""
_PLAIN_AT_MOST = 64
"""Attributes in the plain spelling that one tag may have and still pass unread."""

_WS = r" \t\n\f\r"
_FORMATTING = "a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
_PHRASES = f"{_FORMATTING}|abbr|cite|data|dfn|kbd|mark|q|samp|span|sub|sup|time|var"
# No possessive quantifier and no atomic group in here: CPython before 3.11.5 gets some wrong.
# What follows a run never begins with a character of that run, so there is little to go back on.
_PLAIN_ATTRIBUTES = (
    rf"(?:[{_WS}]+[A-Za-z][A-Za-z0-9_:-]*"
    rf"(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^{_WS}\"'<>=`]+))?){{0,{_PLAIN_AT_MOST}}}[{_WS}]*"
)
_LEAF = re.compile(
    rf"<({_PHRASES}){_PLAIN_ATTRIBUTES}>[^<]*</\1[{_WS}]*>|<(?:br|wbr|img){_PLAIN_ATTRIBUTES}/?>",
    re.IGNORECASE | re.ASCII,
)
_OPENS_FORMAT = re.compile(rf"<(?:{_FORMATTING})(?=[{_WS}/>])", re.IGNORECASE | re.ASCII)
_TAG = re.compile(rf"</?[A-Za-z][^{_WS}/>]*")
_MAY_BE_CROWDED = re.compile(rf"</?[A-Za-z][^{_WS}/><]*(?=[{_WS}/<])(?!{_PLAIN_ATTRIBUTES}/?>)")
_ATTRIBUTE = re.compile(
    rf"[{_WS}/]*[^{_WS}/>][^{_WS}/>=]*"
    rf"(?:[{_WS}]*=[{_WS}]*(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[^{_WS}>]*))?"
)
_PHRASE_NAMES = frozenset(_PHRASES.split("|")) - {"a", "nobr"}
_NEVER_OPEN = words("area base br col embed hr img input link meta param source track wbr")


def is_tangled(text: str) -> bool:
    """Whether building the tree of `text` might cost more than a fixed budget."""
    tags = text.count("<")
    if tags <= _SMALL_TAGS and len(text) <= _SMALL_CHARS:
        return False
    if _clones(text, tags) > _CLONES or _crowded(text):
        return True
    # No tag can find more open elements than there are tags before it.
    return tags * tags // 2 > _STEPS and _steps(text) > _STEPS


def _clones(text: str, tags: int) -> int:
    """Formatting elements that may stay open, times the places that may rebuild them.

    Cleanly closed ones are taken out first, innermost ones at each round: between such a start
    tag and its end tag the parser can meet nothing that keeps the element open.
    """
    for _ in range(_ROUNDS):
        if len(_OPENS_FORMAT.findall(text)) * tags <= _CLONES:
            return 0
        text, removed = _LEAF.subn("", text)
        if not removed:
            break
    return len(_OPENS_FORMAT.findall(text)) * tags


def _steps(text: str) -> int:
    """The open elements at each tag, summed, or an estimate above that when it is small enough."""
    tags = _TAG.findall(text)
    estimate = _steps_at_most(tags)
    return estimate if estimate <= _STEPS else _steps_exactly(tags)


def _steps_at_most(tags: list[str]) -> int:
    """No fewer than `_steps_exactly`, counted block by block in C.

    Of a name's open elements a block may close first and open then, so no more than those left
    and its own can be open at once.
    """
    open_by_name: dict[str, int] = {}
    steps = 0
    for first in range(0, len(tags), _BLOCK_TAGS):
        counted = Counter(tags[first : first + _BLOCK_TAGS])
        starts = {name: many for name, many in counted.items() if name[1] != "/"}
        steps += _BLOCK_TAGS * (sum(open_by_name.values()) + sum(starts.values()))
        for name, many in counted.items():
            if name[1] == "/":
                opener = "<" + name[2:]
                open_by_name[opener] = max(open_by_name.get(opener, 0) - many, 0)
        for name, many in starts.items():
            open_by_name[name] = open_by_name.get(name, 0) + many
    return steps


def _steps_exactly(tags: list[str]) -> int:
    """The open elements at each tag, summed; an end tag closes at most one of its own name.

    The start of a phrase looks at none.
    """
    open_by_name: dict[str, int] = {}
    depth = steps = 0
    for tag in tags:
        name = tag[1:].lower()
        if name[0] == "/":
            name = name[1:]
            if open_by_name.get(name, 0):
                open_by_name[name] -= 1
                depth -= 1
            steps += depth
            continue
        if name not in _PHRASE_NAMES:
            steps += depth
        if name not in _NEVER_OPEN:
            open_by_name[name] = open_by_name.get(name, 0) + 1
            depth += 1
    return steps


def _crowded(text: str) -> bool:
    """Whether a tag may carry very many attributes, wherever the parser sees one begin.

    A tag without any, or with a few that are plainly spelt, is passed over by the expression.
    """
    allowance = 4 * len(text)
    name_end = 0
    for found in _MAY_BE_CROWDED.finditer(text):
        if found.start() < name_end:
            # A `<` inside a name begins no tag.
            continue
        tag = _TAG.match(text, found.start())
        name_end = at = tag.end() if tag else found.end()
        count = 0
        while attribute := _ATTRIBUTE.match(text, at):
            at = attribute.end()
            count += 1
            if count > _ATTRIBUTES:
                return True
        allowance -= at - found.start()
        if allowance < 0:
            return True
    return False
