"""`python -m memhtml_harvest.replay`: recorded runs judged again without a sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memhtml_harvest.fixture import load
from memhtml_harvest.replay import judge, main

RECORDED = Path(__file__).parents[2] / "harvest/sessions"


def folders() -> list[Path]:
    return sorted(path.parent for path in RECORDED.glob("*/fixture.json"))


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    value = json.loads(capsys.readouterr().out)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_recorded_run_is_harvested_as_it_was(folder: Path) -> None:
    assert judge(load(folder)) == []
    assert load(folder).name == folder.name


def test_there_are_recorded_runs_of_every_kind() -> None:
    fixtures = [load(folder) for folder in folders()]

    kinds = {op["kind"] for fixture in fixtures for op in fixture.expect.harvested}
    assert kinds == {"put", "link", "unlink", "label", "unlabel", "archive", "move"}
    assert {fixture.lang for fixture in fixtures} == {"bash", "js"}
    assert any(fixture.expect.rejected for fixture in fixtures)
    assert any(fixture.ops for fixture in fixtures)


def test_all_recorded_runs_pass_as_one_report(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([str(folder) for folder in folders()])

    report = answer(capsys)
    assert status == 0
    assert report["total"] == report["passed"] == len(folders())


def test_changed_tree_is_a_difference_and_exit_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(folders()[0], folder, symlinks=True)
    (folder / "after/extra.txt").write_text("x")

    status = main([str(folders()[0]), str(folder)])

    report = answer(capsys)
    assert status == 1
    assert (report["passed"], report["failed"]) == (1, 1)
    assert report["fixtures"][1]["dir"] == str(folder)
    assert report["fixtures"][1]["differences"][0]["field"] == "rejected"


def test_folder_that_is_no_fixture_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 1
    assert answer(capsys)["path"] == str(tmp_path)


def test_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memhtml_harvest.replay", str(folders()[0])],
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0
    assert json.loads(done.stdout)["failed"] == 0


def test_call_without_a_folder_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
