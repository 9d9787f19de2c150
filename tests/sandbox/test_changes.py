"""The change set, read from real overlays and copies, as this user and as an ordinary one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.overlay import ORDINARY_UID, OverlayWorker, Unavailable
from tests.support.overlay_worker import Answer, Op, Request, Tree
from tests.support.trees import DictSource, own_cache, sha

from memhtml_sandbox.changes import ChangeSet, read_copy, read_overlay
from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.lower import NO_LAYER, Lower, SessionLayer

SEED: Tree = {
    "areas/inbox/a.html": b"alpha",
    "areas/inbox/b.html": b"beta",
    "projects/checkout/c.html": b"gamma",
    "top.html": b"top",
}


class Limits(NamedTuple):
    walk_entries: int = 20_000
    walk_depth: int = 64


USERS = [pytest.param(None, id="self")]
if os.geteuid() == 0:
    USERS.append(pytest.param(ORDINARY_UID, id="ordinary"))


@pytest.fixture(scope="module", params=USERS)
def worker(request: pytest.FixtureRequest) -> Iterator[OverlayWorker]:
    try:
        made = OverlayWorker(request.param)
    except Unavailable as reason:
        pytest.skip(f"no overlay here: {reason}")
    with made:
        yield made


@pytest.fixture(params=["overlay", "copy"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _run(
    worker: OverlayWorker,
    backend: str,
    *ops: Op,
    files: Tree | None = None,
    gone: tuple[str, ...] = (),
) -> Answer:
    """Run operations over the seed and hold the answer against a plain comparison of the trees."""
    answer = worker.ask(Request(backend, SEED, SEED, files or {}, gone, ops))
    assert answer.changed == answer.expected_changed
    assert answer.vanished == answer.expected_vanished
    return answer


def _kinds(answer: Answer) -> dict[bytes, str]:
    return {path: kind for path, (kind, _, _) in answer.changed.items()}


def test_nothing_done_is_no_change(worker: OverlayWorker, backend: str) -> None:
    answer = _run(worker, backend)

    assert (answer.changed, answer.vanished) == ({}, frozenset())
    assert answer.seeded == SEED


def test_times_modes_and_equal_bytes_are_no_change(worker: OverlayWorker, backend: str) -> None:
    answer = _run(
        worker,
        backend,
        ("touch", b"areas/inbox/a.html", b""),
        ("chmod", b"areas/inbox/b.html", b""),
        ("write", b"top.html", b"top"),
        ("mkdir", b"empty/folder", b""),
        ("rename", b"projects/checkout/c.html", b"away"),
        ("rename", b"away", b"projects/checkout/c.html"),
    )

    assert (answer.changed, answer.vanished) == ({}, frozenset())


def test_an_edit_an_addition_and_a_removal_are_told_apart(
    worker: OverlayWorker, backend: str
) -> None:
    answer = _run(
        worker,
        backend,
        ("append", b"areas/inbox/a.html", b"!"),
        ("write", b"new/deep/n.html", b"new"),
        ("remove", b"top.html", b""),
    )

    assert answer.changed == {
        b"areas/inbox/a.html": ("file", 6, b"alpha!"),
        b"new/deep/n.html": ("file", 3, b"new"),
    }
    assert answer.vanished == {"top.html"}


def test_created_and_deleted_again_leaves_nothing(worker: OverlayWorker, backend: str) -> None:
    answer = _run(
        worker,
        backend,
        ("write", b"x/y.html", b"1"),
        ("remove", b"x/y.html", b""),
        ("mkdir", b"z", b""),
    )

    assert (answer.changed, answer.vanished) == ({}, frozenset())


def test_a_removed_folder_takes_everything_seeded_below(
    worker: OverlayWorker, backend: str
) -> None:
    answer = _run(worker, backend, ("remove", b"areas", b""))

    assert answer.vanished == {"areas/inbox/a.html", "areas/inbox/b.html"}


def test_a_folder_made_again_shows_only_what_is_in_it_now(
    worker: OverlayWorker, backend: str
) -> None:
    answer = _run(
        worker,
        backend,
        ("folder", b"areas", b""),
        ("write", b"areas/inbox/b.html", b"beta"),
        ("write", b"areas/inbox/c.html", b"c"),
    )

    assert answer.vanished == {"areas/inbox/a.html"}
    assert list(answer.changed) == [b"areas/inbox/c.html"]


def test_a_folder_turned_file_takes_everything_below(worker: OverlayWorker, backend: str) -> None:
    answer = _run(worker, backend, ("remove", b"areas", b""), ("write", b"areas", b"no record"))

    assert answer.vanished == {"areas/inbox/a.html", "areas/inbox/b.html"}
    assert _kinds(answer) == {b"areas": "file"}


def test_a_file_turned_folder_is_gone(worker: OverlayWorker, backend: str) -> None:
    answer = _run(worker, backend, ("folder", b"top.html", b""), ("write", b"top.html/x", b"x"))

    assert answer.vanished == {"top.html"}
    assert _kinds(answer) == {b"top.html/x": "file"}


def test_links_and_pipes_are_named_and_never_opened(worker: OverlayWorker, backend: str) -> None:
    answer = _run(
        worker,
        backend,
        ("symlink", b"areas/out.html", b"/etc/passwd"),
        ("remove", b"top.html", b""),
        ("fifo", b"top.html", b""),
        ("remove", b"projects", b""),
        ("symlink", b"projects", b"areas"),
    )

    assert _kinds(answer) == {b"areas/out.html": "link", b"top.html": "pipe", b"projects": "link"}
    assert answer.vanished == {"top.html", "projects/checkout/c.html"}


def test_two_names_of_one_file_are_two_files(worker: OverlayWorker, backend: str) -> None:
    answer = _run(
        worker,
        backend,
        ("hard", b"top.html", b"twin.html"),
        ("append", b"twin.html", b"!"),
    )

    assert list(answer.changed) == [b"top.html", b"twin.html"]


def test_modes_hide_nothing(worker: OverlayWorker, backend: str) -> None:
    answer = _run(
        worker,
        backend,
        ("append", b"areas/inbox/a.html", b"!"),
        ("chmod", b"areas/inbox/a.html", b""),
        ("chmod", b"areas/inbox", b""),
        ("chmod", b"areas", b""),
        ("chmod", b".", b""),
    )

    assert answer.changed == {b"areas/inbox/a.html": ("file", 6, b"alpha!")}


def test_names_are_bytes(worker: OverlayWorker, backend: str) -> None:
    answer = _run(
        worker, backend, ("write", b"a\xff/b\n.html", b"1"), ("write", "é.html".encode(), b"2")
    )

    assert list(answer.changed) == [b"a\xff/b\n.html", "é.html".encode()]


def test_a_sparse_giant_costs_nothing(worker: OverlayWorker, backend: str) -> None:
    answer = _run(worker, backend, ("sparse", b"top.html", b""))

    kind, size, data = answer.changed[b"top.html"]
    assert (kind, size, len(data)) == ("file", 1 << 40, 1 << 16)


def test_a_scripts_own_overlay_attributes_mean_nothing(worker: OverlayWorker, backend: str) -> None:
    answer = _run(worker, backend, ("xattr", b"areas", b""), ("append", b"top.html", b"!"))

    assert answer.vanished == frozenset()


def test_the_sessions_layer_is_part_of_the_seed(worker: OverlayWorker, backend: str) -> None:
    layer: Tree = {"areas/inbox/a.html": b"edited", "put/p.html": b"put"}
    gone = ("projects/checkout/c.html",)

    quiet = _run(worker, backend, files=layer, gone=gone)
    assert quiet.seeded == {
        "areas/inbox/a.html": b"edited",
        "areas/inbox/b.html": b"beta",
        "put/p.html": b"put",
        "top.html": b"top",
    }
    assert (quiet.changed, quiet.vanished) == ({}, frozenset())
    busy = _run(
        worker,
        backend,
        ("write", b"areas/inbox/a.html", b"alpha"),
        ("remove", b"put", b""),
        ("write", b"projects/checkout/c.html", b"gamma"),
        files=layer,
        gone=gone,
    )
    assert list(busy.changed) == [b"areas/inbox/a.html", b"projects/checkout/c.html"]
    assert busy.vanished == {"put/p.html"}


def test_what_the_sessions_layer_covers_is_not_the_seed(
    worker: OverlayWorker, backend: str
) -> None:
    answer = _run(
        worker,
        backend,
        ("folder", b"areas", b""),
        ("write", b"areas/inbox/a.html", b"alpha"),
        files={"areas": b"a put over a whole folder"},
        gone=("areas/inbox/a.html", "areas/inbox/b.html"),
    )

    assert answer.vanished == {"areas"}
    assert answer.changed == {b"areas/inbox/a.html": ("file", 5, b"alpha")}


# Any sequence of operations, against a plain comparison of the merged trees.

_NAMES = st.sampled_from([b"a", b"b", b"c.html", "ü".encode(), b"\xff", b"a.b"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(b"/".join)
_DATA = st.sampled_from([b"", b"1", b"22"])
_WITH_DATA = st.sampled_from(["write", "append", "file", "symlink", "fifo", "sparse"])
_WITH_PATH = st.sampled_from(["rename", "copy", "hard"])
_ALONE = st.sampled_from(["remove", "mkdir", "folder", "touch", "chmod"])


def _ops(seeded: Tree) -> st.SearchStrategy[list[Op]]:
    """Operations, mostly on what is seeded and on its folders: others meet nothing."""
    known = {path.encode() for path in seeded}
    known |= {
        path[:cut] for path in known for cut in range(len(path)) if path[cut : cut + 1] == b"/"
    }
    paths = st.one_of(_PATHS, *[st.sampled_from(sorted(known))] * 3) if known else _PATHS
    return st.lists(
        st.one_of(
            st.tuples(_WITH_DATA, paths, _DATA),
            st.tuples(_WITH_PATH, paths, paths),
            st.tuples(_ALONE, paths, st.just(b"")),
            st.just(("remove", b"a", b"")),
        ),
        max_size=9,
    )


def _possible(tree: Tree) -> Tree:
    """Drop the files that lie below another file: git cannot hold both."""
    return {
        path: data
        for path, data in tree.items()
        if not any(path.startswith(f"{other}/") for other in tree)
    }


_TEXT_PATHS = st.lists(
    st.sampled_from(["a", "b", "c.html", "ü", "a.b"]), min_size=1, max_size=3
).map("/".join)
_TREES = st.dictionaries(_TEXT_PATHS, _DATA, max_size=7).map(_possible)


@st.composite
def _requests(draw: st.DrawFn) -> tuple[Tree, Tree, Tree, tuple[str, ...], tuple[Op, ...]]:
    base, commit = draw(_TREES), draw(_TREES)
    gone = draw(st.sets(st.sampled_from(sorted(commit)), max_size=2)) if commit else set()
    left = {path: data for path, data in commit.items() if path not in gone}
    put = draw(st.dictionaries(_TEXT_PATHS, _DATA, max_size=3))
    both = _possible({**left, **put})
    files = {path: data for path, data in put.items() if path in both}
    # What a put displaces must be gone first, as the fold of a log has it.
    displaced = {path for path in left if path not in both}
    return (
        base,
        commit,
        files,
        tuple(sorted(gone | displaced)),
        tuple(draw(_ops(both))),
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=_requests())
def test_the_change_set_equals_a_comparison_of_the_merged_trees(
    worker: OverlayWorker,
    backend: str,
    drawn: tuple[Tree, Tree, Tree, tuple[str, ...], tuple[Op, ...]],
) -> None:
    answer = worker.ask(Request(backend, *drawn))

    _, commit, files, gone, _ = drawn
    assert answer.seeded == {**{p: d for p, d in commit.items() if p not in gone}, **files}
    assert answer.changed == answer.expected_changed
    assert answer.vanished == answer.expected_vanished


# What needs no mount: an upper layer that is only a folder.


@pytest.fixture
def lower(tmp_path: Path) -> Lower:
    return own_cache(str(tmp_path / "cache")).ensure(DictSource({sha("a"): SEED}), sha("a"))


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    made = tmp_path / "upper"
    made.mkdir()
    return made


def _read(upper: Path, lower: Lower, limits: Limits | None = None) -> ChangeSet:
    fd = os.open(upper, os.O_PATH | os.O_DIRECTORY)
    try:
        return read_overlay(fd, lower, NO_LAYER, limits or Limits())
    finally:
        os.close(fd)


def test_an_empty_file_with_the_newer_kernels_mark_is_a_whiteout(upper: Path, lower: Lower) -> None:
    for name in ("top.html", "other.html"):
        (upper / name).touch()
    os.setxattr(upper / "top.html", "user.overlay.whiteout", b"y")

    found = _read(upper, lower)
    assert list(found.changed) == [b"other.html"]
    assert found.vanished == {"top.html"}


def test_a_device_that_is_no_whiteout_is_a_device(upper: Path, lower: Lower) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    os.mknod(upper / "top.html", 0o20666, os.makedev(1, 3))

    found = _read(upper, lower)
    assert found.changed[b"top.html"].kind == "device"
    assert found.vanished == {"top.html"}


def test_a_whiteout_is_only_a_device_in_a_copy(upper: Path, lower: Lower) -> None:
    os.mknod(upper / "top.html", 0o20600, os.makedev(0, 0))
    fd = os.open(upper, os.O_RDONLY)
    try:
        found = read_copy(fd, lower, NO_LAYER, Limits())
    finally:
        os.close(fd)

    assert found.changed[b"top.html"].kind == "device"
    assert found.vanished == set(SEED)


def test_an_opaque_mark_with_another_value_hides_nothing(upper: Path, lower: Lower) -> None:
    (upper / "areas").mkdir()
    os.setxattr(upper / "areas", "user.overlay.opaque", b"x")
    assert _read(upper, lower).vanished == frozenset()

    os.setxattr(upper / "areas", "user.overlay.opaque", b"y")
    assert _read(upper, lower).vanished == {"areas/inbox/a.html", "areas/inbox/b.html"}


def test_more_entries_than_allowed_fail_the_harvest(upper: Path, lower: Lower) -> None:
    for n in range(5):
        (upper / f"{n}.html").touch()

    assert len(_read(upper, lower, Limits(walk_entries=5)).changed) == 5
    with pytest.raises(SandboxFailed, match="more than 4 entries") as failed:
        _read(upper, lower, Limits(walk_entries=4))
    assert failed.value.code == "exec.harvest"


def test_in_a_copy_only_what_is_not_as_seeded_counts(tmp_path: Path, lower: Lower) -> None:
    copy = tmp_path / "copy"
    for path, data in SEED.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    (copy / "new.html").touch()
    fd = os.open(copy, os.O_RDONLY)
    try:
        # Half of the four seeded files come on top, as the room of a copy's tmpfs does.
        for n in range(2):
            assert read_copy(fd, lower, NO_LAYER, Limits(walk_entries=1)).changed
            (copy / f"{n}.html").touch()
        assert len(read_copy(fd, lower, NO_LAYER, Limits(walk_entries=1)).changed) == 3
        (copy / "top.html").write_bytes(b"other")
        with pytest.raises(SandboxFailed):
            read_copy(fd, lower, NO_LAYER, Limits(walk_entries=1))
    finally:
        os.close(fd)


def test_what_lies_too_deep_is_named_once_and_not_entered(upper: Path, lower: Lower) -> None:
    (upper / "a/b/c/d").mkdir(parents=True)
    (upper / "a/b/two.html").touch()
    (upper / "a/b/c/d/four.html").touch()

    found = _read(upper, lower, Limits(walk_depth=2))
    assert {path: entry.kind for path, entry in found.changed.items()} == {
        b"a/b/c": "too-deep",
        b"a/b/two.html": "too-deep",
    }
    with pytest.raises(OSError, match="never opened"):
        found.changed[b"a/b/two.html"].read(1)


def test_a_seeded_file_is_never_too_deep(upper: Path, lower: Lower) -> None:
    (upper / "areas/inbox").mkdir(parents=True)
    (upper / "areas/inbox/a.html").write_bytes(b"alpha")

    assert _read(upper, lower, Limits(walk_depth=1)).changed == {}


def test_hundreds_of_folders_in_each_other_do_not_exhaust_the_walk(
    upper: Path, lower: Lower
) -> None:
    fd = os.open(upper, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)

    found = _read(upper, lower)
    assert [entry.kind for entry in found.changed.values()] == ["too-deep"]


def test_an_entry_cannot_be_read_once_the_run_is_over(upper: Path, lower: Lower) -> None:
    (upper / "n.html").write_bytes(b"new bytes")
    found = _read(upper, lower)

    assert found.changed[b"n.html"].read(3) == b"new"
    assert found.changed[b"n.html"].read(100) == b"new bytes"
    found.close()
    found.close()
    with pytest.raises(OSError, match="the run is over"):
        found.changed[b"n.html"].read(3)


def test_a_tree_that_cannot_be_read_fails_the_harvest(upper: Path) -> None:
    with pytest.raises(SandboxFailed) as failed:
        _read(upper, Lower(sha("a"), ("/nowhere/at/all",)))

    assert failed.value.code == "exec.harvest"


def test_reading_leaves_no_descriptor_open(upper: Path, lower: Lower) -> None:
    for n in range(20):
        (upper / f"d{n}").mkdir()
        (upper / f"d{n}/f.html").touch()
    before = len(os.listdir("/proc/self/fd"))
    _read(upper, lower).close()
    with pytest.raises(SandboxFailed):
        _read(upper, lower, Limits(walk_entries=3))

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_layer_without_files_reads_like_none(upper: Path, lower: Lower) -> None:
    (upper / "n.html").touch()
    fd = os.open(upper, os.O_RDONLY)
    try:
        found = read_overlay(fd, lower, SessionLayer({}, frozenset()), Limits())
    finally:
        os.close(fd)

    assert list(found.changed) == [b"n.html"]
