"""One listing as an HTML page that opens straight from a disk, without a server or a script.

Built as a tree, so that no title or claim can become markup; a content-security policy lets
nothing run, load, frame or post (spec `format` §3.7). The bytes depend on the folder alone.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree  # Loaded with this module, which only `publish` loads.

from memhtml.publish.folders import newest_first, slot_order
from memhtml.publish.links import page_text, relative

if TYPE_CHECKING:
    from memhtml.publish.folders import Child, Folder
    from memhtml.publish.rows import Row

GENERATOR = "memhtml publish"
STORE_NAME = "Memories"
GROUPED_ABOVE = 60
"""A longer listing is divided by month."""
TITLE_CHARS = 160
CLAIM_CHARS = 280

_BUCKET_NOTES = {
    "projects": "What belongs to one piece of work.",
    "areas": "What goes on: the inbox, tasks and arcs.",
    "resources": "What is known, by topic.",
    "archive": "What no longer holds, kept for the record.",
}
STYLE_FILE = os.path.join(os.path.dirname(__file__), "page.css")


def page(
    folder: Folder, retired: Sequence[tuple[str, int]] = (), latest: Sequence[Row] = ()
) -> bytes:
    """The page of a folder.

    `retired` are the archive folders that hold memories once in it, each with how many; `latest`
    are memories of the whole store, for the page of the store.
    """
    html = etree.Element("html", lang="en")
    html.text = "\n"
    _head(html, folder)
    body = _add(html, "body")
    _way(body, folder)
    _add(body, "h1", _name(folder))
    _add(body, "p", _summary(folder)).set("class", "note")
    _folders(body, folder)
    groups = list(_groups(folder))
    _months(body, groups)
    for heading, rows in groups:
        _records(body, folder, heading, rows)
    if latest:
        _records(body, folder, "Latest", latest)
    _retired(body, folder, retired)
    text: bytes = etree.tostring(html, method="html", encoding="utf-8", doctype="<!doctype html>")
    return text + b"\n"


def _head(html: etree._Element, folder: Folder) -> None:
    head = _add(html, "head")
    _add(head, "meta", charset="utf-8")
    style = page_style()
    policy = f"default-src 'none'; style-src '{style.name}'; base-uri 'none'; form-action 'none'"
    _add(head, "meta", **{"http-equiv": "Content-Security-Policy", "content": policy})
    _add(head, "meta", name="generator", content=GENERATOR)
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "meta", name="referrer", content="no-referrer")
    where = f"{folder.path} – " if folder.path else ""
    _add(head, "title", f"{where}{STORE_NAME}")
    _add(head, "style", style.text)


class Style(NamedTuple):
    """The one style that a page may have, and the name its policy knows it by."""

    text: str
    name: str


@cache
def page_style() -> Style:
    """The style of every page."""
    with open(STYLE_FILE, encoding="utf-8") as file:
        text = file.read()
    digest = hashlib.sha256(text.encode()).digest()
    return Style(text, f"sha256-{base64.b64encode(digest).decode('ascii')}")


def _way(body: etree._Element, folder: Folder) -> None:
    """The folders above, outermost first."""
    if not folder.path:
        return
    nav = _add(body, "nav")
    _link(nav, folder, "index.html", STORE_NAME)
    parts = folder.path.split("/")
    for depth in range(1, len(parts)):
        _after(nav, " / ")
        _link(nav, folder, f"{'/'.join(parts[:depth])}/index.html", parts[depth - 1])
    _after(nav, f" / {parts[-1]}")


def _name(folder: Folder) -> str:
    return folder.path.rpartition("/")[2] or STORE_NAME


def _summary(folder: Folder) -> str:
    said = _BUCKET_NOTES.get(folder.path, "")
    if not said and folder.archived:
        said = _BUCKET_NOTES["archive"]
    below = folder.total - len(folder.rows)
    counted = _count(len(folder.rows)) if not below or folder.rows else _count(folder.total)
    if below and folder.rows:
        counted += f" here, {below:,} more below"
    return f"{said} {counted}.".strip()


def _count(number: int) -> str:
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def _folders(body: etree._Element, folder: Folder) -> None:
    if not folder.children:
        return
    if folder.path:
        _add(body, "h2", "Folders")
    listed = _add(body, "ul")
    listed.set("class", "folders")
    for child in _ordered(folder):
        item = _add(listed, "li")
        place = f"{folder.path}/{child.name}" if folder.path else child.name
        _link(item, folder, f"{place}/index.html", child.name)
        if not folder.path:
            _add(item, "small", _BUCKET_NOTES[child.name])
        _add(item, "span", f"{child.total:,}")


def _ordered(folder: Folder) -> Sequence[Child]:
    """The folders in it; the years of the archive newest first."""
    if folder.path != "archive":
        return folder.children
    return sorted(folder.children, key=lambda child: slot_order(child.name), reverse=True)


def _groups(folder: Folder) -> Iterator[tuple[str, list[Row]]]:
    """The memories, newest first, under one heading or, when they are many, one for each month."""
    rows = newest_first(folder.rows)
    if len(rows) <= GROUPED_ABOVE:
        if rows:
            yield "Archived" if folder.archived else "Memories", rows
        return
    for month, found in groupby(rows, key=lambda row: row.updated_at[:7]):
        yield month, list(found)


def _months(body: etree._Element, groups: Sequence[tuple[str, list[Row]]]) -> None:
    """Where each month of a long listing begins."""
    if len(groups) < 2:
        return
    ways = _add(body, "p")
    ways.set("class", "months")
    for heading, rows in groups:
        _add(ways, "a", f"{heading} ({len(rows):,})", href=f"#{heading}")


def _records(body: etree._Element, folder: Folder, heading: str, rows: Sequence[Row]) -> None:
    _add(body, "h2", heading, id=heading)
    listed = _add(body, "ul")
    listed.set("class", "records retired" if folder.archived else "records")
    for row in rows:
        item = _add(listed, "li")
        _link(item, folder, row.path, _cut(row.title, TITLE_CHARS))
        if row.claim.rstrip(".") != row.title.rstrip("."):
            _add(item, "p", _cut(row.claim, CLAIM_CHARS))
        _facts(_add(item, "small"), folder, row)


def _facts(small: etree._Element, folder: Folder, row: Row) -> None:
    """Type, day of the last update, state of a task, and what took its place."""
    small.text = page_text(f"{row.kind.replace('_', ' ')} · ")
    _add(small, "time", row.updated_at[:10]).tail = None
    if row.task_status:
        _after(small, f" · {row.task_status}")
    if row.due_at:
        _after(small, f" · due {row.due_at[:10]}")
    if row.replaced_by:
        _after(small, " · replaced by ")
        name = row.replaced_by.rpartition("/")[2].removesuffix(".html")
        _link(small, folder, row.replaced_by, name)


def _retired(body: etree._Element, folder: Folder, retired: Sequence[tuple[str, int]]) -> None:
    if not retired:
        return
    _add(body, "h2", "Archived from here")
    listed = _add(body, "ul")
    listed.set("class", "folders")
    for place, total in sorted(retired, key=lambda each: slot_order(_year(each[0])), reverse=True):
        item = _add(listed, "li")
        _link(item, folder, f"{place}/index.html", _year(place))
        _add(item, "span", f"{total:,}")


def _year(place: str) -> str:
    """The slot of an archive folder."""
    return place.split("/")[1]


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1].rstrip()}…"


def _add(parent: etree._Element, tag: str, text: str = "", **attributes: str) -> etree._Element:
    """A new last child on a line of its own."""
    element = etree.SubElement(parent, tag, attributes)
    element.text = page_text(text) if text else None
    element.tail = "\n"
    return element


def _link(parent: etree._Element, folder: Folder, path: str, text: str) -> None:
    element = _add(parent, "a", text, href=relative(path, folder.path))
    element.tail = None


def _after(parent: etree._Element, text: str) -> None:
    """Text behind the last child."""
    last = parent[-1]
    last.tail = (last.tail or "") + page_text(text)
