"""What the writing commands answer, keys in printed order (spec `cli` §10)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, model_validator

from memhtml.schema.base import Count, Model, RecordPath, Sha

ContentHash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
TaskStatus: TypeAlias = Literal["todo", "doing", "blocked", "done"]
LinkedRel: TypeAlias = Literal[
    "supersedes",
    "contradicts",
    "caused_by",
    "leads_to",
    "part_of",
    "relates_to",
    "example_of",
    "supports",
    "laterally_related",
    "blocks",
    "subtask_of",
]


class MemoryWritten(Model):
    """`memory.written`."""

    path: RecordPath
    created: bool
    deduped: bool
    existing_path: Annotated[RecordPath | None, Field(alias="existingPath")]
    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]
    content_hash: Annotated[ContentHash, Field(alias="contentHash")]

    @model_validator(mode="after")
    def _one_of_both(self) -> MemoryWritten:
        if self.created == self.deduped or self.deduped != (self.existing_path is not None):
            raise ValueError("a memory is created, or it is deduped and was there")
        return self


class Conflict(Model):
    """Another claim of the same frame with another value, stored or earlier in the batch."""

    path: RecordPath | None
    batch_index: Count | None
    claim: str

    @model_validator(mode="after")
    def _one_place(self) -> Conflict:
        if (self.path is None) == (self.batch_index is None):
            raise ValueError("exactly one of path and batch_index is set")
        return self


class NearDuplicate(Conflict):
    """Something that says nearly the same, stored or earlier in the batch."""

    similarity: Annotated[float, Field(ge=0.92, le=1)]


class BatchResult(Model):
    """What became of one operation of a batch."""

    index: Count
    ok: bool
    path: RecordPath | None
    deduped: bool
    existing_path: RecordPath | None
    code: str | None
    error: str | None
    skipped: bool
    conflict: Conflict | None
    near_duplicates: Annotated[list[NearDuplicate], Field(max_length=3)] | None

    @model_validator(mode="after")
    def _refused_or_not(self) -> BatchResult:
        refused = self.code is not None
        if self.ok != (self.path is not None) or refused != (self.error is not None):
            raise ValueError("an operation has a path, or a code and its sentence")
        if [self.ok, refused, self.skipped].count(True) != 1:
            raise ValueError("an operation is carried out, refused or skipped")
        return self


class BatchSummary(Model):
    """How many operations there were and what became of them."""

    total: Count
    written: Count
    deduped: Count
    failed: Count
    skipped: Count


class BatchApplied(Model):
    """`batch.applied`; snake case, because its shape equals the batch tool's over MCP."""

    results: list[BatchResult]
    summary: BatchSummary
    commit_sha: Sha | None
    near_duplicates_degraded: bool


class MemoryCorrected(Model):
    """`memory.corrected`."""

    path: RecordPath
    archived_path: Annotated[RecordPath, Field(alias="archivedPath")]
    commit_sha: Annotated[Sha, Field(alias="commitSha")]
    content_hash: Annotated[ContentHash, Field(alias="contentHash")]


class MemoryLinked(Model):
    """`memory.linked`; no commit when the link was there."""

    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]
    src_path: Annotated[RecordPath, Field(alias="srcPath")]
    dst_path: Annotated[RecordPath, Field(alias="dstPath")]
    rel: LinkedRel


class MemoryArchived(Model):
    """`memory.archived`."""

    path: RecordPath
    archive_path: Annotated[RecordPath, Field(alias="archivePath")]
    commit_sha: Annotated[Sha, Field(alias="commitSha")]


class TaskWritten(Model):
    """`task.written`."""

    path: RecordPath
    created: bool
    deduped: bool
    existing_path: Annotated[RecordPath | None, Field(alias="existingPath")]
    task_status: Annotated[TaskStatus, Field(alias="taskStatus")]
    due_at: Annotated[str | None, Field(alias="dueAt")]
    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]


class TaskUpdated(Model):
    """`task.updated`; `path` is the old one."""

    path: RecordPath
    task_status: Annotated[TaskStatus, Field(alias="taskStatus")]
    archived: bool
    archive_path: Annotated[RecordPath | None, Field(alias="archivePath")]
    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]
    unchanged: bool

    @model_validator(mode="after")
    def _archived_or_not(self) -> TaskUpdated:
        if self.archived != (self.archive_path is not None):
            raise ValueError("an archived task has an archive path")
        return self


PAYLOADS: dict[str, type[BaseModel]] = {
    "memory.written": MemoryWritten,
    "batch.applied": BatchApplied,
    "memory.corrected": MemoryCorrected,
    "memory.linked": MemoryLinked,
    "memory.archived": MemoryArchived,
    "task.written": TaskWritten,
    "task.updated": TaskUpdated,
}
"""Response type → the model of its `data`."""
