"""Why a door refuses: sentences, codes and ways on that several doors share (spec `cli` §6, §10).

Nothing here looks at a store.
"""

from __future__ import annotations

from collections.abc import Sequence

from memhtml.errors import MemhtmlError, StorageError

EXHAUSTED = "write.pathExhausted"

_LONGEST_SHOWN = 200


def occupied(path: str) -> MemhtmlError:
    """`ERR_WRITE_CONFLICT`: something is at an explicit path, or in its way."""
    return MemhtmlError(
        "ERR_WRITE_CONFLICT",
        f"{shown(path)} is taken",
        suggestions=(
            f"memhtml read {_quoted(path)}",
            f"memhtml correct {_quoted(path)} --title <title> --claim <sentence>",
        ),
    )


def invalid(text: str) -> MemhtmlError:
    """`ERR_INVALID_MEMORY` with a sentence."""
    return MemhtmlError("ERR_INVALID_MEMORY", text)


def broken(problems: Sequence[str]) -> MemhtmlError:
    """`ERR_INVALID_MEMORY` with every violation, joined as spec `format` §3.6 says."""
    return invalid("; ".join(problems))


def duplicate(existing: str) -> MemhtmlError:
    """`ERR_DUPLICATE_CONTENT`: another active memory says the same already."""
    return MemhtmlError(
        "ERR_DUPLICATE_CONTENT",
        f"{shown(existing)} holds the same content already",
        suggestions=(f"memhtml read {_quoted(existing)}",),
    )


def exhausted(folder: str, stem: str, last: int) -> StorageError:
    """`write.pathExhausted`: every name up to the last ordinal is taken."""
    return StorageError(
        EXHAUSTED, f"no free name for {stem} in {folder} up to -{last}; change the title"
    )


def shown(path: str) -> str:
    """A path at a length that a sentence can carry."""
    return path if len(path) <= _LONGEST_SHOWN else f"{path[: _LONGEST_SHOWN - 1]}…"


def _quoted(word: str) -> str:
    import shlex  # 2 ms, and only for a failure.

    # A leading slash is dropped again; without it the word would be taken for a flag.
    return shlex.quote(f"/{word}" if word.startswith("-") else word)
