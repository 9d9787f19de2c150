"""."""

from __future__ import annotations

import re

from memhtml_format.text import ASCII_SPACE, collapse_ascii

_BETWEEN_TAGS = re.compile(f"(?<=>)[{ASCII_SPACE}]+(?=<)")


def collapse_markup(text: str) -> str:
    """Markup without white space between tags, other runs one space, trimmed (`harvest` §3.4)."""
    return collapse_ascii(_BETWEEN_TAGS.sub("", text)).strip(" ")
