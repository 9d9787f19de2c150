"""Head edits by source offsets: one line changes, every other byte stays (spec `format` §7).

Each edit is checked against the tree before it is handed back: the head must hold exactly what the
edit says, title and article must be what they were. Where offsets and tree cannot be brought
together, or the file cannot be parsed, the bytes come back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from memhtml_format import html, vocab
from memhtml_format.text import ASCII_SPACE, collapse_ascii

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_BETWEEN_TAGS = re.compile(f"(?<=>)[{ASCII_SPACE}]+(?=<)")
_HEAD_TAGS = frozenset({"meta", "link"})
_ENDS_HEAD = frozenset({"body", "article"})

_Element: TypeAlias = "tuple[str, tuple[tuple[str, str], ...]]"
"""Tag name and sorted attributes, as the parser reads them."""


class _Entry(NamedTuple):
    """One meta or link that the parser counted in the head, with its place in the text.

    `name` is a meta's name or a link's rel, `value` its content or href. `name` is empty for an
    element that is not the format's own.
    """

    element: _Element
    name: str
    value: str
    start: int
    end: int


class _Head(NamedTuple):
    """A document and the places of its head; a head tag that is implied has no offset."""

    text: str
    entries: tuple[_Entry, ...]
    opened_at: int | None
    closed_at: int | None
    title: str
    article: str

    def metas(self, bare: str | None = None) -> list[_Entry]:
        """The `memhtml-` metas, or those of one name."""
        wanted = None if bare is None else vocab.PREFIX + bare
        own = [entry for entry in self.entries if entry.element[0] == "meta" and entry.name]
        return own if wanted is None else [entry for entry in own if entry.name == wanted]

    def links(self, rel: str | None = None) -> list[_Entry]:
        """The `memhtml-` links, or those whose parsed rel is `rel`."""
        own = [entry for entry in self.entries if entry.element[0] == "link" and entry.name]
        if rel is None:
            return own
        return [entry for entry in own if vocab.rel_of_token(entry.name) == rel]


class _Proposal(NamedTuple):
    """An edited text and what it claims to have taken from the head and added to it."""

    text: str
    went: tuple[_Element, ...] = ()
    came: tuple[_Element, ...] = ()


def set_meta(data: bytes, name: str, value: str) -> bytes:
    """Replaces the first meta of that name in place, or inserts one; an unknown name: no change.

    `name` is a name of `vocab.METAS`, with or without its prefix; so for the other meta editors.
    """
    bare = name.removeprefix(vocab.PREFIX)

    def edit(head: _Head) -> Iterable[_Proposal]:
        old = head.metas(bare)
        if not old:
            return _insertions(head, _meta_place(head, bare), _meta(bare, value))
        went, element = old[0], _meta(bare, value)
        text = head.text[: went.start] + _line(element) + head.text[went.end :]
        return [_Proposal(text, (went.element,), (element,))]

    return _apply(data, edit) if bare in vocab.METAS else data


def add_meta(data: bytes, name: str, value: str) -> bytes:
    """Adds one value of a repeatable meta; no change when it is there already."""
    bare = name.removeprefix(vocab.PREFIX)

    def edit(head: _Head) -> Iterable[_Proposal]:
        same = head.metas(bare)
        if any(entry.value == value for entry in same):
            return []
        place = _after(same[-1]) if same else _meta_place(head, bare)
        return _insertions(head, place, _meta(bare, value))

    return _apply(data, edit) if bare in vocab.METAS else data


def remove_meta(data: bytes, name: str, value: str | None = None) -> bytes:
    """Drops every meta of that name, or only those with the given value."""
    bare = name.removeprefix(vocab.PREFIX)

    def edit(head: _Head) -> Iterable[_Proposal]:
        return _removal(
            head, [entry for entry in head.metas(bare) if value is None or entry.value == value]
        )

    return _apply(data, edit)


def add_link(data: bytes, rel: str, href: str) -> bytes:
    """Adds one edge; no change when an edge of the same parsed rel and href is there already.

    `rel` is bare (`relates_to`).
    """

    def edit(head: _Head) -> Iterable[_Proposal]:
        if any(entry.value == href for entry in head.links(rel)):
            return []
        own = head.links() or head.metas()
        place = _after(own[-1]) if own else _before_end(head)
        return _insertions(head, place, _link(rel, href))

    return _apply(data, edit)


def remove_link(data: bytes, rel: str, href: str | None = None) -> bytes:
    """Drops the edges of one parsed rel and href; without href every edge of that rel."""

    def edit(head: _Head) -> Iterable[_Proposal]:
        return _removal(
            head, [entry for entry in head.links(rel) if href is None or entry.value == href]
        )

    return _apply(data, edit)


def archive_stamp(data: bytes, at: str) -> bytes:
    """The stamps of a session's archive at instant `at`; `updated` is not touched (§7.1)."""
    return set_meta(set_meta(data, "status", "archived"), "archived", at)


