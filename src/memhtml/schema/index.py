"""What the index commands answer (spec `cli` §11)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, RootModel

from memhtml.schema.base import Count, Model, RecordPath, Sha

Share = Annotated[float, Field(ge=0, le=1)]
SpaceName = Annotated[str, Field(pattern=r"^.+@[0-9]+$")]
IsoSecond = Annotated[
    str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")
]


class SkippedFile(Model):
    """A file that is not indexed, or not as it is now, and why."""

    path: RecordPath
    reason: str


class IndexRebuilt(Model):
    """`index rebuild`."""

    mode: Literal["rebuild"]
    headSha: Sha | None
    filesIndexed: Count
    chunksIndexed: Count
    edgesIndexed: Count
    embeddingsWritten: Count
    embeddingsPreserved: Count
    skipped: list[SkippedFile]


class IndexUpdated(Model):
    """`index update`; `dirty` counts the paths whose working copy is indexed."""

    mode: Literal["update"]
    headSha: Sha | None
    unchanged: bool
    added: Count
    modified: Count
    removed: Count
    renamed: Count
    dirty: Count
    embeddingsWritten: Count
    skipped: list[SkippedFile]


class IndexEmbedded(Model):
    """`index embed`."""

    mode: Literal["embed"]
    headSha: Sha | None
    chunks: Count
    embeddings: Count
    embeddingsWritten: Count
    embeddingsRemaining: Count


class IndexStatus(Model):
    """`index status`; `edges` are authored and `derivedEdges` mined, the other counts are rows."""

    mode: Literal["status"]
    headSha: Sha | None
    embedModel: SpaceName | None
    embedDim: Count | None
    embedModelMatches: bool
    configuredEmbedModel: SpaceName | None
    rebuiltAt: IsoSecond | None
    updatedAt: IsoSecond | None
    files: Count
    activeFiles: Count
    chunks: Count
    embeddings: Count
    vectorCoverage: Share
    vectorCoverageFloor: Share
    edges: Count
    derivedEdges: Count
    tags: Count
    entities: Count
    traces: Count
    hasState: bool


class IndexReport(
    RootModel[
        Annotated[
            IndexRebuilt | IndexUpdated | IndexEmbedded | IndexStatus, Field(discriminator="mode")
        ]
    ]
):
    """The four commands share a type; `mode` tells them apart."""


PAYLOADS: dict[str, type[BaseModel]] = {"index.report": IndexReport}
"""Response type → the model of its `data`."""
