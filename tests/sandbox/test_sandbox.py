"""Whole runs: what a script sees, what comes back, and what is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.sandbox import (
    CORPUS,
    Answer,
    Request,
    command_lines,
    commands,
    cost_in_bare_bwraps,
    run_as,
    run_as_user,
    support_for,
    write_corpus,
)

from memhtml_sandbox.errors import NodeMissing, SandboxFailed, SandboxUnavailable
from memhtml_sandbox.limits import MIB, Limits
from memhtml_sandbox.lower import NO_LAYER, Lower, SessionLayer
from memhtml_sandbox.probe import Support
from memhtml_sandbox.sandbox import Sandbox

both_users = pytest.mark.parametrize("who", ["self", "user"])
both_backends = pytest.mark.parametrize("backend", ["overlay", "copy"])


@pytest.fixture
def support(tmp_path: Path) -> Support:
    return support_for(str(tmp_path))


@pytest.fixture
def lower(tmp_path: Path, support: Support) -> Lower:
    return write_corpus(f"{tmp_path}/lower", support)


def run(tmp_path: Path, script: str, who: str = "self", **rest: object) -> Answer:
    return run_as(who, str(tmp_path), Request(script, **rest))  # type: ignore[arg-type]


@both_users
@both_backends
def test_changes_come_back_and_the_seed_stays(tmp_path: Path, who: str, backend: str) -> None:
    script = """
        cd /mnt/memhtml
        find . -type f | sort
        echo new > areas/inbox/new.html
        rm areas/inbox/a.html
        echo more >> projects/checkout/c.html
        ln -s /etc/passwd link.html
        exit 3
    """
    answer = run(tmp_path, script, who, backend=backend)
    assert (answer.exit_code, answer.timed_out, answer.killed) == (3, False, None)
    assert answer.stdout.split() == [f"./{path}" for path in CORPUS]
    assert answer.stderr == ""
    assert answer.changed == {
        "areas/inbox/new.html": ("file", "new\n"),
        "link.html": ("link", ""),
        "projects/checkout/c.html": ("file", "<p>c\nmore\n"),
    }
    assert answer.vanished == ["areas/inbox/a.html"]
    assert 0 < answer.started_ms < 5_000
    assert 0 < answer.duration_ms < 5_000


@both_users
@both_backends
def test_the_sessions_layer_lies_over_the_base(tmp_path: Path, who: str, backend: str) -> None:
    answer = run(
        tmp_path,
        "cd /mnt/memhtml; find . -type f | sort; cat areas/inbox/a.html; echo z >> x/y.html",
        who,
        backend=backend,
        layer={"areas/inbox/a.html": "changed\n", "x/y.html": "put\n"},
        gone=("areas/inbox/b.html", "projects/checkout/c.html"),
    )
    assert answer.stdout == "./areas/inbox/a.html\n./x/y.html\nchanged\n"
    assert answer.changed == {"x/y.html": ("file", "put\nz\n")}
    assert answer.vanished == []


@both_users
@both_backends
def test_a_read_only_run_sees_the_corpus_and_cannot_write(
    tmp_path: Path, who: str, backend: str
) -> None:
    script = "cat /mnt/memhtml/areas/inbox/a.html; echo x > /mnt/memhtml/x; echo $?"
    answer = run(tmp_path, script, who, backend=backend, read_only=True)
    assert answer.stdout == "<p>a\n1\n"
    assert "Read-only file system" in answer.stderr
    assert (answer.changed, answer.vanished) == ({}, [])


def test_a_read_only_run_over_two_layers_merges_them(tmp_path: Path, support: Support) -> None:
    base = write_corpus(f"{tmp_path}/lower", support)
    delta = write_corpus(f"{tmp_path}/delta", support, {"areas/inbox/a.html": "newer\n"})
    both = Lower(base.sha, (*base.layers, *delta.layers))
    with (
        Sandbox(support) as sandbox,
        sandbox.run(
            both,
            NO_LAYER,
            script=b"cd /mnt/memhtml/areas/inbox; cat a.html b.html; echo > c.html",
            read_only=True,
        ) as found,
    ):
        assert found.stdout == b"newer\n<p>b\n"
        assert found.exit_code == 1


def test_a_read_only_run_has_no_session_layer(support: Support, lower: Lower) -> None:
    layer = SessionLayer({"a.html": b""}, frozenset())
    with (
        pytest.raises(ValueError, match="layer"),
        Sandbox(support).run(lower, layer, script=b"true", read_only=True),
    ):
        raise AssertionError("it ran")


@both_users
def test_the_surroundings_are_those_that_are_promised(tmp_path: Path, who: str) -> None:
    script = """
        env | sort; pwd; id -u; id -g; uname -n; ls -A; read -r x; echo "eof $?"
        ls /sys /home /root 2>&1; cat /etc/passwd | wc -l
        tr '\\0' '\\n' < /proc/1/environ | wc -l; tr '\\0' ' ' < /proc/1/cmdline; echo
        cat /proc/net/dev | grep -c : ; ls -l /workspace /workspace/lib | grep -c mjs
        curl --version >/dev/null 2>&1; echo $?; echo 20 | awk '{print $1 * 2 + 2}'
        ulimit -u; ulimit -f; ulimit -c; ulimit -n; umask
    """
    os.environ["MEMHTML_TEST_SECRET"] = "s3cr3t"
    try:
        lines = run(tmp_path, script, who).stdout.splitlines()
    finally:
        del os.environ["MEMHTML_TEST_SECRET"]
    assert lines[:5] == [
        "HOME=/home/user",
        "LANG=C.UTF-8",
        "MEMHTML_MOUNT=/mnt/memhtml",
        "PATH=/usr/bin:/bin",
        "PWD=/home/user",
    ]
    rest = [line for line in lines[5:] if not line.startswith(("SHLVL=", "TMPDIR=", "_="))]
    assert rest[:5] == ["/home/user", "1000", "1000", "memhtml", "eof 1"]
    assert rest[5].startswith("ls: cannot access '/sys'")
    assert rest[6].startswith("ls: cannot access '/root'")
    assert rest[7:10] == ["/home:", "user", "2"]
    # Nothing of the reaper is to be seen.
    assert rest[10:12] == ["0", ""]
    assert rest[12:16] == ["1", "1", "127", "42"]
    assert rest[16:] == ["128", "16384", "0", "1024", "0022"]


@both_users
def test_no_inherited_descriptor_is_seen_inside(tmp_path: Path, who: str) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(fd, True)
    try:
        answer = run(
            tmp_path, "readlink /proc/$$/fd/* >/tmp/l; ls /proc/self/fd | wc -l; sort /tmp/l", who
        )
    finally:
        os.close(fd)
    count, *targets = answer.stdout.splitlines()
    assert count == "4"
    assert [name.partition(":")[0] for name in targets if "script.sh" not in name] == [
        "/dev/null",
        "pipe",
        "pipe",
    ]


@both_users
def test_the_hosts_sysctls_cannot_be_written(tmp_path: Path, who: str) -> None:
    before = Path("/proc/sys/vm/swappiness").read_text()
    script = """
        for f in kernel/core_pattern kernel/panic vm/swappiness kernel/hostname; do
            (echo 7 > /proc/sys/$f) 2>/dev/null && echo "wrote $f"
        done
        true
    """
    answer = run(tmp_path, script, who)
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert Path("/proc/sys/vm/swappiness").read_text() == before


@both_users
def test_what_the_script_may_not_do_to_the_kernel_fails(tmp_path: Path, who: str) -> None:
    script = """
        unshare -U true 2>/dev/null && echo namespace
        /.bin/mount -t tmpfs none /tmp 2>/dev/null && echo mount
        (exec 3<>/dev/tcp/127.0.0.1/80) 2>/dev/null && echo network
        touch /usr/x /etc/x /x /dev/x 2>/dev/null && echo system
        true
    """
    assert run(tmp_path, script, who).stdout == ""


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [
        ("exit 1", 1),
        ("exit 124", 124),
        ("exit 255", 255),
        ("false; true", 0),
        ("kill -9 $$", 137),
        ("kill -SEGV $$", 139),
        ("nosuchcommand", 127),
    ],
)
def test_the_exit_code_is_the_scripts_own(tmp_path: Path, script: str, exit_code: int) -> None:
    answer = run(tmp_path, script)
    assert (answer.exit_code, answer.timed_out, answer.killed) == (exit_code, False, None)


def test_a_setup_that_fails_is_no_exit_of_the_script(tmp_path: Path, support: Support) -> None:
    # A lower that is no folder: bwrap itself gives up, with the status of a script's `exit 1`.
    odd = tmp_path / "odd"
    odd.mkdir()
    support = support._replace(host=support.host._replace(stores=("/nowhere",)))
    lower = write_corpus(f"{tmp_path}/lower", support)
    with (
        pytest.raises(SandboxUnavailable, match="/nowhere") as caught,
        Sandbox(support) as sandbox,
        sandbox.run(lower, NO_LAYER, script=b"exit 1"),
    ):
        raise AssertionError("it ran")
    assert caught.value.code == "exec.sandbox-load"


def test_javascript_runs_with_its_helper(tmp_path: Path, support: Support) -> None:
    if support.node is None:
        pytest.skip("no node here")
    script = """
        import { ROOT, walk } from "/workspace/lib/corpus.mjs"
        console.log(ROOT, [...walk()].length, process.version.split(".").length)
        process.exitCode = 4
    """
    answer = run(tmp_path, script, lang="js")
    assert (answer.exit_code, answer.stderr) == (4, "")
    assert answer.stdout == "/mnt/memhtml 3 3\n"


def test_an_uncaught_error_in_javascript_is_exit_one(tmp_path: Path, support: Support) -> None:
    if support.node is None:
        pytest.skip("no node here")
    answer = run(tmp_path, "throw new Error('ouch')", lang="js")
    assert answer.exit_code == 1
    assert "ouch" in answer.stderr


def test_javascript_without_node_is_an_error_of_its_own(support: Support, lower: Lower) -> None:
    bare = support._replace(node=None, node_reason="there is no node", node_remedy="install it")
    with (
        Sandbox(bare) as sandbox,
        pytest.raises(NodeMissing, match="there is no node; install it"),
        sandbox.run(lower, NO_LAYER, script=b"1", lang="js"),
    ):
        raise AssertionError("it ran")


def test_an_unknown_language_is_refused(support: Support, lower: Lower) -> None:
    with (
        pytest.raises(ValueError, match="perl"),
        Sandbox(support).run(lower, NO_LAYER, script=b"1", lang="perl"),  # type: ignore[arg-type]
    ):
        raise AssertionError("it ran")


@both_users
def test_the_clock_kills_everything(tmp_path: Path, who: str) -> None:
    script = """
        trap '' TERM HUP INT QUIT
        (setsid nohup sleep 60 >/dev/null 2>&1 &)
        echo started; echo half > /mnt/memhtml/half.html
        sleep 60
    """
    answer = run(tmp_path, script, who, limits={"timeout_ms": 300})
    assert (answer.exit_code, answer.timed_out, answer.killed) == (124, True, "timeout")
    assert answer.stdout == "started\n"
    assert answer.changed == {"half.html": ("file", "half\n")}
    assert 300 <= answer.duration_ms < 2_000


def test_the_end_of_the_main_process_is_the_end_of_the_run(tmp_path: Path) -> None:
    script = """
        (setsid bash -c 'trap "" TERM; while :; do echo x >> /mnt/memhtml/late.html; done' &)
        sleep 60 & sleep 0.1; echo main; exit 5
    """
    answer = run(tmp_path, script)
    assert (answer.exit_code, answer.stdout, answer.timed_out) == (5, "main\n", False)
    assert answer.duration_ms < 2_000


def test_a_fork_bomb_is_held_and_killed(tmp_path: Path) -> None:
    begun_s = time.monotonic()
    answer = run(tmp_path, ":(){ :|:& };:\nwait\nsleep 20", limits={"timeout_ms": 1_000})
    assert time.monotonic() - begun_s < 8
    assert answer.exit_code == 124 or "fork" in answer.stderr


@both_users
def test_the_process_cap_is_felt(tmp_path: Path, who: str) -> None:
    script = """
        (for i in {1..60}; do sleep 1 & done) 2>/tmp/err
        while read -r line; do echo "$line"; done < /tmp/err
    """
    answer = run(tmp_path, script, who, limits={"procs": 20})
    assert "Resource temporarily unavailable" in answer.stdout


@both_users
@both_backends
def test_the_mount_and_the_scratch_are_capped(tmp_path: Path, who: str, backend: str) -> None:
    script = """
        for d in /mnt/memhtml /tmp /dev/shm /home/user /workspace; do
            head -c 9000000 /dev/zero > $d/f 2>/dev/null || echo "full $d"; rm $d/f
        done
        for i in {1..300}; do : > /tmp/$i || { echo "many $i"; break; }; done 2>/dev/null
    """
    limits = {
        "upper_bytes": 8 * MIB,
        "file_bytes": 8 * MIB,
        "scratch_bytes": 8 * MIB,
        "scratch_inodes": 200,
    }
    lines = run(tmp_path, script, who, backend=backend, limits=limits).stdout.splitlines()
    assert lines[:5] == [
        f"full {name}" for name in ("/mnt/memhtml", "/tmp", "/dev/shm", "/home/user", "/workspace")
    ]
    assert 150 <= int(lines[5].split()[1]) <= 200


def test_a_large_session_layer_leaves_the_script_its_room(tmp_path: Path) -> None:
    layer = {f"areas/x/{number}.html": "x" * 40_000 for number in range(60)}
    limits = {"upper_bytes": 2 * MIB, "file_bytes": 2 * MIB, "upper_inodes": 100}
    script = (
        "head -c 1900000 /dev/zero > /mnt/memhtml/big; echo $?; ls /mnt/memhtml/areas/x | wc -l"
    )
    answer = run(tmp_path, script, layer=layer, limits=limits)
    assert answer.stdout.split() == ["0", "60"]


def test_one_file_is_capped(tmp_path: Path) -> None:
    answer = run(
        tmp_path, "head -c 2000000 /dev/zero > /tmp/x; wc -c < /tmp/x", limits={"file_bytes": MIB}
    )
    assert answer.stdout.strip() == str(MIB)


def test_output_over_the_cap_ends_with_a_line_that_says_so(tmp_path: Path) -> None:
    script = "printf 'abc'; head -c 3000000 /dev/zero | tr '\\0' x; printf '123456\\n' >&2"
    answer = run(tmp_path, script, limits={"stdout_bytes": 1_000, "stderr_bytes": 7})
    assert answer.exit_code == 0
    assert answer.stdout == "abc" + "x" * 997 + "\nmemhtml: 2999003 bytes cut\n"
    assert answer.stderr == "123456\n"
    assert answer.cut == (2_999_003, 0)


def test_a_run_over_its_memory_is_killed_and_says_so(tmp_path: Path) -> None:
    script = "echo before >&2; x=$(head -c 200000000 /dev/zero | tr '\\0' a); sleep 20"
    answer = run(tmp_path, script, limits={"run_rss_bytes": 100 * MIB})
    assert (answer.exit_code, answer.killed, answer.timed_out) == (137, "memory", False)
    assert answer.stderr.endswith("memhtml: killed: memory limit\n")


@both_users
def test_memory_is_counted_behind_a_first_thread_that_has_ended(tmp_path: Path, who: str) -> None:
    script = """python3 -c '