def cut_edges(data: bytes) -> bytes:
    """The file without its `memhtml-` links and entity metas, elements alone (`harvest` §3.4)."""
    mark, _ = html.split_mark(data)
    head = _head(data)
    if head is None:
        return data
    text = head.text
    cut = [*head.links(), *head.metas("entity")]
    for entry in sorted(cut, key=lambda entry: entry.start, reverse=True):
        text = text[: entry.start] + text[entry.end :]
    return mark + text.encode()


def collapse_markup(text: str) -> str:
    """Markup without white space between tags, other runs one space, trimmed (`harvest` §3.4)."""
    return collapse_ascii(_BETWEEN_TAGS.sub("", text)).strip(" ")


# Lines and places.


def _meta(bare: str, content: str) -> _Element:
    return "meta", (("name", vocab.PREFIX + bare), ("content", content))


def _link(rel: str, href: str) -> _Element:
    return "link", (("rel", vocab.rel_token(rel)), ("href", href))


def _line(element: _Element) -> str:
    tag, attributes = element
    return html.start_tag(tag, attributes)


def _meta_place(head: _Head, bare: str) -> tuple[int, bool] | None:
    """Where a new meta goes by the order of the vocabulary: (offset, whether after it)."""
    last = len(vocab.META_ORDER)
    order = vocab.META_ORDER.get(bare, last)
    before: _Entry | None = None
    for entry in head.metas():
        theirs = vocab.META_ORDER.get(entry.name.removeprefix(vocab.PREFIX), last)
        if theirs > order:
            return entry.start, False
        before = entry
    return _after(before) if before else _before_end(head)


def _after(entry: _Entry) -> tuple[int, bool]:
    return entry.end, True


def _before_end(head: _Head) -> tuple[int, bool] | None:
    return None if head.closed_at is None else (head.closed_at, False)


def _insertions(
    head: _Head, place: tuple[int, bool] | None, element: _Element
) -> Iterable[_Proposal]:
    """The element at its place; when the parser does not count it there, behind the head's last."""
    places = [place] if place else []
    if head.entries:
        places.append((head.entries[-1].end, True))
    if head.opened_at is not None:
        places.append((head.opened_at, True))
    for offset, behind in places:
        put = _insert_after if behind else _insert_before
        yield _Proposal(put(head.text, offset, _line(element)), came=(element,))


def _insert_after(text: str, offset: int, line: str) -> str:
    """A line after the one that holds `offset`, or right there when more stands on it."""
    newline = text.find("\n", offset)
    if newline == -1 or text[offset:newline].strip(ASCII_SPACE):
        return f"{text[:offset]}\n{line}\n{text[offset:]}"
    return f"{text[: newline + 1]}{line}\n{text[newline + 1 :]}"


