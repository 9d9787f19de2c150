"""Random sessions whose logs pass the write bar, grown from what is there."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.support.bar import A, B, C, corpus, page

from memhtml.bar.judge import judge
from memhtml.bar.readings import Readings
from memhtml.corpus.fold import fold
from memhtml.corpus.memory import MemoryCorpus
from memhtml.policy import Policy
from memhtml_format.ops import (
    AddLabel,
    AddLink,
    Archive,
    DropLabel,
    DropLink,
    Move,
    Op,
    Put,
)
from memhtml_format.paths import archive_path, is_archived

AT = "2026-08-09T10:11:12Z"
LIVE = [
    A,
    B,
    C,
    "areas/x.html",
    "areas/x.html/y.html",
    "projects/p/a.html",
    "resources/t/b.html",
]
SLOTS = [f"archive/{year}/{path}" for year in ("2026", "2026.2", "2025") for path in LIVE[:3]]
RELS = ["supports", "supersedes", "contradicts", "relates_to"]
ENTITIES = ["a:b", "c:d", "Legacy"]


def folded(records: dict[str, str], ops: Sequence[Op]) -> MemoryCorpus:
    """The corpus after the log landed."""
    files = {path: html.encode() for path, html in records.items()}
    outcome = fold(ops, files.get, AT)
    kept = {path: data for path, data in files.items() if path not in outcome.gone}
    return MemoryCorpus(kept | outcome.files)


class Growing:
    """A session that appends operations one by one, each only when the bar has no finding.

    Offers are drawn from what is there now, so that most of them are sensible; a move brings the
    repairs of the edges to it along.
    """

    def __init__(self, records: dict[str, str], policy: Policy, rng: Random) -> None:
        self.records = records
        self.policy = policy
        self.rng = rng
        self.base = corpus(records)
        self.readings = Readings()
        self.ops: list[Op] = []

    def grow(self, steps: int) -> list[Op]:
        """The log after `steps` offers."""
        for _ in range(steps):
            self._take(self._offer(folded(self.records, self.ops)))
        return self.ops

    def _take(self, offered: Sequence[Op]) -> None:
        ops = [*self.ops, *offered]
        if not judge(ops, self.base, self.policy, "session", readings=self.readings):
            self.ops = ops

    def _offer(self, now: MemoryCorpus) -> list[Op]:
        rng = self.rng
        live = [path for path in now.record_paths() if not is_archived(path)]
        path = rng.choice([*live, *live, *LIVE])
        kind = rng.choice(["put", "link", "unlink", "label", "unlabel", "archive", "move"])
        if kind == "put":
            return [Put(rng.choice([*LIVE, *SLOTS]), self._page())]
        if kind == "link":
            return [AddLink(path, rng.choice(RELS), f"/{rng.choice([*live, *LIVE, *SLOTS])}")]
        if kind == "unlink":
            return [DropLink(path, *link) for link in now.links(path)[:1]]
        if kind == "label":
            return [AddLabel(path, rng.choice(ENTITIES))]
        if kind == "unlabel":
            return [DropLabel(path, value) for value in now.entities(path)[:1]]
        html = (now.read(path) or b"").decode()
        if kind == "archive":
            year, slot = rng.choice([2025, 2026]), rng.choice([1, 1, 2, 3])
            return [Archive(path, archive_path(path, year, slot), html)]
        return self._move(now, path, rng.choice(LIVE), html)

    def _move(self, now: MemoryCorpus, path: str, to: str, html: str) -> list[Op]:
        repairs: list[Op] = []
        for holder, link in now.holders(path):
            repairs.append(DropLink(holder, *link))
            if holder != path:
                repairs.append(AddLink(holder, link.rel, f"/{to}"))
        move = Move(path, to, html)
        return [*repairs, move] if self.rng.random() < 0.5 else [move, *repairs]

    def _page(self) -> str:
        rng = self.rng
        links = [(rng.choice(RELS), f"/{rng.choice([*LIVE, *SLOTS])}") for _ in range(2)]
        return page(
            f"The owner of part {rng.randint(0, 1)} is team {rng.randint(0, 9)}",
            kind=rng.choice(["semantic", "verdict", "episodic"]),
            entities=rng.sample(ENTITIES, rng.randint(0, 2)),
            links=links[: rng.randint(0, 2)],
        )
