"""What `search` and `recall` answer (spec `cli` §11)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from memhtml.schema.base import Count, Model, RecordPath
from memhtml.schema.reads import Instant, MemoryType, Share

Score = Annotated[float, Field(gt=0, le=1)]


class Hit(Model):
    """One memory that a search found."""

    path: RecordPath
    title: str
    gist: str
    memory_type: Annotated[MemoryType, Field(alias="memoryType")]
    score: Score
    confidence: Share
    updated_at: Annotated[Instant, Field(alias="updatedAt")]
    snippet: Annotated[str, Field(max_length=700)]
    entities: list[str]
    superseded_by: Annotated[RecordPath | None, Field(alias="supersededBy")]
    est_tokens: Annotated[Count, Field(alias="estTokens")]


class ArchivedMatch(Model):
    """An archived memory in a scope that no live one is in."""

    path: RecordPath
    superseded_by: Annotated[RecordPath | None, Field(alias="supersededBy")]


class MemoryHits(Model):
    """`memory.hits`."""

    hits: Annotated[list[Hit], Field(max_length=500)]
    degraded: bool
    vector_coverage: Annotated[Share, Field(alias="vectorCoverage")]
    arms: list[Literal["fts", "vector", "recency", "salience"]]
    entity_scope: Annotated[str | None, Field(alias="entityScope")]
    scope_empty: Annotated[bool, Field(alias="scopeEmpty")]
    archived_matches: Annotated[Count, Field(alias="archivedMatches")]
    archived: list[ArchivedMatch]

    @model_validator(mode="after")
    def _says_what_ran(self) -> MemoryHits:
        if self.degraded == ("vector" in self.arms):
            raise ValueError("degraded says that the vector arm did not run")
        if self.scope_empty and self.hits:
            raise ValueError("an empty scope has no hits")
        if not self.scope_empty and (self.archived_matches or self.archived):
            raise ValueError("only an empty scope points at the archive")
        return self


class Disclosed(Model):
    """A memory that is quoted."""

    path: RecordPath
    title: str
    gist: str
    memory_type: Annotated[MemoryType, Field(alias="memoryType")]
    body: Annotated[str, Field(min_length=1)]


class IndexLine(Model):
    """A memory that is only named."""

    path: RecordPath
    title: str
    gist: str
    memory_type: Annotated[MemoryType, Field(alias="memoryType")]
    est_tokens: Annotated[Count, Field(alias="estTokens")]


class Pack(Model):
    """One list of a recall: what is quoted, what is only named, and what that spent."""

    disclosed: list[Disclosed]
    index_lines: Annotated[list[IndexLine], Field(alias="indexLines")]
    spent_chars: Annotated[Count, Field(alias="spentChars")]
    truncated: bool

    @model_validator(mode="after")
    def _adds_up(self) -> Pack:
        if self.spent_chars != sum(len(each.body) for each in self.disclosed):
            raise ValueError("spentChars counts the characters that are quoted")
        if self.truncated != bool(self.index_lines):
            raise ValueError("truncated says that there are index lines")
        return self


class RecallPack(Model):
    """`recall.pack`."""

    arcs: Pack
    memories: Pack
    spent_chars: Annotated[Count, Field(alias="spentChars")]
    truncated: bool
    degraded: bool
    vector_coverage: Annotated[Share, Field(alias="vectorCoverage")]

    @model_validator(mode="after")
    def _adds_up(self) -> RecallPack:
        if self.spent_chars != self.arcs.spent_chars + self.memories.spent_chars:
            raise ValueError("spentChars is the sum of both lists")
        if self.truncated != (self.arcs.truncated or self.memories.truncated):
            raise ValueError("truncated says that either list is")
        return self


PAYLOADS: dict[str, type[BaseModel]] = {"memory.hits": MemoryHits, "recall.pack": RecallPack}
"""Response type → the model of its `data`."""
