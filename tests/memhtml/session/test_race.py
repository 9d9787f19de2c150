"""Sessions, a direct writer and a person at one checkout: each commit holds one writer's files."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.session import (
    changed_in,
    checkout_state,
    git,
    land,
    make_store,
    page,
    tip,
    who,
)

from memhtml.errors import StorageError
from memhtml.session.bound import create
from memhtml.session.log import Log, read_log, update
from memhtml.session.rebase import rebase
from memhtml.store.lock import checkout_lock
from memhtml_format.ops import Op, Put

ROUNDS = 200
WRITERS = ("sa", "sb", "direct", "person")


def with_ops(ops: tuple[Op, ...]) -> Callable[[Log], Log]:
    """The change that gives a log these operations."""
    return lambda log: log._replace(ops=ops)


def note(journal: Path, path: str) -> None:
    """Remember that a writer was told its file landed."""
    with journal.open("a", encoding="utf-8") as file:
        file.write(json.dumps(path) + "\n")


def session_writer(root: str, journal: Path, name: str, rounds: int, seed: int) -> None:
    """Start, append, commit, rebase as often as needed; one file or two a round."""
    chance = random.Random(seed)
    for n in range(rounds):
        session_id = f"{name}-{n}"
        create(root, Log(session_id, tip(root), "refs/heads/main"))
        ops = tuple(
            Put(f"areas/{name}/{n}-{k}.html", page(f"Fact {name} {n} {k} is so."))
            for k in range(chance.randint(1, 2))
        )
        update(root, session_id, (), with_ops(ops))
        land_at_last(root, session_id)
        for op in ops:
            note(journal, op.path)


def land_at_last(root: str, session_id: str) -> None:
    """Commit and rebase until the log is empty; every other answer is an error."""
    for _turn in range(400):
        answer = land(root, session_id)
        if answer["kind"] == "committed":
            assert not answer["recovered"]
            return
        assert answer["kind"] in ("rebase-needed", "worktree-dirty"), answer
        if answer["kind"] == "rebase-needed":
            rebase(root, who(session_id))
    raise AssertionError(f"{session_id} never landed")


def direct_writer(root: str, journal: Path, rounds: int) -> None:
    """A v1 door in small: one file a commit, under the checkout lock."""
    for n in range(rounds):
        path = f"areas/direct/{n}.html"
        with checkout_lock(root):
            commit_until_done(root, path, f"Direct fact {n} is so.")
        note(journal, path)


def person(root: str, journal: Path, rounds: int) -> None:
    """Git by hand, no lock of ours."""
    for n in range(rounds):
        path = f"areas/person/{n}.html"
        commit_until_done(root, path, f"Personal fact {n} is so.")
        note(journal, path)


def commit_until_done(root: str, path: str, claim: str) -> None:
    """Try again while git's own index lock is held or the ref moved under it."""
    for _turn in range(2000):
        try:
            commit_by_hand(root, path, claim)
        except subprocess.CalledProcessError:
            time.sleep(0.002)
            continue
        return
    raise AssertionError(f"{path} was never committed by hand")


def commit_by_hand(root: str, path: str, claim: str) -> None:
    """Write, add and commit one path alone."""
    full = Path(root, path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text(page(claim), encoding="utf-8")
    git(root, "add", "--", path)
    git(root, "commit", "-q", "-m", f"by hand: {path}", "--", path)


def spawn(act: Callable[[], None], errors: Path) -> int:
    """Run a writer in a forked child; what it dies of goes to a file."""
    pid = os.fork()
    if pid:
        return pid
    try:
        act()
    except BaseException as error:
        with errors.open("a", encoding="utf-8") as file:
            file.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def writer_of(path: str) -> str:
    """The writer a path belongs to."""
    return path.split("/")[1]


def test_two_hundred_rounds_of_racing_writers_lose_and_mix_nothing(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    base = tip(root)
    journal, errors = tmp_path / "journal", tmp_path / "errors"
    each = ROUNDS // len(WRITERS)
    children = [
        spawn(lambda: session_writer(root, journal, "sa", each, 1), errors),
        spawn(lambda: session_writer(root, journal, "sb", each, 2), errors),
        spawn(lambda: direct_writer(root, journal, each), errors),
        spawn(lambda: person(root, journal, each), errors),
    ]
    for pid in children:
        os.waitpid(pid, 0)
    assert not errors.exists(), errors.read_text(encoding="utf-8")
    told = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    seen: dict[str, int] = {}
    for sha in git(root, "rev-list", f"{base}..main").splitlines():
        paths = changed_in(root, sha)
        assert len({writer_of(path) for path in paths}) == 1, paths
        for path in paths:
            seen[path] = seen.get(path, 0) + 1
    assert sorted(told) == sorted(seen)
    assert set(seen.values()) == {1}
    assert checkout_state(root) == ""


def test_of_two_commits_of_one_session_one_lands(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    base = tip(root)
    for n in range(20):
        session_id = f"s{n}"
        create(root, Log(session_id, tip(root), "refs/heads/main"))
        op = Put(f"areas/inbox/{n}.html", page(f"Fact {n} is so."))
        update(root, session_id, (), with_ops((op,)))
        errors = tmp_path / f"errors-{n}"
        pids = [spawn(partial(try_land, root, session_id), errors) for _ in range(2)]
        for pid in pids:
            os.waitpid(pid, 0)
        assert not errors.exists(), errors.read_text(encoding="utf-8")
        assert read_log(root, session_id).ops == ()
    assert git(root, "rev-list", "--count", f"{base}..main") == "20"


def try_land(root: str, session_id: str) -> None:
    """Land, or be told that the session is held, or find the log empty."""
    try:
        answer = land(root, session_id)
    except StorageError as error:
        assert error.reason == "session.locked", error
        return
    assert answer["kind"] in ("committed", "refused"), answer


@pytest.mark.parametrize("appenders", [2, 4])
def test_appends_at_one_instant_lose_no_reported_operation(tmp_path: Path, appenders: int) -> None:
    root = make_store(str(tmp_path / "store"))
    create(root, Log("s", tip(root), "refs/heads/main"))
    journal, errors = tmp_path / "journal", tmp_path / "errors"
    pids = [spawn(partial(append_many, root, journal, n), errors) for n in range(appenders)]
    for pid in pids:
        os.waitpid(pid, 0)
    assert not errors.exists(), errors.read_text(encoding="utf-8")
    told = {json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()}
    assert told == {op.path for op in read_log(root, "s").ops}
    assert len(told) == len(read_log(root, "s").ops)


def append_many(root: str, journal: Path, writer: int) -> None:
    """Append twenty times; a busy or moved log is another caller's turn."""
    for n in range(20):
        op = Put(f"areas/inbox/{writer}-{n}.html", page(f"Fact {writer} {n} is so."))
        log = read_log(root, "s")
        try:
            update(root, "s", log.ops, with_ops((*log.ops, op)))
        except StorageError as error:
            assert error.reason in ("session.moved", "session.locked"), error
            continue
        note(journal, op.path)
