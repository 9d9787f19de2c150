"""Light English stems for comparing a query with the texts of a pool.

The index stems by itself (`porter`); this one is only for the last step, which has the texts at
hand and no index. It cuts endings and knows no dictionary, so other languages pass nearly as is.
"""

from __future__ import annotations

# Longer ones first, where one ends in the other.
_ENDING_TEXT = "ments ment ings ing edly ied ies ers est ed es er ly s e"
_ENDINGS = _ENDING_TEXT.split()
_LEAST = 3


class Stems(dict[str, str]):
    """Stems by lower-case word, each computed once."""

    def __missing__(self, word: str) -> str:
        found = self[word] = stem(word)
        return found


def stem(word: str) -> str:
    """The word without its ending, at least three letters of it. `word` is lower case."""
    if len(word) <= _LEAST or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            word = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            break
    if len(word) > _LEAST and word[-1] == word[-2]:
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") else word
