"""Repositories and a plain model of index and working tree for the store's tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from memhtml.store import commit as commits
from memhtml.store.repo import Repo
from memhtml.store.tree import build_tree

SETTINGS = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(root: str, *words: str, stdin: bytes | None = None, check: bool = True) -> bytes:
    """Standard output of a git command in `root`, exactly."""
    done = subprocess.run(
        ["git", "-C", root, *SETTINGS, *words], input=stdin, capture_output=True, check=False
    )
    if check and done.returncode != 0:
        raise AssertionError(f"git {words}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def line(root: str, *words: str) -> str:
    """The same as one line of text."""
    return git(root, *words).decode().strip()


def make_repository(root: str, files: Mapping[str, bytes] | None = None) -> str:
    """A repository on main with one commit of `files`, checked out."""
    os.makedirs(root, exist_ok=True)
    git(root, "init", "-q", "-b", "main", "--template=")
    for path, data in (files or {}).items():
        put_file(root, path, data)
    git(root, "add", "-A", "--force")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    return line(root, "rev-parse", "HEAD")


def put_file(root: str, path: str, data: bytes) -> None:
    """Write a file of the working tree, making its folders."""
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(data)


def commit_on(
    repo: Repo, parent: str, writes: Mapping[str, bytes], removals: tuple[str, ...] = ()
) -> str:
    """A commit object on `parent` that no ref names."""
    tree = build_tree(repo, parent, writes, removals)
    return commits.create(repo, tree, [parent], "next\n", 1_700_000_000)


def files_at(root: str, commit: str) -> dict[str, bytes]:
    """Every file of a commit, read with git alone."""
    listed = git(root, "ls-tree", "-r", "-z", "--name-only", commit).split(b"\0")[:-1]
    return {
        path.decode(): git(root, "cat-file", "blob", f"{commit}:{path.decode()}") for path in listed
    }


def index_of(root: str) -> dict[str, str]:
    """The index as path to `mode id stage`."""
    lines = git(root, "ls-files", "-s", "-z").split(b"\0")[:-1]
    return {path.decode(): head.decode() for head, _, path in (x.partition(b"\t") for x in lines)}


def working_files(root: str) -> dict[str, bytes]:
    """Every file and link of the working tree but `.git` and `.memhtml`."""
    found: dict[str, bytes] = {}
    for folder, names, others in os.walk(root):
        if folder == root:
            names[:] = [name for name in names if name not in (".git", ".memhtml")]
        for name in [*others, *(n for n in names if os.path.islink(os.path.join(folder, n)))]:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, root)
            if os.path.islink(full):
                found[path] = os.fsencode(os.readlink(full))
            elif os.path.isfile(full):
                with open(full, "rb") as file:
                    found[path] = file.read()
    return found


def spare_files(root: str) -> list[str]:
    """Whatever a checkout left in its staging folder, and temporary files in the tree."""
    staging = os.path.join(root, ".memhtml", "sessions")
    left = os.listdir(staging) if os.path.isdir(staging) else []
    return left + [path for path in working_files(root) if path.endswith(".memhtml-tmp")]
