"""The path algebra: which paths are memories, slugs, placement, archive slots (spec `format` §2).

Plain string work on normalised repository paths; nothing here looks at a disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from memhtml_format.text import is_blank

BUCKETS: tuple[str, ...] = ("projects", "areas", "resources", "archive")
INBOX = "areas/inbox"
SLUG_CHARS = 80
LAST_ORDINAL = 1000
"""The highest collision suffix that is tried (spec `format` §2.4)."""

_TAG_ROUTED = frozenset({"semantic", "procedural", "precedent"})
_GENERATED = frozenset({"index.html", "sitemap.xml"})
_SLOT = re.compile(
    r"archive/([0-9]{4}|[1-9][0-9]{4,200})(?:\.([2-9]|[1-9][0-9]{1,200}))?/(.+)", re.DOTALL
)
_UNSAFE = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff]")
# Code points that HFS+ ignores in names; git refuses a `.git` hidden by them.
_IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
SEGMENT_BYTES = 255
"""The longest name that common file systems hold."""
_NOT_SLUG = re.compile("[^a-z0-9]+")


class ArchiveSlot(NamedTuple):
    """What `archive/<year>[.<slot>]/<original>` says; the first slot of a year is 1."""

    year: int
    slot: int
    original: str


ReservedKind: TypeAlias = Literal["state", "policy", "generated", "curation"]


class Reserved(NamedTuple):
    """Why a session may not touch a path; `text` is a phrase without the path."""

    kind: ReservedKind
    text: str


_RESERVED: dict[ReservedKind, Reserved] = {
    "state": Reserved("state", "no session writes it: .memhtml is the store's own state"),
    "policy": Reserved("policy", "no session writes it: the store policy belongs to its user"),
    "generated": Reserved(
        "generated", "no session writes it: the name belongs to a generated page"
    ),
    "curation": Reserved("curation", "only curation writes in this folder"),
}


def normalise(path: str) -> str:
    """`path` without leading, doubled and trailing slashes (spec `format` §2.1)."""
    return "/".join(part for part in path.split("/") if part)


def href(path: str) -> str:
    """The normalised path with one leading slash, as files store it."""
    return "/" + normalise(path)


def problem(path: str) -> str | None:
    """The first failing check of spec `format` §2.2 as a sentence, or None.

    `path` is normalised already. Lone surrogates are refused as well: no file name holds them.
    """
    parts = path.split("/")
    if parts[0] not in BUCKETS or len(parts) < 2:
        return f"not rooted in a PARA bucket ({', '.join(BUCKETS)})"
    if not path.endswith(".html"):
        return "does not end in .html"
    for part in parts:
        if part in ("", ".", ".."):
            return f"has a segment that is {repr(part) if part else 'blank'}"
    found = _UNSAFE.search(path)
    if found:
        name = "backslash" if found[0] == "\\" else f"U+{ord(found[0]):04X}"
        return f"holds the character {name}"
    return next((text for part in parts if (text := segment_problem(part))), None)


def segment_problem(segment: str) -> str | None:
    """Why no git checkout can hold a path segment, or None.

    Ours, beyond spec `format` §2.2: a path that passes here and fails at the commit would leave
    a log that can never land. git refuses every spelling that some file system folds to `.git`.
    """
    plain = segment.translate(_IGNORED_BY_HFS).lower().partition(":")[0].rstrip(". ")
    if plain in (".git", "git~1"):
        return f"has the segment {segment!r}, which git keeps for itself"
    if len(segment.encode()) > SEGMENT_BYTES:
        return f"has a segment longer than {SEGMENT_BYTES} bytes"
    return None


def is_memory_path(path: str) -> bool:
    """Whether a normalised path may hold a memory by spec `format` §2.2."""
    return problem(path) is None


def is_record_path(path: str) -> bool:
    """Whether a head load considers the path: in a bucket, `.html`, no listing (§1.2)."""
    bucket, slash, rest = path.partition("/")
    return (
        bool(slash)
        and bucket in BUCKETS
        and rest.endswith(".html")
        and rest.rpartition("/")[2] != "index.html"
    )


def is_archived(path: str) -> bool:
    """Whether the first segment is `archive`; the only thing that decides it (§1.2)."""
    return path.startswith("archive/")


def parents(path: str) -> Iterator[str]:
    """The proper parent folders of `path`, shortest first; the root is left out."""
    at = path.find("/")
    while at != -1:
        yield path[:at]
        at = path.find("/", at + 1)


def slug(title: str) -> str:
    """The file name stem of a title: `a-z0-9` and single hyphens, at most 80 (§2.3)."""
    from unicodedata import category, normalize

    if not title.isascii():
        title = "".join(c for c in normalize("NFKD", title) if category(c) != "Mn")
    stem = _NOT_SLUG.sub("-", title.lower()).strip("-") or "untitled"
    return stem[:SLUG_CHARS].rstrip("-") or "untitled"


def suffixed(stem: str, ordinal: int) -> str:
    """The slug tried at `ordinal`: 1 is `stem`, n ≥ 2 ends in `-n`, never over 80 (§2.4)."""
    if ordinal == 1:
        return stem
    suffix = f"-{ordinal}"
    short = stem[: SLUG_CHARS - len(suffix)].rstrip("-")
    while short + suffix == stem:
        short = short[:-1].rstrip("-")
    return (short or "untitled") + suffix


def filename(stem: str, memory_type: str, at: str) -> str:
    """`<stem>.html`; an episodic memory carries the day of the write instant `at` in front."""
    if memory_type != "episodic":
        return f"{stem}.html"
    return f"{at[:10].replace('-', '')}-{stem}.html"


def placement(memory_type: str, workspace: str | None, tags: Sequence[str]) -> str:
    """The folder of a memory without a usable path of its own (rules 3–7 of §2.5).

    A blank workspace counts as none.
    """
    if memory_type == "arc":
        return "areas/arcs"
    home = None if workspace is None or is_blank(workspace) else f"projects/{slug(workspace)}"
    if memory_type == "task":
        return f"{home or INBOX}/tasks"
    if home:
        return home
    tag = next((tag for tag in tags if not is_blank(tag)), None)
    if memory_type not in _TAG_ROUTED or tag is None or slug(tag) == "people":
        return INBOX
    return f"resources/{slug(tag)}"


def archive_path(path: str, year: int, slot: int = 1) -> str:
    """Where a retired record goes; slot 1 has no suffix (§2.6)."""
    return f"archive/{year:04d}{'' if slot == 1 else f'.{slot}'}/{path}"


def archive_slot(path: str) -> ArchiveSlot | None:
    """The inverse of `archive_path`, one prefix at a time; None for any other path."""
    found = _SLOT.fullmatch(path)
    if found is None:
        return None
    year, slot, original = found.groups()
    return ArchiveSlot(int(year), int(slot or 1), original)


def reserved(path: str, scope: str) -> Reserved | None:
    """Why `scope` ("session" or "curate") may not touch the path, or None (`write-bar` §4.1).

    An archive slot counts as what it maps back to.
    """
    path = normalise(path)
    while slot := archive_slot(path):
        path = slot.original
    if path == ".memhtml" or path.startswith(".memhtml/"):
        return _RESERVED["state"]
    if path == "memhtml.config.json":
        return _RESERVED["policy"]
    if path.rpartition("/")[2] in _GENERATED:
        return _RESERVED["generated"]
    if scope != "curate" and path.startswith(("areas/arcs/", "resources/people/")):
        return _RESERVED["curation"]
    return None


def href_target(href: str) -> str:
    """The path an href names: what stands before `?` or `#`, without its leading slash (§3.3)."""
    return href.partition("#")[0].partition("?")[0].removeprefix("/")


def is_root_relative(href: str) -> bool:
    """Whether an href has the shape of spec `format` §3.3: one leading slash, no odd segment."""
    if not href.startswith("/"):
        return False
    return not any(part in ("", ".", "..") for part in href_target(href).split("/"))
