"""One pass over a document that collects all a reader asks for; it judges nothing.

`record` turns a scan into problems or a record. The pass is iterative and touches each node once,
because a head index is built from a hundred thousand files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from memhtml_format.html import INLINE, NAMELESS, canonical, walk
from memhtml_format.text import collapse_ascii, number, trim, words
from memhtml_format.vocab import PREFIX

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_KNOWN = words(
    "html head body title meta link article mark p li time dl dt dd data cite q dfn code figure "
    "figcaption pre kbd samp var details summary aside abbr section table caption thead tbody tr "
    "th td ul ol a strong em address"
)
_QUIET = _KNOWN - {"link"}
"""Names that say nothing to the door rule; a link does, even without attributes."""
_UNDER_FIGURE = frozenset({"div", "span"})
_CODE = frozenset({"script", "style"})
_DEEPEST_SPAN = 32
"""Texts that may be collected inside one another; more would cost quadratic memory."""

Attributes: TypeAlias = "dict[str, str | None]"


class RawFacet(NamedTuple):
    """One `dt`/`dd` pair as it stands; `hidden` when an aside or a fold holds it."""

    name: str
    value: str
    number: float | None
    hidden: bool


class _Span:
    """A text that is being collected: where it began and what was met in it."""

    __slots__ = ("depth", "first", "href", "number", "tag")

    def __init__(self, tag: str, depth: int, first: int, href: str | None) -> None:
        self.tag = tag
        self.depth = depth
        self.first = first
        self.href = href
        self.number: float | None = None


class Scan:
    """What stands in one document; lists and dicts are in document order.

    `metas` holds the values of each full name, `links` the pairs of `rel` and `href` values,
    `citations` the texts with the address of a `q`.
    `met` is None, or collects what the door rule judges: elements with attributes or with names
    that are not quiet, and then the templates.
    """

    def __init__(self, *, at_door: bool = False) -> None:
        self.met: list[tuple[str, Attributes]] | None = [] if at_door else None
        self.templates: list[LexborNode] = []
        self.titles = 0
        self.title_text = ""
        self.metas: dict[str, list[str]] = {}
        self.links: list[tuple[str, str | None]] = []
        self.articles = 0
        self.marks = 0
        self.claim: list[str] = []
        self.mark_in_aside = False
        self.mark_in_details = False
        self.mark_in_first_block = False
        self.times: list[str | None] = []
        self.event_at: str | None = None
        self.scripts: dict[str, None] = {}
        self.styling: dict[str, None] = {}
        self.handlers: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self.languages: dict[str, None] = {}
        self.pieces: list[str] = []
        self.verbatim: set[int] = set()
        self.terms: dict[str, None] = {}
        self.facets: list[RawFacet] = []
        self.summaries: list[str] = []
        self.citations: list[tuple[str, str | None]] = []
        self._in_head = False
        self._in_article = 0
        self._in_mark = 0
        self._in_mark_code = 0
        self._open = {"pre": 0, "aside": 0, "details": 0, "figure": 0, "summary": 0}
        self._block_met = False
        self._block_depth = 0
        self._spans: list[_Span] = []
        self._lists: list[tuple[int, str | None]] = []

    def texts(self) -> tuple[str, str]:
        """The canonical text of the first article (spec `format` §5), and the body text of §4.1.

        The latter has the white space of `pre` collapsed as well.
        """
        whole = canonical(self.pieces, self.verbatim)
        if not self.verbatim:
            return whole, trim(whole)
        return whole, trim(collapse_ascii("".join(self.pieces)))

    def text(self, value: str, parent: str) -> None:
        """A text node directly below an element named `parent`."""
        if self._in_article:
            if self._open["pre"]:
                self.verbatim.add(len(self.pieces))
            self.pieces.append(value)
            if self._in_mark and not self._in_mark_code:
                self.claim.append(value)
        if parent == "title" and self.titles == 1:
            self.title_text += value

    def enter(self, tag: str, node: LexborNode, depth: int) -> None:
        """An element begins below `depth` open ones."""
        attributes = node.attributes
        if attributes:
            self._judge_attributes(attributes)
        if self.met is not None and (attributes or tag not in _QUIET):
            self.met.append((tag, attributes))
        if tag not in _KNOWN and not (tag in _UNDER_FIGURE and self._open["figure"]):
            (self.scripts if tag in _CODE else self.unknown)[tag] = None
            if tag == "template":
                self.templates.append(node)
                self._look_into(node)
        if self._in_article and tag not in INLINE:
            self.pieces.append(" ")
        enter = _ENTER.get(tag)
        if enter is not None:
            enter(self, tag, attributes, depth)

    def leave(self, tag: str, depth: int) -> None:
        """The element that began below `depth` open ones ends."""
        leave = _LEAVE.get(tag)
        if leave is not None:
            leave(self, tag, depth)
        if self._in_article and tag not in INLINE:
            self.pieces.append(" ")

    def _judge_attributes(self, attributes: Attributes) -> None:
        for name in attributes:
            if name == "class" or name == "style":
                self.styling[name] = None
            elif name[:2] == "on" and len(name) > 2:
                self.handlers[name] = None

    def _look_into(self, template: LexborNode) -> None:
        """P1–P3 hold inside templates at any depth: a browser may open them as shadow roots."""
        waiting = [template]
        while waiting:
            for fragment in waiting.pop().template_fragments():
                for tag, node, entering in walk(fragment.first_child):
                    if not entering or tag.startswith("-"):
                        continue
                    self._judge_attributes(node.attributes)
                    if tag in _CODE:
                        self.scripts[tag] = None
                    elif tag == "template":
                        waiting.append(node)

    # The head.

    def _enter_head(self, tag: str, attributes: Attributes, depth: int) -> None:
        if depth == 1:
            self._in_head = True

    def _leave_head(self, tag: str, depth: int) -> None:
        if depth == 1:
            self._in_head = False

    def _enter_title(self, tag: str, attributes: Attributes, depth: int) -> None:
        self.titles += 1

    def _enter_meta(self, tag: str, attributes: Attributes, depth: int) -> None:
        name = attributes.get("name")
        if self._in_head and name is not None and name.startswith(PREFIX):
            self.metas.setdefault(name, []).append(attributes.get("content") or "")

    def _enter_link(self, tag: str, attributes: Attributes, depth: int) -> None:
        rel = attributes.get("rel")
        if self._in_head and rel is not None and rel.startswith(PREFIX):
            self.links.append((rel, attributes.get("href")))

    # The article and its claim.

    def _enter_article(self, tag: str, attributes: Attributes, depth: int) -> None:
        self.articles += 1
        if self.articles == 1 or self._in_article:
            self._in_article += 1

    def _leave_article(self, tag: str, depth: int) -> None:
        self._in_article -= self._in_article > 0

    def _enter_mark(self, tag: str, attributes: Attributes, depth: int) -> None:
        if not self._in_article:
            return
        self._in_mark += 1
        self.marks += 1
        if self.marks == 1:
            self.mark_in_aside = self._open["aside"] > 0
            self.mark_in_details = self._open["details"] > 0
            self.mark_in_first_block = self._block_depth > 0

    def _leave_mark(self, tag: str, depth: int) -> None:
        self._in_mark -= self._in_mark > 0

    def _enter_block(self, tag: str, attributes: Attributes, depth: int) -> None:
        if self._in_article and not self._block_met:
            self._block_met = True
            self._block_depth = depth

    def _leave_block(self, tag: str, depth: int) -> None:
        if self._block_depth == depth:
            self._block_depth = 0

    # Counters of open elements.

    def _enter_counted(self, tag: str, attributes: Attributes, depth: int) -> None:
        self._open[tag] += 1
        if tag == "summary":
            self._enter_span(tag, attributes, depth)

    def _leave_counted(self, tag: str, depth: int) -> None:
        if tag == "summary":
            self._leave_span(tag, depth)
        self._open[tag] -= 1

    def _enter_code(self, tag: str, attributes: Attributes, depth: int) -> None:
        self._in_mark_code += self._in_mark > 0
        if tag == "pre":
            self._open["pre"] += 1
        elif self._in_article and attributes.get("data-lang"):
            self.languages[attributes["data-lang"] or ""] = None

    def _leave_code(self, tag: str, depth: int) -> None:
        self._in_mark_code -= self._in_mark > 0
        if tag == "pre":
            self._open["pre"] -= 1

    # Values and collected texts.

    def _enter_time(self, tag: str, attributes: Attributes, depth: int) -> None:
        value = (attributes["datetime"] or "") if "datetime" in attributes else None
        self.times.append(value)
        if self._in_article and self.event_at is None:
            self.event_at = value

    def _enter_data(self, tag: str, attributes: Attributes, depth: int) -> None:
        value = number(attributes.get("value") or "")
        if value is None:
            return
        for span in self._spans:
            if span.tag == "dd" and span.number is None:
                span.number = value

    def _enter_list(self, tag: str, attributes: Attributes, depth: int) -> None:
        self._lists.append((depth, None))

    def _leave_list(self, tag: str, depth: int) -> None:
        self._lists.pop()

    def _enter_span(self, tag: str, attributes: Attributes, depth: int) -> None:
        if not self._in_article or len(self._spans) >= _DEEPEST_SPAN:
            return
        if tag == "q" and "cite" not in attributes:
            return
        self._spans.append(_Span(tag, depth, len(self.pieces), attributes.get("cite")))

    def _leave_span(self, tag: str, depth: int) -> None:
        if not self._spans or self._spans[-1].depth != depth:
            return
        span = self._spans.pop()
        value = trim(collapse_ascii("".join(self.pieces[span.first :])))
        if tag == "dfn":
            if value:
                self.terms[value] = None
        elif tag == "dt" or tag == "dd":
            self._take_entry(span, value)
        elif self._hidden(in_summary=tag == "summary"):
            return
        elif tag == "summary":
            self.summaries.append(value)
        else:
            self.citations.append((value, span.href))

    def _take_entry(self, span: _Span, value: str) -> None:
        """A direct child of the innermost `dl`: a new term, or a value of the latest term."""
        if not self._lists or self._lists[-1][0] != span.depth - 1:
            return
        if span.tag == "dt":
            self._lists[-1] = (span.depth - 1, value)
        elif (term := self._lists[-1][1]) is not None:
            self.facets.append(RawFacet(term, value, span.number, self._hidden()))

    def _hidden(self, in_summary: bool = False) -> bool:
        """Whether the place is in an aside or in the body of a fold."""
        folds = self._open["details"] - (in_summary or self._open["summary"] > 0)
        return self._open["aside"] > 0 or folds > 0


_Enter: TypeAlias = "Callable[[Scan, str, Attributes, int], None]"
_Leave: TypeAlias = "Callable[[Scan, str, int], None]"

# One place names who handles which element; the methods stay private to this module.
_ENTER: dict[str, _Enter] = {
    "head": Scan._enter_head,
    "title": Scan._enter_title,
    "meta": Scan._enter_meta,
    "link": Scan._enter_link,
    "article": Scan._enter_article,
    "mark": Scan._enter_mark,
    "p": Scan._enter_block,
    "li": Scan._enter_block,
    "time": Scan._enter_time,
    "data": Scan._enter_data,
    "dl": Scan._enter_list,
    "pre": Scan._enter_code,
    "code": Scan._enter_code,
    **dict.fromkeys(("aside", "details", "figure", "summary"), Scan._enter_counted),
    **dict.fromkeys(("dt", "dd", "dfn", "cite", "q"), Scan._enter_span),
}
_LEAVE: dict[str, _Leave] = {
    "head": Scan._leave_head,
    "article": Scan._leave_article,
    "mark": Scan._leave_mark,
    "p": Scan._leave_block,
    "li": Scan._leave_block,
    "dl": Scan._leave_list,
    "pre": Scan._leave_code,
    "code": Scan._leave_code,
    **dict.fromkeys(("aside", "details", "figure", "summary"), Scan._leave_counted),
    **dict.fromkeys(("dt", "dd", "dfn", "cite", "q"), Scan._leave_span),
}


def scan(tree: LexborHTMLParser, *, at_door: bool = False) -> Scan:
    """The whole document in one pass; the contents of templates are not part of it.

    `at_door` fills `met` for `doors`.
    """
    found = Scan(at_door=at_door)
    stack: list[tuple[LexborNode, str]] = []
    node = tree.root
    while node is not None:
        tag = node.tag or NAMELESS
        if tag == "-text":
            found.text(node.text_content or "", stack[-1][1] if stack else "")
        elif tag[:1] != "-":
            found.enter(tag, node, len(stack))
            child = node.first_child
            if child is not None:
                stack.append((node, tag))
                node = child
                continue
            found.leave(tag, len(stack))
        following = node.next
        while following is None and stack:
            node, tag = stack.pop()
            found.leave(tag, len(stack))
            following = node.next
        node = following
    return found
