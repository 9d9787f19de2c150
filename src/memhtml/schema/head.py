"""What the head commands answer (spec `cli` §11, §12)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from memhtml.schema.base import Count, Milliseconds, Model, Sha
from memhtml.schema.payloads import Head, NeighborHit, Vector


class HeadStatus(Head):
    """`head.status`: the head fields, and the server's own status, which this build never has."""

    server: None


class HeadSearch(Model):
    """`head.search`."""

    query: str
    hits: list[NeighborHit]
    vector: Vector
    search_ms: Annotated[float, Field(alias="searchMs", ge=0)]
    head: Head


class HeadSnapshot(Model):
    """`head.snapshot`; the last three are null when it was only read."""

    mode: Literal["write", "read"]
    sha: Sha
    path: str
    rows: Count
    bytes: Count | None
    ms: Milliseconds | None
    pruned: list[Sha] | None

    @model_validator(mode="after")
    def _written_or_read(self) -> HeadSnapshot:
        if (self.mode == "write") != (None not in (self.bytes, self.ms, self.pruned)):
            raise ValueError("bytes, ms and pruned have values exactly when it was written")
        return self


class HeadEmbedded(Model):
    """`head.embedded`; `cached` counts the vectors that are there now."""

    path: str
    model_id: Annotated[str, Field(alias="modelId")]
    dimension: Annotated[int, Field(ge=1)]
    records: Count
    reused: Count
    embedded: Count
    empty: Count
    cached: Count
    bytes: Count
    written: bool
    load_ms: Annotated[Milliseconds, Field(alias="loadMs")]
    embed_ms: Annotated[Milliseconds, Field(alias="embedMs")]
    save_ms: Annotated[Milliseconds, Field(alias="saveMs")]
    ms: Milliseconds
    head: Head

    @model_validator(mode="after")
    def _written_when_embedded(self) -> HeadEmbedded:
        if self.written != (self.embedded > 0):
            raise ValueError("written says whether any vector was embedded")
        return self


PAYLOADS: dict[str, type[BaseModel]] = {
    "head.status": HeadStatus,
    "head.search": HeadSearch,
    "head.snapshot": HeadSnapshot,
    "head.embedded": HeadEmbedded,
}
"""Response type → the model of its `data`."""
