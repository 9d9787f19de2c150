"""Addresses and texts of generated pages: relative links, and characters that XML can hold."""

from __future__ import annotations

import re
from urllib.parse import quote

# What no XML document may hold; a title can, because HTML is read more leniently.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def page_text(text: str) -> str:
    """The text with every character that XML refuses as U+FFFD."""
    return _NO_XML.sub("\ufffd", text)


def relative(path: str, folder: str) -> str:
    """The address of a file as seen from a page in `folder`; both are repository paths.

    It works from a disk as well as from a server, whatever the store's own address is.
    """
    target, start = path.split("/"), folder.split("/") if folder else []
    shared = 0
    while shared < min(len(start), len(target) - 1) and start[shared] == target[shared]:
        shared += 1
    steps = [".."] * (len(start) - shared) + [quoted(part) for part in target[shared:]]
    return "/".join(steps)


def absolute(path: str) -> str:
    """The address of a file from the root of whatever serves the store."""
    return "/" + "/".join(quoted(part) for part in path.split("/"))


def quoted(segment: str) -> str:
    """One segment of a path in an address; a colon in it names no scheme."""
    return quote(segment, safe="!$'()*,=@~")
