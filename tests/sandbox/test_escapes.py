"""Every escape attempt, as this user and as an ordinary one, on both back ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.escape_runners import (
    CannotRun,
    CommandRunner,
    LibraryRunner,
    World,
    users,
)
from tests.support.escapes import Case, Report, Runner, cannot_run, check, own_cases, shared_cases
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


@pytest.fixture(scope="module", params=["overlay", "copy"])
def command(request: pytest.FixtureRequest, world: World) -> CommandRunner:
    try:
        return CommandRunner(world, request.param)
    except CannotRun as reason:
        pytest.skip(f"no {request.param} back end for this user: {reason}")


def _try(case: Case, runner: Runner) -> None:
    reason = cannot_run(case)
    if reason is not None:
        pytest.skip(reason)
    failures = check(case, runner)
    assert not failures, "\n".join([case.why, *failures])


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_an_escape_attempt_fails(case: Case, runner: LibraryRunner) -> None:
    _try(case, runner)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*OWN, *SHARED], ids=lambda case: case.name)
def test_an_escape_attempt_through_the_command_fails(case: Case, command: CommandRunner) -> None:
    _try(case, command)


# The harness itself: an attack that works must not pass.


class _Told:
    """A runner that reports what it is told to."""

    watched: tuple[str, ...] = ()

    def __init__(self, **fields: Any) -> None:
        good = Report(0, False, "", "", [], [], 0, [], [], 1.0, 1.0)
        self._report = good._replace(**fields)

    def run(self, case: Case, *, secret: str) -> Report:
        return self._report


@pytest.mark.parametrize(
    ("must", "fields"),
    [
        ("base", {"stdout": "ESCAPED\n"}),
        ("base", {"left": ["1234"]}),
        ("base", {"mounts": ["none /x"]}),
        ("base", {"error": "exec.run"}),
        ("exit:0", {"exit_code": 1}),
        ("timed-out", {"timed_out": False}),
        ("not-timed-out", {"timed_out": True}),
        ("max-ms:5", {"wall_ms": 6.0}),
        ("stdout-has:x", {}),
        ("stdout-lacks:x", {"stdout": "x"}),
        ("stdout-max:1", {"stdout": "xx"}),
        ("ops:0", {"ops": [("put", "a.html")]}),
        ("op:put a.html", {}),
        ("rejected:deleted a.html", {"rejected": [("deleted: gone", "b.html")]}),
        ("rejected:deleted", {"rejected": [("not-html: x", "b.html")]}),
        ("no-rejected", {"rejected": [("deleted: gone", "b.html")]}),
        ("appended:0", {"appended": 1}),
        ("peak-mib:1", {"peak_mib": 2.0}),
        ("next-run-clean", {}),
        ("host-alive", {"wall_ms": 3_000.0}),
    ],
)
def test_the_harness_sees_an_item_that_does_not_hold(must: str, fields: dict[str, Any]) -> None:
    items = () if must == "base" else (must,)

    assert check(Case("c", "bash", "true", items), _Told(**fields))


def test_the_harness_sees_a_leaked_secret_and_a_changed_file(tmp_path: Path) -> None:
    class Leaking(_Told):
        watched: tuple[str, ...] = (str(tmp_path),)

        def run(self, case: Case, *, secret: str) -> Report:
            (tmp_path / "cache-file").write_text("scribbled")
            return self._report._replace(stderr=secret)

    failures = check(Case("c", "bash", "true", ("secret",)), Leaking())
    assert [failure.split(":")[0] for failure in failures[:2]] == ["base", "secret"]


def test_the_harness_passes_what_holds() -> None:
    must = ("exit:0", "not-timed-out", "max-ms:100", "ops:0", "no-rejected", "appended:0", "secret")

    assert check(Case("c", "bash", "true", must), _Told()) == []


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
