"""The write bar over real commits: the head database answers as files in memory do."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.support.bar import STRICT, A, B, corpus, kinds, page
from tests.support.growing import Growing
from tests.support.head import LINK, MAIN, Files, Store

from memhtml.bar.contradictions import compare
from memhtml.bar.judge import judge
from memhtml.corpus.head import open_head
from memhtml.policy import DEFAULT
from memhtml_format.ops import AddLabel, Archive, Move, Op, Put


def over_git(tmp_path: Path, files: Files, *ops: Op) -> list[tuple[str, str | None]]:
    """The findings over a commit with exactly these files."""
    store = Store(str(tmp_path / "store"))
    sha = store.commit(files)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        return kinds(judge(ops, head, DEFAULT, "session"))


BROKEN = b"<p>no memory"
NEW = page("x is new")


@pytest.mark.parametrize(
    ("files", "path", "passes"),
    [
        ({A: BROKEN}, A, True),
        ({A: (LINK, b"elsewhere.html")}, A, False),
        ({f"{A}/note.txt": BROKEN}, A, False),
        ({"areas/inbox": BROKEN}, A, False),
        ({"areas/inbox": (LINK, b"../elsewhere")}, A, False),
        ({"areas": BROKEN}, A, False),
        ({"areas/inbox/b.html": page("b is").encode()}, A, True),
        ({"README.html": BROKEN}, A, True),
        ({"areas/.gitkeep": b""}, "areas/inbox/deep/a.html", True),
    ],
)
def test_file_of_the_tree_stands_in_the_way(
    tmp_path: Path, files: Files, path: str, passes: bool
) -> None:
    assert over_git(tmp_path, files, Put(path, NEW)) == ([] if passes else [("format", path)])


def test_link_at_a_destination_stops_archive_and_move(tmp_path: Path) -> None:
    old, slot, to = page("a is here"), f"archive/2026/{A}", "projects/p/a.html"
    files: Files = {A: old.encode(), slot: (LINK, b"x"), to: (LINK, b"x")}
    found = over_git(tmp_path, files, Archive(A, slot, old), Move(A, to, old), AddLabel(A, "x:y"))
    assert found == [("format", A), ("format", A)]


@pytest.mark.parametrize("seed", range(12))
def test_head_database_and_memory_give_the_same_findings(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    records = {
        path: page(
            f"The owner of part {n % 2} is team {rng.randint(0, 9)}",
            entities=rng.sample(["a:b", "Legacy"], rng.randint(0, 2)),
            links=[("supports", f"/{rng.choice([A, B])}")],
        )
        for n, path in enumerate(
            [A, B, "areas/x.html", "projects/p/a.html", "archive/2026/areas/inbox/a.html"]
        )
    }
    store = Store(str(tmp_path / "store"))
    sha = store.commit({path: html.encode() for path, html in records.items()})
    good = Growing(records, DEFAULT, rng).grow(15)
    shuffled = [*rng.sample(good, len(good)), Put(B, NEW), Put(A, records[B])]
    memory = corpus(records)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert judge(good, head, DEFAULT, "session") == []
        assert compare(good, head) == compare(good, memory)
        found = judge(shuffled, head, STRICT, "session")
    assert found == judge(shuffled, memory, STRICT, "session")
    assert found
