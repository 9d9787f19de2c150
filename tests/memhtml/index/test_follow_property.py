"""An index that followed any history equals one that was built anew, row for row."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.index import content, full_text_is_whole
from tests.support.session import git, make_store, page

from memhtml.index import database, follow
from memhtml.index.changes import Step
from memhtml.index.state import read_state
from memhtml.index.writer import Writer
from memhtml.store.repo import Repo

PATHS = (
    "areas/inbox/a.html",
    "areas/inbox/b.html",
    "areas/inbox/tasks/t.html",
    "projects/pay/c.html",
    "resources/d/e.html",
    "archive/2026/areas/inbox/a.html",
    "archive/2026.2/areas/inbox/b.html",
    "areas/index.html",
    "notes/out.html",
)
LINK = '<link rel="memhtml-supersedes" href="/areas/inbox/b.html">\n'
TASK = '<meta name="memhtml-task-status" content="todo">\n'
TEXTS = (
    page("The limit is 11."),
    page("The limit is 11.", title="Another head"),
    page("The limit is 12.", head=LINK),
    page("The port is 8080.", head='<meta name="memhtml-tag" content="net">\n'),
    page("Renew the key.", kind="task", head=TASK),
)
BROKEN = "<p>no record</p>\n"

paths = st.sampled_from(PATHS)
texts = st.sampled_from((*TEXTS, *TEXTS, BROKEN))
edits = st.lists(
    st.one_of(
        st.tuples(st.just("write"), paths, texts),
        st.tuples(st.just("write"), paths, texts),
        st.tuples(st.just("move"), paths, paths),
        st.tuples(st.just("delete"), paths),
    ),
    min_size=1,
    max_size=4,
)
steps = st.one_of(
    st.tuples(st.just("commit"), edits, st.sampled_from(("", "update", "forward"))),
    st.tuples(st.just("commit"), edits, st.sampled_from(("", "update", "forward"))),
    st.tuples(st.just("leave dirty"), edits, st.booleans()),
    st.tuples(st.just("edit and revert"), edits),
    st.tuples(st.just("cut short"), edits, st.integers(0, 3), st.booleans()),
    st.tuples(st.just("forget")),
)


class Cut(BaseException):
    """The end of a process, as far as one process can play it."""


@pytest.fixture(scope="module")
def template() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as root:
        yield make_store(f"{root}/store", {PATHS[0]: TEXTS[0], PATHS[3]: TEXTS[0]})


@settings(max_examples=60)
@given(history=st.lists(steps, max_size=7), batch=st.sampled_from((1, 2, 500)))
def test_index_equals_a_rebuilt_one_after_any_history(
    template: str, history: list[tuple[Any, ...]], batch: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, _batches_of(batch):
        root = f"{folder}/store"
        shutil.copytree(template, root, symlinks=True)
        for name, *given in history:
            _STEPS[name](root, *given)
        _mend(root)
        _update(root)
        followed = _content(root)
        database.replace(root, "the test compares")
        follow.rebuild(root, repo=Repo(root), embedder=None)
        _update(root)
        assert followed == _content(root)


@contextmanager
def _batches_of(size: int) -> Iterator[None]:
    before, follow.BATCH_STEPS = follow.BATCH_STEPS, size
    try:
        yield
    finally:
        follow.BATCH_STEPS = before


def _content(root: str) -> dict[str, list[tuple[object, ...]]]:
    with database.open_index(root) as index:
        assert full_text_is_whole(index.conn)
        state = read_state(index.conn)
        assert state is not None
        assert not state.unfinished
        return {**content(index.conn), "state": [(state.head_sha, state.dirty_paths)]}


def _mend(root: str) -> None:
    """A file that does not parse keeps its last row, which a rebuild cannot know.

    Afterwards something is edited again, so that the working tree has its say as well.
    """
    for path in PATHS:
        if os.path.exists(f"{root}/{path}"):
            with open(f"{root}/{path}") as file:
                text = file.read()
            if text == BROKEN:
                _write(root, path, TEXTS[3])
    _commit(root)
    _write(root, PATHS[1], TEXTS[0])


def _write(root: str, path: str, text: str) -> None:
    full = f"{root}/{path}"
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)


def _edit(root: str, edits: list[tuple[str, ...]]) -> None:
    for name, path, *rest in edits:
        if name == "write":
            _write(root, path, rest[0])
        elif os.path.exists(f"{root}/{path}") and name == "delete":
            os.unlink(f"{root}/{path}")
        elif os.path.exists(f"{root}/{path}"):
            os.makedirs(os.path.dirname(f"{root}/{rest[0]}"), exist_ok=True)
            os.replace(f"{root}/{path}", f"{root}/{rest[0]}")


def _commit(root: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a step", "--allow-empty")


def _update(root: str) -> None:
    follow.update(root, repo=Repo(root), embedder=None)


def _edit_and_commit(root: str, edits: list[tuple[str, ...]], then: str) -> None:
    _edit(root, edits)
    _commit(root)
    if then == "update":
        _update(root)
    elif then == "forward":
        follow.bring_forward(root, Repo(root), None)


def _leave_dirty(root: str, edits: list[tuple[str, ...]], stage: bool) -> None:
    _edit(root, edits)
    if stage:
        git(root, "add", "-A")
    _update(root)


def _edit_and_revert(root: str, edits: list[tuple[str, ...]]) -> None:
    _edit(root, edits)
    _update(root)
    git(root, "reset", "-q", "--hard")
    git(root, "clean", "-fdq")


def _cut_short(root: str, edits: list[tuple[str, ...]], after: int, back: bool) -> None:
    """An update that ends at its n-th step, as a killed one would; then the commit may go, too."""
    _edit(root, edits)
    _commit(root)
    whole, seen = Writer.apply, 0

    def apply(self: Writer, step: Step) -> None:
        nonlocal seen
        seen += 1
        if seen > after:
            raise Cut
        whole(self, step)

    Writer.apply = apply  # type: ignore[method-assign]
    try:
        with suppress(Cut):
            _update(root)
    finally:
        Writer.apply = whole  # type: ignore[method-assign]
    if back:
        git(root, "reset", "-q", "--hard", "HEAD^")


def _forget(root: str) -> None:
    """History rewritten until git no longer has the commit the index stands at."""
    git(root, "checkout", "-q", "--orphan", "other")
    git(root, "commit", "-qm", "all anew", "--allow-empty")
    git(root, "branch", "-q", "-M", "main")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")


_STEPS: dict[str, Callable[..., None]] = {
    "commit": _edit_and_commit,
    "leave dirty": _leave_dirty,
    "edit and revert": _edit_and_revert,
    "cut short": _cut_short,
    "forget": _forget,
}
