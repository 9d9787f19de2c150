"""The store policy file, `memhtml.config.json` (spec `write-bar` §5).

`memhtml.policy` decodes the file by hand on every put and exec; a test checks that both accept
the same files. JSON Schema cannot say that a key stands once, so only the decoder refuses that.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from memhtml.schema.base import Model

MemoryType: TypeAlias = Literal[
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
]


def _no_repeats(value: list[MemoryType]) -> list[MemoryType]:
    if len(set(value)) < len(value):
        raise ValueError("a memory type stands once at most")
    return value


class WriteBar(Model):
    """What a put, a move or an unlabel must meet."""

    refuse_types: Annotated[
        list[MemoryType], AfterValidator(_no_repeats), Field(alias="refuseTypes")
    ] = Field(default_factory=list, json_schema_extra={"uniqueItems": True, "default": []})
    require_anchor: Annotated[bool, Field(alias="requireAnchor")] = False


class StorePolicy(Model):
    """The whole file; an absent file means all defaults."""

    write_bar: Annotated[WriteBar, Field(alias="writeBar")] = WriteBar()
    v1_doors: Annotated[Literal["closed-in-session", "open", "closed"], Field(alias="v1Doors")] = (
        "closed-in-session"
    )
