"""The vector cache: its bytes, its writers, and what a crash leaves (spec `retrieval` §20.2)."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.embed import Fixed, vector
from tests.support.session import in_child

from memhtml.embed import cache
from memhtml.embed.cache import Cache, Filling, cache_path, open_cache
from memhtml.errors import StorageError

if TYPE_CHECKING:
    from memhtml.embed.port import Vector

RECORD = 32 + 4 * 2


def key(name: object) -> bytes:
    return sha256(str(name).encode()).digest()


def fill(root: Path, *names: str) -> int:
    vectors = [vector(len(name), at) for at, name in enumerate(names)]
    return Filling(str(root), "m", 2).append([key(name) for name in names], vectors)


def held(root: Path, model: str = "m", dim: int = 2) -> dict[bytes, tuple[float, ...]]:
    found = open_cache(str(root), model, dim)
    if found is None:
        return {}
    with found:
        return {
            digest.tobytes(): tuple(row.tolist())
            for part in found.slices()
            for digest, row in zip(part.hashes, part.vectors, strict=True)
        }


def file_of(root: Path) -> Path:
    return Path(cache_path(str(root), "m", 2))


def test_what_was_stored_is_read_back(tmp_path: Path) -> None:
    assert held(tmp_path) == {}
    assert fill(tmp_path, "a", "bb") == 2
    assert fill(tmp_path, "bb", "ccc") == 1
    assert held(tmp_path) == {key("a"): (1, 0), key("bb"): (2, 1), key("ccc"): (3, 1)}
    assert Filling(str(tmp_path), "m", 2).hashes == {key("a"), key("bb"), key("ccc")}


def test_the_file_is_a_header_line_and_fixed_records(tmp_path: Path) -> None:
    fill(tmp_path, "a")
    assert file_of(tmp_path) == tmp_path / ".memhtml/vectors/m@2.vec"
    header, _, records = file_of(tmp_path).read_bytes().partition(b"\n")
    assert header == b'{"version":1,"model":"m","dim":2}'
    assert records == key("a") + np.array([1, 0], dtype="<f4").tobytes()
    assert Filling(str(tmp_path), "m", 2).size_bytes == len(header) + 1 + RECORD


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("org/model:v1", "org_model_v1@3.vec"),
        ("../../etc", ".._.._etc@3.vec"),
        ("größe ü", "gr__e__@3.vec"),
        ("A-z.0_9", "A-z.0_9@3.vec"),
    ],
)
def test_a_model_name_stays_inside_the_folder(model: str, name: str, tmp_path: Path) -> None:
    assert cache_path(str(tmp_path), model, 3) == str(tmp_path / ".memhtml/vectors" / name)


def test_nothing_stored_makes_an_empty_cache_and_no_search_makes_one(tmp_path: Path) -> None:
    assert open_cache(str(tmp_path), "m", 2) is None
    assert not (tmp_path / ".memhtml").exists()
    filling = Filling(str(tmp_path), "m", 2)
    assert (filling.size_bytes, filling.hashes) == (0, set())
    assert not (tmp_path / ".memhtml").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}\n",
        b"no json\n",
        b"[" * 4000,
        b"\xff\n",
        b'{"version":1,"model":"m","dim":2}',
        b'{"version":2,"model":"m","dim":2}\n',
        b'{"version":1,"model":"other","dim":2}\n',
        b'{"version":1,"model":"m","dim":3}\n',
        b'["version"]\n',
        b"x" * 10_000,
    ],
)
def test_a_wrong_header_is_refused_and_left_alone(content: bytes, tmp_path: Path) -> None:
    place = file_of(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    acts: list[Callable[[], object]] = [
        lambda: open_cache(str(tmp_path), "m", 2),
        lambda: Filling(str(tmp_path), "m", 2),
    ]
    for act in acts:
        with pytest.raises(StorageError) as caught:
            act()
        assert caught.value.reason == "vectors.read"
        assert caught.value.suggestions == (f"rm {place}",)
    assert place.read_bytes() == content


def test_a_cache_replaced_meanwhile_by_something_else_is_not_written(tmp_path: Path) -> None:
    filling = Filling(str(tmp_path), "m", 2)
    place = file_of(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"mine\n")
    with pytest.raises(StorageError) as caught:
        filling.append([key("a")], [vector(1, 2)])
    assert caught.value.reason == "vectors.read"
    assert place.read_bytes() == b"mine\n"


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_a_cache_that_is_no_regular_file_is_refused_and_not_waited_for(
    kind: str, tmp_path: Path
) -> None:
    place = file_of(tmp_path)
    place.parent.mkdir(parents=True)
    target = tmp_path / "elsewhere"
    target.write_bytes(b'{"version":1,"model":"m","dim":2}\n')
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(target)
    with pytest.raises(StorageError) as caught:
        open_cache(str(tmp_path), "m", 2)
    assert caught.value.reason == "vectors.read"
    assert target.read_bytes() == b'{"version":1,"model":"m","dim":2}\n'


@given(cut=st.integers(min_value=1, max_value=RECORD - 1), names=st.integers(0, 4))
def test_a_torn_last_record_is_not_read_and_the_next_writer_cuts_it(
    cut: int, names: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("torn")
    kept = [f"n{at}" for at in range(names)]
    fill(root, *kept, "torn")
    with file_of(root).open("r+b") as file:
        file.truncate(file_of(root).stat().st_size - cut)
    assert held(root).keys() == {key(name) for name in kept}
    before = file_of(root).read_bytes()
    assert fill(root, "after") == 1
    assert held(root).keys() == {key(name) for name in (*kept, "after")}
    assert file_of(root).read_bytes().startswith(before[: len(before) - (RECORD - cut)])


def test_slices_are_small_and_cover_every_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{at}" for at in range(25)]
    fill(tmp_path, *names)
    monkeypatch.setattr(cache, "SLICE_BYTES", 10 * RECORD + 5)
    found = open_cache(str(tmp_path), "m", 2)
    assert found is not None
    with found:
        parts = [[row.tobytes() for row in part.hashes] for part in found.slices()]
        assert [len(part) for part in parts] == [10, 10, 5]
        assert [digest for part in parts for digest in part] == [key(name) for name in names]
        assert [len(part.hashes) for part in found.slices(20)] == [5]
        assert list(found.slices(25)) == []
        assert found.read_s > 0


def test_a_record_wider_than_a_slice_is_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "a", "b")
    monkeypatch.setattr(cache, "SLICE_BYTES", 1)
    assert held(tmp_path).keys() == {key("a"), key("b")}


def test_a_reader_goes_on_when_a_writer_takes_its_records_back(tmp_path: Path) -> None:
    fill(tmp_path, "a", "b")
    found = open_cache(str(tmp_path), "m", 2)
    assert found is not None
    with found:
        with file_of(tmp_path).open("r+b") as file:
            file.truncate(file_of(tmp_path).stat().st_size - RECORD - 3)
        assert [len(part.hashes) for part in found.slices()] == []


def test_an_open_cache_does_not_see_what_is_appended_later(tmp_path: Path) -> None:
    fill(tmp_path, "a")
    found = open_cache(str(tmp_path), "m", 2)
    assert found is not None
    with found:
        fill(tmp_path, "b")
        assert (found.count, sum(len(part.hashes) for part in found.slices())) == (1, 1)


def append_many(root: Path, mark: str, rounds: int) -> None:
    filling = Filling(str(root), "m", 2)
    for at in range(rounds):
        names = [f"{mark}{at}.{step}" for step in range(5)] + [f"both{at}"]
        vectors = [vector(at, step) for step in range(6)]
        filling.append([key(name) for name in names], vectors)


def test_writers_at_once_lose_and_repeat_nothing(tmp_path: Path) -> None:
    children = []
    for mark in "xyz":
        pid = os.fork()
        if pid == 0:
            append_many(tmp_path, mark, 40)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    found = open_cache(str(tmp_path), "m", 2)
    assert found is not None
    with found:
        assert found.count == 40 * (3 * 5 + 1) == len(held(tmp_path))


def test_a_writer_that_is_killed_leaves_whole_records(tmp_path: Path) -> None:
    fill(tmp_path, "first")
    survived = 0
    for at in range(12):

        def write(mark: str = f"k{at}.") -> None:
            signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.002 * len(mark))
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            append_many(tmp_path, mark, 10_000)

        assert in_child(write) == -signal.SIGKILL
        now = held(tmp_path)
        assert key("first") in now
        assert len(now) >= survived
        survived = len(now)
        assert fill(tmp_path, f"after{at}") == 1
        survived += 1
    assert len(held(tmp_path)) == survived


def test_a_writer_killed_inside_a_write_leaves_a_tear_that_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "first")

    def torn(_fd: int, data: bytes) -> None:
        os.write(_fd, data[: RECORD + 7])
        os.kill(os.getpid(), signal.SIGKILL)

    def write() -> None:
        monkeypatch.setattr("memhtml.store.atomic.write_all", torn)
        fill(tmp_path, "whole", "half")

    assert in_child(write) == -signal.SIGKILL
    assert held(tmp_path).keys() == {key("first"), key("whole")}
    assert fill(tmp_path, "half") == 1
    assert held(tmp_path).keys() == {key("first"), key("whole"), key("half")}


@pytest.fixture
def full_disk(tmp_path: Path) -> Path:
    """A file system of its own with room for little."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("this user cannot mount a small file system")
    return place


