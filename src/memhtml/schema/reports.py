"""Payloads of the commands that are no session's: init, manifest, help, replay (spec `cli` §10)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from memhtml.schema.base import Count, Milliseconds, Model, Sha, Sparse, no_default


class RepoInit(Model):
    """`repo.init`."""

    root: str
    created: bool
    head_sha: Annotated[Sha | None, Field(alias="headSha")]
    wrote: list[str]


_Sometimes = Field(json_schema_extra=no_default)


class Argument(Sparse):
    """A positional of a command."""

    name: str
    description: str
    required: bool
    repeatable: Annotated[Literal[True] | SkipJsonSchema[None], _Sometimes] = None


class Flag(Sparse):
    """A flag of a command, or a global one."""

    name: str
    type: Literal["string", "int", "boolean"]
    description: str
    values: Annotated[list[str] | SkipJsonSchema[None], _Sometimes] = None
    required: Annotated[Literal[True] | SkipJsonSchema[None], _Sometimes] = None
    repeatable: Annotated[Literal[True] | SkipJsonSchema[None], _Sometimes] = None
    default: Annotated[str | int | bool | SkipJsonSchema[None], _Sometimes] = None


class Command(Model):
    """One row of the command table."""

    name: str
    summary: str
    args: list[Argument]
    flags: list[Flag]
    response_types: Annotated[list[str], Field(alias="responseTypes")]
    examples: list[str]
    supports_json: Annotated[Literal[True], Field(alias="supportsJson")]
    supports_dense: Annotated[Literal[True], Field(alias="supportsDense")]


class Topic(Model):
    """Prose of the guide on one topic."""

    topic: str
    body: str


class Variable(Model):
    """An environment variable the program reads."""

    name: str
    description: str
    fallback: str | None


class CliManifest(Model):
    """`cli.manifest`."""

    name: Literal["memhtml"]
    version: str
    summary: str
    api_version: Annotated[Literal["1"], Field(alias="apiVersion")]
    guide: list[Topic]
    global_flags: Annotated[list[Flag], Field(alias="globalFlags")]
    error_codes: Annotated[list[str], Field(alias="errorCodes")]
    config: list[Variable]
    response_types: Annotated[list[str], Field(alias="responseTypes")]
    commands: list[Command]


class CliHelp(Command):
    """`cli.help`: the command's row, then how to call it."""

    usage: str
    global_flags: Annotated[list[Flag], Field(alias="globalFlags")]
    usage_error_codes: Annotated[list[str], Field(alias="usageErrorCodes")]
    see_also: Annotated[list[str], Field(alias="seeAlso")]


class Difference(Model):
    """Where a replayed run was not as recorded."""

    field: str
    expected: Any
    got: Any


class FixtureResult(Model):
    """What became of one recorded run."""

    dir: str
    name: str
    state: Literal["passed", "failed", "skipped"]
    duration_ms: Annotated[Milliseconds, Field(alias="durationMs")]
    differences: list[Difference]


class ReplayReport(Model):
    """`replay.report`."""

    total: Count
    passed: Count
    failed: Count
    skipped: Count
    fixtures: list[FixtureResult]
