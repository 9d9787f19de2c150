"""Scripts and line streams: where they come from and what is refused (spec `harvest` §1)."""

from __future__ import annotations

import json
import os
import pty
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import check_lines, parsed

from memhtml.cli import inputs
from memhtml.errors import MemhtmlError

LIMIT = 1_048_576
EXEC = ("session", "exec", "--id", "s1")
PUT = ("session", "put", "--id", "s1")
Patch = pytest.MonkeyPatch


@pytest.fixture
def stdin(tmp_path: Path, monkeypatch: Patch) -> Iterator[Path]:
    """A file that the readers take for standard input."""
    place = tmp_path / "stdin"
    place.write_bytes(b"")
    descriptor = os.open(place, os.O_RDONLY)
    monkeypatch.setattr(inputs, "STDIN", descriptor)
    yield place
    os.close(descriptor)


def script_refused(*argv: str) -> MemhtmlError:
    with pytest.raises(MemhtmlError) as caught:
        inputs.read_script(parsed(*EXEC, *argv))
    assert caught.value.exit_status == 2
    check_lines(caught.value.suggestions)
    return caught.value


def lines_refused(*argv: str) -> MemhtmlError:
    with pytest.raises(MemhtmlError) as caught:
        inputs.read_lines(parsed(*PUT, *argv))
    assert caught.value.exit_status == 2
    return caught.value


@pytest.mark.parametrize("source", [(), ("-",), ("--file", "-"), ("--file=-",)])
def test_a_script_comes_byte_for_byte_from_standard_input(
    source: tuple[str, ...], stdin: Path
) -> None:
    text = "\ufeffecho 'é\u2028'\r\n\ttrue \n\n"
    stdin.write_text(text, encoding="utf-8", newline="")
    script = inputs.read_script(parsed(*EXEC, *source))
    assert (script.text, script.lang, script.timeout_ms) == (text, "bash", 30000)


def test_a_script_comes_from_a_file_or_from_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text("1;\n")
    call = parsed(*EXEC, "--lang=js", "--timeout-ms=5", "--file", str(tmp_path / "a.mjs"))
    assert tuple(inputs.read_script(call)) == ("1;\n", "js", 5)
    assert inputs.read_script(parsed(*EXEC, "--script", "true")).text == "true"


def test_a_file_that_is_a_pipe_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"true\n")
    os.close(writing)
    assert inputs.read_script(parsed(*EXEC, "--file", f"/dev/fd/{reading}")).text == "true\n"
    os.close(reading)


@pytest.mark.parametrize("text", ["", " \n\t\r\n", "\u2003"])
def test_a_blank_script_is_missing(text: str, stdin: Path) -> None:
    stdin.write_text(text)
    assert script_refused().code == "ERR_MISSING_ARGUMENT"
    assert script_refused(f"--script={text}").code == "ERR_MISSING_ARGUMENT"


def test_a_terminal_on_standard_input_is_missing(monkeypatch: Patch) -> None:
    controller, terminal = pty.openpty()
    monkeypatch.setattr(inputs, "STDIN", terminal)
    assert script_refused().code == "ERR_MISSING_ARGUMENT"
    assert lines_refused().code == "ERR_MISSING_ARGUMENT"
    os.close(controller)
    os.close(terminal)


def test_a_closed_standard_input_is_missing(monkeypatch: Patch) -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    monkeypatch.setattr(inputs, "STDIN", descriptor)
    assert script_refused().code == "ERR_MISSING_ARGUMENT"


def test_a_standard_input_that_fails_is_not_taken_for_its_end(monkeypatch: Patch) -> None:
    folder = os.open("/", os.O_RDONLY)
    monkeypatch.setattr(inputs, "STDIN", folder)
    assert script_refused().code == "ERR_PATH_NOT_FOUND"
    os.close(folder)


