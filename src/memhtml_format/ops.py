"""The seven session operations and their JSON (spec `write-bar` §1, `sessions` §1.2).

An operation is a named tuple; `encode` and `decode` are exact inverses, and `decode` refuses
unknown kinds, missing, extra or mistyped fields.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias


class Put(NamedTuple):
    """Write a whole new file."""

    path: str
    html: str
    kind: Literal["put"] = "put"


class AddLink(NamedTuple):
    """Add one head link; `rel` is bare (`relates_to`), `href` starts with a slash."""

    path: str
    rel: str
    href: str
    kind: Literal["link"] = "link"


class DropLink(NamedTuple):
    """Drop one head link."""

    path: str
    rel: str
    href: str
    kind: Literal["unlink"] = "unlink"


class AddLabel(NamedTuple):
    """Add one `memhtml-entity` meta."""

    path: str
    entity: str
    kind: Literal["label"] = "label"


class DropLabel(NamedTuple):
    """Drop one `memhtml-entity` meta."""

    path: str
    entity: str
    kind: Literal["unlabel"] = "unlabel"


class Archive(NamedTuple):
    """Retire the record at `path` to the slot `to`; `html` only says which article is meant."""

    path: str
    to: str
    html: str
    kind: Literal["archive"] = "archive"


class Move(NamedTuple):
    """Relocate a live record, bytes unchanged; `html` only says which article is meant."""

    path: str
    to: str
    html: str
    kind: Literal["move"] = "move"


Op: TypeAlias = Put | AddLink | DropLink | AddLabel | DropLabel | Archive | Move

KINDS: dict[str, type[Any]] = {
    "put": Put,
    "link": AddLink,
    "unlink": DropLink,
    "label": AddLabel,
    "unlabel": DropLabel,
    "archive": Archive,
    "move": Move,
}


class BadOperation(ValueError):
    """A JSON value that is no operation; the message names the field."""


def encode(op: Op) -> dict[str, str]:
    """The JSON object of `op`, `kind` first."""
    fields = op._asdict()
    return {"kind": fields.pop("kind"), **fields}


def decode(value: object) -> Op:
    """The operation of a JSON object, or `BadOperation`."""
    if not isinstance(value, dict):
        raise BadOperation("an operation is a JSON object")
    kind = value.get("kind")
    shape = KINDS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise BadOperation(f"unknown operation kind {kind!r}")
    names = [name for name in shape._fields if name != "kind"]
    if set(value) != {*names, "kind"}:
        raise BadOperation(f"a {kind} operation has exactly the fields {', '.join(names)}")
    if not all(isinstance(value[name], str) for name in names):
        raise BadOperation(f"every field of a {kind} operation is a string")
    op: Op = shape(*(value[name] for name in names))
    return op


def touched(op: Op) -> tuple[str, ...]:
    """The paths the operation touches: `path`, and `to` for archive and move."""
    if isinstance(op, Archive | Move):
        return (op.path, op.to)
    return (op.path,)
