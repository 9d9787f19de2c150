"""The published shapes of the session log and of operations (spec `sessions` §1.2)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from memhtml.schema.log import SessionLog
from memhtml.schema.operations import Operation, Violation
from memhtml.schema.policy import MemoryType
from memhtml_format import violations as program_violations
from memhtml_format.ops import (
    KINDS,
    AddLabel,
    AddLink,
    Archive,
    BadOperation,
    DropLabel,
    DropLink,
    Move,
    Op,
    Put,
    decode,
    encode,
)
from memhtml_format.vocab import TYPES

SHA = "3f" * 20
OPERATION: TypeAdapter[Any] = TypeAdapter(Operation)
EXAMPLES: list[Op] = [
    Put("areas/a.html", "<p>"),
    AddLink("areas/a.html", "supports", "/areas/b.html"),
    DropLink("areas/a.html", "supports", "/areas/b.html"),
    AddLabel("areas/a.html", "a:b"),
    DropLabel("areas/a.html", "a:b"),
    Archive("areas/a.html", "archive/2026/areas/a.html", "<p>"),
    Move("areas/a.html", "areas/b.html", "<p>"),
]


def log(**changes: Any) -> dict[str, Any]:
    """A whole log, with some keys set or, by `...`, left out."""
    value: dict[str, Any] = {
        "id": "s1",
        "baseSha": SHA,
        "ref": "refs/heads/main",
        "ops": [encode(op) for op in EXAMPLES],
        "pending": SHA,
        "pendingOps": 2,
    }
    value.update(changes)
    return {key: item for key, item in value.items() if item is not ...}


@pytest.mark.parametrize("op", EXAMPLES, ids=[op.kind for op in EXAMPLES])
def test_operation_of_the_program_is_the_published_one(op: Op) -> None:
    published = OPERATION.validate_python(encode(op)).model_dump()
    assert list(published.items()) == list(encode(op).items())


def test_every_kind_has_an_example() -> None:
    assert {op.kind for op in EXAMPLES} == set(KINDS)


fields = st.sampled_from(["kind", "path", "html", "rel", "href", "entity", "to", "x"])
near_operations = st.builds(
    lambda op, extra, gone: {k: v for k, v in {**encode(op), **extra}.items() if k not in gone},
    st.sampled_from(EXAMPLES),
    st.dictionaries(fields, st.none() | st.integers() | st.sampled_from([*KINDS, "a"]), max_size=2),
    st.sets(fields, max_size=1),
)


@given(near_operations)
def test_decoder_and_published_model_accept_the_same_operations(value: dict[str, Any]) -> None:
    try:
        decode(value)
        accepted = True
    except BadOperation:
        accepted = False
    try:
        OPERATION.validate_python(value)
        published = True
    except ValidationError:
        published = False
    assert accepted is published


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pending": ..., "pendingOps": ...},
        {"pendingOps": ...},
        {"ops": [], "pendingOps": 0},
        {"id": "a" * 128},
        {"ref": "refs/heads/curate/2026-11-30"},
    ],
)
def test_log_validates(changes: dict[str, Any]) -> None:
    value = log(**changes)
    dumped = SessionLog.model_validate(value).model_dump(by_alias=True, exclude_unset=True)
    assert dumped == value
    assert list(dumped) == list(value)


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"id": ...},
        {"ops": ...},
        {"id": "a" * 129},
        {"id": "a/b"},
        {"baseSha": SHA.upper()},
        {"baseSha": SHA[:-1]},
        {"pending": None},
        {"pending": ...},
        {"pendingOps": None},
        {"pendingOps": -1},
        {"pendingOps": 8},
        {"pendingOps": True},
        {"pendingOps": "2"},
        {"ops": {}},
        {"ops": [{"kind": "delete", "path": "a"}]},
        {"ops": [{"kind": "put", "path": "a", "html": "b", "more": "c"}]},
        {"ops": [{"kind": "put", "path": 1, "html": "b"}]},
    ],
)
def test_log_that_breaks_the_shape_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SessionLog.model_validate(copy.deepcopy(log(**changes)))


def test_violations_of_the_program_are_the_published_ones() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Violation)
    for violation in (
        program_violations.Violation("format", "a", ("why",)),
        program_violations.Violation("duplicate", "a", existing="b"),
        program_violations.Violation("claim-edit", "a"),
        program_violations.Violation("reserved-path", "a"),
        program_violations.Violation("batch-cap", held=201, cap=200),
        program_violations.Violation("write-bar", "a", ("why",)),
    ):
        encoded = program_violations.encode(violation)
        published = adapter.validate_python(encoded).model_dump()
        assert list(published.items()) == list(encoded.items())


def test_published_memory_types_are_the_vocabulary() -> None:
    assert MemoryType.__args__ == TYPES  # type: ignore[attr-defined]
