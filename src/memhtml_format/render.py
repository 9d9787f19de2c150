"""Writing prose as a memory file, byte for byte as spec `format` §6 says.

A draft comes from a JSONL line or from flags; the rendering holds the bytes, what they hash to and
what is wrong with them. Nothing here decides whether a file may be written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memhtml_format import html, paths, record
from memhtml_format.digest import blob_sha
from memhtml_format.text import WIDE_SPACE, is_blank, scrub, trim, two_decimals
from memhtml_format.vocab import PREFIX, is_language, rel_token

_CLAIM_END = re.compile(rf"[.!?](?=[{WIDE_SPACE}]|\Z)")
_FENCE = re.compile(r"(`{3,})([^`]*)")


class PathExhausted(ValueError):
    """No free name up to the last ordinal; `folder` and `stem` say which (spec `format` §2.4)."""

    def __init__(self, folder: str, stem: str) -> None:
        super().__init__(f"no free name for {stem} in {folder} up to -{paths.LAST_ORDINAL}")
        self.folder = folder
        self.stem = stem


class StrictPath(ValueError):
    """A path under `strict_path` that is no memory path; `reason` is the failed check (§2.5)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"path {path!r}: {reason}")
        self.path = path
        self.reason = reason


class Draft(NamedTuple):
    """A memory before it is rendered. Blank text counts as absent.

    The prose is either `body`, whose first sentence is the claim, or `claim` and `paragraphs`.
    `status` and `due` are written for tasks only.
    """

    title: str
    memory_type: str
    body: str | None = None
    article_html: str | None = None
    claim: str | None = None
    paragraphs: tuple[str, ...] = ()
    path: str | None = None
    strict_path: bool = False
    workspace: str | None = None
    status: str | None = None
    due: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[record.Link, ...] = ()
    importance: int | None = None
    confidence: float | None = None
    author: str | None = None
    session_id: str | None = None
    prompt_id: str | None = None
    turn_uuid: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None


class Rendered(NamedTuple):
    """A rendered draft; `problems` are the sentences of §3.6 and §3.7 that its bytes break.

    `detail` is what a full read of the bytes finds, its path still empty; None when they are no
    record.
    """

    html: str
    content_hash: str
    problems: tuple[str, ...]
    detail: record.Detail | None = None


def render(draft: Draft, at: str) -> Rendered:
    """The file of a draft, created and updated at the instant `at`. It is parsed once.

    Markup that is too tangled to parse is set as it is, so that the problems name it.
    """
    above, below = _head_lines(draft, at)
    opening = scrub(
        "\n".join(
            [
                "<!doctype html>",
                '<html lang="en">',
                "<head>",
                '<meta charset="utf-8">',
                f"<title>{html.escape_text(draft.title)}</title>",
                *above,
                "",
            ]
        )
    )
    body = ["<body>", "<article>", article_markup(draft), "</article>", "</body>", "</html>", ""]
    closing = scrub("\n".join([*below, "</head>", *body]))
    # The hash covers the article alone, so the page is read before its own hash stands in it.
    reading = record.read_detail_at_door("", f"{opening}{_hash_line('')}{closing}".encode())
    page = f"{opening}{_hash_line(reading.content_hash)}{closing}"
    detail = reading.detail and _with_blob(reading.detail, page)
    return Rendered(page, reading.content_hash, reading.problems, detail)


def _hash_line(content_hash: str) -> str:
    return (
        html.start_tag("meta", [("name", f"{PREFIX}content-hash"), ("content", content_hash)])
        + "\n"
    )


def _with_blob(detail: record.Detail, page: str) -> record.Detail:
    found = detail.record._replace(blob_sha=blob_sha(page.encode()))
    return detail._replace(record=found)


def plan_path(draft: Draft, at: str, taken: Callable[[str], bool]) -> str:
    """Where a draft goes (spec `format` §2.5); a caller's own memory path gets no suffix.

    `taken` is asked for derived paths only. Raises `StrictPath` and `PathExhausted`.
    """
    if draft.path is not None:
        path = paths.normalise(draft.path)
        fault = paths.problem(path)
        if fault is None:
            return path
        if draft.strict_path:
            raise StrictPath(draft.path, "is blank" if is_blank(draft.path) else fault)
    folder = paths.placement(draft.memory_type, draft.workspace, draft.tags)
    stem = paths.slug(draft.title)
    for ordinal in range(1, paths.LAST_ORDINAL + 1):
        name = paths.filename(paths.suffixed(stem, ordinal), draft.memory_type, at)
        if not taken(f"{folder}/{name}"):
            return f"{folder}/{name}"
    raise PathExhausted(folder, stem)


