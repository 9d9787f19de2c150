"""Every `memhtml …` line in the sources parses against the table of this build."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import check_lines, here, parsed, words

from memhtml.cli import registry, suggest
from memhtml.errors import MemhtmlError

SOURCES = Path(__file__).resolve().parents[2] / "src" / "memhtml"


def text_of(node: ast.AST) -> str | None:
    """A string as written, every computed part of it replaced by `x`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
        )
    return None


def suggestion_lines(path: Path) -> Iterator[str]:
    """The strings given as `suggestions=` anywhere in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "suggestions":
            inside = {
                id(part)
                for each in ast.walk(node.value)
                if isinstance(each, ast.JoinedStr)
                for part in each.values
            }
            for each in ast.walk(node.value):
                text = text_of(each) if id(each) not in inside else None
                if text is not None and text.startswith("memhtml "):
                    yield text


def test_every_suggestion_in_the_sources_parses() -> None:
    found = {
        (path.relative_to(SOURCES).as_posix(), line)
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "doors.py"
        for line in suggestion_lines(path)
    }
    assert found
    for place, line in sorted(found):
        try:
            parsed(*words(line))
        except MemhtmlError as error:
            pytest.fail(f"{place}: {line}: {error}")


@pytest.mark.parametrize("variable", [None, "run-42"])
def test_the_sample_call_of_every_command_and_flag_parses(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv("MEMHTML_SESSION", variable)
    for command in registry.COMMANDS:
        if variable and command.name in registry.DOORS:
            continue  # Closed in a bound run, whatever else the line says.
        check_lines([suggest.call(command)])
        for flag in (*registry.GLOBAL_FLAGS, *command.flags):
            if flag.name == "record-path":
                continue  # Means nothing without --record.
            check_lines([suggest.call(command, suggest.flag(command, flag.name))])


@pytest.mark.parametrize("text", ["a", "a b", "it's", "", "$x", "<id>", "é"])
def test_a_quoted_word_is_read_back_by_a_shell(text: str) -> None:
    assert words(f"memhtml {suggest.quoted(text)}") == [text.replace("<", "").replace(">", "")]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("memhtml session status --id a", "memhtml session status --id a --repo '/a b'"),
        ("memhtml init", "memhtml init --repo '/a b'"),
        ("memhtml init --repo /c", "memhtml init --repo /c"),
        ("memhtml help session put", "memhtml help session put"),
        ("git -C /c status", "git -C /c status"),
        ("memhtml session exec <<'SH'", "memhtml session exec --repo '/a b' <<'SH'"),
        (
            "printf '%s\\n' '{}' | memhtml session put --file -",
            "printf '%s\\n' '{}' | memhtml session put --file - --repo '/a b'",
        ),
    ],
)
def test_a_suggested_call_on_a_store_names_the_one_that_was_called(line: str, wanted: str) -> None:
    assert suggest.on_store(line, "/a b") == wanted


def test_a_failed_call_with_a_store_suggests_calls_on_the_same_store(tmp_path: Path) -> None:
    root = str(tmp_path / "a b")
    assert here("init", "--repo", root).status == 0
    assert here("session", "start", "--id", "a", "--repo", root).status == 0
    again = here("session", "start", "--id", "a", "--repo", root)
    assert again.suggestions == [
        f"memhtml session status --id a --repo '{root}'",
        f"memhtml session start --id a --force --repo '{root}'",
    ]
    assert here("session", "commit", "--id", "a", f"--repo={root}").suggestions == [
        f"memhtml session commit --id <id> --message <text> --repo '{root}'",
        "memhtml help session commit",
    ]