import ctypes, os, threading, time
def hoard():
    time.sleep(0.2)
    kept = b"x" * 200_000_000
    time.sleep(20)
threading.Thread(target=hoard).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
'"""
    answer = run(tmp_path, script, who, limits={"run_rss_bytes": 100 * MIB})
    assert (answer.exit_code, answer.killed) == (137, "memory")


@both_users
def test_a_run_is_the_first_to_go_where_memory_runs_out(tmp_path: Path, who: str) -> None:
    assert run(tmp_path, "cat /proc/self/oom_score_adj", who).stdout == "1000\n"


def test_a_script_of_many_bytes_is_taken_whole(tmp_path: Path) -> None:
    script = "echo start\n" + "# padding to make it long\n" * 40_000 + "echo end\n"
    assert run(tmp_path, script).stdout == "start\nend\n"


def test_a_script_that_reads_stdin_does_not_eat_itself(tmp_path: Path) -> None:
    assert run(tmp_path, "cat\necho last").stdout == "last\n"


def test_an_interrupt_kills_the_run_and_goes_on(support: Support, lower: Lower) -> None:
    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    sandbox = Sandbox(support)
    marker = f"30.{os.getpid()}"
    begun_s = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with (
            pytest.raises(KeyboardInterrupt),
            sandbox.run(lower, NO_LAYER, script=f"sleep {marker}".encode()),
        ):
            raise AssertionError("it ended by itself")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        sandbox.close()
    assert time.monotonic() - begun_s < 5
    # By its argument: other runs of this machine are none of our business.
    assert not any(marker in words for words in command_lines())