def wide(root: Path, names: range) -> None:
    vectors: list[Vector] = [np.full(256, at, dtype=np.float32) for at in names]
    Filling(str(root), "m", 256).append([key(at) for at in names], vectors)


def test_a_full_disk_loses_nothing_that_was_there(full_disk: Path) -> None:
    try:
        wide(full_disk, range(10))
        with pytest.raises(StorageError) as caught:
            wide(full_disk, range(10, 100))
        assert caught.value.reason == "vectors.write"
        assert held(full_disk, dim=256).keys() == {key(at) for at in range(10)}
        wide(full_disk, range(10, 12))
        assert held(full_disk, dim=256).keys() == {key(at) for at in range(12)}
    finally:
        subprocess.run(["umount", str(full_disk)], check=True)


def test_a_file_size_limit_loses_nothing_that_was_there(tmp_path: Path) -> None:
    fill(tmp_path, "a", "b")

    def write() -> None:
        limit = file_of(tmp_path).stat().st_size + RECORD + 9
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(StorageError) as caught:
            fill(tmp_path, "c", "d", "e")
        assert caught.value.reason == "vectors.write"

    before = file_of(tmp_path).read_bytes()
    assert in_child(write) == 0
    assert file_of(tmp_path).read_bytes() == before


def test_a_folder_that_cannot_be_made_is_a_write_failure(tmp_path: Path) -> None:
    (tmp_path / ".memhtml").write_text("in the way")
    with pytest.raises(StorageError) as caught:
        fill(tmp_path, "a")
    assert caught.value.reason == "vectors.write"


