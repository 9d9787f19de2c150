"""Direct writes that are killed at random moments: the store is as before or as after.

The calls are real processes, with a person's own work lying about. `tests/memhtml/store/test_land`
kills at every single step.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.command import ROOTS
from tests.support.doors import committed, draft, fact, indexed, put, rows
from tests.support.session import git, page

from memhtml.doors.write import write
from memhtml.index.follow import update
from memhtml.store.repo import Repo

KILLS = 22
LINES = 250
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
MINE = "A  notes.txt\n M areas/inbox/mine.html\n?? areas/inbox/untracked.html"


def start(store: str, words: Sequence[str], stdin: str | None = None) -> subprocess.Popen[bytes]:
    """A call in a group of its own; its input is a file, so that writing it cannot block."""
    env = {**os.environ, "MEMHTML_EMBED": "off", "PYTHONPATH": os.pathsep.join(ROOTS)}
    command = [sys.executable, "-m", "memhtml", *words, "--repo", store]
    with open(stdin or os.devnull, "rb") as given:
        return subprocess.Popen(
            command,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )


def killed(process: subprocess.Popen[bytes], longest_s: float, chance: random.Random) -> int:
    """Send a signal at some moment; the exit status, 0 when the call was faster."""
    time.sleep(chance.uniform(0.05, longest_s))
    sent = chance.choice(SIGNALS)
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)  # As Ctrl-C on a terminal, which asks the children too.
    else:
        process.send_signal(sent)
    status = process.wait(60)
    # An interpreter that is only starting has no handler yet.
    assert status in (0, 128 + sent, -sent) or (sent, status) == (signal.SIGINT, 1)
    return status


def person_works(store: str) -> None:
    """Something staged, something edited, something new: none of it is ours."""
    put(store, draft("Mine", "Mine."))
    Path(store, "notes.txt").write_text("staged")
    git(store, "add", "notes.txt")
    mine = Path(store, "areas/inbox/mine.html")
    mine.write_text(mine.read_text().replace("</article>", "<p>By hand.</p>\n</article>"))
    Path(store, "areas/inbox/untracked.html").write_text(page("Untracked."))


def next_call_finds_all_well(store: str, number: int) -> set[str]:
    """Write one more memory, as whoever comes next would; the paths that HEAD has besides it."""
    path = write(store, draft(f"Marker {number}", f"Marker number {number}."))["path"]
    assert path == f"areas/inbox/marker-{number}.html"
    status = git(store, "status", "--porcelain=v1", "--untracked-files=all")
    assert sorted(status.splitlines()) == sorted(MINE.splitlines())
    here = committed(store)
    assert indexed(store) == here
    return {each for each in here if "/marker-" not in each}


def check_in_the_end(store: str) -> None:
    """The repository is sound, nothing says the same twice, and an update has nothing to do."""
    assert "missing" not in git(store, "fsck", "--strict", "--no-dangling")
    query = "SELECT count(*), count(DISTINCT content_hash) FROM files WHERE archived = 0"
    [(files, articles)] = rows(store, query)
    assert files == articles
    assert rows(store, "SELECT * FROM duplicates") == []
    before = indexed(store)
    update(store, repo=Repo(store), embedder=None, dirty=False)
    assert indexed(store) == before == committed(store)
    # What lies in the local state folder is `session prune`'s to remove.
    left = [path for path in Path(store).rglob("*.memhtml-tmp") if ".memhtml" not in path.parts]
    assert left == []


def test_a_batch_lands_whole_or_not_at_all(store: str, tmp_path: Path) -> None:
    chance = random.Random()
    person_works(store)
    lines = tmp_path / "lines.jsonl"
    numbers = iter(range(0, 10**9, LINES))

    def batch() -> set[str]:
        first = next(numbers)
        lines.write_text(
            "\n".join(fact(n, workspace=f"w{n % 7}") for n in range(first, first + LINES))
        )
        return {f"projects/w{n % 7}/fact-{n}.html" for n in range(first, first + LINES)}

    there = next_call_finds_all_well(store, 0)
    began, whole = time.monotonic(), batch()
    assert start(store, ("apply",), str(lines)).wait(60) == 0
    longest_s = 1.1 * (time.monotonic() - began)
    there |= whole
    for number in range(1, KILLS + 1):
        whole = batch()
        status = killed(start(store, ("apply",), str(lines)), longest_s, chance)
        now = next_call_finds_all_well(store, number)
        assert now in ([there | whole] if status == 0 else [there, there | whole])
        there = now
    check_in_the_end(store)


@pytest.mark.parametrize("command", ["correct", "archive"])
def test_a_memory_is_where_it_was_or_in_the_archive(store: str, command: str) -> None:
    chance = random.Random()
    person_works(store)
    names = [f"Fact {n}" for n in range(KILLS + 1)]
    paths = put(store, *(draft(name, f"The old {name}.") for name in names))

    def words(number: int) -> tuple[str, ...]:
        if command == "archive":
            return (command, paths[number], "--reason", "gone")
        return (command, paths[number], "--title", names[number], "--claim", f"The new {number}.")

    there = next_call_finds_all_well(store, 0)
    began = time.monotonic()
    assert start(store, words(0)).wait(60) == 0
    longest_s = 1.1 * (time.monotonic() - began)
    there = after(there, paths[0], command)
    for number in range(1, KILLS + 1):
        status = killed(start(store, words(number)), longest_s, chance)
        now = next_call_finds_all_well(store, number)
        landed = after(there, paths[number], command)
        assert now in ([landed] if status == 0 else [there, landed])
        text = git(store, "show", f"HEAD:{paths[number]}") if paths[number] in now else ""
        assert (f"The old {names[number]}." in text) == (now == there)
        there = now
    check_in_the_end(store)


def after(there: set[str], path: str, command: str) -> set[str]:
    """What HEAD has once the call has landed."""
    slot = f"archive/{time.gmtime().tm_year}/{path}"
    return (there | {slot}) - (set() if command == "correct" else {path})