def test_changes_are_read_once_and_only_inside_the_block(support: Support, lower: Lower) -> None:
    with Sandbox(support) as sandbox:
        with sandbox.run(lower, NO_LAYER, script=b"echo x > /mnt/memhtml/x.html") as early:
            found = early.changes()
            assert early.changes() is found
        assert early.changes() is found
        with sandbox.run(lower, NO_LAYER, script=b"true") as late:
            assert late.exit_code == 0
        with pytest.raises(ValueError, match="inside the with block"):
            late.changes()


def test_a_walk_that_ends_after_the_time_of_the_whole_run_harvests_nothing(
    support: Support, lower: Lower
) -> None:
    limits = Limits(timeout_ms=400, grace_ms=1)
    with (
        Sandbox(support) as sandbox,
        sandbox.run(lower, NO_LAYER, script=b"echo x > /mnt/memhtml/x", limits=limits) as late,
    ):
        assert late.exit_code == 0
        time.sleep(0.5)
        assert not late.changes().changed
        assert (late.exit_code, late.timed_out) == (124, True)


def test_a_limit_out_of_range_starts_nothing(support: Support, lower: Lower) -> None:
    with (
        pytest.raises(ValueError, match="timeout_ms"),
        Sandbox(support).run(lower, NO_LAYER, script=b"", limits=Limits(timeout_ms=0)),
    ):
        raise AssertionError("it ran")


