"""Reading layers in the kernel's order, and the session's layer laid over them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.trees import DictSource, Tree, own_cache, sha

from memhtml_sandbox.layers import LayerWriter, write_changes, write_session_layer
from memhtml_sandbox.lower import NO_LAYER, Lower, Seed, SessionLayer


def _layer(folder: Path, files: Tree) -> str:
    folder.mkdir()
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return str(folder)


def _whiteout(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))


def test_the_top_layer_that_has_a_path_answers(tmp_path: Path) -> None:
    base = _layer(tmp_path / "base", {"a/x.html": b"base", "a/y.html": b"below"})
    top = _layer(tmp_path / "top", {"a/x.html": b"top"})
    lower = Lower(sha("a"), (base, top))

    assert lower.read("a/x.html") == b"top"
    assert lower.read("a/y.html") == b"below"
    assert list(lower.under("a")) == ["a/x.html", "a/y.html"]


def test_a_whiteout_hides_a_file_or_a_whole_folder(tmp_path: Path) -> None:
    base = _layer(tmp_path / "base", {"a/x.html": b"1", "a/y.html": b"2", "b/z/w.html": b"3"})
    top = _layer(tmp_path / "top", {})
    _whiteout(tmp_path / "top/a/x.html")
    _whiteout(tmp_path / "top/b")
    lower = Lower(sha("a"), (base, top))

    assert lower.read("a/x.html") is None
    assert not lower.holds("b/z/w.html")
    assert list(lower.under("")) == ["a/y.html"]
    assert list(lower.under("b/z")) == []


def test_an_opaque_folder_hides_what_is_below_it(tmp_path: Path) -> None:
    base = _layer(tmp_path / "base", {"a/x.html": b"1", "a/b/y.html": b"2"})
    top = _layer(tmp_path / "top", {"a/n.html": b"3"})
    os.setxattr(f"{top}/a", "user.overlay.opaque", b"y")
    lower = Lower(sha("a"), (base, top))

    assert lower.read("a/x.html") is None
    assert lower.read("a/b/y.html") is None
    assert list(lower.under("")) == ["a/n.html"]


def test_file_and_folder_of_one_name_hide_each_other(tmp_path: Path) -> None:
    base = _layer(tmp_path / "base", {"a/x.html": b"1", "b": b"2"})
    top = _layer(tmp_path / "top", {"a": b"3", "b/y.html": b"4"})
    lower = Lower(sha("a"), (base, top))

    assert lower.read("a/x.html") is None
    assert (lower.read("a"), lower.read("b")) == (b"3", None)
    assert list(lower.under("")) == ["a", "b/y.html"]


@pytest.mark.parametrize(
    "path", ["", "/", "a/", "/a", "a//b", "../x", "a/../b", ".", "a\0", "\ud800"]
)
def test_a_path_that_no_tree_can_hold_is_not_there(tmp_path: Path, path: str) -> None:
    lower = Lower(sha("a"), (_layer(tmp_path / "base", {"a/b": b"1"}),))
    (tmp_path / "x").write_bytes(b"outside")

    assert lower.read(path) is None
    assert not lower.holds(path)


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret.html").write_bytes(b"secret")
    base = _layer(tmp_path / "base", {"a.html": b"1"})
    os.symlink(tmp_path / "out", f"{base}/linked")
    os.symlink(tmp_path / "out/secret.html", f"{base}/link.html")
    lower = Lower(sha("a"), (base,))

    assert lower.read("linked/secret.html") is None
    assert lower.read("link.html") is None
    assert list(lower.under("")) == ["a.html"]
    assert list(lower.under("linked")) == []


def test_a_pipe_in_a_layer_is_not_opened(tmp_path: Path) -> None:
    base = _layer(tmp_path / "base", {})
    os.mkfifo(f"{base}/pipe.html")

    assert Lower(sha("a"), (base,)).read("pipe.html") is None


def test_paths_come_in_code_point_order_of_the_whole_path(tmp_path: Path) -> None:
    tree = {path: b"" for path in ("a.html", "a/z.html", "a-b/x.html", "a0.html", "é.html", "z/q")}
    lower = own_cache(str(tmp_path)).ensure(DictSource({sha("a"): tree}), sha("a"))

    assert list(lower.under("")) == sorted(tree)


def test_a_listing_that_is_left_early_closes_its_folders(tmp_path: Path) -> None:
    tree = {f"a/b/c/{n}.html": b"" for n in range(5)}
    lower = own_cache(str(tmp_path)).ensure(DictSource({sha("a"): tree}), sha("a"))
    before = len(os.listdir("/proc/self/fd"))
    listing = lower.under("")
    next(listing)
    del listing

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_layer_that_is_gone_is_an_error_and_not_an_empty_tree() -> None:
    with pytest.raises(FileNotFoundError):
        Lower(sha("a"), ("/nowhere/at/all",)).read("a.html")


# The session's layer.


def test_a_put_and_a_removal_decide_over_the_base(tmp_path: Path) -> None:
    tree: Tree = {"a/x.html": b"1", "a/y.html": b"2", "b.html": b"3"}
    lower = own_cache(str(tmp_path)).ensure(DictSource({sha("a"): tree}), sha("a"))
    seed = Seed(lower, SessionLayer({"a/x.html": b"new", "c/d.html": b"4"}, frozenset({"b.html"})))

    assert dict(seed.files()) == {"a/x.html": b"new", "a/y.html": b"2", "c/d.html": b"4"}
    assert seed.read("b.html") is None
    assert (seed.holds("c/d.html"), seed.holds("b.html"), seed.holds("a/y.html")) == (
        True,
        False,
        True,
    )
    assert list(seed.under("a")) == ["a/x.html", "a/y.html"]
    assert list(seed.under("c")) == ["c/d.html"]


def test_a_put_over_a_folder_or_below_a_file_hides_it(tmp_path: Path) -> None:
    tree: Tree = {"a/x.html": b"1", "b": b"2"}
    lower = own_cache(str(tmp_path)).ensure(DictSource({sha("a"): tree}), sha("a"))
    seed = Seed(lower, SessionLayer({"a": b"file", "b/y.html": b"3"}, frozenset()))

    assert dict(seed.files()) == {"a": b"file", "b/y.html": b"3"}
    assert seed.read("a/x.html") is None
    assert seed.read("b") is None
    assert list(seed.under("a")) == []


_NAMES = st.sampled_from(["a", "b", "c.html", "a.b"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)


def _possible(tree: Tree) -> Tree:
    return {
        path: data
        for path, data in tree.items()
        if not any(path.startswith(f"{other}/") for other in tree)
    }


_TREES = st.dictionaries(_PATHS, st.sampled_from([b"", b"1"]), max_size=7).map(_possible)


@settings(max_examples=60, deadline=None)
@given(base=_TREES, put=_TREES, data=st.data())
def test_the_seed_and_the_written_layer_read_alike(
    tmp_path_factory: pytest.TempPathFactory, base: Tree, put: Tree, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("layers")
    lower = own_cache(str(folder / "cache")).ensure(DictSource({sha("a"): base}), sha("a"))
    gone = data.draw(st.sets(st.sampled_from(sorted(base)), max_size=3)) if base else set()
    layer = SessionLayer(put, frozenset(gone - put.keys()))
    written = folder / "session"
    written.mkdir()
    fd = os.open(written, os.O_RDONLY)
    size = write_session_layer(fd, layer, lower)
    os.close(fd)

    on_disk = Lower(sha("a"), (*lower.layers, str(written)))
    seed = Seed(lower, layer)
    assert list(on_disk.under("")) == list(seed.under(""))
    for path in base.keys() | put.keys():
        assert on_disk.read(path) == seed.read(path)
        assert on_disk.holds(path) == seed.holds(path)
        assert list(on_disk.under(path)) == list(seed.under(path))
    assert size.size_bytes == sum(map(len, put.values()))


# Writing layers.


def test_a_writer_follows_no_link_and_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    layer = tmp_path / "layer"
    layer.mkdir()
    os.symlink(tmp_path / "out", layer / "linked")
    fd = os.open(layer, os.O_RDONLY)
    writer = LayerWriter(fd)
    try:
        with pytest.raises(OSError, match="linked"):
            writer.write("linked/x.html", b"1")
        writer.write("a/b.html", b"1")
        with pytest.raises(FileExistsError):
            writer.write("a/b.html", b"2")
    finally:
        writer.close()
        os.close(fd)

    assert list((tmp_path / "out").iterdir()) == []
    assert (layer / "a/b.html").read_bytes() == b"1"


def test_a_removal_of_what_was_never_there_does_no_harm(tmp_path: Path) -> None:
    lower = own_cache(str(tmp_path / "cache")).ensure(
        DictSource({sha("a"): {"a/x.html": b"1"}}), sha("a")
    )
    layer = tmp_path / "layer"
    layer.mkdir()
    fd = os.open(layer, os.O_RDONLY)
    write_changes(fd, [("a/none.html", None), ("nowhere/else.html", None)], lower)
    os.close(fd)

    merged = Lower(sha("b"), (*lower.layers, str(layer)))
    assert dict(Seed(merged, NO_LAYER).files()) == {"a/x.html": b"1"}
