"""The entries of tree objects, as bytes: read, compared and written without any library.

Names stay exactly as stored, and a comparison decodes only what two trees do not begin with in
common. Nothing here reads or writes an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# One entry of a tree object: mode as octal text, 20-byte id. A tree: name to entry, as stored.
Raw = tuple[bytes, bytes]
Tree = dict[bytes, Raw]
TREE_MODE = b"40000"

Side = tuple[int, str]
"""A file mode and an object id in hex: what one version holds at a path."""

# Not compiled here: a call over a warm head database reads no tree. `re` keeps them compiled.
_ENTRY = rb"(?s)([0-7]+) ([^\0]*)\0(.{20})"
# Plain and not possessive: interpreters before 3.11.5 match possessive groups wrongly.
_ENTRIES = rb"(?s)(?:[0-7]+ [^\0]*\0.{20})*"
_ENTRY_EXTRA_BYTES = 22
"""What an entry takes beside its mode and its name."""

# One entry as the expression captures it: mode, name, id.
Part = tuple[bytes, bytes, bytes]


def parse_tree(data: bytes) -> Tree:
    """The entries of a tree object in stored order. Raises ValueError when it is damaged."""
    return _as_tree(_parts(data))


def differing_entries(old: bytes, new: bytes) -> tuple[Tree, Tree]:
    """The entries of each of two tree objects that the other does not have.

    Only what follows the entries they begin with in common is decoded. Raises ValueError when
    one is damaged.
    """
    common = re.compile(_ENTRIES).match(old, 0, _common_start(old, new))
    start = common.end() if common is not None else 0
    before, after = set(_parts(old[start:])), set(_parts(new[start:]))
    return _as_tree(before - after), _as_tree(after - before)


def encode_tree(entries: Tree) -> bytes:
    """A tree object's bytes; git sorts a folder as if its name ended in a slash."""

    def order(item: tuple[bytes, Raw]) -> bytes:
        name, (mode, _oid) = item
        return name + b"/" if is_tree(mode) else name

    return b"".join(
        mode + b" " + name + b"\0" + oid for name, (mode, oid) in sorted(entries.items(), key=order)
    )


def is_tree(mode: bytes) -> bool:
    """Whether an entry's stored mode is a folder's; old tools wrote a leading zero."""
    return mode in (TREE_MODE, b"040000")


def _common_start(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with in common: by halves, each compared in C."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _parts(data: bytes) -> list[Part]:
    """One pass in C: an advance spends most of its time on folders of hundreds of entries."""
    found: list[Part] = re.findall(_ENTRY, data)
    modes, names, _oids = zip(*found, strict=True) if found else ((), (), ())
    # Entries never overlap, so they are the whole object exactly when their sizes add up to it.
    size = sum(map(len, modes)) + sum(map(len, names)) + _ENTRY_EXTRA_BYTES * len(found)
    if size != len(data):
        raise ValueError("tree object is damaged")
    return found


def _as_tree(parts: Iterable[Part]) -> Tree:
    return {name: (mode, oid) for mode, name, oid in parts}
