"""`session exec --record` and `replay`: a recording never costs an answer, and what it holds runs
again (spec `cli` §10 `replay`).
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import parsed
from tests.support.command import Said, memhtml
from tests.support.session import git, make_store, page, start_log

from memhtml.errors import MemhtmlError, StorageError
from memhtml.replay.record import make_folder
from memhtml.session.log import read_log
from memhtml.store.lock import session_lock

A = "areas/inbox/a.html"
NEW = "/mnt/memhtml/areas/inbox/new.html"
WRITE = f"cat > {NEW} <<'HTML'\n{page('A new fact holds.')}HTML\n"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one record and a started session."""
    root = make_store(str(tmp_path / "store"), {A: page("Fact a holds.")})
    start_log(root, "s", [])
    return root


def record(root: str, folder: str, script: str) -> Said:
    """One recorded call."""
    words = ("session", "exec", "--repo", root, "--id", "s", "--record", folder)
    return memhtml(*words, text=script)


def kept(folder: Path) -> dict[str, Any]:
    """The fixture's own file."""
    value = json.loads((folder / "fixture.json").read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def change(folder: Path, **fields: object) -> None:
    """Overwrite fields of a fixture."""
    text = json.dumps({**kept(folder), **fields})
    (folder / "fixture.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("folder", ["", " ", "\t"])
def test_blank_folder_is_refused(folder: str) -> None:
    words = ("session", "exec", "--id", "s", "--script", "true")
    with pytest.raises(MemhtmlError) as caught:
        parsed(*words, f"--record={folder}")
    assert caught.value.code == "ERR_INVALID_FLAG"
    assert "--record" in str(caught.value)


def test_folder_that_cannot_be_made_fails_before_the_run(store: str) -> None:
    said = record(store, "/proc/recorded", WRITE)
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert "replay.write" in said.envelope["error"]
    assert read_log(store, "s").ops == ()


def test_folder_that_takes_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, *_rest: object, **_named: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(StorageError) as caught:
        make_folder(str(tmp_path / "recorded"))
    assert caught.value.reason == "replay.write"
    assert os.strerror(errno.ENOSPC) in str(caught.value)


def test_folder_is_left_empty_for_the_recording(tmp_path: Path) -> None:
    make_folder(str(tmp_path / "a/recorded"))
    assert list((tmp_path / "a/recorded").iterdir()) == []


def test_folder_is_not_made_for_a_call_that_cannot_run(tmp_path: Path) -> None:
    said = record(str(tmp_path / "none"), str(tmp_path / "recorded"), "true\n")
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")
    assert not (tmp_path / "recorded").exists()


def test_recording_that_fails_after_the_append_costs_a_warning_alone(
    store: str, tmp_path: Path
) -> None:
    # Deeper than a path may be long, so that the host cannot hold it by name.
    deep = 'cd /mnt/memhtml/areas\nname=$(printf "x%.0s" {1..200})\n'
    deep += "for i in $(seq 25); do mkdir $name && cd $name; done\necho hi > note.txt\n"
    said = record(store, str(tmp_path / "recorded"), WRITE + deep)
    assert (said.status, said.data["exitCode"], said.data["appended"]) == (0, 0, 1)
    assert "WARN: the run was not recorded" in said.stderr
    assert len(read_log(store, "s").ops) == 1


def test_append_that_was_refused_is_no_part_of_a_recording(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    with session_lock(store, "s"):
        said = record(store, str(folder), WRITE)
    assert said.data["appended"] == 0
    assert said.data["blocking"][0].startswith("session log:")
    assert (kept(folder)["expect"]["appended"], kept(folder)["expect"]["blocking"]) == (1, [])
    again = memhtml("replay", str(folder))
    assert again.data["passed"] == 1, again.stderr


@pytest.mark.parametrize(
    ("held", "below"),
    [
        ("areas/notes", "areas/notes/x.html"),
        ("areas/x.html/readme.txt", "areas/x.html"),
        ("areas/link", "areas/link/x.html"),
    ],
    ids=["file", "folder", "link"],
)
def test_file_of_the_base_that_is_no_record_is_recorded_where_it_is_in_the_way(
    store: str, tmp_path: Path, held: str, below: str
) -> None:
    place = Path(store, held)
    place.parent.mkdir(parents=True, exist_ok=True)
    if held.endswith("link"):
        place.symlink_to("inbox")
    else:
        place.write_text("no record\n")
    git(store, "add", held)
    git(store, "commit", "-qm", "other files")
    start_log(store, "t", [])
    target = f"/mnt/memhtml/{below}"
    script = f"mkdir -p {os.path.dirname(target)}\n" + WRITE.replace(NEW, target)
    folder = tmp_path / "recorded"
    words = ("session", "exec", "--repo", store, "--id", "t", "--record", str(folder))
    said = memhtml(*words, text=script)
    assert [found["kind"] for found in said.data["violations"]] == ["format"], said.data
    again = memhtml("replay", str(folder))
    assert again.data["passed"] == 1, again.stderr


@pytest.mark.parametrize(
    ("fields", "mention"),
    [
        ({"timeoutMs": -5}, "timeout_ms"),
        ({"timeoutMs": 10**9}, "timeout_ms"),
        ({"limits": {"procs": 0}}, "procs"),
        ({"limits": {"wheels": 4}}, "wheels"),
        ({"limits": {"timeout_ms": 4}}, "timeout_ms"),
        ({"policy": {"bogus": 1}}, "bogus"),
        ({"policy": {"writeBar": {"requireAnchor": "yes"}}}, "writeBar.requireAnchor"),
    ],
)
def test_fixture_with_a_bad_value_is_named_before_anything_runs(
    store: str, tmp_path: Path, fields: dict[str, object], mention: str
) -> None:
    folder = tmp_path / "recorded"
    record(store, str(folder), "true\n")
    change(folder, **fields)
    said = memhtml("replay", str(folder))
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert "replay.read" in said.envelope["error"]
    assert str(folder) in said.envelope["error"]
    assert mention in said.envelope["error"]
    assert "memhtml.config.json" not in said.envelope["error"]
