"""The harvest costs what changed: it asks the seed for little, and loads no parser for nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from tests.support.harvest import Doc, judge, summary, tree

from memhtml_format import record
from memhtml_harvest import budget
from memhtml_harvest.budget import HARVEST_BYTES_CAP
from memhtml_harvest.diff import harvest
from memhtml_harvest.report import REJECTED_CAP
from memhtml_harvest.rows import FILE_BYTES_CAP
from memhtml_harvest.seed import Entry, FileEntry, MapSeed

MANY = 100_000


class Counted(MapSeed):
    """A seed that counts what it is asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.asked: Counter[str] = Counter()

    def read(self, path: str) -> bytes | None:
        self.asked["read"] += 1
        return super().read(path)

    def content_hash(self, path: str) -> str | None:
        self.asked["content_hash"] += 1
        return super().content_hash(path)


def test_deleting_everything_asks_the_seed_nothing() -> None:
    seed = Counted({f"areas/n{n}.html": b"" for n in range(MANY)})
    vanished = [f"areas/n{n}.html" for n in range(MANY)]

    result = harvest({}, vanished, seed, scope="session")

    assert len(result.rejected) == REJECTED_CAP + 1
    assert f"and {MANY - REJECTED_CAP - 1} more" in result.rejected[-1].reason
    assert not seed.asked


def test_deleting_beside_new_files_reads_only_what_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: Counter[bytes] = Counter()
    true_hash = record.content_hash

    def counting(data: bytes) -> str | None:
        hashed[data] += 1
        return true_hash(data)

    files = {f"areas/n{n}.html": Doc(f"Number {n}.").data for n in range(50)}
    seed = Counted(files)
    for path in files:
        seed.content_hash(path)
    seed.asked.clear()
    monkeypatch.setattr(record, "content_hash", counting)
    copy, other = files["areas/n7.html"], Doc("Something else.").data
    changed = tree({"projects/p/a.html": copy, "projects/p/b.html": other})

    result = harvest(changed, files, seed, scope="session")

    assert [op.kind for op in result.ops] == ["put", "move"]
    assert hashed == {copy: 1, other: 1}
    assert seed.asked["content_hash"] == len(files)
    assert seed.asked["read"] == len(changed) + 1


def test_untouched_bytes_are_compared_without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(data: bytes) -> str | None:
        raise AssertionError("an unchanged file was parsed")

    monkeypatch.setattr(record, "content_hash", forbidden)
    files = {f"areas/n{n}.html": Doc(f"Number {n}.").data for n in range(20)}
    changed: dict[bytes, Entry] = {p.encode(): FileEntry(data) for p, data in files.items()}

    assert harvest(changed, (), MapSeed(files), scope="session") == ((), ())


class Sparse(FileEntry):
    """A file of many zeros that counts the bytes it gave out."""

    given_bytes = 0

    def read(self, limit: int) -> bytes:
        data = super().read(limit)
        Sparse.given_bytes += len(data)
        return data


def test_files_that_state_more_than_the_total_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Sparse, "given_bytes", 0)
    sparse: dict[bytes, Entry] = {
        f"areas/n{n:04}.html".encode(): Sparse(size_bytes=FILE_BYTES_CAP) for n in range(3_000)
    }

    result = harvest(sparse, (), MapSeed({}), scope="session")

    assert Sparse.given_bytes == HARVEST_BYTES_CAP
    assert [op.path for op in result.ops] == [f"areas/n{n:04}.html" for n in range(64)]
    first = result.rejected[0]
    assert (first.path, first.code) == ("areas/n0064.html", "too-large")
    assert f"{HARVEST_BYTES_CAP} bytes in total" in first.reason


def test_total_is_the_callers_and_smaller_files_still_fit() -> None:
    files = tree({"areas/a.html": b"12345", "areas/b.html": b"123456", "areas/c.html": b"12345"})

    result = harvest(files, (), MapSeed({}), scope="session", bytes_cap=10)

    assert summary(result) == (
        ["put areas/a.html", "put areas/c.html"],
        ["too-large areas/b.html"],
    )


def test_files_that_are_never_read_cost_nothing_of_the_total() -> None:
    files = tree({"a.txt": b"x" * 50, "areas/.git/x.html": b"x" * 50, "areas/b.html": b"x" * 10})

    result = harvest(files, (), MapSeed({}), scope="session", bytes_cap=10)

    assert summary(result)[0] == ["put areas/b.html"]


def test_head_edits_of_very_many_links_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "HEAD_OPS_CAP", 5)
    paths = [f"areas/n{n}.html" for n in range(3)]
    before = {path: Doc(f"Fact of {path}.") for path in paths}
    links = tuple(("supports", f"/areas/t{n}.html") for n in range(3))
    after = {path: doc._replace(links=links) for path, doc in before.items()}
    after[paths[2]] = before[paths[2]]._replace(entities=("team:x", "team:y"))

    ops, rejected = summary(judge(before, after))

    assert [op.split()[:2] for op in ops] == [["link", paths[0]]] * 3 + [["label", paths[2]]] * 2
    assert rejected == [f"too-large {paths[1]}"]


class TooLate(Exception):
    """What a caller's deadline raises."""


def late_after(calls: int) -> Callable[[], None]:
    """A check that raises when it was asked that often."""
    left = iter(range(calls))

    def check() -> None:
        if next(left, None) is None:
            raise TooLate

    return check


def test_deadline_is_looked_at_for_each_file_and_each_vanished_path() -> None:
    doc = Doc()
    changed, gone = tree({"areas/b.html": doc, "areas/c.html": Doc("More.")}), ["areas/a.html"]
    seed = MapSeed({"areas/a.html": doc.data})
    # Two files, one vanished path, and the article of each new file for it.
    result = harvest(changed, gone, seed, scope="session", check=late_after(5))

    assert summary(result)[0] == ["put areas/c.html", "move areas/a.html areas/b.html"]
    for calls in range(5):
        with pytest.raises(TooLate):
            harvest(changed, gone, seed, scope="session", check=late_after(calls))


def test_empty_harvest_loads_no_parser() -> None:
    program = (
        "import sys\n"
        "from memhtml_harvest.diff import harvest\n"
        "from memhtml_harvest.seed import MapSeed\n"
        "assert harvest({}, (), MapSeed({}), scope='session') == ((), ())\n"
        "heavy = ('selectolax', 'memhtml_format.html', 'dataclasses', 'pathlib', 'subprocess')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
