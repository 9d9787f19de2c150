"""The words of the format: types, statuses, head metas and link rels (spec `format` §3.2–3.3).

Tables only. Their order is the order in which a fresh head is written and in which an editor
finds the place of a new line.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

TYPES: tuple[str, ...] = (
    "episodic",
    "semantic",
    "procedural",
    "agent_insight",
    "user_preference",
    "error_pattern",
    "verdict",
    "precedent",
    "arc",
    "task",
)
STATUSES: tuple[str, ...] = ("active", "archived")
TASK_STATUSES: tuple[str, ...] = ("todo", "doing", "blocked", "done")

PREFIX = "memhtml-"
"""Starts every meta name and link rel that belongs to the format."""


class Meta(NamedTuple):
    """How often one head meta may stand."""

    required: bool
    repeatable: bool


_ONCE = Meta(required=True, repeatable=False)
_MAYBE = Meta(required=False, repeatable=False)
_MANY = Meta(required=False, repeatable=True)

METAS: dict[str, Meta] = {
    "type": _ONCE,
    "status": _ONCE,
    "created": _ONCE,
    "updated": _ONCE,
    "confidence": _MAYBE,
    "importance": _MAYBE,
    "content-hash": _MAYBE,
    "author": _MAYBE,
    "session": _MAYBE,
    "prompt": _MAYBE,
    "turn": _MAYBE,
    "valid-from": _MAYBE,
    "valid-until": _MAYBE,
    "reprieves": _MAYBE,
    "archived": _MAYBE,
    "superseded-by": _MAYBE,
    "needs-revision": _MAYBE,
    "task-status": _MAYBE,
    "due": _MAYBE,
    "entity": _MANY,
    "tag": _MANY,
    "alias": _MANY,
}
"""Meta name without its prefix → how often it may stand, in emission order."""

META_ORDER: dict[str, int] = {name: place for place, name in enumerate(METAS)}
REQUIRED: tuple[str, ...] = tuple(name for name, meta in METAS.items() if meta.required)
REPEATABLE: frozenset[str] = frozenset(name for name, meta in METAS.items() if meta.repeatable)

RelClass: TypeAlias = Literal["memory", "person", "provenance", "task"]

RELS: dict[str, RelClass] = {
    "supersedes": "memory",
    "contradicts": "memory",
    "caused_by": "memory",
    "leads_to": "memory",
    "part_of": "memory",
    "relates_to": "memory",
    "example_of": "memory",
    "supports": "memory",
    "laterally_related": "memory",
    "about_person": "person",
    "authored_by": "person",
    "from_session": "provenance",
    "blocks": "task",
    "subtask_of": "task",
}
"""Rel → its class."""


def rel_token(rel: str) -> str:
    """The `rel` attribute value of a bare rel: `relates_to` gives `memhtml-relates-to`."""
    return PREFIX + rel.replace("_", "-")


def rel_of_token(token: str) -> str | None:
    """The bare rel of a whole `rel` value, hyphens or underscores; None outside the vocabulary."""
    if not token.startswith(PREFIX):
        return None
    rel = token[len(PREFIX) :].replace("-", "_")
    return rel if rel in RELS else None


def is_language(token: str) -> bool:
    """Whether a `data-lang` value, or a fence's info word, is a language token (§3.5)."""
    import re

    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_+#.-]*", token) is not None
