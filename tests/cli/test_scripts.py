"""The scripts a newcomer runs first: the README's command, and the check of the manual."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
RECORD = "projects/checkout/charges-settle-within-a-day.html"


def run(script: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPTS / script, *argv],
        env={**os.environ, "QUICKSTART_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_quickstart_lands_a_record_in_a_new_store(tmp_path: Path) -> None:
    store = tmp_path / "a store"
    ran = run("quickstart", str(store))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert '"kind":"committed"' in ran.stdout
    log = subprocess.run(
        ["git", "-C", store, "log", "--format=%s", "--name-only", "-1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    assert log[0] == "memhtml(session): when charges settle"
    assert RECORD in log
    assert (store / RECORD).is_file()
    assert str(store) in ran.stdout.splitlines()[-2]


def test_the_quickstart_touches_no_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    ran = run("quickstart", str(tmp_path))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert os.listdir(tmp_path) == ["mine"]


def test_the_reference_check_passes_on_this_checkout() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPTS / "gen-reference", "--check"], capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
