"""What the environment and the policy file say (spec `cli` §4 and §5)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.cli import here

from memhtml import config
from memhtml.errors import MemhtmlError, StorageError

Patch = pytest.MonkeyPatch


def test_the_root_is_the_flag_then_the_variable_then_the_home_folder(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    home = os.environ["HOME"]
    assert config.root() == os.path.realpath(f"{home}/memhtml")
    monkeypatch.setenv("MEMHTML_ROOT", str(tmp_path / "variable"))
    assert config.root("  ") == str(tmp_path / "variable")
    assert config.root(str(tmp_path / "flag")) == str(tmp_path / "flag")
    monkeypatch.setenv("MEMHTML_ROOT", " ")
    assert config.root("") == os.path.realpath(f"{home}/memhtml")


@pytest.mark.parametrize(
    ("written", "expected"),
    [("~", "home"), ("~/a", "home/a"), ("a/../b", "here/b"), (".", "here"), ("~a", "here/~a")],
)
def test_a_root_is_made_absolute(
    written: str, expected: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert config.root(written) == str(tmp_path / expected)


def test_a_root_has_its_links_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert config.root(str(tmp_path / "link" / "store")) == str(tmp_path / "real" / "store")


@pytest.mark.parametrize("value", ["1", "true", "on", "please"])
def test_a_refused_environment_root_leaves_only_the_flag(value: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_REFUSE_ENV_ROOT", value)
    monkeypatch.setenv("MEMHTML_ROOT", "/somewhere")
    assert config.root("/srv") == os.path.realpath("/srv")
    ran = here("session", "status", "--id", "s1")
    assert (ran.status, ran.code) == (2, "ERR_REPO_REQUIRED")
    assert ran.suggestions == [
        "memhtml session status --id <id> --repo <root>",
        "memhtml help session status",
    ]


@pytest.mark.parametrize("value", ["0", "False", "NO", "off", " ", ""])
def test_a_variable_that_says_no_refuses_nothing(value: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_REFUSE_ENV_ROOT", value)
    monkeypatch.setenv("MEMHTML_ROOT", "/somewhere")
    assert config.root() == os.path.realpath("/somewhere")


def test_a_relative_root_in_a_folder_that_is_gone_names_nothing(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(MemhtmlError) as caught:
        config.root("store")
    assert caught.value.code == "ERR_REPO_REQUIRED"
    os.chdir(tmp_path)


def test_the_policy_file_is_absent_or_bytes(tmp_path: Path) -> None:
    assert config.policy_bytes(str(tmp_path)) is None
    assert config.policy_bytes(str(tmp_path / "none")) is None
    (tmp_path / "memhtml.config.json").write_bytes(b"\xff{}")
    assert config.policy_bytes(str(tmp_path)) == b"\xff{}"


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "broken link"])
def test_a_policy_that_is_no_regular_file_is_refused_and_not_waited_for(
    kind: str, tmp_path: Path
) -> None:
    place = tmp_path / "memhtml.config.json"
    (tmp_path / "other.json").write_text("{}")
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("other.json" if kind == "link" else "none.json")
    with pytest.raises(StorageError) as caught:
        config.policy_bytes(str(tmp_path))
    assert caught.value.reason == "policy.invalid"
    assert "memhtml.config.json" in str(caught.value)


def test_the_sandbox_settings_have_defaults() -> None:
    settings = config.sandbox()
    assert (settings.bwrap, settings.backend, settings.uid) == (None, None, 65534)
    assert (settings.cache_dir, settings.cache_home) == (None, os.environ["XDG_CACHE_HOME"])


def test_the_sandbox_settings_come_from_the_environment(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMHTML_BWRAP", "/opt/bwrap")
    monkeypatch.setenv("MEMHTML_SANDBOX", "copy")
    monkeypatch.setenv("MEMHTML_SANDBOX_UID", "1234")
    monkeypatch.setenv("MEMHTML_SANDBOX_CACHE", "cache")
    settings = config.sandbox()
    assert (settings.bwrap, settings.backend, settings.uid) == ("/opt/bwrap", "copy", 1234)
    assert settings.cache_dir == str(tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMHTML_SANDBOX", "chroot"),
        ("MEMHTML_SANDBOX", "Overlay"),
        ("MEMHTML_SANDBOX_UID", "0"),
        ("MEMHTML_SANDBOX_UID", "nobody"),
        ("MEMHTML_SANDBOX_UID", "-1"),
        ("MEMHTML_SANDBOX_UID", "4294967295"),
        ("MEMHTML_SANDBOX_UID", "٣"),
    ],
)
def test_a_bad_sandbox_variable_is_named(name: str, value: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(MemhtmlError) as caught:
        config.sandbox()
    assert (caught.value.code, caught.value.exit_status) == ("ERR_INVALID_FLAG", 2)
    assert name in str(caught.value)


def test_a_relative_cache_home_is_ignored(monkeypatch: Patch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert config.cache_home() == os.path.join(os.environ["HOME"], ".cache")


def test_a_git_child_is_not_told_of_another_repository(monkeypatch: Patch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere/.git")
    monkeypatch.setenv("GIT_INDEX_FILE", "/elsewhere/index")
    environment = config.git_environment()
    assert {name for name in environment if name.startswith("GIT_")} == {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
    }
    assert (environment["LC_ALL"], environment["HOME"]) == ("C.UTF-8", os.environ["HOME"])
