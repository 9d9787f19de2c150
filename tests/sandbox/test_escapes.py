"""Every escape attempt, as this user and as an ordinary one, on both back ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.escape_runners import CannotRun, LibraryRunner, World, users
from tests.support.escapes import Case, cannot_run, check, own_cases, shared_cases
from tests.support.overlay import ORDINARY_UID

OWN = own_cases()
SHARED = shared_cases()


def _user_name(uid: object) -> str:
    return "ordinary" if uid == ORDINARY_UID else "self"


@pytest.fixture(scope="module", params=users(), ids=_user_name)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    try:
        made = World(request.param)
    except CannotRun as reason:
        pytest.skip(str(reason))
    yield made
    made.close()


@pytest.fixture(scope="module", params=["overlay", "copy"])
def runner(request: pytest.FixtureRequest, world: World) -> LibraryRunner:
    try:
        return LibraryRunner(world, request.param)
    except CannotRun as reason:
        pytest.skip(f"no {request.param} back end for this user: {reason}")


def _try(case: Case, runner: LibraryRunner) -> None:
    reason = cannot_run(case)
    if reason is not None:
        pytest.skip(reason)
    failures = check(case, runner)
    assert not failures, "\n".join([case.why, *failures])


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_an_escape_attempt_fails(case: Case, runner: LibraryRunner) -> None:
    _try(case, runner)


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_a_shared_escape_attempt_fails(case: Case, runner: LibraryRunner) -> None:
    _try(case, runner)


def test_the_shared_cases_are_here() -> None:
    if not SHARED:
        pytest.skip("shared cases are not here")
    assert len(SHARED) >= 38


def test_every_own_attempt_states_its_outcome_in_its_first_line() -> None:
    assert len(OWN) >= 25
    for case in OWN:
        first = case.script.splitlines()[0]
        assert first.lstrip("#/ ").startswith("expect: "), case.name
        assert case.why, case.name


def test_own_and_shared_attempts_do_not_share_a_script() -> None:
    assert not {case.script for case in OWN} & {case.script for case in SHARED}
    assert not {case.name.rpartition(".")[0] for case in OWN} & {case.name for case in SHARED}
