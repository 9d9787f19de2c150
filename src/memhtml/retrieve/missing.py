"""The failure on a path that holds no record, with the calls that lead on (spec `cli` §6.1)."""

from __future__ import annotations

from memhtml.errors import MemhtmlError

_MOST_WORDS = 8
_LONGEST_SHOWN = 200


def path_not_found(path: str) -> MemhtmlError:
    """`ERR_PATH_NOT_FOUND`: where the fact went, then a search for its words, then the list.

    `path` is normalised. A name that no line could carry is left a placeholder.
    """
    import shlex  # 2 ms, and only here.

    shown = path if len(path) <= _LONGEST_SHOWN else f"{path[: _LONGEST_SHOWN - 1]}…"
    # A leading slash is dropped again; without it the word would be taken for a flag.
    word = f"/{path}" if path.startswith("-") else path
    usable = path.isprintable() and shown == path and path
    named = shlex.quote(word) if usable else "<path>"
    return MemhtmlError(
        "ERR_PATH_NOT_FOUND",
        f"there is no memory at {shown!r}",
        suggestions=(f"memhtml resolve {named}", f"memhtml search {_query(path)}", "memhtml list"),
    )


def _query(path: str) -> str:
    """The words of the file's name in quotes, as a search takes them."""
    name = path.rpartition("/")[2].removesuffix(".html")[:_LONGEST_SHOWN]
    words = "".join(each if each.isalnum() else " " for each in name).split()
    return f"'{' '.join(words[:_MOST_WORDS])}'" if words else "<query>"
