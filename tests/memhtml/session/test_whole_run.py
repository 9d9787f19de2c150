"""The whole run of an exec ends at its bound, however long its harvest would take to judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.session import make_store, page, put_op, start_log, who

from memhtml.execute.script import Script
from memhtml.session.evidence import Kept, Recorder, keep_entries
from memhtml.session.exec import execute
from memhtml.session.log import read_log
from memhtml_harvest.budget import HARVEST_BYTES_CAP
from memhtml_harvest.rows import FILE_BYTES_CAP
from memhtml_sandbox.probe import probe
from memhtml_sandbox.result import Run

A = "areas/inbox/a.html"
WRITE = "".join(
    f"cat > /mnt/memhtml/areas/inbox/n{n}.html <<'HTML'\n{page(f'Fact {n} holds.')}HTML\n"
    for n in range(3)
)
confined = pytest.mark.skipif(
    probe(cache_dir=None).backend is None, reason="this host cannot confine a script"
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one record and a session that has written one."""
    root = make_store(str(tmp_path / "store"), {A: page("Fact a holds.")})
    start_log(root, "s", [put_op("z")])
    # The first call tries the sandbox out, in runs of its own.
    execute(root, who("s"), Script("true"))
    return root


def overdue_after(monkeypatch: pytest.MonkeyPatch, questions: int) -> None:
    """Runs are in time for as many questions and over their time then."""
    left: Iterator[int] = iter(range(questions))
    monkeypatch.setattr(Run, "overdue", property(lambda run: next(left, None) is None))


# The walk of the changes asks once, then each of three files and each of four operations.
@confined
@pytest.mark.parametrize("questions", [0, 1, 3, 4, 7])
def test_run_over_its_whole_time_is_a_timeout_with_nothing_harvested(
    store: str, monkeypatch: pytest.MonkeyPatch, questions: int
) -> None:
    overdue_after(monkeypatch, questions)
    recorder = Recorder()
    got = execute(store, who("s"), Script(WRITE), recorder=recorder).payload
    assert (got["exitCode"], got["timedOut"]) == (124, True)
    assert (got["ops"], got["appended"], got["opsTotal"]) == (0, 0, 1)
    assert [got[key] for key in ("harvested", "rejected", "violations", "blocking")] == [[]] * 4
    assert len(read_log(store, "s").ops) == 1
    assert recorder.evidence is not None
    assert (recorder.evidence.after, recorder.evidence.vanished) == ({}, ())


@confined
def test_run_that_is_judged_just_in_time_is_appended(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overdue_after(monkeypatch, 8)
    got = execute(store, who("s"), Script(WRITE)).payload
    assert (got["exitCode"], got["timedOut"], got["appended"]) == (0, False, 3)


def test_recording_keeps_no_more_bytes_than_a_harvest_takes() -> None:
    names = [b"areas/n%04d.html" % n for n in range(70)]
    files = [b"a.bin", *names]
    given = {name: sparse() for name in files}
    after = keep_entries(given)  # type: ignore[arg-type]
    assert list(after) == files
    held = [name for name, entry in after.items() if entry.data]
    assert held == names[: HARVEST_BYTES_CAP // FILE_BYTES_CAP]
    assert {entry.size for entry in after.values()} == {FILE_BYTES_CAP}


def sparse() -> Kept:
    """A file of zeros that was never written."""
    return Kept("file", FILE_BYTES_CAP, bytes(FILE_BYTES_CAP))
