"""What the models share: strictness, and the few text forms of spec `cli`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Model(BaseModel):
    """No unknown key, no coercion, no change after validation."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Sparse(Model):
    """Some fields stand only where they apply, and are never null."""

    @field_validator("*", mode="before")
    @classmethod
    def _absent_or_set(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("is absent or has a value, never null")
        return value


Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[int, Field(ge=0)]
RecordPath = Annotated[str, Field(pattern=r"^[^/]")]
"""Relative to the store root, no leading slash."""
RefName = Annotated[str, Field(pattern=r"^refs/.")]
SessionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
InstantMs = Annotated[
    str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$")
]
"""An instant in UTC with milliseconds."""


def no_default(schema: dict[str, Any]) -> None:
    """Take the null default out of the JSON Schema of a field that is absent or has a value."""
    schema.pop("default", None)
