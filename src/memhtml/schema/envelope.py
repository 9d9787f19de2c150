"""The one envelope of every command, and the check of a whole answer (spec `cli` §1).

Key order is part of the contract, so it is checked beside the shapes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, TypeAdapter

from memhtml.schema import doors, evaluate, head, health, index, reads, run, search
from memhtml.schema.base import Model
from memhtml.schema.log import SessionLog
from memhtml.schema.operations import Operation, Violation
from memhtml.schema.payloads import (
    SessionAppended,
    SessionCommitted,
    SessionExecReport,
    SessionPruned,
    SessionRebased,
    SessionStarted,
    SessionStatus,
)
from memhtml.schema.policy import StorePolicy
from memhtml.schema.reports import CliHelp, CliManifest, ReplayReport, RepoInit

PAYLOADS: dict[str, type[BaseModel]] = {
    "cli.manifest": CliManifest,
    "cli.help": CliHelp,
    "repo.init": RepoInit,
    "replay.report": ReplayReport,
    "session.started": SessionStarted,
    "session.appended": SessionAppended,
    "session.exec.report": SessionExecReport,
    "session.committed": SessionCommitted,
    "session.rebased": SessionRebased,
    "session.status": SessionStatus,
    "session.pruned": SessionPruned,
    **doors.PAYLOADS,
    **reads.PAYLOADS,
    **run.PAYLOADS,
    **search.PAYLOADS,
    **index.PAYLOADS,
    **health.PAYLOADS,
    **head.PAYLOADS,
    **evaluate.PAYLOADS,
}
"""Response type → the model of its `data`."""

ErrorCode = Literal[
    "ERR_UNKNOWN_COMMAND",
    "ERR_MISSING_ARGUMENT",
    "ERR_INVALID_FLAG",
    "ERR_UNEXPECTED_ARGUMENT",
    "ERR_REPO_REQUIRED",
    "ERR_PATH_NOT_FOUND",
    "ERR_INVALID_MEMORY",
    "ERR_DUPLICATE_CONTENT",
    "ERR_WRITE_CONFLICT",
    "ERR_DIRTY_TREE",
    "ERR_INDEX_STALE",
    "ERR_EMBED_MODEL_MISMATCH",
    "ERR_MODEL_UNAVAILABLE",
    "ERR_STORAGE",
    "ERR_GIT",
    "ERR_DISCRIMINATION_FAILED",
    "ERR_UNKNOWN",
    "ERR_REBUILD_NO_EMBED_REFUSED",
    "ERR_UNKNOWN_HOST",
    "ERR_UNKNOWN_HOOK_EVENT",
    "ERR_INTEGRATION_MODIFIED",
    "ERR_SESSION_BOUND",
    "ERR_HEAD_SERVER_RUNNING",
]
ERROR_CODES: tuple[str, ...] = get_args(ErrorCode)
"""Every code of spec `cli` §6.1, in its order."""


class Failure(Model):
    """The envelope of a call that failed; branch on `code`, never on `error`."""

    api_version: Annotated[Literal["1"], Field(alias="apiVersion")]
    error: Annotated[str, Field(min_length=1)]
    code: ErrorCode
    suggestions: list[str]


class Success(Model):
    """The envelope of an answer; `type` says which model `data` has."""

    api_version: Annotated[Literal["1"], Field(alias="apiVersion")]
    type: str
    data: dict[str, Any]


class WrongOrder(ValueError):
    """The keys of an object do not stand in the order of the contract."""


def validate_envelope(value: object) -> BaseModel:
    """The model of a parsed answer in the default rendering: the payload, or the `Failure`.

    `--dense` leaves null keys out and is therefore no input here. Errors raised:
    `pydantic.ValidationError` for a wrong shape, `KeyError` for a response type without a model,
    `WrongOrder` when only the order of keys is wrong.
    """
    if isinstance(value, dict) and "code" in value:
        failure = Failure.model_validate(value)
        check_order(value, failure)
        return failure
    envelope = Success.model_validate(value)
    check_order(value, envelope)
    payload = PAYLOADS[envelope.type].model_validate(envelope.data)
    check_order(envelope.data, payload)
    return payload


def check_order(value: object, model: BaseModel) -> None:
    """Raise `WrongOrder` unless `value`, which `model` was read from, has the keys in its order."""
    dumped = model.model_dump(by_alias=True, exclude_unset=True)
    wrong = _first_disorder(value, dumped, "$")
    if wrong is not None:
        raise WrongOrder(wrong)


def json_schemas() -> dict[str, dict[str, Any]]:
    """Name → JSON Schema of everything that is published, in a fixed order."""
    models: dict[str, Any] = {
        "store-policy": StorePolicy,
        "session-log": SessionLog,
        "operation": Operation,
        "violation": Violation,
        "failure": Failure,
        **PAYLOADS,
    }
    return {name: TypeAdapter(model).json_schema(by_alias=True) for name, model in models.items()}


def _first_disorder(got: object, expected: object, where: str) -> str | None:
    """The first object whose keys stand in another order, as a sentence."""
    if isinstance(got, dict) and isinstance(expected, dict):
        if list(got) != list(expected):
            return f"{where} has its keys as {', '.join(got)}; the order is {', '.join(expected)}"
        pairs = [(f"{where}.{key}", got[key], expected[key]) for key in got]
    elif isinstance(got, list) and isinstance(expected, list):
        pairs = [
            (f"{where}[{place}]", one, other)
            for place, (one, other) in enumerate(zip(got, expected, strict=True))
        ]
    else:
        return None
    found = (_first_disorder(one, other, path) for path, one, other in pairs)
    return next((wrong for wrong in found if wrong is not None), None)
