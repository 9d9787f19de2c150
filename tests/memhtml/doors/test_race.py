"""Several writers at once, and a person who commits with git: each commit is one writer's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.command import ROOTS
from tests.support.doors import committed, draft, fact, indexed, put, rows
from tests.support.session import checkout_state, git, page

from memhtml.index.follow import update
from memhtml.store.repo import Repo

WRITERS = 4
CALLS = 5


def call(store: str, *words: str, stdin: str | None = None) -> subprocess.Popen[bytes]:
    env = {**os.environ, "MEMHTML_EMBED": "off", "PYTHONPATH": os.pathsep.join(ROOTS)}
    with open(stdin or os.devnull, "rb") as given:
        return subprocess.Popen(
            [sys.executable, "-m", "memhtml", *words, "--repo", store],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
        )


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, (out, errors)
    found: dict[str, Any] = json.loads(out)["data"]
    return found


def person_commits(store: str, number: int) -> None:
    """A file of their own, as `git add` and `git commit` would; again while git is busy."""
    path = f"areas/inbox/by-hand-{number}.html"
    Path(store, path).write_text(page(f"By hand, number {number}."))
    for words in (("add", path), ("commit", "-qm", f"by hand {number}")):
        for _ in range(200):
            done = subprocess.run(["git", "-C", store, *words], capture_output=True, text=True)
            if done.returncode == 0 or "nothing to commit" in done.stdout:
                break
            assert "lock" in done.stderr, done
            time.sleep(0.02)


def history(store: str, since: str) -> dict[str, list[str]]:
    """Subject and changed files of every commit since one."""
    found = {}
    for sha in git(store, "rev-list", f"{since}..HEAD").split():
        subject = git(store, "log", "-1", "--format=%s", sha)
        names = git(store, "show", "--format=", "--name-status", "--no-renames", sha)
        assert subject not in found
        found[subject] = sorted(names.splitlines())
    return found


def check_store(store: str) -> None:
    assert checkout_state(store) == ""
    update(store, repo=Repo(store), embedder=None, dirty=False)
    assert indexed(store) == committed(store)
    assert "missing" not in git(store, "fsck", "--strict", "--no-dangling")


def test_each_commit_holds_one_writers_files_alone(store: str, tmp_path: Path) -> None:
    put(store, draft("Old", "Old."))
    since = git(store, "rev-parse", "HEAD")
    expected: dict[str, list[str]] = {}
    for number in range(CALLS):
        running = []
        for writer in range(WRITERS - 1):
            title = f"W{writer} n{number}"
            running.append(
                call(store, "write", "--title", title, "--type", "semantic", "--claim", f"{title}.")
            )
            path = f"areas/inbox/w{writer}-n{number}.html"
            expected[f"memhtml(write): {title}"] = [f"A\t{path}"]
        lines = tmp_path / "lines.jsonl"
        count = 20 + number
        first = 1000 * number
        lines.write_text("\n".join(fact(n) for n in range(first, first + count)))
        running.append(call(store, "apply", stdin=str(lines)))
        expected[f"memhtml(batch): {count} memories"] = sorted(
            f"A\tareas/inbox/fact-{n}.html" for n in range(first, first + count)
        )
        person_commits(store, number)
        expected[f"by hand {number}"] = [f"A\tareas/inbox/by-hand-{number}.html"]
        for process in running:
            answer(process)
    assert history(store, since) == expected
    check_store(store)


def test_one_fact_is_written_once_however_many_write_it(store: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(fact(n) for n in range(40)))
    answers = [
        answer(each) for each in [call(store, "apply", stdin=str(lines)) for _ in range(WRITERS)]
    ]
    assert sorted(each["summary"]["written"] for each in answers) == [0, 0, 0, 40]
    words = ("write", "--title", "Same", "--type", "semantic", "--claim", "The same.")
    written = [answer(each) for each in [call(store, *words) for _ in range(WRITERS)]]
    assert sorted(each["created"] for each in written) == [False, False, False, True]
    assert {each["path"] for each in written} == {"areas/inbox/same.html"}
    assert rows(store, "SELECT count(*) FROM files") == [(41,)]
    check_store(store)


def test_one_memory_retires_once(store: str) -> None:
    [path] = put(store, draft("Old", "Old."))
    running = [call(store, "archive", path, "--reason", f"by {n}") for n in range(WRITERS)]
    codes = []
    for process in running:
        out, _errors = process.communicate(timeout=120)
        codes.append(json.loads(out).get("code"))
    assert sorted(codes, key=str) == [
        *["ERR_PATH_NOT_FOUND"] * (WRITERS - 1),
        None,
    ]
    assert list(committed(store)) == [f"archive/{time.gmtime().tm_year}/{path}"]
    check_store(store)
