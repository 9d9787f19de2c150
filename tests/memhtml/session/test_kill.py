"""A commit killed at any step loses nothing, doubles nothing, and the next one settles it."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from tests.support.session import (
    add_ops,
    changed_in,
    checkout_state,
    commit_killed_at,
    commit_killed_in_follow,
    copy_store,
    git,
    land,
    make_store,
    page,
    put_op,
    start_log,
    tip,
    who,
)

from memhtml.session.log import read_log
from memhtml.session.rebase import rebase
from memhtml_format.ops import Op, Put

STEPS = ("judged", "built", "checkout-locked", "pending", "followed", "swapped", "cleared")
LANDED = frozenset({"swapped", "cleared"})
ROUNDS = 200
PERSON_ROUNDS = 40


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a few records, made once."""
    root = str(tmp_path_factory.mktemp("kill") / "store")
    return make_store(
        root, {f"areas/inbox/old-{n}.html": page(f"Old {n} holds.") for n in range(3)}
    )


def commits_holding(root: str, path: str) -> int:
    """How many commits of main wrote the path."""
    return len(git(root, "log", "--format=%H", "refs/heads/main", "--", path).splitlines())


def assert_clean(root: str, paths: list[str]) -> None:
    """Ref, index and working tree agree, and each path landed exactly once."""
    assert checkout_state(root) == ""
    for path in paths:
        assert commits_holding(root, path) == 1, path
        assert (Path(root) / path).is_file()


@pytest.mark.parametrize("step", STEPS)
def test_commit_killed_after_a_step_is_settled_by_the_next(
    template: str, tmp_path: Path, step: str
) -> None:
    root = copy_store(template, str(tmp_path / "store"))
    base = tip(root)
    start_log(root, "s", [put_op("one"), put_op("two")])
    assert commit_killed_at(root, "s", step) == -signal.SIGKILL
    assert (tip(root) != base) == (step in LANDED)
    if step == "cleared":
        assert read_log(root, "s").ops == ()
        assert land(root, "s")["kind"] == "refused"
    else:
        answer = land(root, "s")
        assert answer["kind"] == "committed"
        assert answer["recovered"] == (step == "swapped")
        assert answer["paths"] == ["areas/inbox/one.html", "areas/inbox/two.html"]
        assert answer["worktreeSynced"]
    assert_clean(root, ["areas/inbox/one.html", "areas/inbox/two.html"])
    assert git(root, "rev-list", "--count", f"{base}..main") == "1"


def test_operations_appended_after_the_kill_stay_in_the_log(template: str, tmp_path: Path) -> None:
    root = copy_store(template, str(tmp_path / "store"))
    start_log(root, "s", [put_op("one")])
    assert commit_killed_at(root, "s", "swapped") == -signal.SIGKILL
    add_ops(root, "s", [put_op("two")])
    first = land(root, "s")
    assert first["recovered"]
    assert first["paths"] == ["areas/inbox/one.html"]
    assert [op.path for op in read_log(root, "s").ops] == ["areas/inbox/two.html"]
    assert land(root, "s")["kind"] == "committed"
    assert_clean(root, ["areas/inbox/one.html", "areas/inbox/two.html"])


def test_a_person_s_edit_at_a_moved_path_survives_the_settlement(
    template: str, tmp_path: Path
) -> None:
    root = copy_store(template, str(tmp_path / "store"))
    start_log(root, "s", [put_op("one"), put_op("two")])
    assert commit_killed_at(root, "s", "followed") == -signal.SIGKILL
    mine = Path(root) / "areas/inbox/one.html"
    mine.write_text("someone's work", encoding="utf-8")
    answer = land(root, "s")
    assert answer["kind"] == "worktree-dirty"
    assert answer["paths"] == ["areas/inbox/one.html"]
    assert mine.read_text(encoding="utf-8") == "someone's work"
    assert read_log(root, "s").pending is None


