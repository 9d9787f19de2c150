"""Helpers for tests of the command line: calls in this process and in a fresh one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memhtml.cli import main, parse
from memhtml.cli.call import Call


class Ran(NamedTuple):
    """What a call printed and how it ended."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def envelope(self) -> dict[str, Any]:
        """The one object on standard output."""
        value = json.loads(self.stdout)
        assert isinstance(value, dict)
        return value

    @property
    def data(self) -> dict[str, Any]:
        """The payload of a success."""
        assert "data" in self.envelope, self.envelope
        value: dict[str, Any] = self.envelope["data"]
        return value

    @property
    def code(self) -> str:
        """The code of a failure."""
        assert "code" in self.envelope, self.envelope
        return str(self.envelope["code"])

    @property
    def suggestions(self) -> list[str]:
        """The suggestions of a failure."""
        return [str(each) for each in self.envelope["suggestions"]]


def here(*argv: str, terminal: bool = False) -> Ran:
    """A call in this process. It must not read standard input."""
    outcome = main.invoke(argv, terminal=terminal)
    return Ran(outcome.status, outcome.stdout, outcome.stderr)


def fresh(
    *argv: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Ran:
    """A call in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "memhtml", *argv],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=120,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())


def parsed(*argv: str, terminal: bool = False) -> Call:
    """The call that words stand for. Raises what the parser raises."""
    scanned = parse.scan(argv)
    command, args = parse.command_of(scanned)
    return parse.call_of(scanned, command, args, terminal)


def words(line: str) -> list[str]:
    """The argument words of a suggested or documented line, placeholders filled in.

    A line may be piped into `memhtml` and may open a heredoc.
    """
    _, _, own = f"| {line}".rpartition("| ")
    own, _, _ = own.partition(" <<")
    tokens = shlex.split(own)
    assert tokens[:1] == ["memhtml"], line
    return [token.replace("<", "").replace(">", "") for token in tokens[1:]]


def check_lines(lines: Sequence[str]) -> None:
    """Every line parses against the table."""
    for line in lines:
        parsed(*words(line))
