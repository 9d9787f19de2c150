"""What prune removes, what it only lists, and what it never touches."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.session import git, make_store, put_op, tip

from memhtml.session.duration import UNIT_MS, duration_ms
from memhtml.session.log import Log, make_folder, sessions_folder, store_log
from memhtml.session.prune import prune
from memhtml.store.lock import session_lock

DAY_MS = 86_400_000
OLD_S = 10 * 86_400


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a sessions folder."""
    root = make_store(str(tmp_path / "store"))
    make_folder(root)
    return root


def age(path: str, seconds: float = OLD_S) -> None:
    """Make an entry look old."""
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)


def add_log(root: str, name: str, *, ops: int = 0, pending: str | None = None) -> str:
    """An old log; its path."""
    log = Log(name, tip(root), "refs/heads/main", tuple(put_op(f"o{n}") for n in range(ops)))
    store_log(root, log._replace(pending=pending, pending_ops=ops if pending else 0))
    path = os.path.join(sessions_folder(root), f"{name}.json")
    age(path)
    return path


def add_file(root: str, name: str, data: bytes = b"") -> str:
    """An old file of the folder; its path."""
    path = os.path.join(sessions_folder(root), name)
    Path(path).write_bytes(data)
    age(path)
    return path


def week(root: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Prune what is older than a week."""
    return prune(root, older_than="7d", older_than_ms=7 * DAY_MS, dry_run=dry_run)


def names(root: str) -> list[str]:
    """What lies in the folder."""
    return sorted(os.listdir(sessions_folder(root)))


def test_prune_removes_old_empty_logs_and_keeps_young_and_full_ones(store: str) -> None:
    add_log(store, "empty")
    add_log(store, "full", ops=2)
    add_log(store, "pending", pending=tip(store))
    age(add_log(store, "young"), 60)
    answer = week(store)
    assert answer["logs"] == {"count": 1}
    assert names(store) == ["full.json", "pending.json", "young.json"]
    shown = {entry["id"]: entry for entry in answer["unlanded"]}
    assert (shown["full"]["ops"], shown["full"]["pending"]) == (2, None)
    assert shown["pending"]["pending"] == tip(store)
    assert shown["full"]["ageMs"] == pytest.approx(OLD_S * 1000, abs=60_000)


def test_unlanded_logs_come_oldest_first(store: str) -> None:
    for name, seconds in (("b", OLD_S), ("a", 2 * OLD_S), ("c", 3 * OLD_S)):
        age(add_log(store, name, ops=1), seconds)
    assert [entry["id"] for entry in week(store)["unlanded"]] == ["c", "a", "b"]


def test_dry_run_reports_the_same_and_removes_nothing(store: str) -> None:
    add_log(store, "empty")
    add_file(store, "x.idx", b"12345")
    git(store, "update-ref", "refs/memhtml/sessions/x", old_commit(store))
    before = names(store)
    dry = week(store, dry_run=True)
    assert names(store) == before
    wet = week(store)
    assert {**dry, "dryRun": False, "cutoff": wet["cutoff"]} == wet
    assert wet["logs"] == wet["refs"] == {"count": 1}
    assert wet["indexes"] == {"count": 1, "bytes": 5}
    assert names(store) == []


def old_commit(root: str) -> str:
    """A commit dated 2020."""
    env = {**os.environ, "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    import subprocess

    words = ["git", "-C", root, "commit-tree", "-m", "old", "HEAD^{tree}"]
    return subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout.strip()


def test_prune_keeps_trails_and_what_it_does_not_know(store: str) -> None:
    kept = ["s.dropped.jsonl", "notes.txt", "s.json.bak"]
    for name in kept:
        add_file(store, name, b"x")
    week(store)
    assert names(store) == sorted(kept)


def test_log_that_does_not_decode_is_kept_and_listed(store: str) -> None:
    add_file(store, "broken.json", b"{")
    add_file(store, "other.json", Path(add_log(store, "mine")).read_bytes())
    answer = week(store)
    assert answer["unreadable"] == ["broken", "other"]
    assert names(store) == ["broken.json", "other.json"]


def test_log_whose_lock_is_held_is_busy_and_kept(store: str) -> None:
    add_log(store, "held")
    with session_lock(store, "held"):
        age(os.path.join(sessions_folder(store), "held.json"))
        answer = week(store)
        assert answer["busy"] == ["held"]
    assert names(store) == ["held.json"]


def test_lock_of_a_killed_writer_is_removed_and_its_log_pruned(store: str) -> None:
    add_log(store, "dead")
    folder = os.path.join(sessions_folder(store), "dead.lock")
    os.mkdir(folder)
    age(folder)
    dry, answer = week(store, dry_run=True), week(store)
    assert answer["locks"] == answer["logs"] == {"count": 1}
    assert (dry["locks"], dry["logs"]) == (answer["locks"], answer["logs"])
    assert names(store) == []


def test_lock_of_a_session_whose_id_ends_in_idx_is_a_lock(store: str) -> None:
    add_log(store, "a.idx")
    folder = os.path.join(sessions_folder(store), "a.idx.lock")
    os.mkdir(folder)
    age(folder)
    answer = week(store)
    assert answer["locks"] == answer["logs"] == {"count": 1}
    assert names(store) == []


def test_lock_file_of_an_old_index_is_removed_and_not_counted(store: str) -> None:
    add_file(store, "a.idx.lock")
    answer = week(store)
    assert (answer["locks"], answer["indexes"]["count"]) == ({"count": 0}, 0)
    assert names(store) == []


def test_ref_that_cannot_be_deleted_is_a_warning(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("held", "old"):
        git(store, "update-ref", f"refs/memhtml/sessions/{name}", old_commit(store))
    Path(store, ".git/refs/memhtml/sessions/held.lock").touch()
    add_log(store, "empty")
    answer = week(store)
    assert (answer["refs"], answer["logs"]) == ({"count": 1}, {"count": 1})
    assert "WARN: refs/memhtml/sessions/held" in capsys.readouterr().err


def test_log_that_cannot_be_locked_is_a_warning(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_log(store, "empty")
    add_file(store, "x.idx", b"12")
    real = os.mkdir

    def refuse(path: str, *rest: Any, **named: Any) -> None:
        if str(path).endswith("empty.lock"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        real(path, *rest, **named)

    monkeypatch.setattr(os, "mkdir", refuse)
    answer = week(store)
    assert (answer["logs"], answer["indexes"]["count"]) == ({"count": 0}, 1)
    assert names(store) == ["empty.json"]
    assert "WARN: the log of empty" in capsys.readouterr().err


def test_sandbox_cache_that_cannot_be_pruned_is_a_warning(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.makedirs(os.path.join(store, ".memhtml/sandbox/cache.lock"))
    add_log(store, "empty")
    assert week(store)["logs"] == {"count": 1}
    assert "WARN: the sandbox cache was not pruned" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_log_that_is_no_regular_file_is_listed_and_not_waited_for(
    store: str, tmp_path: Path, kind: str
) -> None:
    path = os.path.join(sessions_folder(store), "odd.json")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        os.symlink(add_log(store, "real", ops=1), path)
    else:
        os.mkdir(path)
    age(path)
    assert week(store)["unreadable"] == ["odd"]
    assert "odd.json" in names(store)


def test_left_over_temporary_file_is_swept_and_not_counted(store: str) -> None:
    from memhtml.store.atomic import temporary_name

    add_file(store, temporary_name("s.json"), b"half")
    answer = week(store)
    assert answer["logs"] == {"count": 0}
    assert names(store) == []


def test_session_whose_id_ends_in_lock_is_told_by_its_last_suffix(store: str) -> None:
    add_log(store, "a.lock")
    assert week(store)["logs"] == {"count": 1}


def test_store_without_a_sessions_folder_answers_zeros(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    answer = week(root)
    assert answer["logs"] == {"count": 0}
    assert answer["unlanded"] == answer["busy"] == answer["unreadable"] == []


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNIT_MS)), st.sampled_from(["", " ", "\t"]))
def test_duration_is_number_times_unit(number: int, unit: str, space: str) -> None:
    assert duration_ms(f" {number}{space}{unit.upper()} ") == number * UNIT_MS[unit]


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "+1d", "1e3d", "1d2h", "inf d", "7 parsec"])
def test_text_that_is_no_duration_is_refused(text: str) -> None:
    assert duration_ms(text) is None


def test_decimal_durations_are_whole_milliseconds() -> None:
    assert duration_ms("1.5h") == 5_400_000
    assert duration_ms(".5 s") == 500
