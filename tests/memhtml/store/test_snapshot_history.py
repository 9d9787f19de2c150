"""Whatever the history, an advanced database equals a rebuilt one, and a view equals a build."""

from __future__ import annotations

import tempfile
from typing import Any, NamedTuple

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.support import head as support
from tests.support.head import (
    MAIN,
    Store,
    answers,
    dump_built,
    dump_file,
    kinds,
    kinds_in,
    page,
    searches,
)

from memhtml.corpus.head import Head, open_head
from memhtml.corpus.memory import MemoryCorpus
from memhtml.store.snapshot import write_snapshot
from memhtml.store.snapshot_schema import may_be_record

A = "areas/inbox/a.html"
PATHS = (
    "README.html",
    "notes.html",
    "index.html",
    A,
    "areas/inbox/b.html",
    "areas/inbox/b.html/below.html",
    "areas/inbox/b.html0",
    "areas/inbox/index.html",
    "areas/inbox/plain.txt",
    "areas/inbox/plain.txt/deep/x.txt",
    "vendor/lib",
    "projects/x/é.html",
    "projects/x/tasks/t.html",
    "archive/2026/areas/inbox/a.html",
    "archive/2026.2/areas/inbox/a.html",
    "resources/people/p.html",
)
CONTENTS: tuple[bytes | tuple[int, bytes], ...] = (
    page("Cache ttl", "The cache ttl is five minutes.", entities=["system:cache"]),
    page(
        "Cache ttl", "The cache ttl is ten minutes.", tags=["infra"], links=[("supports", f"/{A}")]
    ),
    page("Other", "Retries wait.", links=[("relates_to", f"/{A}#x")]),
    page(
        "Deploys",
        "Deploys happen on Friday.",
        body="<dl><dt>Limit</dt><dd><data value='20'>twenty</data></dd></dl>"
        "<p>Seen <time datetime='2026-07-28'>then</time>, <dfn>canary</dfn>.</p>",
        links=[("supersedes", "/archive/2026/areas/inbox/a.html"), ("supports", "/projects/x")],
    ),
    (support.EXECUTABLE, page("Script", "The script is executable.")),
    (support.LINK, b"a.html"),
    (support.SUBMODULE, b"stands for a commit"),
    b"<p>no memory at all</p>",
    page("Broken", "Claim.", kind="nonsense"),
    b"\xff\xfe not text",
)
QUERIES = ("cache ttl minutes", "deploy friday canary", "the of", "retries script executable")


class Step(NamedTuple):
    """One commit: changed paths (None removes), and which earlier commit it stands on."""

    changes: dict[str, int | None]
    parent: int


STEPS = st.lists(
    st.builds(
        Step,
        st.dictionaries(
            st.sampled_from(PATHS),
            st.one_of(st.none(), st.integers(0, len(CONTENTS) - 1)),
            max_size=6,
        ),
        st.one_of(st.just(0), st.just(0), st.integers(0, 3)),
    ),
    min_size=2,
    max_size=5,
)
Tree = dict[str, "bytes | tuple[int, bytes]"]


def changed(files: Tree, changes: dict[str, int | None]) -> Tree:
    """The tree after a step; a file takes the place of a folder, and the other way round."""
    after = dict(files)
    for path, content in changes.items():
        clashing = [p for p in after if p.startswith(f"{path}/") or path.startswith(f"{p}/")]
        for name in (path, *(clashing if content is not None else ())):
            after.pop(name, None)
        if content is not None:
            after[path] = CONTENTS[content]
    return after


def write_history(store: Store, steps: list[Step]) -> list[tuple[str, Tree]]:
    """The commits of the steps, oldest first, with their trees."""
    made: list[tuple[str, Tree]] = [(store.commit({"areas/inbox/a.html": CONTENTS[0]}), {})]
    made[0][1]["areas/inbox/a.html"] = CONTENTS[0]
    for step in steps:
        parent, files = made[max(0, len(made) - 1 - step.parent)]
        after = changed(files, step.changes)
        made.append((store.commit(after, parent), after))
    return made


def head_at(store: Store, sha: str) -> Head:
    return open_head(store.root, MAIN, sha, repo=store.repo())


def as_memory(files: Tree, sha: str) -> MemoryCorpus:
    """The same version through the plain dictionaries: an independent second reading."""
    regular = {}
    for path, value in files.items():
        mode, data = (support.FILE, value) if isinstance(value, bytes) else value
        if mode in (support.FILE, support.EXECUTABLE) and may_be_record(path):
            regular[path] = data
    return MemoryCorpus(regular, sha)


def others_of(files: Tree, dumped: dict[str, Any]) -> dict[str, str | None]:
    """What the table of files that are no records should hold, by path."""
    records = {row[0] for row in dumped["records"]}
    found = kinds_in(files, files)
    return {path: found[path] for path in files if path not in records}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_a_database_advanced_along_any_history_equals_one_built_anew(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as root:
        store = Store(root)
        for sha, files in write_history(store, steps):
            assert write_snapshot(root, MAIN, sha, store.repo()) is not None
            dumped = dump_file(store.database())
            assert dumped == dump_built(store, sha)
            assert dict(dumped["others"]) == others_of(files, dumped)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.integers(0, 5))
def test_a_head_answers_the_same_wherever_its_database_stands(
    steps: list[Step], stands: int
) -> None:
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as other:
        store, fresh = Store(root), Store(other)
        history = write_history(store, steps)
        assert [sha for sha, _files in write_history(fresh, steps)] == [s for s, _f in history]
        at = history[min(stands, len(history) - 1)][0]
        for sha, files in history:
            write_snapshot(root, MAIN, at, store.repo())
            write_snapshot(other, MAIN, sha, fresh.repo())
            with head_at(store, sha) as laid, head_at(fresh, sha) as built:
                assert answers(laid, PATHS) == answers(built, PATHS)
                assert answers(built, PATHS) == answers(as_memory(files, sha), PATHS)
                assert kinds(laid, PATHS) == kinds(built, PATHS) == kinds_in(files, PATHS)
                assert laid.report.records == built.report.records
                assert searches(laid, QUERIES) == searches(built, QUERIES)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, STEPS)
def test_a_view_answers_as_a_build_of_the_folded_tree(
    steps: list[Step], folded: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as other:
        store, fresh = Store(root), Store(other)
        history = write_history(store, steps)
        write_snapshot(root, MAIN, history[-1][0], store.repo())
        base, files = history[len(history) // 2]
        after = files
        for step in folded:
            after = changed(after, step.changes)
        # A link that stays is no part of a fold, and a plain tree of bytes cannot say so.
        assume(not any(after[p] == files.get(p) for p in after if not isinstance(after[p], bytes)))
        laid = {p: v if isinstance(v, bytes) else v[1] for p, v in after.items()}
        sha = fresh.commit(laid)
        gone = set(files) - set(after)
        with head_at(store, base) as head, head_at(fresh, sha) as built:
            view = head.view({p: d for p, d in laid.items() if after[p] != files.get(p)}, gone)
            assert answers(view, PATHS) == answers(built, PATHS)
            assert kinds(view, PATHS) == kinds(built, PATHS) == kinds_in(laid, PATHS)
            assert searches(view, QUERIES) == searches(built, QUERIES)
