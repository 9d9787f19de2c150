"""Proof that no test reaches the user's home, settings, store or session."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pygit2
from pygit2.enums import ConfigLevel

from memhtml import config

REAL_HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_the_home_folder_is_thrown_away_after_the_run() -> None:
    home = Path.home()
    assert home != REAL_HOME
    assert home.name.startswith("memhtml-test-home-")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        assert Path(os.environ[name]).is_relative_to(home)


def test_of_our_variables_one_alone_is_set_and_it_binds_no_embedder() -> None:
    ours = {name: os.environ[name] for name in os.environ if name.startswith("MEMHTML_")}
    assert ours == {"MEMHTML_EMBED": "off"}


def test_a_store_without_a_name_lies_in_that_home() -> None:
    assert Path(config.root()).is_relative_to(Path.home().resolve())
    assert Path(config.cache_home()).is_relative_to(Path.home())


def test_a_call_in_a_new_process_stays_there_too() -> None:
    probe = "from memhtml import config; print(config.root(), config.session_variable())"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True, text=True)
    assert ran.stdout.split() == [str(Path.home().resolve() / "memhtml"), "None"]


def test_git_reads_no_settings_of_the_user_or_the_host() -> None:
    ran = subprocess.run(
        ["git", "config", "--list", "--show-origin", "--global"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert {line.split("\t")[0] for line in ran.stdout.splitlines()} == {
        f"file:{Path.home()}/.gitconfig"
    }
    system = subprocess.run(
        ["git", "config", "--list", "--system"], capture_output=True, check=False, text=True
    )
    assert system.stdout == ""


def test_libgit2_reads_no_settings_of_the_user_or_the_host() -> None:
    settings = pygit2.Config.get_global_config()
    assert {entry.name: entry.value for entry in settings} == {"init.defaultbranch": "main"}
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        assert pygit2.settings.search_path[level] == str(Path.home())
