"""What reads, lists and the access state answer (spec `cli` §10, §11), keys in printed order.

A head meta that a file does not state is an absent key of `metas`; everywhere else a value that is
not there is null.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from memhtml.schema.base import Count, Model, RecordPath, Sha, Sparse, no_default

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
MemoryRel: TypeAlias = Literal[
    "supersedes",
    "contradicts",
    "caused_by",
    "leads_to",
    "part_of",
    "relates_to",
    "example_of",
    "supports",
    "laterally_related",
]
Para: TypeAlias = Literal["projects", "areas", "resources", "archive"]
TaskStatus: TypeAlias = Literal["todo", "doing", "blocked", "done"]
Share = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[int, Field(ge=1, le=10)]
Instant = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:]{8}Z)?$")]
"""As the file writes it: a day, or a second in UTC."""
Page = Annotated[int, Field(ge=1, le=500)]


def _sometimes(alias: str) -> Any:
    return Field(None, alias=alias, json_schema_extra=no_default)


class Metas(Sparse):
    """The head metas of a file; one it does not state, or states badly, is no key."""

    memory_type: Annotated[MemoryType, Field(alias="memoryType")]
    status: Literal["active", "archived"]
    created_at: Annotated[Instant, Field(alias="createdAt")]
    updated_at: Annotated[Instant, Field(alias="updatedAt")]
    confidence: Share | SkipJsonSchema[None] = _sometimes("confidence")
    importance: Importance | SkipJsonSchema[None] = _sometimes("importance")
    content_hash: str | SkipJsonSchema[None] = _sometimes("contentHash")
    author: str | SkipJsonSchema[None] = _sometimes("author")
    session_id: str | SkipJsonSchema[None] = _sometimes("sessionId")
    prompt_id: str | SkipJsonSchema[None] = _sometimes("promptId")
    turn_uuid: str | SkipJsonSchema[None] = _sometimes("turnUuid")
    valid_from: Instant | SkipJsonSchema[None] = _sometimes("validFrom")
    valid_until: Instant | SkipJsonSchema[None] = _sometimes("validUntil")
    reprieves: Count | SkipJsonSchema[None] = _sometimes("reprieves")
    archived_at: Instant | SkipJsonSchema[None] = _sometimes("archivedAt")
    superseded_by: str | SkipJsonSchema[None] = _sometimes("supersededBy")
    needs_revision: bool | SkipJsonSchema[None] = _sometimes("needsRevision")
    task_status: TaskStatus | SkipJsonSchema[None] = _sometimes("taskStatus")
    due_at: Instant | SkipJsonSchema[None] = _sometimes("dueAt")


class Link(Model):
    """A typed edge as the head writes it."""

    rel: str
    href: str


class MemoryDetail(Model):
    """`memory.detail`: one file in full."""

    path: RecordPath
    title: str
    metas: Metas
    entities: list[str]
    tags: list[str]
    links: list[Link]
    gist: str
    body: str
    html: str
    archived: bool
    warnings: list[str]


class StatusHealth(Model):
    """`status.health`."""

    root: str
    head_sha: Annotated[Sha | None, Field(alias="headSha")]
    dirty: bool
    dirty_paths: Annotated[list[str], Field(alias="dirtyPaths")]
    counts_by_type: Annotated[dict[MemoryType, Count], Field(alias="countsByType")]
    archived_count: Annotated[Count, Field(alias="archivedCount")]
    edges: Count
    derived_edges: Annotated[Count, Field(alias="derivedEdges")]
    chunks: Count
    embeddings: Count
    traces: Count
    index_fresh: Annotated[bool, Field(alias="indexFresh")]
    index_head_sha: Annotated[Sha | None, Field(alias="indexHeadSha")]
    embed_model: Annotated[str | None, Field(alias="embedModel")]
    embedder_up: Annotated[bool, Field(alias="embedderUp")]
    vector_coverage: Annotated[Share, Field(alias="vectorCoverage")]
    vector_coverage_floor: Annotated[Share, Field(alias="vectorCoverageFloor")]
    has_state: Annotated[bool, Field(alias="hasState")]


class Neighbor(Model):
    """A record an edge leads to; `rel` is that of the first edge, `derived` of any."""

    path: RecordPath
    title: str
    hop: Literal[1, 2]
    rel: MemoryRel
    derived: bool


class MemoryNeighbors(Model):
    """`memory.neighbors`."""

    center: str
    depth: Literal[1, 2]
    limit: Annotated[int, Field(ge=1, le=200)]
    nodes: list[Neighbor]
    edges: Count
    nodes_dropped: Annotated[Count, Field(alias="nodesDropped")]
    scan_saturated: Annotated[bool, Field(alias="scanSaturated")]


class Step(Model):
    """One hop of a resolution."""

    from_path: Annotated[str, Field(alias="from")]
    to: RecordPath
    via: Literal["supersedes", "archive_move"]


class MemoryResolved(Model):
    """`memory.resolved`."""

    requested: str
    path: str
    hops: Annotated[int, Field(ge=0, le=16)]
    steps: list[Step]
    stop_reason: Annotated[
        Literal["live", "archived", "unindexed", "cycle", "hop_limit"], Field(alias="stopReason")
    ]
    title: str | None
    indexed_commit: Annotated[Sha | None, Field(alias="indexedCommit")]


class MemoryReinforced(Model):
    """`memory.reinforced`: each given path in one of the two."""

    bumped: list[RecordPath]
    cooled_down: Annotated[list[RecordPath], Field(alias="cooledDown")]
    signal: Literal["positive", "negative", "neutral"]


class ListedFile(Model):
    """One file of a list."""

    path: RecordPath
    title: str
    memory_type: Annotated[MemoryType, Field(alias="memoryType")]
    gist: str
    workspace: str | None
    para: Para
    confidence: Share
    importance: Importance
    archived: bool
    updated_at: Annotated[Instant, Field(alias="updatedAt")]
    est_tokens: Annotated[Count, Field(alias="estTokens")]


class MemoryList(Model):
    """`memory.list`."""

    files: Annotated[list[ListedFile], Field(max_length=500)]
    next_cursor: Annotated[RecordPath | None, Field(alias="nextCursor")]


class ActiveEntity(Model):
    """How much is known of an entity, and since when."""

    entity: str
    entity_type: Annotated[str, Field(alias="entityType")]
    entity_name: Annotated[str, Field(alias="entityName")]
    file_count: Annotated[int, Field(alias="fileCount", ge=1)]
    last_activity_at: Annotated[Instant, Field(alias="lastActivityAt")]
    last_event_at: Annotated[Instant | None, Field(alias="lastEventAt")]
    last_written_at: Annotated[Instant, Field(alias="lastWrittenAt")]


class EntityActivity(Model):
    """`entity.activity`."""

    entities: Annotated[list[ActiveEntity], Field(max_length=500)]
    entity_count: Annotated[Count, Field(alias="entityCount")]
    limit: Page


class ListedTask(Model):
    """One task of a list; `blockedBy` are the live tasks that block it."""

    path: RecordPath
    title: str
    task_status: Annotated[TaskStatus, Field(alias="taskStatus")]
    due_at: Annotated[Instant | None, Field(alias="dueAt")]
    workspace: str | None
    archived: bool
    updated_at: Annotated[Instant, Field(alias="updatedAt")]
    blocked_by: Annotated[list[RecordPath], Field(alias="blockedBy")]
    est_tokens: Annotated[Count, Field(alias="estTokens")]


class TaskList(Model):
    """`task.list`."""

    tasks: Annotated[list[ListedTask], Field(max_length=500)]
    next_cursor: Annotated[RecordPath | None, Field(alias="nextCursor")]


class StateExport(Model):
    """`state.export`."""

    path: Literal[".memhtml/state/access.jsonl"]
    rows: Count
    bytes: Count
    written: bool
    commit_sha: Annotated[Sha | None, Field(alias="commitSha")]


class StateImport(Model):
    """`state.import`."""

    path: Literal[".memhtml/state/access.jsonl"]
    rows: Count
    restored: Count
    skipped: Count
    has_state: Annotated[bool, Field(alias="hasState")]


PAYLOADS: dict[str, type[BaseModel]] = {
    "memory.detail": MemoryDetail,
    "status.health": StatusHealth,
    "memory.neighbors": MemoryNeighbors,
    "memory.resolved": MemoryResolved,
    "memory.reinforced": MemoryReinforced,
    "memory.list": MemoryList,
    "entity.activity": EntityActivity,
    "task.list": TaskList,
    "state.export": StateExport,
    "state.import": StateImport,
}
"""Response type → the model of its `data`."""
