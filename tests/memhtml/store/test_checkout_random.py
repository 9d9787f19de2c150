"""Random checkouts against a plain model: whatever somebody did, nothing of theirs is lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.store import (
    commit_on,
    files_at,
    git,
    index_of,
    make_repository,
    put_file,
    spare_files,
    working_files,
)

from memhtml.store.checkout import dirty, follow, put_back
from memhtml.store.journey import CheckoutDirty
from memhtml.store.repo import Repo

BASE = {"a": b"a0\n", "d/x": b"x0\n", "d/y": b"y0\n", "e/f/z": b"z0\n"}
OLD_PATHS = tuple(BASE)
NEW_PATHS = ("b", "d/n", "e/f/m", "g/h/k")
ALL_PATHS = (*OLD_PATHS, *NEW_PATHS)

Edit = tuple[str, str, bytes]
SOME_BYTES = st.sampled_from([b"", b"mine\n", b"next\n", b"a0\n", b"x0\n"])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["write", "stage", "delete", "unstage", "folder", "link"]),
        st.sampled_from(ALL_PATHS),
        SOME_BYTES,
    ),
    max_size=4,
)
WRITES = st.dictionaries(st.sampled_from(ALL_PATHS), st.sampled_from([b"next\n", b"n2\n"]))
REMOVALS = st.sets(st.sampled_from(OLD_PATHS))
FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A repository with the base commit, to be copied."""
    root = str(tmp_path_factory.mktemp("template") / "store")
    make_repository(root, BASE)
    os.makedirs(os.path.join(root, ".memhtml", "sessions"))
    return root


@contextmanager
def copy_of(template: str) -> Iterator[Repo]:
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "store")
        shutil.copytree(template, root, symlinks=True)
        yield Repo(root)


def apply_edit(root: str, edit: Edit) -> None:
    """What somebody may do by hand; impossible edits are skipped."""
    kind, path, data = edit
    full = os.path.join(root, path)
    if kind == "unstage":
        git(root, "rm", "-q", "-f", "--cached", "--ignore-unmatch", "--", path)
        return
    if kind == "delete":
        if os.path.isfile(full) or os.path.islink(full):
            os.unlink(full)
        return
    if os.path.lexists(full) and not os.path.isfile(full):
        return
    if os.path.lexists(full):
        os.unlink(full)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if kind == "folder":
        os.makedirs(full)
        put_file(root, f"{path}/inside", data)
    elif kind == "link":
        os.symlink("/nonexistent", full)
    else:
        put_file(root, path, data)
        if kind == "stage":
            git(root, "add", "-f", "--", path)


def ids(repo: Repo, commit: str) -> dict[str, str]:
    """A commit's files as index lines."""
    return {path: f"{mode:o} {oid} 0" for path, mode, oid in repo.files(commit)}


def expected_dirty(repo: Repo, base: str, paths: list[str]) -> list[str]:
    """Dirtiness by the plain definition, on whole listings."""
    index, files, was = index_of(repo.root), working_files(repo.root), ids(repo, base)
    found = []
    for path in paths:
        staged = index.get(path) != was.get(path)
        crossing = any(other.startswith(f"{path}/") for other in index)
        full = os.path.join(repo.root, path)
        if path in BASE:
            changed = os.path.islink(full) or files.get(path) != BASE[path]
        else:
            changed = os.path.lexists(full)
        if staged or crossing or changed:
            found.append(path)
    return sorted(found)


@FEW
@given(writes=WRITES, removals=REMOVALS, edits=EDITS)
def test_follow_moves_clean_paths_and_no_other(
    template: str, writes: dict[str, bytes], removals: set[str], edits: list[Edit]
) -> None:
    with copy_of(template) as repo:
        root = repo.root
        base = git(root, "rev-parse", "HEAD").decode().strip()
        gone = tuple(removals - writes.keys())
        commit = commit_on(repo, base, writes, gone)
        paths = sorted([*writes, *gone])
        for edit in edits:
            apply_edit(root, edit)
        files, index = working_files(root), index_of(root)

        found = dirty(repo, base, paths)
        assert found == expected_dirty(repo, base, paths)
        if found:
            repo.index_seen = None
            with pytest.raises(CheckoutDirty):
                follow(repo, base, commit, paths)
            assert (working_files(root), index_of(root)) == (files, index)
            assert spare_files(root) == []
            return

        follow(repo, base, commit, paths)
        assert dirty(repo, commit, paths) == []
        after, tip = files_at(root, commit), ids(repo, commit)
        others = {path: data for path, data in files.items() if path not in paths}
        assert working_files(root) == others | {p: after[p] for p in paths if p in after}
        others_staged = {path: entry for path, entry in index.items() if path not in paths}
        assert index_of(root) == others_staged | {p: tip[p] for p in paths if p in tip}

        assert put_back(repo, commit, base) == []
        assert (working_files(root), index_of(root)) == (files, index)
        assert spare_files(root) == []


def settled(seen: object, pending: object, parent: object) -> object:
    """The per-path rule of spec `sessions` §9.2."""
    return parent if seen == pending else seen


@FEW
@given(writes=WRITES, removals=REMOVALS, edits=EDITS, followed=st.booleans())
def test_put_back_takes_back_its_own_and_keeps_the_rest(
    template: str, writes: dict[str, bytes], removals: set[str], edits: list[Edit], followed: bool
) -> None:
    with copy_of(template) as repo:
        root = repo.root
        base = git(root, "rev-parse", "HEAD").decode().strip()
        gone = tuple(removals - writes.keys())
        commit = commit_on(repo, base, writes, gone)
        if followed:
            follow(repo, base, commit, [*writes, *gone])
        for edit in edits:
            apply_edit(root, edit)
        files, index = working_files(root), index_of(root)

        left = put_back(repo, commit, base)

        was, tip = ids(repo, base), ids(repo, commit)
        after = files_at(root, commit)
        links = {path for path in ALL_PATHS if os.path.islink(os.path.join(root, path))}
        now_files, now_index = working_files(root), index_of(root)
        touched = {*writes, *gone}
        for path in {*files, *now_files} - touched:
            assert now_files.get(path) == files.get(path)
        for path in {*index, *now_index} - touched:
            assert now_index.get(path) == index.get(path)
        for path in touched:
            expected = settled(index.get(path), tip.get(path), was.get(path))
            assert now_index.get(path) == expected
            inside = any(other.startswith(f"{path}/") for other in files)
            if path not in links and not inside:
                expected = settled(files.get(path), after.get(path), BASE.get(path))
                assert now_files.get(path) == expected
            else:
                assert now_files.get(path) == files.get(path)
            theirs_staged = now_index.get(path) != was.get(path)
            theirs = now_files.get(path) != BASE.get(path)
            if path in left:
                assert theirs or theirs_staged or inside
            else:
                assert not theirs
                assert not theirs_staged
        assert spare_files(root) == []
        assert put_back(repo, commit, base) == left