def test_a_lock_that_is_kept_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    fill(tmp_path, "a")
    monkeypatch.setattr(cache, "LOCK_WAIT_S", 0.05)
    with (tmp_path / ".memhtml/vectors/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StorageError) as caught:
            fill(tmp_path, "b")
        assert caught.value.reason == "vectors.write"
        assert held(tmp_path).keys() == {key("a")}
    assert fill(tmp_path, "b") == 1


def test_a_folder_deleted_under_a_writer_is_made_again(tmp_path: Path) -> None:
    filling = Filling(str(tmp_path), "m", 2)
    filling.append([key("a")], [vector(1, 1)])
    file_of(tmp_path).unlink()
    assert filling.append([key("b")], [vector(2, 2)]) == 1
    assert held(tmp_path) == {key("b"): (2, 2)}
    assert filling.hashes == {key("b")}


class Unsure(Fixed):
    """A model that has not said its width yet."""

    known_dim: int | None = None


def test_whether_a_cache_may_be_there_is_told_without_asking_the_model(tmp_path: Path) -> None:
    sure, unsure = Fixed(model_id="m"), Unsure(model_id="m", failing="must not be asked")
    assert not cache.may_exist(str(tmp_path), sure)
    assert not cache.may_exist(str(tmp_path), unsure)
    fill(tmp_path, "a")
    assert cache.may_exist(str(tmp_path), sure)
    assert cache.may_exist(str(tmp_path), unsure)
    assert not cache.may_exist(str(tmp_path), Fixed(model_id="m", other=(0.0, 0.0, 0.0)))
    assert not cache.may_exist(str(tmp_path), Unsure(model_id="m@2"))
    assert sure.asked == unsure.asked == []


def test_a_header_names_any_model(tmp_path: Path) -> None:
    model = 'odd "name"\n/ü'
    Filling(str(tmp_path), model, 2).append([key("a")], [vector(1, 2)])
    place = Path(cache_path(str(tmp_path), model, 2))
    assert json.loads(place.read_bytes().split(b"\n")[0])["model"] == model
    assert held(tmp_path, model) == {key("a"): (1, 2)}
    with pytest.raises(StorageError):
        open_cache(str(tmp_path), model.replace("/", ":"), 2)


def test_a_cache_is_closed_with_its_block(tmp_path: Path) -> None:
    fill(tmp_path, "a")
    found = open_cache(str(tmp_path), "m", 2)
    assert isinstance(found, Cache)
    with found:
        pass
    with pytest.raises(StorageError):
        list(found.slices())
