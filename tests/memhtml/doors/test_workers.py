"""A large batch is prepared in two processes, and the answer is that of one."""

from __future__ import annotations

import os
import signal

import pytest

from memhtml.doors import workers
from memhtml.doors.batch import Op
from memhtml.doors.drafts import prepare
from memhtml.doors.workers import prepare_all, prepare_here
from memhtml.errors import MemhtmlError
from memhtml_format.render import Draft

AT = "2026-11-30T16:08:35Z"
DRAFTS = [
    Draft(f"Title {n}", "odd" if n % 7 == 3 else "semantic", body=f"The size of {n} is {n}.")
    for n in range(1100)
]


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_processors", lambda: 2)


def told(ops: list[Op]) -> list[object]:
    """Ops that can be compared."""
    return [
        (op.code, str(op), op.suggestions) if isinstance(op, MemhtmlError) else op for op in ops
    ]


def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes started."""
    started: list[int] = []
    real = os.fork

    def fork() -> int:
        pid = real()
        if pid:
            started.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", fork)
    return started


def test_two_processes_answer_as_one_does_refusals_included(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = forks(monkeypatch)
    found = prepare_all(DRAFTS, AT)
    assert told(found) == told(prepare_here(DRAFTS, AT))
    assert any(isinstance(op, MemhtmlError) for op in found[len(DRAFTS) // 2 :])
    assert len(started) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(started[0], 0)


def test_a_small_batch_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = forks(monkeypatch)
    assert len(prepare_all(DRAFTS[:999], AT)) == 999
    monkeypatch.setattr(workers, "_processors", lambda: 1)
    assert len(prepare_all(DRAFTS, AT)) == len(DRAFTS)
    assert started == []


@pytest.mark.parametrize("end", ["at once", "half way"])
def test_what_a_process_that_died_left_out_is_done_here(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    here, calls = os.getpid(), []
    real = workers._portable

    def die(op: Op) -> object:
        calls.append(op)
        if os.getpid() != here and (end == "at once" or len(calls) == 400):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(op)

    monkeypatch.setattr(workers, "_portable", die)
    assert told(prepare_all(DRAFTS, AT)) == told(prepare_here(DRAFTS, AT))


def test_an_interrupt_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started, here = forks(monkeypatch), os.getpid()
    real = prepare

    def interrupt(draft: Draft, at: str) -> Op:
        if os.getpid() == here and draft.title == "Title 100":
            raise KeyboardInterrupt
        return real(draft, at)

    monkeypatch.setattr(workers, "prepare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare_all(DRAFTS, AT)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
