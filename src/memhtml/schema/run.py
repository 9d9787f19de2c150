"""What `exec` and `agents-doc` answer (spec `cli` §10)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from memhtml.schema.base import Count, Milliseconds, Model, Sha


class ExecReport(Model):
    """`exec.report`."""

    lang: Literal["bash", "js"]
    corpus_mount: Annotated[Literal["/mnt/memhtml"], Field(alias="corpusMount")]
    sha: Sha
    exit_code: Annotated[int, Field(alias="exitCode", ge=0, le=255)]
    stdout: str
    stderr: str
    duration_ms: Annotated[Milliseconds, Field(alias="durationMs")]
    timeout_ms: Annotated[int, Field(alias="timeoutMs", ge=1, le=600_000)]
    timed_out: Annotated[bool, Field(alias="timedOut")]


class AgentsDoc(Model):
    """`agents.doc`."""

    path: Annotated[str, Field(min_length=1)]
    bytes: Count
    in_sync: Annotated[bool, Field(alias="inSync")]
    written: bool

    @model_validator(mode="after")
    def _written_only_when_it_differed(self) -> AgentsDoc:
        if self.in_sync and self.written:
            raise ValueError("a file that had these bytes is not written")
        return self


PAYLOADS: dict[str, type[BaseModel]] = {"exec.report": ExecReport, "agents.doc": AgentsDoc}
"""Response type → the model of its `data`."""
