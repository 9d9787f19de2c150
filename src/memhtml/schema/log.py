"""The session log, `.memhtml/sessions/<id>.json` (spec `sessions` §1.2)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from memhtml.schema.base import Count, Model, RefName, SessionId, Sha, no_default
from memhtml.schema.operations import Operation


class SessionLog(Model):
    """One session: its base, its ref, its operations in order."""

    id: SessionId
    base_sha: Annotated[Sha, Field(alias="baseSha")]
    ref: RefName
    ops: list[Operation]
    pending: Annotated[Sha | SkipJsonSchema[None], Field(json_schema_extra=no_default)] = None
    pending_ops: Annotated[
        Count | SkipJsonSchema[None], Field(alias="pendingOps", json_schema_extra=no_default)
    ] = None

    @field_validator("pending", "pending_ops", mode="before")
    @classmethod
    def _absent_or_set(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("is absent or has a value, never null")
        return value

    @model_validator(mode="after")
    def _counts_what_is_there(self) -> SessionLog:
        if self.pending_ops is None:
            return self
        if self.pending is None:
            raise ValueError("pendingOps stands beside pending")
        if self.pending_ops > len(self.ops):
            raise ValueError("pendingOps counts more operations than the log holds")
        return self
