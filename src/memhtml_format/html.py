"""The one HTML5 tree builder: decoding, parsing, canonical text and the serialiser.

Everything here is iterative, because a script may write any depth of nesting. selectolax costs
13 ms to import, so it is imported when the first document is parsed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from memhtml_format.guard import is_tangled
from memhtml_format.text import collapse_ascii, words

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

INLINE = words("mark time data cite q dfn abbr code kbd samp var a strong em span")
"""Elements that do not separate words in the canonical text (spec `format` §5)."""

NAMELESS = "-instruction"
"""Stands for nodes without a name: `<?x>`, which newer tree builders keep apart from comments."""

VOID = words(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source "
    "track wbr"
)
_RAW_TEXT = words("script style xmp iframe noembed noframes plaintext")
_EATS_NEWLINE = frozenset({"pre", "textarea", "listing"})


class TooTangled(ValueError):
    """Markup whose tree would cost far more than its size; no reader builds it."""


def split_mark(data: bytes) -> tuple[bytes, bytes]:
    """The leading byte-order mark, if any, and the rest (spec `format` §10.8)."""
    return (data[:3], data[3:]) if data.startswith(b"\xef\xbb\xbf") else (b"", data)


def decode(data: bytes) -> str | None:
    """The text of a file without its byte-order mark; None when it is not valid UTF-8."""
    try:
        return split_mark(data)[1].decode("utf-8")
    except UnicodeDecodeError:
        return None


def parse(text: str) -> LexborHTMLParser:
    """The document tree. Raises `TooTangled`."""
    from selectolax.lexbor import LexborHTMLParser

    if is_tangled(text):
        raise TooTangled("nesting or attributes far beyond any written page")
    # Option 1 turns mutation events off: they cost quadratic time in a long `select`.
    return LexborHTMLParser(text, options=1)


def parse_article(markup: str) -> LexborHTMLParser:
    """The tree of a fragment in `article` context. Raises `TooTangled`."""
    from selectolax.lexbor import LexborHTMLParser

    if is_tangled(markup):
        raise TooTangled("nesting or attributes far beyond any written page")
    return LexborHTMLParser(markup, is_fragment=True, fragment_tag="article", options=1)


def first_of(tree: LexborHTMLParser, tag: str) -> LexborNode | None:
    """The first element of that name; several times cheaper than a selector."""
    found = tree.tags(tag)
    return found[0] if found else None


def walk(first: LexborNode | None) -> Iterator[tuple[str, LexborNode, bool]]:
    """Every node from `first` and its later siblings down: (tag, node, entering).

    An element comes twice, a text or comment once. The contents of a `template` do not come.
    """
    stack: list[tuple[str, LexborNode]] = []
    node = first
    while node is not None or stack:
        if node is None:
            tag, node = stack.pop()
            yield tag, node, False
            node = node.next
            continue
        tag = node.tag or NAMELESS
        yield tag, node, True
        if tag.startswith("-"):
            node = node.next
            continue
        stack.append((tag, node))
        node = node.first_child


def canonical(pieces: Sequence[str], verbatim: Collection[int]) -> str:
    """The canonical text of spec `format` §5; `verbatim` names the pieces that stay as they are."""
    if not verbatim:
        whole = collapse_ascii("".join(pieces))
        return whole.removeprefix(" ").removesuffix(" ")
    runs: list[tuple[bool, list[str]]] = []
    for place, piece in enumerate(pieces):
        kept = place in verbatim
        if not runs or runs[-1][0] is not kept:
            runs.append((kept, []))
        runs[-1][1].append(piece)
    texts = ["".join(run) if kept else collapse_ascii("".join(run)) for kept, run in runs]
    if not runs[0][0]:
        texts[0] = texts[0].removeprefix(" ")
    if not runs[-1][0]:
        texts[-1] = texts[-1].removesuffix(" ")
    return "".join(texts)


def canonical_of_nodes(first: LexborNode | None) -> str:
    """The canonical text of sibling nodes, as if an article held them."""
    pieces: list[str] = []
    verbatim: set[int] = set()
    pre_depth = 0
    for tag, node, entering in walk(first):
        if tag == "-text":
            if pre_depth:
                verbatim.add(len(pieces))
            pieces.append(node.text_content or "")
        elif not tag.startswith("-"):
            if tag == "pre":
                pre_depth += 1 if entering else -1
            if tag not in INLINE:
                pieces.append(" ")
    return canonical(pieces, verbatim)


def canonical_of_markup(markup: str) -> str:
    """The canonical text of the first article, or of the whole taken as article markup.

    Raises `TooTangled`.
    """
    tree = parse(markup)
    article = first_of(tree, "article")
    if article is not None:
        return canonical_of_nodes(article.first_child)
    return canonical_of_nodes(parse_article(markup).root)


def escape_text(text: str) -> str:
    """`text` as character data (spec `format` §6.4)."""
    # Faster than `translate` on short text; the ampersand comes first.
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return text.replace(">", "&gt;").replace("\u00a0", "&nbsp;")


def escape_attribute(value: str) -> str:
    """`value` for a double-quoted attribute; a meta or link stays on one line."""
    value = value.replace("&", "&amp;").replace('"', "&quot;").replace("\u00a0", "&nbsp;")
    return value.replace("\r", "&#13;").replace("\n", "&#10;")


def start_tag(tag: str, attributes: Iterable[tuple[str, str]]) -> str:
    """A start tag with the attributes in the order given."""
    stated = "".join(f' {name}="{escape_attribute(value)}"' for name, value in attributes)
    return f"<{tag}{stated}>"


def serialise(first: LexborNode | None) -> str:
    """Sibling nodes as markup: attributes sorted, names in lower case (spec `format` §6.4)."""
    out: list[str] = []
    # What is still to be written, last first: nodes with their parent's tag, or finished end tags.
    todo: list[tuple[LexborNode, str] | str] = [] if first is None else [(first, "")]
    while todo:
        entry = todo.pop()
        if isinstance(entry, str):
            out.append(entry)
            continue
        node, parent = entry
        if node.next is not None:
            todo.append((node.next, parent))
        tag = node.tag or NAMELESS
        if tag == "-text":
            text = node.text_content or ""
            out.append(text if parent in _RAW_TEXT else escape_text(text))
        elif tag == "-comment" or tag is NAMELESS:
            out.append(_comment(node))
        elif not tag.startswith("-"):
            _open_element(tag.lower(), node, out, todo)
    return "".join(out)


def _comment(node: LexborNode) -> str:
    """The comment alone: the first node of a fragment shows its siblings as well."""
    markup = node.html or ""
    if markup.startswith("<?"):
        return f"<!--{markup[1 : markup.find('?>')].rstrip()}-->"
    return markup[: markup.find("-->", 4) + 3]


def _open_element(
    tag: str, node: LexborNode, out: list[str], todo: list[tuple[LexborNode, str] | str]
) -> None:
    attributes = sorted((name, value or "") for name, value in node.attributes.items())
    out.append(start_tag(tag, attributes))
    if tag in VOID:
        return
    todo.append(f"</{tag}>")
    child = node.first_child
    if tag == "template" and child is None:
        fragments = node.template_fragments()
        child = fragments[0].first_child if fragments else None
    if child is None:
        return
    if tag in _EATS_NEWLINE and child.tag == "-text" and (child.text_content or "")[:1] == "\n":
        out.append("\n")
    todo.append((child, tag))