def _insert_before(text: str, offset: int, line: str) -> str:
    """A line before the one that holds `offset`, or right there when something stands before it."""
    begin = text.rfind("\n", 0, offset) + 1
    if text[begin:offset].strip(ASCII_SPACE):
        return f"{text[:offset]}\n{line}\n{text[offset:]}"
    return f"{text[:begin]}{line}\n{text[begin:]}"


def _removal(head: _Head, entries: list[_Entry]) -> list[_Proposal]:
    if not entries:
        return []
    text = head.text
    for entry in reversed(entries):
        text = _without(text, entry.start, entry.end)
    return [_Proposal(text, went=tuple(entry.element for entry in entries))]


def _without(text: str, start: int, end: int) -> str:
    """`text` without an element; its line goes with it when nothing else stands there."""
    begin = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    stop = len(text) if newline == -1 else newline + 1
    if text[begin:start].strip(ASCII_SPACE) or text[end:stop].strip(ASCII_SPACE):
        return text[:start] + text[end:]
    return text[:begin] + text[stop:]


# Offsets and tree.


def _apply(data: bytes, edit: Callable[[_Head], Iterable[_Proposal]]) -> bytes:
    """The first proposal that the parser reads as it was meant, else `data`."""
    head = _head(data)
    if head is None:
        return data
    before = [entry.element for entry in head.entries]
    for proposal in edit(head):
        expected = list(before)
        for element in proposal.went:
            expected.remove(element)
        expected += [(tag, _sorted(dict(attributes))) for tag, attributes in proposal.came]
        try:
            tree = html.parse(proposal.text)
        except html.TooTangled:
            continue
        if (sorted(_elements(tree)), _title(tree), _article(tree)) == (
            sorted(expected),
            head.title,
            head.article,
        ):
            return html.split_mark(data)[0] + proposal.text.encode()
    return data


def _head(data: bytes) -> _Head | None:
    """The head of a file with offsets, or None when tokens and tree do not agree on it."""
    from memhtml_format.tokens import tags

    text = html.decode(data)
    if text is None:
        return None
    try:
        tree = html.parse(text)
    except html.TooTangled:
        return None
    wanted = _elements(tree)
    entries: list[_Entry] = []
    opened_at = closed_at = None
    for tag in tags(text):
        if tag.in_template:
            continue
        if tag.name == "head" and closed_at is None:
            if tag.closing:
                closed_at = tag.start
            elif opened_at is None:
                opened_at = tag.end
        elif not tag.closing and tag.name in _HEAD_TAGS and len(entries) < len(wanted):
            element = tag.name, _sorted(tag.attributes())
            if element == wanted[len(entries)]:
                entries.append(_entry(element, tag.start, tag.end))
        if len(entries) == len(wanted) and (closed_at is not None or tag.name in _ENDS_HEAD):
            break
    if len(entries) < len(wanted):
        return None
    return _Head(text, tuple(entries), opened_at, closed_at, _title(tree), _article(tree))


def _entry(element: _Element, start: int, end: int) -> _Entry:
    tag, attributes = element[0], dict(element[1])
    key, of = ("name", "content") if tag == "meta" else ("rel", "href")
    name = attributes.get(key, "")
    own = name if name.startswith(vocab.PREFIX) else ""
    return _Entry(element, own, attributes.get(of, ""), start, end)


def _elements(tree: LexborHTMLParser) -> list[_Element]:
    """Metas and links of the parsed head, in document order."""
    head = tree.head
    return [
        (tag, _sorted(node.attributes))
        for tag, node, entering in html.walk(head.first_child if head is not None else None)
        if entering and tag in _HEAD_TAGS
    ]


def _sorted(attributes: dict[str, str] | dict[str, str | None]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value or "") for name, value in attributes.items()))


def _title(tree: LexborHTMLParser) -> str:
    title = html.first_of(tree, "title")
    return "" if title is None else title.text(deep=True)


def _article(tree: LexborHTMLParser) -> str:
    article = html.first_of(tree, "article")
    return "" if article is None else article.html or ""
