"""Active content: what no file may hold that is written from now on (spec `format` §3.7).

Asked of bytes on their way in, never of what is loaded. Templates are looked into as well, since
a declarative shadow root runs what it holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memhtml_format.html import walk
from memhtml_format.text import ASCII_SPACE, words
from memhtml_format.vocab import PREFIX

if TYPE_CHECKING:
    from memhtml_format.scan import Scan

_ELEMENTS = words(
    "iframe frame frameset object embed applet portal base form input button textarea select "
    "noscript audio video source track canvas svg math"
)
_ATTRIBUTES = frozenset({"srcdoc", "srcset", "ping", "formaction", "background", "autofocus"})
_ADDRESSES = frozenset({"href", "src", "cite", "action", "data", "poster", "longdesc"})
_SCHEMES = frozenset({"http", "https", "mailto"})
_PLAIN_RELS = frozenset({"canonical", "alternate", "license"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*", re.IGNORECASE)
_PICTURE_CHARS = 65_536
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
_DROPPED = str.maketrans("", "", "\t\n\r")


def active_content(found: Scan) -> list[str]:
    """One sentence per thing that could run, frame, post or fetch, in document order.

    `found` was scanned with `at_door`. What templates hold comes last.
    """
    said: dict[str, None] = {}
    for tag, attributes in found.met or ():
        said.update(dict.fromkeys(_judge(tag, attributes)))
    waiting = list(found.templates)
    while waiting:
        for fragment in waiting.pop(0).template_fragments():
            for tag, node, entering in walk(fragment.first_child):
                if not entering or tag.startswith("-"):
                    continue
                said.update(dict.fromkeys(_judge(tag, node.attributes)))
                if tag == "template":
                    waiting.append(node)
    return list(said)


def _judge(tag: str, attributes: dict[str, str | None]) -> list[str]:
    said = [f"a {tag} element is active content"] if tag in _ELEMENTS else []
    if tag == "meta" and "http-equiv" in attributes:
        said.append("a meta with http-equiv is active content")
    if tag == "link" and not _is_quiet_rel(attributes.get("rel") or ""):
        said.append(
            f"a link may only be memhtml-…, canonical, alternate or license, "
            f"not {attributes.get('rel') or ''!r}"
        )
    for name, value in attributes.items():
        bare = name.rpartition(":")[2]
        if bare in _ATTRIBUTES:
            said.append(f"the attribute {name} is active content")
        elif tag == "img" and bare == "src":
            if not _is_still_picture(value or ""):
                said.append(
                    "an img may only show a root-relative file or a data: picture "
                    "(png, jpeg, gif, webp) of at most 64 KiB"
                )
        elif bare in _ADDRESSES and (scheme := _scheme(value or "")) and scheme not in _SCHEMES:
            said.append(f"the scheme {scheme}: is not allowed in {name} (http, https, mailto)")
    return said


def _is_quiet_rel(rel: str) -> bool:
    """Whether a link of this rel makes a browser fetch nothing."""
    tokens = rel.strip(ASCII_SPACE).split()
    return bool(tokens) and all(
        token.startswith(PREFIX) or token.lower() in _PLAIN_RELS for token in tokens
    )


def _cleaned(address: str) -> str:
    """What a browser's URL parser sees after its own clean-up."""
    return address.lstrip(_CONTROLS_AND_SPACE).translate(_DROPPED)


def _scheme(address: str) -> str | None:
    found = _SCHEME.match(_cleaned(address))
    return found[1].lower() if found else None


def _is_still_picture(address: str) -> bool:
    clean = _cleaned(address)
    if _PICTURE.fullmatch(clean):
        return len(clean) <= _PICTURE_CHARS
    return clean.startswith("/") and clean[1:2] not in ("/", "\\")
