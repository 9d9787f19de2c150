"""The harvest costs what changed: it asks the seed for little, and loads no parser for nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from tests.support.harvest import Doc, tree

from memhtml_format import record
from memhtml_harvest.diff import harvest
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

    assert len(result.rejected) == MANY
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
