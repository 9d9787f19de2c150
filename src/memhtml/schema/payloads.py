"""The `data` of each session response, keys in printed order (spec `sessions`, `harvest` §5).

A listed field is always there, null when it has no value (spec `cli` §1). `envelope` maps response
types to these models. Command-line payloads that are no session's are in `reports`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, RootModel, model_validator

from memhtml.schema.base import (
    Count,
    InstantMs,
    Milliseconds,
    Model,
    RecordPath,
    RefName,
    SessionId,
    Sha,
)
from memhtml.schema.operations import Violation

ExitCode = Annotated[int, Field(ge=0, le=255)]
OpKind: TypeAlias = Literal["put", "link", "unlink", "label", "unlabel", "archive", "move"]


class Head(Model):
    """How the corpus was loaded (spec `sessions` §4.1)."""

    sha: Sha
    records: Count
    skipped: Count | None
    load_ms: Annotated[Milliseconds, Field(alias="loadMs")]
    source: Literal["server", "snapshot", "snapshot+advance", "git"]
    snapshot_path: Annotated[str | None, Field(alias="snapshotPath")]
    ancestor_sha: Annotated[Sha | None, Field(alias="ancestorSha")]
    reparsed: Count | None


class Server(Model):
    """Whether a head server answered, and why not (spec `sessions` §4.2)."""

    used: bool
    base: Literal["tip", "ancestor"] | None
    reason: Literal["disabled", "no-server", "refused", "base-unservable", "busy"] | None
    detail: str | None

    @model_validator(mode="after")
    def _used_or_why_not(self) -> Server:
        if self.used and (self.base is None or self.reason is not None or self.detail is not None):
            raise ValueError("a server that was used has a base and no reason")
        if not self.used and (self.base is not None or self.reason is None):
            raise ValueError("a server that was not used has a reason and no base")
        return self


class SnapshotWritten(Model):
    """The head database after a commit (spec `sessions` §9.3)."""

    sha: Sha
    path: str
    bytes: Count
    rows: Count
    ms: Milliseconds
    pruned: list[Sha]


class SessionStarted(Model):
    """`session.started`."""

    id: SessionId
    base_sha: Annotated[Sha, Field(alias="baseSha")]
    ref: RefName
    ops: Literal[0]
    head: Head


class LabelLine(Model):
    """A `label` or `unlabel` line of a put."""

    kind: Literal["label", "unlabel"]
    path: RecordPath
    entity: str


class NeighborHit(Model):
    """One near record; `arms` are the searches that found it."""

    path: RecordPath
    score: float
    arms: list[Literal["lexical", "recency", "vector"]]
    claim: str


class Neighbors(Model):
    """The near records of one put."""

    path: RecordPath
    hits: Annotated[list[NeighborHit], Field(max_length=3)]


class Vector(Model):
    """Whether the vector arm ranked, and why not (spec `retrieval` §20.1)."""

    used: bool
    reason: (
        Literal["embedder-off", "no-cache", "cache-unreadable", "embed-failed", "embed-timeout"]
        | None
    )
    detail: str | None
    cached: Count | None
    coverage: Annotated[float, Field(ge=0, le=1)] | None
    load_ms: Annotated[Milliseconds | None, Field(alias="loadMs")]
    embed_ms: Annotated[Milliseconds | None, Field(alias="embedMs")]

    @model_validator(mode="after")
    def _used_or_why_not(self) -> Vector:
        if self.used != (self.reason is None):
            raise ValueError("the reason is null exactly when the arm was used")
        return self


class SessionAppended(Model):
    """`session.appended`."""

    id: SessionId
    started: bool
    base_sha: Annotated[Sha, Field(alias="baseSha")]
    appended: Count
    ops: Count
    paths: list[RecordPath]
    labels: list[LabelLine]
    neighbors: list[Neighbors]
    vector: Vector
    violations: list[Violation]
    head: Head


class HarvestedEdit(Model):
    """A put or a head edit, as the exec report lists it."""

    kind: Literal["put", "link", "unlink", "label", "unlabel"]
    path: RecordPath


class HarvestedMove(Model):
    """An archive or a move, as the exec report lists it."""

    kind: Literal["archive", "move"]
    path: RecordPath
    to: RecordPath


Harvested: TypeAlias = Annotated[HarvestedEdit | HarvestedMove, Field(discriminator="kind")]


class Rejected(Model):
    """A change that became no operation; `reason` is a code, a colon and an explanation."""

    path: str
    reason: Annotated[str, Field(pattern=r"^[a-z0-9-]+: .")]


class SessionExecReport(Model):
    """`session.exec.report` (spec `harvest` §5)."""

    id: SessionId
    base_sha: Annotated[Sha, Field(alias="baseSha")]
    lang: Literal["bash", "js"]
    corpus_mount: Annotated[Literal["/mnt/memhtml"], Field(alias="corpusMount")]
    sha: Sha
    exit_code: Annotated[ExitCode, Field(alias="exitCode")]
    stdout: str
    stderr: str
    duration_ms: Annotated[Milliseconds, Field(alias="durationMs")]
    timeout_ms: Annotated[int, Field(alias="timeoutMs", ge=1, le=600_000)]
    timed_out: Annotated[bool, Field(alias="timedOut")]
    ops: Count
    appended: Count
    ops_total: Annotated[Count, Field(alias="opsTotal")]
    harvested: list[Harvested]
    rejected: list[Rejected]
    violations: list[Violation]
    blocking: list[str]
    started: bool
    head: Head
    server: Server

    @model_validator(mode="after")
    def _all_or_nothing(self) -> SessionExecReport:
        if self.ops != len(self.harvested) or self.appended not in (0, self.ops):
            raise ValueError("ops counts the harvest, and appended is ops or 0")
        return self


class Pair(Model):
    """A new record and the live one its claim contradicts."""

    path: RecordPath
    against: RecordPath


class Restatement(Model):
    """A new record and the live one that it agrees with, replaces or archives."""

    path: RecordPath
    against: RecordPath
    reason: Literal["archived", "superseded", "same-value"]


class DroppedOp(Model):
    """An operation that `--drop-refused` took out of the log."""

    kind: OpKind
    path: str
    reasons: Annotated[list[str], Field(min_length=1)]


class _CommitStart(Model):
    """What every answer of a commit begins with."""

    id: SessionId
    ref: RefName
    base_sha: Annotated[Sha, Field(alias="baseSha")]


class Committed(_CommitStart):
    """The log landed as one commit."""

    kind: Literal["committed"]
    sha: Sha
    paths: list[RecordPath]
    contradictions: list[Pair]
    restatements: list[Restatement]
    worktree_synced: Annotated[bool, Field(alias="worktreeSynced")]
    recovered: bool
    snapshot: SnapshotWritten | None
    dropped: list[DroppedOp]
    via: Literal["local", "server"]
    server: Server


class RebaseNeeded(_CommitStart):
    """The ref moved past the session's base."""

    kind: Literal["rebase-needed"]
    main_sha: Annotated[Sha, Field(alias="mainSha")]
    overlapping: list[str]
    snapshot: None
    dropped: list[DroppedOp]
    via: Literal["local", "server"]
    server: Server


