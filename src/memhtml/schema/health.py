"""What `doctor` and `publish` answer (spec `cli` §11)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from memhtml.schema.base import Count, Model, RecordPath, Sha

Share = Annotated[float, Field(ge=0, le=1)]
SpaceName = Annotated[str, Field(pattern=r".@[0-9]+$")]


class DanglingEdge(Model):
    """An authored edge whose target has no file."""

    src_path: Annotated[RecordPath, Field(alias="srcPath")]
    rel: str
    dst_path: Annotated[RecordPath, Field(alias="dstPath")]
    rewrite_to: Annotated[RecordPath | None, Field(alias="rewriteTo")]


class OverdueTask(Model):
    """An open task whose due day is over."""

    path: RecordPath
    task_status: Annotated[Literal["todo", "doing", "blocked"], Field(alias="taskStatus")]
    due_at: Annotated[str, Field(alias="dueAt")]


class StaleBlocker(Model):
    """An open task that waits for what is archived or gone."""

    path: RecordPath
    blocker_path: Annotated[RecordPath, Field(alias="blockerPath")]
    blocker_state: Annotated[Literal["archived", "missing"], Field(alias="blockerState")]


class UntypedEntity(Model):
    """An entity value without a type half, and how many files have it."""

    entity_name: Annotated[str, Field(alias="entityName")]
    files: Annotated[int, Field(ge=1)]


class FileWarnings(Model):
    """What a file's own format has to say."""

    path: RecordPath
    warnings: Annotated[list[str], Field(min_length=1)]


class SupersededLive(Model):
    """A live memory that another live one supersedes."""

    path: RecordPath
    superseded_by: Annotated[RecordPath, Field(alias="supersededBy")]


class Settings(Model):
    """Whether a settings file is valid, and what is wrong with it."""

    ok: bool
    error: str | None

    @model_validator(mode="after")
    def _error_or_fine(self) -> Settings:
        if self.ok != (self.error is None):
            raise ValueError("what is wrong has an error, and nothing else has")
        return self


class Repaired(Model):
    """What `--fix` did."""

    rewritten: Count
    dropped: Count
    failed_writes: Annotated[list[RecordPath], Field(alias="failedWrites")]
    pruned_access_rows: Annotated[Count, Field(alias="prunedAccessRows")]
    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]


class DoctorReport(Model):
    """`doctor.report`: the store as found, also after a repair."""

    root: str
    healthy: bool
    dangling: list[DanglingEdge]
    orphan_access_rows: Annotated[list[str], Field(alias="orphanAccessRows")]
    inbox_depth: Annotated[Count, Field(alias="inboxDepth")]
    inbox_crowded: Annotated[bool, Field(alias="inboxCrowded")]
    inbox_task_depth: Annotated[Count, Field(alias="inboxTaskDepth")]
    inbox_tasks_crowded: Annotated[bool, Field(alias="inboxTasksCrowded")]
    overdue_tasks: Annotated[list[OverdueTask], Field(alias="overdueTasks")]
    stale_blockers: Annotated[list[StaleBlocker], Field(alias="staleBlockers")]
    untyped_entities: Annotated[list[UntypedEntity], Field(alias="untypedEntities", max_length=20)]
    untyped_entity_total: Annotated[Count, Field(alias="untypedEntityTotal")]
    warnings: list[FileWarnings]
    unparseable: list[RecordPath]
    superseded_live: Annotated[list[SupersededLive], Field(alias="supersededLive")]
    index_fresh: Annotated[bool, Field(alias="indexFresh")]
    index_head_sha: Annotated[Sha | None, Field(alias="indexHeadSha")]
    head_sha: Annotated[Sha | None, Field(alias="headSha")]
    embed_model_matches: Annotated[bool, Field(alias="embedModelMatches")]
    stored_embed_model: Annotated[SpaceName | None, Field(alias="storedEmbedModel")]
    configured_embed_model: Annotated[SpaceName | None, Field(alias="configuredEmbedModel")]
    vector_coverage: Annotated[Share, Field(alias="vectorCoverage")]
    vector_coverage_floor: Annotated[Share, Field(alias="vectorCoverageFloor")]
    vector_coverage_low: Annotated[bool, Field(alias="vectorCoverageLow")]
    vector_coverage_remedy: Annotated[str | None, Field(alias="vectorCoverageRemedy")]
    chunks: Count
    embeddings: Count
    dirty: list[str]
    policy: Settings
    hooks: Settings
    repaired: Repaired | None


class PublishReport(Model):
    """`publish.report`. `paths` are the files that changed, those removed included."""

    root: str
    artifacts: Count
    written: Count
    paths: list[RecordPath]
    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]


PAYLOADS: dict[str, type[BaseModel]] = {
    "doctor.report": DoctorReport,
    "publish.report": PublishReport,
}
"""Response type → the model of its `data`."""
