"""Hands new objects to git as one pack, to be kept as a pack or taken apart into files.

Making a file is the dear part of storing an object, so many stay together; git draws the same line
for what it fetches. git itself installs what it is given, so a half-written pack is never seen.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from hashlib import sha1
from typing import Literal

from memhtml.store.child import git_failed, run_git

WORTH_A_PACK = 100
"""From so many new objects on a pack pays."""

ObjectKind = Literal["blob", "tree", "commit"]

_TYPE_NUMBERS = {"commit": 1, "tree": 2, "blob": 3}
_FASTEST = 1


def object_id(kind: str, data: bytes) -> str:
    """The id git gives to an object of these bytes."""
    digest = sha1(f"{kind} {len(data)}\0".encode(), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def install_pack(root: str, objects: Mapping[str, tuple[ObjectKind, bytes]]) -> None:
    """Store `objects`, given by their ids, as a pack file. Raises `MemhtmlError` `ERR_GIT`."""
    _hand_over(root, objects, "index-pack", "--stdin")


def unpack_objects(root: str, objects: Mapping[str, tuple[ObjectKind, bytes]]) -> None:
    """Store `objects`, given by their ids, as files. Raises `MemhtmlError` `ERR_GIT`."""
    _hand_over(root, objects, "unpack-objects", "-q")


def _hand_over(
    root: str, objects: Mapping[str, tuple[ObjectKind, bytes]], subcommand: str, option: str
) -> None:
    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
    for kind, data in objects.values():
        parts += [_entry_header(_TYPE_NUMBERS[kind], len(data)), zlib.compress(data, _FASTEST)]
    digest = sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    parts.append(digest.digest())
    body = b"".join(parts)
    parts.clear()  # A large write is in memory once while git takes it.
    run = run_git(root, subcommand, option, stdin=body)
    if run.status != 0:
        raise git_failed(subcommand, run)


def _entry_header(number: int, size_bytes: int) -> bytes:
    """Type and size: four bits of size beside the type, then seven a byte, lowest first."""
    header = bytearray()
    current, rest = number << 4 | size_bytes & 0x0F, size_bytes >> 4
    while rest:
        header.append(current | 0x80)
        current, rest = rest & 0x7F, rest >> 7
    header.append(current)
    return bytes(header)