@pytest.mark.parametrize("name", ["none", "", "folder"])
def test_an_unreadable_file_is_a_wrong_call(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert script_refused(f"--file={name}").code == "ERR_PATH_NOT_FOUND"
    assert lines_refused(f"--file={name}").code == "ERR_PATH_NOT_FOUND"


def test_a_script_that_is_not_utf8_is_refused(stdin: Path) -> None:
    stdin.write_bytes(b"true\n# caf\xe9\n")
    error = script_refused()
    assert (error.code, "line 2" in str(error)) == ("ERR_INVALID_FLAG", True)


def padded(fixed: dict[str, object], filler: str) -> str:
    """A script that makes the compact request of `fixed` exactly the limit long."""
    empty = json.dumps({**fixed, "script": ""}, ensure_ascii=False, separators=(",", ":"))
    width = len(json.dumps(filler, ensure_ascii=False).encode()) - 2
    room = LIMIT - len(empty.encode()) - 1
    return "a" + filler * (room // width) + "a" * (room % width)


@pytest.mark.parametrize("filler", ["a", "é", '"', "\n", "\u2028"])
def test_a_request_of_exactly_the_limit_is_allowed_and_one_byte_more_is_not(
    filler: str, stdin: Path
) -> None:
    text = padded({"id": "s1", "script": "", "lang": "bash"}, filler)
    stdin.write_text(text, encoding="utf-8", newline="")
    assert inputs.read_script(parsed(*EXEC)).text == text
    stdin.write_text(text + "a", encoding="utf-8", newline="")
    os.lseek(inputs.STDIN, 0, os.SEEK_SET)
    error = script_refused()
    assert error.code == "ERR_INVALID_FLAG"
    for part in (str(LIMIT), str(LIMIT + 1), "session put"):
        assert part in str(error)


def test_the_request_counts_the_timeout_and_the_bound_run(stdin: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "s1")
    request = {"id": "s1", "script": "", "lang": "js", "timeoutMs": 30000, "runBound": True}
    text = padded(request, "a")
    stdin.write_text(text)
    argv = (*EXEC, "--lang", "js", "--timeout-ms", "30000")
    assert inputs.read_script(parsed(*argv)).text == text
    stdin.write_text(text + "a")
    os.lseek(inputs.STDIN, 0, os.SEEK_SET)
    assert script_refused("--lang", "js", "--timeout-ms", "30000").code == "ERR_INVALID_FLAG"


def test_a_script_far_over_the_limit_is_counted_and_not_kept(stdin: Path) -> None:
    os.truncate(stdin, 64 * LIMIT)
    data, size_bytes = inputs._read(None, LIMIT)
    assert (len(data) <= LIMIT + 2 * inputs.CHUNK_BYTES, size_bytes) == (True, 64 * LIMIT)
    os.lseek(inputs.STDIN, 0, os.SEEK_SET)
    assert str(64 * LIMIT) in str(script_refused())


@pytest.mark.parametrize("name", ["/dev/zero", "-"])
def test_an_endless_input_is_read_no_further_than_the_limit(name: str, monkeypatch: Patch) -> None:
    descriptor = os.open("/dev/zero", os.O_RDONLY)
    monkeypatch.setattr(inputs, "STDIN", descriptor)
    error = script_refused("--file", name)
    assert (error.code, f"at least {16 * LIMIT + 1}" in str(error)) == ("ERR_INVALID_FLAG", True)
    error = lines_refused("--file", name)
    assert (error.code, f"at most {16 * LIMIT} bytes" in str(error)) == ("ERR_INVALID_FLAG", True)
    os.close(descriptor)


def test_lines_of_exactly_the_limit_are_read(stdin: Path) -> None:
    line = b'{"op":"label","path":"areas/inbox/a.html","entity":"system:cache"}\n'
    stdin.write_bytes(line + b"\n" * (16 * LIMIT - len(line)))
    assert len(inputs.read_lines(parsed(*PUT))) == 1
    stdin.write_bytes(line + b"\n" * (16 * LIMIT - len(line) + 1))
    os.lseek(inputs.STDIN, 0, os.SEEK_SET)
    assert lines_refused().code == "ERR_INVALID_FLAG"


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(inputs, "PIPE_WAIT_MS", 10)
    os.mkfifo(tmp_path / "pipe")
    for error in (
        script_refused("--file", str(tmp_path / "pipe")),
        lines_refused("--file", str(tmp_path / "pipe")),
    ):
        assert (error.code, "nothing writes" in str(error)) == ("ERR_PATH_NOT_FOUND", True)


def test_a_pipe_whose_writer_comes_late_or_is_slow_is_read(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(inputs, "PIPE_WAIT_MS", 5000)
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        time.sleep(0.05)
        with open(tmp_path / "pipe", "w") as pipe:
            monkeypatch.setattr(inputs, "PIPE_WAIT_MS", 1)
            time.sleep(0.05)
            pipe.write("true\n")

    writer = threading.Thread(target=write)
    writer.start()
    assert inputs.read_script(parsed(*EXEC, "--file", str(tmp_path / "pipe"))).text == "true\n"
    writer.join()


def test_lines_come_from_standard_input_or_a_file_without_their_mark(
    stdin: Path, tmp_path: Path
) -> None:
    line = '{"op":"label","path":"areas/inbox/a.html","entity":"system:cache"}\n'
    stdin.write_text("\ufeff\n" + line, encoding="utf-8")
    [label] = inputs.read_lines(parsed(*PUT))
    assert label.number == 2
    (tmp_path / "ops").write_text(line * 3)
    assert len(inputs.read_lines(parsed(*PUT, "--file", str(tmp_path / "ops")))) == 3


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        (b"", "ERR_MISSING_ARGUMENT", "session put"),
        (b"\n\n{", "ERR_INVALID_FLAG", "line 3"),
        (b'{"op":"write"}\n', "ERR_MISSING_ARGUMENT", "line 1"),
        (b'{"op":"label",\n"\xff', "ERR_INVALID_FLAG", "line 2"),
    ],
)
def test_a_bad_stream_is_refused_naming_its_line(
    text: bytes, code: str, part: str, stdin: Path
) -> None:
    stdin.write_bytes(text)
    error = lines_refused()
    assert (error.code, part in str(error)) == (code, True), str(error)
