"""The process itself: one write to standard output, closed pipes, signals (spec `cli` §1, §2)."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.cli import fresh

MEMHTML = [sys.executable, "-m", "memhtml"]


def test_a_success_exits_zero_with_one_object_and_nothing_on_standard_error() -> None:
    ran = fresh("manifest", "--dense")
    assert (ran.status, ran.stderr, ran.stdout.count(b"\n")) == (0, "", 1)


def test_a_usage_error_exits_two_with_an_envelope_and_nothing_on_standard_error() -> None:
    ran = fresh("session", "commit")
    assert (ran.status, ran.stderr, ran.code) == (2, "", "ERR_MISSING_ARGUMENT")


def test_output_is_utf8_whatever_the_locale_says() -> None:
    ran = fresh("céfé", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert (ran.code, "céfé" in ran.stdout.decode()) == ("ERR_UNKNOWN_COMMAND", True)


def test_an_argument_that_is_not_utf8_is_printed_with_a_replacement() -> None:
    ran = subprocess.run([*MEMHTML, b"caf\xe9"], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, b"")
    assert ran.stdout.decode().count("\ufffd") + ran.stdout.decode().count("\\udce9") == 1


@pytest.mark.parametrize("argv", [(), ("manifest", "--bogus")])
def test_a_reader_that_closed_the_pipe_ends_it_with_one_and_no_trace(argv: Sequence[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run([*MEMHTML, *argv], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_a_closed_standard_output_ends_it_with_one_and_no_trace() -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m memhtml >&-', sys.executable], capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_a_closed_standard_error_changes_no_answer() -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m memhtml manifest 2>&-', sys.executable],
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout[:1]) == (0, b"{")


def test_an_output_larger_than_a_pipe_arrives_whole() -> None:
    ran = fresh("x" * 100_000, *["y" * 1000] * 50)
    assert ran.code == "ERR_UNKNOWN_COMMAND"
    assert fresh("manifest").data["name"] == "memhtml"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_a_signal_ends_the_call_without_an_envelope(
    number: int, status: int, tmp_path: Path
) -> None:
    pipe = tmp_path / "ops.jsonl"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [*MEMHTML, "session", "put", "--id", "s1", "--file", pipe],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell may have started the tests with SIGINT ignored.
        preexec_fn=reset_signals,
    ) as child:
        writing = open_when_read(pipe)
        child.send_signal(number)
        stdout, stderr = child.communicate(timeout=30)
        os.close(writing)
    assert (child.returncode, stdout, stderr) == (status, b"", b"")


def open_when_read(pipe: Path) -> int:
    """The writing end of a named pipe, once somebody has it open for reading."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < deadline, "the call never opened its file"
        time.sleep(0.01)


def reset_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_the_console_script_answers_as_the_module_does(tmp_path: Path) -> None:
    script = tmp_path / "memhtml"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom memhtml.__main__ import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    ran = subprocess.run([script, "session", "commit"], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, fresh("session", "commit").stdout)


UPKEEP = """
import os, signal, sys
from memhtml.cli import main as edge
from memhtml.cli.call import Answer
def act():
    {act}
edge.handler = lambda command: lambda call: Answer("cli.manifest", {{}}, afterwards=act)
sys.exit(edge.main(["manifest"]))
"""


def with_upkeep(act: str) -> subprocess.Popen[bytes]:
    """A call that does `act` once its answer is out."""
    return subprocess.Popen(
        [sys.executable, "-c", UPKEEP.format(act=act)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=reset_signals,
    )


@pytest.mark.parametrize(
    "act",
    [
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGINT)",
        "raise SystemExit(9)",
        "raise RuntimeError",
    ],
)
def test_what_ends_the_upkeep_never_changes_the_status_of_the_answer(act: str) -> None:
    with with_upkeep(act) as child:
        stdout, stderr = child.communicate(timeout=30)
    assert (child.returncode, stdout[:1], stderr) == (0, b"{", b"")


def test_whoever_reads_to_the_end_does_not_wait_for_the_upkeep() -> None:
    with with_upkeep("os.read(0, 1)") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdin is not None
        for stream in (child.stdout, child.stderr):
            while select.select([stream], [], [], 30)[0]:
                if not os.read(stream.fileno(), 4096):
                    break
            else:
                child.kill()
                pytest.fail("the stream stayed open")
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(timeout=30) == 0