def test_a_layer_with_a_path_no_tree_can_hold_is_an_error_of_the_seed(
    support: Support, lower: Lower
) -> None:
    layer = SessionLayer({"../outside.html": b"x"}, frozenset())
    with (
        Sandbox(support) as sandbox,
        pytest.raises(SandboxFailed) as caught,
        sandbox.run(lower, layer, script=b"true"),
    ):
        raise AssertionError("it ran")
    assert caught.value.code == "exec.seed"


def test_a_stale_memory_of_the_probe_is_dropped_and_the_run_done(
    support: Support, lower: Lower
) -> None:
    stale = support._replace(bwrap="/nowhere/bwrap", remembered=True)
    with (
        Sandbox(stale) as sandbox,
        sandbox.run(lower, NO_LAYER, script=b"exit 6") as found,
    ):
        assert found.exit_code == 6


def test_a_cgroup_that_cannot_be_joined_is_done_without(
    support: Support, lower: Lower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml_sandbox.cgroup.create", lambda *_: "/nowhere/memhtml-1")
    with (
        Sandbox(support._replace(cgroup="/nowhere")) as sandbox,
        sandbox.run(lower, NO_LAYER, script=b"exit 9") as found,
    ):
        assert found.exit_code == 9


def test_a_corpus_too_large_for_copies_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml_sandbox.copy_backend.MOST_FILES", 2)
    support = support_for(str(tmp_path), "copy")
    lower = write_corpus(f"{tmp_path}/lower", support)
    with (
        Sandbox(support) as sandbox,
        pytest.raises(SandboxUnavailable, match="corpus too large for the copy back end"),
        sandbox.run(lower, NO_LAYER, script=b"true"),
    ):
        raise AssertionError("it ran")


def test_a_hundred_runs_leave_nothing(support: Support, lower: Lower, tmp_path: Path) -> None:
    with Sandbox(support) as sandbox:
        with sandbox.run(lower, NO_LAYER, script=b"true") as first:
            assert first.exit_code == 0
        assert sandbox._own is not None
        spawner = sandbox._own.pid
        held = len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{spawner}/fd"))
        mounts = Path("/proc/self/mountinfo").read_text()
        threads = threading.active_count()
        files = sorted(str(path) for path in tmp_path.rglob("*"))
        for number in range(100):
            script = b"echo x > /mnt/memhtml/n.html; (sleep 9 &) ; exit %d" % (number % 7)
            with sandbox.run(lower, NO_LAYER, script=script) as found:
                assert found.exit_code == number % 7
                assert set(found.changes().changed) == {b"n.html"}
        sandbox.run(lower, NO_LAYER, script=b"true").__enter__()
        assert _children_of(spawner) == []
        assert (
            len(os.listdir("/proc/self/fd")) - 1,
            len(os.listdir(f"/proc/{spawner}/fd")),
        ) <= held
        assert Path("/proc/self/mountinfo").read_text() == mounts
        assert threading.active_count() == threads
        assert sorted(str(path) for path in tmp_path.rglob("*")) == files


def _children_of(pid: int) -> list[str]:
    """Names of the children, zombies too, once the last message has been worked off."""
    deadline_s = time.monotonic() + 2
    while True:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not found or time.monotonic() > deadline_s:
            return list(commands({int(name) for name in found}).values())
        time.sleep(0.01)


def test_importing_the_package_brings_none_of_the_slow_modules() -> None:
    import subprocess

    code = (
        "import sys; from memhtml_sandbox import probe, sandbox\n"
        "slow = {'subprocess', 'dataclasses', 'logging', 'tempfile', 'shutil', 'pathlib',"
        " 'asyncio', 'ctypes', 'socket', 'inspect', 'argparse', 'selectors', 'threading'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "[]\n", path


@pytest.mark.slow
@pytest.mark.parametrize("who", ["self", "user"])
def test_a_trivial_run_costs_at_most_two_and_a_half_bare_bwraps(tmp_path: Path, who: str) -> None:
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        pytest.skip("this host is too busy to measure on")
    if who == "user":
        answer = run_as_user(
            "import tempfile\nfrom sandbox_support import cost_in_bare_bwraps\n"
            "with tempfile.TemporaryDirectory() as folder: print(cost_in_bare_bwraps(folder))"
        )
        assert float(answer) <= 2.5
    else:
        assert cost_in_bare_bwraps(str(tmp_path)) <= 2.5
