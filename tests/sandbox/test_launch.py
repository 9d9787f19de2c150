"""The process that starts runs, asked directly: identity, mounts, and steps that fail."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sandbox import support_for, write_corpus

from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.job import Request, build, caps
from memhtml_sandbox.languages import BASH
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import NO_LAYER, Lower
from memhtml_sandbox.probe import Support
from memhtml_sandbox.protocol import Forked, Job, StepFailed
from memhtml_sandbox.runner import _Ends
from memhtml_sandbox.spawner import Spawner, SpawnerGone


@pytest.fixture
def support(tmp_path: Path) -> Support:
    return support_for(str(tmp_path))


@pytest.fixture
def lower(tmp_path: Path, support: Support) -> Lower:
    return write_corpus(f"{tmp_path}/lower", support)


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    started = Spawner.start()
    yield started
    started.close()


def job_for(support: Support, lower: Lower) -> Job:
    now_s = time.monotonic()
    request = Request(lower, NO_LAYER, b"", BASH, Limits(), False, now_s, now_s + 30)
    return build(support, request, None)


@contextlib.contextmanager
def launched(spawner: Spawner, job: Job) -> Iterator[tuple[Forked, tuple[int, int, int, int]]]:
    """A run that waits for its byte; killed at the end."""
    with contextlib.ExitStack() as stack:
        ends = _Ends(stack, b"true\n")
        forked = spawner.launch(job, ends.theirs, None, time.monotonic() + 10)
        stack.callback(os.close, forked.pidfd)
        if forked.upper is not None:
            stack.callback(os.close, forked.upper)
        ends.close_theirs()
        try:
            yield forked, ends.ours
        finally:
            init = child_pid(ends.ours[2])
            os.kill(init, 9)
            while os.read(ends.ours[2], 4_096):
                continue
            spawner.end(forked.pid, init)


_seen: dict[int, int] = {}


def child_pid(status: int) -> int:
    if status not in _seen:
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(status, 4_096)
        _seen[status] = int(text.split(b":")[1].split(b",")[0])
    return _seen[status]


def ids(pid: int) -> tuple[list[int], list[int]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return [int(part) for part in found["Uid"].split()], [int(p) for p in found["Gid"].split()]


@pytest.fixture(autouse=True)
def _forget_pids() -> None:
    _seen.clear()


def test_no_process_of_a_run_has_the_hosts_root_identity(
    spawner: Spawner, support: Support, lower: Lower
) -> None:
    with launched(spawner, job_for(support, lower)) as (forked, ours):
        # Read after bwrap has spoken: an exec that is under way shows the old ids for a moment.
        for pid in (child_pid(ours[2]), forked.pid):
            assert ids(pid) == ([support.uid] * 4, [support.gid] * 4)
            assert support.uid != 0
            status = Path(f"/proc/{pid}/status").read_text()
            assert "CapAmb:\t0000000000000000" in status
            groups = status.split("Groups:")[1].splitlines()[0].split()
            assert groups == [] or not support.as_root


def test_bwrap_gets_no_environment(spawner: Spawner, support: Support, lower: Lower) -> None:
    os.environ["MEMHTML_TEST_SECRET"] = "s3cr3t"
    try:
        with launched(spawner, job_for(support, lower)) as (forked, _):
            assert Path(f"/proc/{forked.pid}/environ").read_bytes() == b""
    finally:
        del os.environ["MEMHTML_TEST_SECRET"]


def test_bwrap_gets_no_descriptor_but_its_own(
    spawner: Spawner, support: Support, lower: Lower, tmp_path: Path
) -> None:
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        with launched(spawner, job_for(support, lower)) as (forked, ours):
            child_pid(ours[2])
            targets = [
                os.readlink(f"/proc/{forked.pid}/fd/{name}")
                for name in os.listdir(f"/proc/{forked.pid}/fd")
            ]
        assert not [path for path in targets if path.startswith(str(tmp_path))]
    finally:
        os.close(secret)


def test_the_upper_is_empty_capped_and_the_runs_own(
    spawner: Spawner, support: Support, lower: Lower
) -> None:
    job = job_for(support, lower)._replace(upper_bytes=8 << 20, upper_inodes=1_000)
    with launched(spawner, job) as (forked, _):
        assert forked.upper is not None
        assert os.listdir(forked.upper) == []
        found = os.fstat(forked.upper)
        assert (found.st_uid, found.st_gid) == (support.uid, support.gid)
        room = os.fstatvfs(forked.upper)
        assert room.f_blocks * room.f_frsize == 8 << 20
        assert room.f_files == 1_000


def test_the_mounts_of_a_run_are_not_seen_outside(
    spawner: Spawner, support: Support, lower: Lower
) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    with launched(spawner, job_for(support, lower)):
        assert Path("/proc/self/mountinfo").read_text() == before


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({"bwrap": "/stage/b/nothing"}, "exec"),
        ({"binds": (("/nowhere/at/all", "l0", True),)}, "bind"),
        ({"upper_bytes": -1}, "mount"),
        ({"binds": (("/usr", "l0", False),)}, "mount"),
    ],
)
def test_a_step_that_fails_is_named_and_the_next_run_works(
    spawner: Spawner,
    support: Support,
    lower: Lower,
    change: dict[str, object],
    step: str,
) -> None:
    job = job_for(support, lower)
    with pytest.raises(StepFailed) as caught, launched(spawner, job._replace(**change)):  # type: ignore[arg-type]
        raise AssertionError("it was started")
    assert caught.value.step == step
    assert caught.value.errno in (errno.ENOENT, errno.EINVAL, errno.ENOTDIR)
    with launched(spawner, job) as (forked, ours):
        child_pid(ours[2])
        assert ids(forked.pid)[0] == [support.uid] * 4


def test_caps_can_be_set_from_here_or_by_the_spawner(
    spawner: Spawner, support: Support, lower: Lower
) -> None:
    if not support.as_root:
        pytest.skip("only root needs the spawner for this")
    with launched(spawner, job_for(support, lower)) as (_, ours):
        init = child_pid(ours[2])
        assert spawner.cap(init, support.uid, support.gid, caps(Limits(procs=77)))
        found = Path(f"/proc/{init}/limits").read_text()
        assert "Max processes             77                   77 " in found
        assert "Max core file size        0                    0 " in found
        assert "Max open files            1024                 1024 " in found
    assert not spawner.cap(1, support.uid, support.gid, caps(Limits()))
    assert os.getresuid() == (0, 0, 0)


def test_a_spawner_that_was_killed_says_so(support: Support, lower: Lower) -> None:
    spawner = Spawner.start()
    os.kill(spawner.pid, 9)
    try:
        with pytest.raises(SpawnerGone), launched(spawner, job_for(support, lower)):
            raise AssertionError("it was started")
    finally:
        spawner.close()


def test_a_spawner_that_does_not_answer_is_given_up(support: Support, lower: Lower) -> None:
    spawner = Spawner.start()
    with launched(spawner, job_for(support, lower)):
        pass
    os.kill(spawner.pid, 19)
    with contextlib.ExitStack() as stack:
        ends = _Ends(stack, b"true\n")
        with pytest.raises(TimeoutError):
            spawner.launch(job_for(support, lower), ends.theirs, None, time.monotonic() + 0.2)
    assert spawner.pid == 0


def test_a_cache_that_cannot_be_written_is_said_to_be_so(support: Support, lower: Lower) -> None:
    with pytest.raises(SandboxFailed, match="command folder"):
        job_for(support._replace(cache_dir="/proc/nowhere"), lower)


def test_a_run_needs_a_cache_folder(support: Support, lower: Lower) -> None:
    with pytest.raises(ValueError, match="cache_dir"):
        job_for(support._replace(cache_dir=None), lower)


@pytest.mark.parametrize("ids", [{"uid": 0}, {"gid": 0}])
def test_a_script_is_never_given_the_hosts_root_identity(
    support: Support, lower: Lower, ids: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="never runs as the host's root"):
        job_for(support._replace(as_root=True, **ids), lower)  # type: ignore[arg-type]
