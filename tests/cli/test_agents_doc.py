"""`agents-doc`: the same bytes every time, compared or written, and nothing else touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.support.cli import Ran, check_lines, fresh, here

from memhtml.cli import markdown, registry
from memhtml.schema.envelope import validate_envelope

TEXT = markdown.document().encode()


def call(*words: str, cwd: Path | None = None) -> Ran:
    """An `agents-doc` in a process, where no store can be named."""
    env = {"MEMHTML_REFUSE_ENV_ROOT": "1"}
    ran = fresh("agents-doc", *words, env=env, cwd=cwd)
    validate_envelope(ran.envelope)
    check_lines(ran.envelope.get("suggestions", []))
    return ran


def test_document_is_written_where_it_is_expected_and_once(tmp_path: Path) -> None:
    first = call(cwd=tmp_path)
    size = len(TEXT)
    assert (first.status, first.stderr) == (0, "")
    assert first.envelope == {
        "apiVersion": "1",
        "type": "agents.doc",
        "data": {"path": "AGENTS.md", "bytes": size, "inSync": False, "written": True},
    }
    file = tmp_path / "AGENTS.md"
    assert file.read_bytes() == TEXT
    before = file.stat()
    assert call(cwd=tmp_path).data == {
        "path": "AGENTS.md",
        "bytes": size,
        "inSync": True,
        "written": False,
    }
    assert call("--check", cwd=tmp_path).data["inSync"] is True
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert os.listdir(tmp_path) == ["AGENTS.md"]


def test_document_has_the_whole_table() -> None:
    text = TEXT.decode()
    for command in registry.COMMANDS:
        assert f"### memhtml {command.name}\n" in text
    for name in (*registry.ERROR_CODES, *registry.RESPONSE_TYPES):
        assert f"`{name}`" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("content", [None, b"", TEXT[:-1], TEXT + b"\n", b"x" * len(TEXT)])
def test_check_refuses_another_file_and_leaves_it(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "doc's.md"
    if content is not None:
        file.write_bytes(content)
    ran = call("--check", "--out", str(file))
    assert (ran.status, ran.code) == (1, "ERR_INVALID_MEMORY")
    assert ran.suggestions[0].startswith("memhtml agents-doc --out=")
    is_there = "is not what `memhtml agents-doc` writes" in str(ran.envelope["error"])
    assert is_there == (content is not None)
    assert (file.read_bytes() if file.exists() else None) == content


def test_other_bytes_are_replaced_and_the_mode_stays(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("old")
    file.chmod(0o600)
    assert call("--out", str(file)).data["path"] == str(file)
    assert file.read_bytes() == TEXT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/CLAUDE.md").write_text("old")
    (tmp_path / "AGENTS.md").symlink_to("docs/CLAUDE.md")
    assert call(cwd=tmp_path).data["written"]
    assert (tmp_path / "AGENTS.md").is_symlink()
    assert (tmp_path / "docs/CLAUDE.md").read_bytes() == TEXT
    (tmp_path / "new.md").symlink_to("docs/made.md")
    call("--out", "new.md", cwd=tmp_path)
    assert (tmp_path / "docs/made.md").read_bytes() == TEXT


@pytest.mark.parametrize("name", ["folder", "folder/", "missing/x.md", "ring", "pipe", "file/x"])
def test_place_that_takes_no_file_is_a_write_failure(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "ring").symlink_to("ring")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    ran = call("--out", name, cwd=tmp_path)
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    prefix = f"storage operation failed: agents-doc.write: {name}: "
    assert str(ran.envelope["error"]).startswith(prefix)
    assert ran.suggestions == ["memhtml agents-doc --out <file>"]
    assert sorted(os.listdir(tmp_path)) == before
    assert call("--check", "--out", name, cwd=tmp_path).code == "ERR_INVALID_MEMORY"


def test_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memhtml.store.atomic.write_all", refuse)
    ran = here("agents-doc", "--out", str(file))
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    assert str(ran.envelope["error"]).endswith("AGENTS.md: No space left on device")
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["AGENTS.md"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--out", ""), "ERR_INVALID_FLAG"),
        (("--out",), "ERR_INVALID_FLAG"),
        (("--check=maybe",), "ERR_INVALID_FLAG"),
        (("AGENTS.md",), "ERR_UNEXPECTED_ARGUMENT"),
    ],
)
def test_wrong_call_writes_nothing(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    ran = call(*words, cwd=tmp_path)
    assert (ran.status, ran.code) == (2, code)
    assert ran.suggestions[-1] == "memhtml help agents-doc"
    assert os.listdir(tmp_path) == []


def test_suggestions_about_it_name_no_store(tmp_path: Path) -> None:
    ran = here("agents-doc", "--check", "--out", str(tmp_path / "x"), "--repo", "/srv")
    assert ran.suggestions == [f"memhtml agents-doc --out={tmp_path / 'x'}"]
