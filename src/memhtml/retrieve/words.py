"""A text's words as both ranking paths cut them, and the stop words (spec `retrieval` §5, §20).

Knows nothing of quotes or of FTS5; `query` and `neighbours` make expressions of the words.
"""

from __future__ import annotations

import re

_STOP_TEXT = (
    "a an and are as at be been but by can could did do does for from had has have he her his how"
    " if in into is it its me my not of on or our s she should so t than that the their them then"
    " there these they this those to was we were what when where which who why will with would you"
    " your"
)
STOP_WORDS = frozenset(_STOP_TEXT.split())
_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The runs of Unicode letters and digits of a text, lower case, in order."""
    if not text.isascii():
        import unicodedata

        # A letter typed as letter plus accent is one word in the index as well.
        text = unicodedata.normalize("NFC", text)
    return _WORD.findall(text.lower())
