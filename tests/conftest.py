"""What every test stands on: an empty home, git settings of its own, none of our variables.

Set before any test module is imported, so that nothing remembers the real ones.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pygit2
import pytest
from hypothesis import HealthCheck, settings
from pygit2.enums import ConfigLevel

_STATE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Point everything a user owns at a folder that is thrown away.

    Property tests have no deadline, since the machine may be busy, and in CI no chance: what fails
    there fails here too.
    """
    settings.register_profile(
        "house",
        deadline=None,
        derandomize="CI" in os.environ,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("house")
    home = Path(tempfile.mkdtemp(prefix="memhtml-test-home-"))
    config.stash[_STATE] = home
    for name in [name for name in os.environ if name.startswith(("MEMHTML_", "GIT_", "XDG_"))]:
        del os.environ[name]
    git_settings = home / ".gitconfig"
    git_settings.write_text("[init]\n\tdefaultBranch = main\n", encoding="utf-8")
    os.environ.update(
        HOME=str(home),
        XDG_CONFIG_HOME=str(home / ".config"),
        XDG_CACHE_HOME=str(home / ".cache"),
        XDG_DATA_HOME=str(home / ".local" / "share"),
        XDG_STATE_HOME=str(home / ".local" / "state"),
        # A test that wants an embedder says so; the weights may or may not be installed.
        MEMHTML_EMBED="off",
        GIT_CONFIG_GLOBAL=str(git_settings),
        GIT_CONFIG_SYSTEM=os.devnull,
        # For commits that a test makes with git itself; the program looks at git's settings only.
        GIT_AUTHOR_NAME="A Person",
        GIT_AUTHOR_EMAIL="person@example.org",
        GIT_COMMITTER_NAME="A Person",
        GIT_COMMITTER_EMAIL="person@example.org",
    )
    # libgit2 looks at no variable for these three.
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.settings.search_path[level] = str(home)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder."""
    shutil.rmtree(config.stash[_STATE], ignore_errors=True)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test inherits a session or an embedder from the one before it."""
    for name in [name for name in os.environ if name.startswith("MEMHTML_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMHTML_EMBED", "off")
