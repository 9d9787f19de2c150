"""Attempts to write through a read-only run, as this user and as an ordinary one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.escape_runners import CannotRun, ReadOnlyRunner, World, users
from tests.support.escapes import READ_ONLY, Case, cannot_run, check, own_cases
from tests.support.overlay import ORDINARY_UID


@pytest.fixture(
    scope="module",
    params=users(),
    ids=lambda uid: "ordinary" if uid == ORDINARY_UID else "self",
)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    try:
        made = World(request.param)
    except CannotRun as reason:
        pytest.skip(str(reason))
    yield made
    made.close()


@pytest.fixture(
    scope="module", params=[("overlay", 1), ("overlay", 2), ("copy", 2)], ids=lambda pair: pair[0]
)
def runner(request: pytest.FixtureRequest, world: World) -> ReadOnlyRunner:
    backend, layers = request.param
    try:
        return ReadOnlyRunner(world, backend, layers)
    except CannotRun as reason:
        pytest.skip(f"no {backend} back end for this user: {reason}")


@pytest.mark.parametrize("case", own_cases(READ_ONLY), ids=lambda case: case.name)
def test_an_attempt_to_write_through_a_read_only_run_fails(
    case: Case, runner: ReadOnlyRunner
) -> None:
    reason = cannot_run(case)
    if reason is not None:
        pytest.skip(reason)
    failures = check(case, runner)
    assert not failures, "\n".join([case.why, *failures])
