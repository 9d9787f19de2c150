"""Stores, records and killed commits for the session tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from memhtml.session import landing
from memhtml.session.bound import Identity
from memhtml.session.commit import commit
from memhtml.session.log import Log, read_log, update
from memhtml.store.scaffold import init
from memhtml_format.ops import Op, Put


def page(claim: str, *, title: str | None = None, head: str = "", kind: str = "semantic") -> str:
    """A valid record whose claim is given."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title or claim}</title>\n"
        f'<meta name="memhtml-type" content="{kind}">\n'
        '<meta name="memhtml-status" content="active">\n'
        '<meta name="memhtml-created" content="2026-05-04T09:00:00Z">\n'
        '<meta name="memhtml-updated" content="2026-05-04T09:00:00Z">\n'
        '<meta name="memhtml-entity" content="system:billing">\n'
        f"{head}</head>\n<body>\n<article>\n<p><mark>{claim}</mark></p>\n</article>\n</body>\n"
        "</html>\n"
    )


def git(root: str, *words: str, text: str | None = None) -> str:
    """Standard output of a git command in the store, without the last newline."""
    done = subprocess.run(
        ["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@localhost", *words],
        check=True,
        capture_output=True,
        text=True,
        input=text,
    )
    return done.stdout.rstrip("\n")


def make_store(root: str, files: dict[str, str] | None = None) -> str:
    """An initialised store, with `files` committed on main."""
    init(root)
    if files:
        for path, html in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8", newline="") as file:
                file.write(html)
        git(root, "add", "-A", "--", *files)
        git(root, "commit", "-qm", "seed")
    return root


def copy_store(template: str, root: str) -> str:
    """A copy of a store, cheaper than making one."""
    shutil.copytree(template, root, symlinks=True)
    return root


def who(session_id: str, *, bound: bool = False) -> Identity:
    """A session named with --id."""
    return Identity(session_id, bound, implicit=False)


def tip(root: str, ref: str = "refs/heads/main") -> str:
    """The ref's commit."""
    return git(root, "rev-parse", ref)


def start_log(root: str, session_id: str, ops: list[Op], ref: str = "refs/heads/main") -> Log:
    """A session over the ref's tip that holds `ops`."""
    from memhtml.session.bound import create

    create(root, Log(session_id, tip(root, ref), ref))
    return update(root, session_id, (), lambda log: log._replace(ops=tuple(ops)))


def add_ops(root: str, session_id: str, ops: list[Op]) -> Log:
    """Append to a session as a put would."""
    log = read_log(root, session_id)
    return update(root, session_id, log.ops, lambda now: now._replace(ops=(*now.ops, *ops)))


def put_op(name: str, claim: str | None = None) -> Put:
    """A put of a new record in the inbox."""
    return Put(f"areas/inbox/{name}.html", page(claim or f"The fact {name} holds."))


def land(root: str, session_id: str, *, drop: bool = False) -> dict[str, Any]:
    """Commit the session in this process."""
    return commit(root, who(session_id), message=f"land {session_id}", drop=drop)


def in_child(act: Callable[[], None]) -> int:
    """Run `act` in a forked child; its exit code, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _pid, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def die() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def commit_killed_at(root: str, session_id: str, step: str) -> int:
    """Commit in a child that is killed right after the named step."""

    def act() -> None:
        landing.on_step = lambda name: die() if name == step else None
        land(root, session_id)

    return in_child(act)


def commit_killed_in_follow(root: str, session_id: str, after: int) -> int:
    """Commit in a child that is killed after moving `after` working-tree entries."""
    from memhtml.store import checkout

    def act() -> None:
        seen = 0

        def count(name: str) -> None:
            nonlocal seen
            seen += 1
            if seen > after:
                die()

        checkout.on_move = count
        land(root, session_id)

    return in_child(act)


def log_subjects(root: str, ref: str = "refs/heads/main") -> list[str]:
    """Commit subjects, newest first."""
    return git(root, "log", "--format=%s", ref).splitlines()


def changed_in(root: str, sha: str) -> list[str]:
    """Paths a commit changed."""
    return git(root, "diff-tree", "--no-commit-id", "--name-only", "-r", sha).splitlines()


def checkout_state(root: str) -> str:
    """What git says differs between HEAD, index and working tree; empty when clean."""
    return git(root, "status", "--porcelain=v1", "--untracked-files=all")
