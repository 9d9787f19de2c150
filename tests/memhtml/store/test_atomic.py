"""Whole-file replacement under faults (spec `sessions` §1.2)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memhtml.store.atomic import is_temporary_name, temporary_name, write_all, write_atomic


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    write_atomic(str(path), b"one")
    write_atomic(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["log.json"]


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(str(tmp_path / "a"), b"")
        write_atomic(str(tmp_path / "b"), b"", mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"safe")
    (tmp_path / "log").symlink_to("victim")
    write_atomic(str(tmp_path / "log"), b"new")
    assert (tmp_path / "victim").read_bytes() == b"safe"
    assert not (tmp_path / "log").is_symlink()


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    write_atomic(str(tmp_path / "a"), b"0123456789")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def _refuse(*words: object, **named: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("existed", [True, False])
def test_a_full_disk_keeps_the_old_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, existed: bool
) -> None:
    path = tmp_path / "log.json"
    if existed:
        path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _refuse)
        with pytest.raises(OSError) as caught:
            write_atomic(str(path), b"new")
    assert caught.value.errno == 28
    assert [entry.name for entry in tmp_path.iterdir()] == (["log.json"] if existed else [])
    if existed:
        assert path.read_bytes() == b"old"


def test_an_interrupt_leaves_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomic(str(tmp_path / "a"), b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_flushed_does_not_undo_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    write_atomic(str(tmp_path / "a"), b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_the_folder_is_flushed_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    fsync: Callable[[int], None] = os.fsync
    replace = os.replace

    def note_fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        seen.append("folder" if folder else "file")
        fsync(descriptor)

    def note_replace(source: str, target: str) -> None:
        seen.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_atomic(str(tmp_path / "a"), b"new")
    assert seen == ["file", "rename", "folder"]


@pytest.mark.parametrize("name", ["a.json", "x" * 128 + ".json", ".hidden"])
def test_temporary_names_are_known_and_never_the_name_itself(name: str) -> None:
    fresh = temporary_name(name)
    assert is_temporary_name(fresh)
    assert fresh != temporary_name(name)
    assert len(fresh) < 128
    assert not is_temporary_name(name)


def test_write_all_writes_nothing_for_nothing(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    write_all(descriptor, b"")
    os.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b""
