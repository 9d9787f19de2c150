"""The corpus cache on disk: built, advanced, raced, crashed into and pruned."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.trees import DictSource, Tree, own_cache, sha, tree_of

from memhtml_sandbox import cache as cache_module
from memhtml_sandbox.cache import CorpusCache, PruneReport
from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.lower import NO_LAYER, Lower, Seed

A, B, C, D = sha("a"), sha("b"), sha("c"), sha("d")

BASE: Tree = {
    "areas/inbox/a.html": b"alpha",
    "areas/inbox/b.html": b"beta",
    "areas/only/one.html": b"one",
    "projects/x/deep/er/c.html": b"gamma",
    "turns": b"a file that becomes a folder",
    "folder/that/turns.html": b"1",
    "folder/also.html": b"2",
}
NEXT: Tree = {
    "areas/inbox/a.html": b"alpha, changed",
    "areas/inbox/new.html": b"new",
    "projects/x/deep/er/c.html": b"gamma",
    "turns/into/folder.html": b"3",
    "folder": b"a folder that became a file",
}


def _read_all(lower: Lower) -> Tree:
    found: Tree = {}
    for path in lower.under(""):
        data = lower.read(path)
        assert data is not None
        found[path] = data
    return found


@pytest.fixture
def source() -> DictSource:
    many = {f"resources/r{n}.html": b"r" * n for n in range(200)}
    return DictSource({A: {**BASE, **many}, B: {**NEXT, **many}, C: {**NEXT, **many, "z": b"z"}})


@pytest.fixture
def cache(tmp_path: Path) -> CorpusCache:
    return own_cache(str(tmp_path / "sandbox"))


def test_ensure_writes_every_record_with_plain_modes(
    cache: CorpusCache, source: DictSource
) -> None:
    before = os.umask(0o077)
    try:
        lower = cache.ensure(source, A)
    finally:
        os.umask(before)

    assert tree_of(lower.layers[0]) == source.trees[A]
    for here, folders, names in os.walk(lower.layers[0]):
        modes = {stat.S_IMODE(os.lstat(os.path.join(here, name)).st_mode) for name in names}
        assert modes <= {0o644}
        for folder in (".", *folders):
            assert stat.S_IMODE(os.stat(os.path.join(here, folder)).st_mode) == 0o755
    with open(f"{cache.root}/base/{A}.ok", encoding="utf-8") as marker:
        expected_bytes = sum(map(len, source.trees[A].values()))
        assert json.load(marker) == {"files": len(source.trees[A]), "bytes": expected_bytes}


def test_ensure_asks_the_source_nothing_when_warm(cache: CorpusCache, source: DictSource) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    source.full_reads.clear()
    source.differences.clear()

    assert cache.ensure(source, A).layers == (f"{cache.root}/base/{A}",)
    assert len(cache.ensure(source, B).layers) == 2
    assert (source.full_reads, source.differences) == ([], [])


def test_warm_ensure_takes_well_under_a_millisecond(cache: CorpusCache, source: DictSource) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    fastest_s = min(_timed(lambda: cache.ensure(source, B)) for _ in range(20))

    assert fastest_s < 0.001


def _timed(call: object) -> float:
    assert callable(call)
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def test_advance_writes_one_delta_over_add_change_delete_and_turned_paths(
    cache: CorpusCache, source: DictSource
) -> None:
    cache.ensure(source, A)
    lower = cache.ensure(source, B)

    assert source.full_reads == [A]
    assert lower.layers == (f"{cache.root}/base/{A}", f"{cache.root}/delta/{B}")
    assert _read_all(lower) == source.trees[B]
    delta = lower.layers[1]
    whiteout = os.lstat(f"{delta}/areas/inbox/b.html")
    assert stat.S_ISCHR(whiteout.st_mode)
    assert whiteout.st_rdev == 0
    assert os.getxattr(f"{delta}/turns", "user.overlay.opaque") == b"y"
    assert os.path.isfile(f"{delta}/folder")


def test_a_folder_that_lost_its_last_record_is_hidden_as_a_whole(
    cache: CorpusCache, source: DictSource
) -> None:
    cache.ensure(source, A)
    lower = cache.ensure(source, B)

    assert stat.S_ISCHR(os.lstat(f"{lower.layers[1]}/areas/only").st_mode)


def test_the_delta_is_cumulative_against_its_base(cache: CorpusCache, source: DictSource) -> None:
    for commit in (A, B, C):
        lower = cache.ensure(source, commit)

    assert source.differences == [(A, B), (A, C)]
    assert lower.layers == (f"{cache.root}/base/{A}", f"{cache.root}/delta/{C}")
    assert _read_all(lower) == source.trees[C]
    with open(f"{cache.root}/delta/{C}.json", encoding="utf-8") as marker:
        assert json.load(marker)["base"] == A


def test_a_commit_without_record_changes_adds_no_layer(
    cache: CorpusCache, source: DictSource
) -> None:
    source.trees[D] = source.trees[A]
    cache.ensure(source, A)

    for _ in range(2):
        lower = cache.ensure(source, D)
        assert (lower.sha, lower.layers) == (D, (f"{cache.root}/base/{A}",))


def test_the_smallest_delta_wins_when_the_newest_base_is_far_away(
    cache: CorpusCache, source: DictSource
) -> None:
    source.trees[D] = {f"other/{n}.html": b"x" for n in range(300)}
    cache.ensure(source, A)
    cache._build_base(source, D)

    assert cache.ensure(source, B).layers[0] == f"{cache.root}/base/{A}"


def test_a_base_whose_commit_is_gone_leads_to_a_full_build(
    cache: CorpusCache, source: DictSource
) -> None:
    cache.ensure(source, A)
    del source.trees[A]

    assert cache.ensure(source, B).layers == (f"{cache.root}/base/{B}",)


def test_maintain_builds_a_base_only_for_a_delta_that_has_grown(
    cache: CorpusCache, source: DictSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    assert not cache.maintain(source, A)
    assert not cache.maintain(source, B)

    monkeypatch.setattr(cache_module, "DELTA_FILES_MAX", 3)
    assert cache.maintain(source, B)
    assert not cache.maintain(source, B)
    assert cache.ensure(source, B).layers == (f"{cache.root}/base/{B}",)


def test_a_delta_over_a_tenth_of_its_base_counts_as_grown(cache: CorpusCache) -> None:
    small = {f"r{n}.html": b"" for n in range(10)}
    source = DictSource({A: small, B: {**small, "r0.html": b"1"}, C: {**small, "x": b"", "y": b""}})
    for commit in (A, B, C):
        cache.ensure(source, commit)

    assert not cache.maintain(source, B)
    assert cache.maintain(source, C)


def test_maintain_builds_a_base_when_the_old_one_is_gone(
    cache: CorpusCache, source: DictSource
) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    os.unlink(f"{cache.root}/base/{A}.ok")

    assert cache.maintain(source, B)


@pytest.mark.parametrize("kind", ["base", "delta"])
def test_a_crash_between_rename_and_marker_leads_to_a_new_build(
    cache: CorpusCache, source: DictSource, kind: str
) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    commit, marker = (A, f"base/{A}.ok") if kind == "base" else (B, f"delta/{B}.json")
    torn = f"{cache.root}/{kind}/{commit}"
    os.unlink(f"{cache.root}/{marker}")
    with open(f"{torn}/half.html", "wb") as file:
        file.write(b"half written")

    assert _read_all(cache.ensure(source, commit)) == source.trees[commit]
    assert os.path.exists(f"{cache.root}/{marker}") or kind == "base"


def test_a_tree_without_marker_is_moved_aside_and_not_deleted(
    cache: CorpusCache, source: DictSource
) -> None:
    cache.ensure(source, A)
    held = os.open(f"{cache.root}/base/{A}", os.O_PATH)
    os.unlink(f"{cache.root}/base/{A}.ok")
    cache.ensure(source, A)
    try:
        # A run may have the old one mounted.
        assert len(os.listdir(f"/proc/self/fd/{held}")) > 0
    finally:
        os.close(held)


def test_a_marker_is_not_taken_for_another_tree(cache: CorpusCache, source: DictSource) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    delta = f"{cache.root}/delta/{B}"
    os.rename(delta, f"{cache.root}/tmp-old")
    os.mkdir(delta)

    assert _read_all(cache.ensure(source, B)) == source.trees[B]


def test_concurrent_ensure_builds_once(cache: CorpusCache, source: DictSource) -> None:
    found: list[Lower] = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.ensure(source, A))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert source.full_reads == [A]
    assert [lower.layers for lower in found] == [(f"{cache.root}/base/{A}",)] * 6
    assert _read_all(found[0]) == source.trees[A]


def test_two_builders_without_the_lock_end_with_one_good_tree(
    cache: CorpusCache, source: DictSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "LOCK_WAIT_S", 0.0)
    gate = threading.Barrier(4)

    class Slow(DictSource):
        def files(self, sha: str) -> list[tuple[str, bytes]]:
            gate.wait(10)
            return list(super().files(sha))

    slow = Slow(source.trees)
    threads = [threading.Thread(target=cache.ensure, args=(slow, A)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(slow.full_reads) == 4
    assert _read_all(cache.ensure(source, A)) == source.trees[A]
    assert source.full_reads == []


def test_ensure_goes_on_without_a_lock_that_nobody_gives_back(
    cache: CorpusCache, source: DictSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "LOCK_WAIT_S", 0.05)
    os.makedirs(cache.root)
    with open(f"{cache.root}/cache.lock", "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert _read_all(cache.ensure(source, A)) == source.trees[A]


def test_a_failed_build_leaves_nothing_behind(cache: CorpusCache) -> None:
    source = DictSource({A: {"a.html": b"", "a.html/b.html": b""}})
    with pytest.raises(SandboxFailed) as failed:
        cache.ensure(source, A)

    assert failed.value.code == "exec.seed"
    assert os.listdir(f"{cache.root}/base") == []
    assert not [name for name in os.listdir(cache.root) if name.startswith("tmp-")]


@pytest.mark.parametrize(
    "path", ["../out.html", "/abs.html", "a//b.html", "a/./b.html", "a\0b", ""]
)
def test_a_path_that_no_tree_can_hold_is_refused(
    cache: CorpusCache, path: str, tmp_path: Path
) -> None:
    with pytest.raises(SandboxFailed):
        cache.ensure(DictSource({A: {path: b"x"}}), A)
    assert [item.name for item in tmp_path.iterdir()] == ["sandbox"]


def test_what_is_no_commit_id_is_refused(cache: CorpusCache, source: DictSource) -> None:
    for text in ("../../etc", "A" * 40, "main", ""):
        with pytest.raises(ValueError, match="commit id"):
            cache.ensure(source, text)


def test_a_commit_that_the_source_does_not_have_fails_to_seed(cache: CorpusCache) -> None:
    with pytest.raises(SandboxFailed, match=r"exec\.seed"):
        cache.ensure(DictSource(), A)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_for_root_every_entry_belongs_to_the_sandbox_user(
    tmp_path: Path, source: DictSource
) -> None:
    parent = tmp_path / "setgid"
    parent.mkdir()
    os.chown(parent, -1, 4242)
    parent.chmod(0o2755)
    cache = CorpusCache(str(parent / "sandbox"), uid=65534, gid=65533)
    for commit in (A, B):
        lower = cache.ensure(source, commit)

    for layer in lower.layers:
        for here, _, names in os.walk(layer):
            for name in (".", *names):
                found = os.lstat(os.path.join(here, name))
                if not stat.S_ISCHR(found.st_mode):
                    assert (found.st_uid, found.st_gid) == (65534, 65533)
                assert not found.st_mode & stat.S_ISGID
    assert os.stat(f"{cache.root}/base").st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of two users")
def test_a_tree_of_another_user_is_rebuilt(tmp_path: Path, source: DictSource) -> None:
    root = str(tmp_path / "sandbox")
    CorpusCache(root, uid=65534, gid=65534).ensure(source, A)
    lower = CorpusCache(root, uid=1234, gid=1234).ensure(source, A)

    assert os.stat(lower.layers[0]).st_uid == 1234
    assert _read_all(lower) == source.trees[A]


def test_the_group_is_the_users_own_below_a_setgid_folder(
    tmp_path: Path, source: DictSource
) -> None:
    tmp_path.chmod(0o2755)
    lower = own_cache(str(tmp_path / "sandbox")).ensure(source, A)

    found = os.stat(f"{lower.layers[0]}/areas")
    assert (found.st_gid, found.st_mode & stat.S_ISGID) == (os.getegid(), 0)


# Pruning.


def _age(cache: CorpusCache, marker: str, age_s: float) -> None:
    then = time.time() - age_s
    os.utime(f"{cache.root}/{marker}", (then, then))


def test_prune_keeps_four_bases_their_deltas_and_what_was_used_lately(cache: CorpusCache) -> None:
    names = "0123456"
    source = DictSource({sha(n): {"r.html": n.encode()} for n in names})
    source.trees[D] = {"r.html": b"0", "d.html": b"d"}
    for age, n in enumerate(names):
        cache._make_folders()
        cache._build_base(source, sha(n))
        _age(cache, f"base/{sha(n)}.ok", 7_200 + age)
    cache.ensure(source, D)
    _age(cache, f"base/{sha('0')}.ok", 9_000)
    _age(cache, f"delta/{D}.json", 60)
    _age(cache, f"base/{sha('6')}.ok", 30)

    assert cache.prune() == PruneReport(bases=2, deltas=0, garbage=0)
    left = {name.removesuffix(".ok") for name in os.listdir(f"{cache.root}/base")}
    # The newest four are 6, 1, 2 and 3; 0 carries a delta that is in use.
    assert left == {sha(n) for n in "01236"}


def test_prune_takes_an_idle_delta_with_its_base(cache: CorpusCache, source: DictSource) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    _age(cache, f"base/{A}.ok", 7_200)
    _age(cache, f"delta/{B}.json", 7_200)

    assert cache.prune() == PruneReport(0, 0, 0)
    assert cache.prune(keep=0) == PruneReport(bases=1, deltas=1, garbage=0)
    assert os.listdir(f"{cache.root}/base") == os.listdir(f"{cache.root}/delta") == []
    assert _read_all(cache.ensure(source, B)) == source.trees[B]


def test_prune_can_empty_the_cache(cache: CorpusCache, source: DictSource) -> None:
    for commit in (A, B, C):
        cache.ensure(source, commit)

    assert cache.prune(keep=0, idle_s=-1) == PruneReport(bases=1, deltas=2, garbage=0)
    assert cache.prune(keep=0, idle_s=-1) == PruneReport(0, 0, 0)


def test_prune_of_a_cache_that_is_not_there_does_nothing(cache: CorpusCache) -> None:
    assert cache.prune() == PruneReport(0, 0, 0)
    assert not os.path.exists(cache.root)


def test_use_renews_a_tree_so_that_prune_leaves_it(cache: CorpusCache, source: DictSource) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    _age(cache, f"base/{A}.ok", 7_200)
    _age(cache, f"delta/{B}.json", 7_200)
    cache.ensure(source, B)

    assert cache.prune(keep=0) == PruneReport(0, 0, 0)


def test_a_use_while_prune_decides_saves_the_tree(
    cache: CorpusCache, source: DictSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.ensure(source, A)
    marker = f"{cache.root}/base/{A}.ok"
    _age(cache, f"base/{A}.ok", 7_200)
    decide = cache._deltas

    def used_meanwhile() -> dict[str, cache_module.Delta]:
        os.utime(marker)
        return decide()

    monkeypatch.setattr(cache, "_deltas", used_meanwhile)

    assert cache.prune(keep=0) == PruneReport(0, 0, 0)
    assert os.path.exists(marker)


def test_garbage_of_dead_builds_is_removed_after_an_hour(
    cache: CorpusCache, source: DictSource
) -> None:
    cache.ensure(source, A)
    for name, age_s in (("tmp-1-old", 7_200), ("tmp-1-young", 60)):
        os.makedirs(f"{cache.root}/{name}/inside")
        _age(cache, name, age_s)

    assert cache.prune().garbage == 1
    assert os.path.exists(f"{cache.root}/tmp-1-young")
    _age(cache, "tmp-1-young", 7_200)
    cache.ensure(source, B)
    assert not os.path.exists(f"{cache.root}/tmp-1-young")


# Links that somebody else has put there.


@pytest.mark.parametrize("name", ["", "/base", "/delta"])
def test_a_cache_behind_a_link_is_refused_and_left_alone(
    cache: CorpusCache, source: DictSource, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    for path in (f"tmp-1-old/{A}", f"{A}/kept", f"{A}.ok"):
        (outside / path).mkdir(parents=True)
    os.utime(outside / "tmp-1-old", (1, 1))
    before = sorted(outside.rglob("*"))
    if name:
        os.mkdir(cache.root)
    os.symlink(outside, f"{cache.root}{name}")

    for act in (
        lambda: cache.ensure(source, A),
        lambda: cache.maintain(source, A),
        lambda: cache.prune(keep=0, idle_s=-1),
    ):
        with pytest.raises(SandboxFailed, match="is a symbolic link") as failed:
            act()
        assert failed.value.code == "exec.seed"
    assert sorted(outside.rglob("*")) == before


def test_a_planted_link_among_markers_and_trees_is_replaced_not_followed(
    cache: CorpusCache, source: DictSource, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "areas").mkdir(parents=True)
    marker = outside / "marker"
    marker.write_text('{"files": 1, "bytes": 1}')
    os.utime(marker, (1, 1))
    os.makedirs(f"{cache.root}/base")
    os.symlink(outside, f"{cache.root}/base/{A}")
    os.symlink(marker, f"{cache.root}/base/{A}.ok")
    os.symlink(outside, f"{cache.root}/tmp-1-link")
    os.utime(f"{cache.root}/tmp-1-link", (1, 1), follow_symlinks=False)

    lower = cache.ensure(source, A)
    assert _read_all(lower) == source.trees[A]
    assert not os.path.islink(lower.layers[0])
    assert os.stat(marker).st_mtime == 1
    assert cache.prune(keep=0, idle_s=-1).bases == 1
    assert sorted(path.name for path in outside.iterdir()) == ["areas", "marker"]
    assert not os.path.lexists(f"{cache.root}/tmp-1-link")


@pytest.mark.parametrize("text", ["[" * 30_000, "{" * 3, '{"files": 1}' + " " * (1 << 16)])
def test_a_marker_that_cannot_be_ours_is_none(
    cache: CorpusCache, source: DictSource, text: str
) -> None:
    cache.ensure(source, A)
    cache.ensure(source, B)
    Path(f"{cache.root}/delta/{B}.json").write_text(text)

    assert _read_all(cache.ensure(source, B)) == source.trees[B]


# Equality with a plain dictionary.

_NAMES = st.sampled_from(["a", "b", "c.html", "ü.html", "a.b"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)


def _possible(tree: Tree) -> Tree:
    """Drop the files that lie below another file: git cannot hold both."""
    return {
        path: data
        for path, data in tree.items()
        if not any(path.startswith(f"{other}/") for other in tree)
    }


_TREES = st.dictionaries(_PATHS, st.sampled_from([b"", b"1", b"22"]), max_size=8).map(_possible)


@settings(max_examples=60, deadline=None)
@given(base=_TREES, commit=_TREES)
def test_base_and_delta_read_like_the_commit(
    tmp_path_factory: pytest.TempPathFactory, base: Tree, commit: Tree
) -> None:
    cache = own_cache(str(tmp_path_factory.mktemp("cache")))
    source = DictSource({A: base, B: commit})
    cache.ensure(source, A)
    lower = cache.ensure(source, B)

    assert _read_all(lower) == commit
    assert list(lower.under("")) == sorted(commit)
    assert list(Seed(lower, NO_LAYER).under("a")) == sorted(p for p in commit if p[:2] == "a/")
    for path in base.keys() | commit.keys():
        assert lower.read(path) == commit.get(path)
        assert lower.holds(path) == (path in commit)
