"""The manual is generated, whole and up to date; no other page names what does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.cli import check_lines

from memhtml.cli import guide, markdown, registry

REPOSITORY = Path(__file__).resolve().parents[2]
REFERENCE = REPOSITORY / "docs" / "reference.md"
SHELL_BLOCK = re.compile(r"^```(?:bash|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_reference_page_equals_the_table() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == markdown.document(), "run scripts/gen-reference"


def test_the_reference_page_has_every_command_flag_type_code_and_variable() -> None:
    text = markdown.document()
    for command in registry.COMMANDS:
        assert f"### memhtml {command.name}\n" in text
        for flag in command.flags:
            assert f"`--{flag.name}`" in text
    names = [*registry.RESPONSE_TYPES, *registry.ERROR_CODES, *(v[0] for v in guide.VARIABLES)]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_pages_name_only_codes_and_variables_that_exist() -> None:
    known = {*registry.ERROR_CODES, *(name for name, _, _ in guide.VARIABLES), "MEMHTML_MOUNT"}
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        named = set(re.findall(r"\b(?:ERR|MEMHTML)_[A-Z_]+[A-Z]\b", page.read_text("utf-8")))
        assert named - known == set(), page.name


def test_every_call_shown_in_the_pages_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        for block in SHELL_BLOCK.findall(page.read_text("utf-8")):
            for name, value in re.findall(r"^export (MEMHTML_\w+)=(\S+)", block, flags=re.M):
                monkeypatch.setenv(name, value)
            joined = block.replace("\\\n", " ")
            # What stands inside a heredoc is a script or a record, not a call.
            joined = re.sub(r"(<<'?(\w+)'?[^\n]*\n).*?^\2$", r"\1", joined, flags=re.S | re.M)
            calls = re.findall(r"^(?:[^#\n]*\| *)?(memhtml [^#\n]*)", joined, flags=re.M)
            check_lines([call.strip() for call in calls])
            monkeypatch.undo()


def test_the_guide_shows_only_calls_that_parse() -> None:
    for _, body in guide.TOPICS:
        calls = [each for each in re.findall(r"`(memhtml [^`]+)`", body) if "<command>" not in each]
        check_lines([re.sub(r"<(\w+)>", r"\1", each) for each in calls])
