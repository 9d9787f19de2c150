"""The store policy: what `memhtml.config.json` may say and what it means (spec `write-bar` §5–6).

The decoder is written by hand, because put, exec and every closed door read the file and pydantic
costs 37 ms to import. It fails closed: anything it does not know is an error, never a default.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from memhtml.config import policy_bytes
from memhtml.errors import StorageError

V1Doors: TypeAlias = Literal["closed-in-session", "open", "closed"]

FILE_NAME = "memhtml.config.json"
V1_DOORS: tuple[V1Doors, ...] = ("closed-in-session", "open", "closed")
KEYS: tuple[str, ...] = ("writeBar", "v1Doors")
WRITE_BAR_KEYS: tuple[str, ...] = ("refuseTypes", "requireAnchor")


class Policy(NamedTuple):
    """The configurable half of the write bar, and whether the v1 doors are open."""

    refuse_types: frozenset[str] = frozenset()
    require_anchor: bool = False
    v1_doors: V1Doors = "closed-in-session"

    def closes_doors(self, *, in_session: bool) -> bool:
        """Whether `write`, `apply`, `correct` and `task add` refuse (spec `write-bar` §6).

        `in_session` says that `MEMHTML_SESSION` holds something that is not blank.
        """
        return self.v1_doors == "closed" or (self.v1_doors != "open" and in_session)


DEFAULT = Policy()
"""What holds without a file."""


class _Object(dict[str, Any]):
    """A JSON object that remembers the first key it was given twice."""

    repeated: str | None = None


def load(root: str) -> Policy:
    """The policy in force in the store at `root`, read from the working tree.

    Errors raised: `StorageError` `policy.invalid` for a file that cannot be read or does not
    decode (spec `write-bar` §5.3).
    """
    data = policy_bytes(root)
    return DEFAULT if data is None else decode(data)


def decode(data: bytes) -> Policy:
    """The policy a file's bytes state. Errors raised: `StorageError` `policy.invalid`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse("", "UTF-8 text", cause=error)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_not_json)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        _refuse(where, f"a JSON object ({error.msg})", cause=error)
    except (ValueError, RecursionError) as error:
        _refuse("", "a JSON object", cause=error)
    return from_value(value)


def from_value(value: object) -> Policy:
    """The policy of a parsed file, as a replay fixture carries it.

    Errors raised: `StorageError` `policy.invalid`.
    """
    top = _keys(value, "", KEYS)
    bar = _keys(top.get("writeBar", {}), "writeBar", WRITE_BAR_KEYS)
    return Policy(
        _refuse_types(bar.get("refuseTypes", [])),
        _require_anchor(bar.get("requireAnchor", False)),
        _v1_doors(top.get("v1Doors", DEFAULT.v1_doors)),
    )


def encode(policy: Policy) -> dict[str, Any]:
    """The JSON object that states every setting; `from_value` is its inverse."""
    from memhtml_format.vocab import TYPES

    return {
        "writeBar": {
            "refuseTypes": [name for name in TYPES if name in policy.refuse_types],
            "requireAnchor": policy.require_anchor,
        },
        "v1Doors": policy.v1_doors,
    }


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            found.repeated = key
            break
        seen.add(key)
    return found


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _keys(value: object, path: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    """`value` as an object with none but the allowed keys, each once."""
    if not isinstance(value, dict):
        _refuse(path, "a JSON object")
    listed = f"the keys {', '.join(allowed)}"
    for key in value:
        if key not in allowed:
            _refuse(_below(path, key), f"only {listed}")
    if isinstance(value, _Object) and value.repeated is not None:
        _refuse(_below(path, value.repeated), f"{listed}, each once at most")
    return value


def _refuse_types(value: object) -> frozenset[str]:
    # Most stores have no policy file, and every exec asks for it.
    from memhtml_format.vocab import TYPES

    path = "writeBar.refuseTypes"
    expected = f"memory types without repeats, out of {', '.join(TYPES)}"
    if not isinstance(value, list):
        _refuse(path, f"an array of {expected}")
    seen: set[str] = set()
    for place, name in enumerate(value):
        if not isinstance(name, str) or name not in TYPES or name in seen:
            _refuse(f"{path}[{place}]", expected)
        seen.add(name)
    return frozenset(seen)


def _require_anchor(value: object) -> bool:
    if not isinstance(value, bool):
        _refuse("writeBar.requireAnchor", "true or false")
    return value


def _v1_doors(value: object) -> V1Doors:
    for known in V1_DOORS:
        if value == known:
            return known
    _refuse("v1Doors", f"one of {', '.join(V1_DOORS)}")


def _below(path: str, key: str) -> str:
    """The key path of `key`, shown so that odd keys cannot break the message."""
    shown = key if key.isidentifier() else json.dumps(key)
    return f"{path}.{shown}" if path else shown


def _refuse(path: str, expected: str, *, cause: Exception | None = None) -> NoReturn:
    """Name the file, the key path, what was expected (spec `write-bar` §5.3)."""
    where = f"{FILE_NAME}: {path}" if path else FILE_NAME
    raise StorageError("policy.invalid", f"{where}: expected {expected}") from cause