def claim_from_body(body: str) -> tuple[str, list[str]]:
    """The claim and the paragraphs of a body (spec `format` §6.1)."""
    text = trim(body)
    found = _CLAIM_END.search(text)
    if found is None:
        return text, []
    return trim(text[: found.end()]), split_paragraphs(trim(text[found.end() :]))


def split_paragraphs(text: str) -> list[str]:
    """`text` cut at blank lines outside backtick fences; blank paragraphs are dropped."""
    paragraphs: list[list[str]] = [[]]
    ticks = 0
    for line in text.split("\n"):
        bare = trim(line)
        if ticks:
            if _closes(bare, ticks):
                ticks = 0
        elif opened := _FENCE.fullmatch(bare):
            ticks = len(opened[1])
        elif not bare:
            paragraphs.append([])
            continue
        paragraphs[-1].append(line)
    joined = ["\n".join(lines) for lines in paragraphs]
    return [paragraph for paragraph in joined if not is_blank(paragraph)]


def article_markup(draft: Draft) -> str:
    """The inside of the article: the draft's own markup or its prose, serialised (§6.2, §6.4)."""
    if draft.article_html is not None and not is_blank(draft.article_html):
        markup = draft.article_html
    else:
        claim, paragraphs = _prose(draft)
        markup = _prose_markup(claim, paragraphs)
    try:
        return trim(html.serialise(html.parse_article(scrub(markup)).root))
    except html.TooTangled:
        return trim(markup)


def _prose(draft: Draft) -> tuple[str, Sequence[str]]:
    if draft.claim is not None or draft.paragraphs:
        kept = [paragraph for paragraph in draft.paragraphs if not is_blank(paragraph)]
        return trim(draft.claim or ""), kept
    return claim_from_body(draft.body or "")


def _prose_markup(claim: str, paragraphs: Sequence[str]) -> str:
    opening = f"<mark>{html.escape_text(claim)}</mark>"
    blocks = [_fence_markup(paragraph) for paragraph in paragraphs]
    rest = list(zip(paragraphs, blocks, strict=True))
    if rest and rest[0][1] is None:
        opening += " " + html.escape_text(trim(rest[0][0]))
        rest = rest[1:]
    shown = [block or f"<p>{html.escape_text(trim(text))}</p>" for text, block in rest]
    return "\n".join([f"<p>{opening}</p>", *shown])


def _fence_markup(paragraph: str) -> str | None:
    """The figure of a fenced paragraph, or None when it is text (spec `format` §6.3)."""
    lines = paragraph.split("\n")
    opened = _FENCE.fullmatch(trim(lines[0]))
    if opened is None or len(lines) < 2 or not _closes(trim(lines[-1]), len(opened[1])):
        return None
    word = trim(opened[2]).split()[:1]
    known = f' data-lang="{word[0].lower()}"' if word and is_language(word[0]) else ""
    code = html.escape_text("\n".join(lines[1:-1]))
    return f"<figure><pre><code{known}>{code}</code></pre></figure>"


def _closes(line: str, ticks: int) -> bool:
    """Whether a trimmed line ends a fence of that many backticks."""
    return len(line) >= ticks and not line.strip("`")


def _head_lines(draft: Draft, at: str) -> tuple[list[str], list[str]]:
    """The metas and links of a fresh file, in vocabulary order (§3.2, §6.5).

    Those above and those below the meta of the content hash.
    """
    is_task = draft.memory_type == "task"
    above: list[tuple[str, str | None]] = [
        ("type", draft.memory_type),
        ("status", "active"),
        ("created", at),
        ("updated", at),
        ("confidence", None if draft.confidence is None else two_decimals(draft.confidence)),
        ("importance", None if draft.importance is None else str(draft.importance)),
    ]
    below: list[tuple[str, str | None]] = [
        ("author", draft.author),
        ("session", draft.session_id),
        ("prompt", draft.prompt_id),
        ("turn", draft.turn_uuid),
        ("valid-from", draft.valid_from),
        ("valid-until", draft.valid_until),
        ("task-status", _stated(draft.status, "todo") if is_task else None),
        ("due", draft.due if is_task else None),
        *(("entity", entity) for entity in draft.entities if entity),
        *(("tag", tag) for tag in draft.tags if tag),
        *(("alias", alias) for alias in draft.aliases if alias),
    ]
    links = [
        html.start_tag("link", [("rel", rel_token(rel)), ("href", href)])
        for rel, href in draft.links
    ]
    return _meta_lines(above), [*_meta_lines(below), *links]


def _meta_lines(metas: Sequence[tuple[str, str | None]]) -> list[str]:
    return [
        html.start_tag("meta", [("name", PREFIX + name), ("content", value)])
        for name, value in metas
        if value is not None and not is_blank(value)
    ]


def _stated(value: str | None, default: str) -> str:
    return default if value is None or is_blank(value) else value
