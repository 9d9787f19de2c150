"""`sitemap.xml` at the root: every page that is about what holds now (sitemaps.org, version 0.9).

Addresses begin at the root of whatever serves the store, which its own files cannot know. What is
archived is left out, and so is the page of the store itself. It is one file, however long: that a
crawler takes 50,000 addresses of it is for whoever serves a larger store to heed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lxml import etree  # Loaded with this module, which only `publish` loads.

from memhtml.publish.links import absolute

if TYPE_CHECKING:
    from memhtml.publish.folders import Folder

PATH = "sitemap.xml"
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


class SiteMap:
    """Collects addresses; element by element, so that a large store needs no tree of them all."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._open = self._writing()
        self._file = self._open.__enter__()

    @contextmanager
    def _writing(self) -> Iterator[etree._IncrementalFileWriter]:
        with etree.xmlfile(self._buffer, encoding="utf-8", close=False) as file:
            file.write_declaration()
            with file.element(f"{{{NAMESPACE}}}urlset", nsmap={None: NAMESPACE}):
                file.write("\n")
                yield file

    def add(self, folder: Folder) -> None:
        """Add a folder's own memories and its page, unless they are archived."""
        if folder.archived:
            return
        for row in folder.rows:
            self._add(row.path, row.updated_at)
        if folder.path:
            self._add(folder.listing, folder.newest)

    def finish(self) -> bytes:
        """The whole file; nothing can be added afterwards."""
        self._open.__exit__(None, None, None)
        self._buffer.write(b"\n")
        return self._buffer.getvalue()

    def _add(self, path: str, updated_at: str) -> None:
        with self._file.element(f"{{{NAMESPACE}}}url"):
            self._say("loc", absolute(path))
            if updated_at:
                self._say("lastmod", _moment(updated_at))
        self._file.write("\n")

    def _say(self, name: str, text: str) -> None:
        with self._file.element(f"{{{NAMESPACE}}}{name}"):
            self._file.write(text)


def _moment(instant: str) -> str:
    """An instant as the schema takes it: it knows no leap second."""
    return instant[:10] if instant.endswith(":60Z") else instant