class Refused(_CommitStart):
    """An operation breaks a rule, or the log is empty."""

    kind: Literal["refused"]
    violations: list[Violation]
    snapshot: None
    dropped: list[DroppedOp]
    via: Literal["local", "server"]
    server: Server


class WorktreeDirty(_CommitStart):
    """Uncommitted changes lie where the commit writes."""

    kind: Literal["worktree-dirty"]
    paths: list[RecordPath]
    snapshot: None
    dropped: list[DroppedOp]
    via: Literal["local", "server"]
    server: Server


class SessionCommitted(
    RootModel[
        Annotated[Committed | RebaseNeeded | Refused | WorktreeDirty, Field(discriminator="kind")]
    ]
):
    """`session.committed`: branch on `kind` (spec `sessions` §9.3)."""


class SessionRebased(Model):
    """`session.rebased`."""

    id: SessionId
    ref: RefName
    from_sha: Annotated[Sha, Field(alias="from")]
    base_sha: Annotated[Sha, Field(alias="baseSha")]
    moved: bool
    ops: Count
    head: Head

    @model_validator(mode="after")
    def _moved_when_it_differs(self) -> SessionRebased:
        if self.moved != (self.from_sha != self.base_sha):
            raise ValueError("moved says whether the base changed")
        return self


class SessionStatus(Model):
    """`session.status`; counts are of the log's operations by kind."""

    id: SessionId
    ref: RefName
    base_sha: Annotated[Sha, Field(alias="baseSha")]
    ref_sha: Annotated[Sha | None, Field(alias="refSha")]
    behind: bool
    ops: Count
    puts: Count
    archives: Count
    links: Count
    unlinks: Count
    labels: Count
    unlabels: Count
    moves: Count
    paths: list[str]
    pending: Sha | None


class Removed(Model):
    """How many were removed."""

    count: Count


class RemovedFiles(Model):
    """How many files were removed, and their bytes."""

    count: Count
    bytes: Count


class Unlanded(Model):
    """A log that still holds operations or a pending commit."""

    id: SessionId
    ops: Count
    pending: Sha | None
    age_ms: Annotated[Milliseconds, Field(alias="ageMs")]


class SessionPruned(Model):
    """`session.pruned` (spec `sessions` §12)."""

    dry_run: Annotated[bool, Field(alias="dryRun")]
    cutoff: InstantMs
    older_than_ms: Annotated[Milliseconds, Field(alias="olderThanMs")]
    indexes: RemovedFiles
    refs: Removed
    locks: Removed
    logs: Removed
    unlanded: list[Unlanded]
    busy: list[str]
    unreadable: list[str]
    older_than: Annotated[str, Field(alias="olderThan")]