def test_branch_that_moved_on_after_the_kill_counts_as_landed(
    template: str, tmp_path: Path
) -> None:
    root = copy_store(template, str(tmp_path / "store"))
    start_log(root, "s", [put_op("one")])
    assert commit_killed_at(root, "s", "swapped") == -signal.SIGKILL
    git(root, "commit", "-q", "--allow-empty", "-m", "a person goes on")
    answer = land(root, "s")
    assert answer["recovered"]
    assert answer["sha"] != tip(root)
    assert_clean(root, ["areas/inbox/one.html"])


def random_log(chance: random.Random, round_number: int) -> list[Op]:
    """One to four new records."""
    count = chance.randint(1, 4)
    ops: list[Op] = []
    for n in range(count):
        name = f"r{round_number}-{n}"
        ops.append(
            Put(f"projects/p{chance.randint(0, 2)}/{name}.html", page(f"Fact {name} is so."))
        )
    return ops


def test_two_hundred_random_kills_lose_and_double_nothing(template: str, tmp_path: Path) -> None:
    """One store all along, so that what one round leaves behind meets the next."""
    root = copy_store(template, str(tmp_path / "store"))
    chance = random.Random(20261130)
    for round_number in range(ROUNDS):
        name = f"s{round_number}"
        ops = random_log(chance, round_number)
        start_log(root, name, ops)
        foreign = plant_foreign_work(root, chance, round_number)
        kill_somewhere(root, name, chance)
        extra: list[Op] = []
        if chance.random() < 0.3:
            extra = [put_op(f"late-{round_number}")]
            add_ops(root, name, extra)
        finish(root, name)
        for op in [*ops, *extra]:
            assert commits_holding(root, op.path) == 1, (round_number, op.path)
        check_foreign(root, foreign)
    holders = git(root, "log", "--format=%H", "refs/heads/main", "-1")
    assert changed_in(root, holders)


def test_a_person_who_commits_what_a_kill_left_staged_keeps_it(
    template: str, tmp_path: Path
) -> None:
    """Whoever lands a file first has it; the session's copy of it is a duplicate then."""
    root = copy_store(template, str(tmp_path / "store"))
    chance = random.Random(20261201)
    for round_number in range(PERSON_ROUNDS):
        name = f"s{round_number}"
        ops = random_log(chance, round_number)
        start_log(root, name, ops)
        if chance.random() < 0.7:
            commit_killed_in_follow(root, name, chance.randint(0, 8))
        else:
            commit_killed_at(root, name, chance.choice(STEPS))
        git(root, "commit", "-q", "--allow-empty", "-m", "a person commits what is staged")
        for _turn in range(3):
            answer = land(root, name, drop=True)
            if answer["kind"] != "rebase-needed":
                break
            rebase(root, who(name))
        assert read_log(root, name).ops == (), answer
        assert_clean(root, [op.path for op in ops])


def plant_foreign_work(root: str, chance: random.Random, n: int) -> tuple[str, str]:
    """An uncommitted edit at another path, staged or not."""
    path = f"areas/inbox/old-{n % 3}.html"
    text = page(f"Old {n % 3} holds.", title=f"edited in round {n}")
    Path(root, path).write_text(text, encoding="utf-8")
    if chance.random() < 0.5:
        git(root, "add", "--", path)
    return path, text


def check_foreign(root: str, foreign: tuple[str, str]) -> None:
    """The edit is still there and in no commit."""
    path, text = foreign
    assert Path(root, path).read_text(encoding="utf-8") == text
    assert git(root, "show", f"main:{path}") != text.rstrip("\n")
    assert all(
        line[3:].startswith("areas/inbox/old-") for line in checkout_state(root).splitlines()
    )


def kill_somewhere(root: str, name: str, chance: random.Random) -> None:
    """Kill after a random step, or in the middle of moving the checkout."""
    if chance.random() < 0.25:
        commit_killed_in_follow(root, name, chance.randint(0, 3))
        return
    commit_killed_at(root, name, chance.choice(STEPS))


def finish(root: str, name: str) -> None:
    """Commit until the log is empty, as a runtime would."""
    for _turn in range(4):
        if not read_log(root, name).ops:
            return
        answer = land(root, name)
        assert answer["kind"] == "committed", answer
    assert read_log(root, name).ops == ()
    assert not os.path.exists(os.path.join(root, ".memhtml", "checkout.lock"))
