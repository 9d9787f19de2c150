"""Builds an index of facts and measures searches on it: what the quality scripts share.

The path is the real one: files are rendered, read and projected as a pass over a commit does it,
and questions go through `memhtml.retrieve.search`.
"""

from __future__ import annotations

import hashlib
import html
import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tests.support.questions import Fact, Question
from tests.support.reads import link
from tests.support.retrieve import NOW_S, memory

from memhtml.index import vectors as stored
from memhtml.index.database import Index
from memhtml.index.projection import write_detail
from memhtml.index.sqlite import writing
from memhtml.retrieve import vectors
from memhtml.retrieve.arms import lexical
from memhtml.retrieve.query import match_of
from memhtml.retrieve.scope import Scope, make_filter
from memhtml.retrieve.search import fused_pool, reading, search
from memhtml_format.record import read_detail

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder

K = 10
FOLDERS = 400
NO_HALF = -1
AT = "2026-06-01T00:00:00Z"

Order = Callable[[Index, Question], list[str]]
Scores = dict[int, float]


class Score(NamedTuple):
    """`mrr` and `recall` at 10 over `asked` questions; `query_ms` is the mean of a search."""

    mrr: float
    recall: float
    asked: int
    query_ms: float


def path_of(fact_id: str) -> str:
    """Where a fact's record lies; ids may be anything, and folders stay small."""
    name = hashlib.sha256(fact_id.encode()).hexdigest()[:16]
    return f"areas/facts-{int(name[:4], 16) % FOLDERS:03}/{name}.html"


def page_of(fact: Fact) -> str:
    """The record of a fact."""
    escaped = (html.escape(value) for value in fact.entities)
    head = "".join(f'<meta name="memhtml-entity" content="{value}">\n' for value in escaped)
    if fact.supersedes:
        head += link("supersedes", path_of(fact.supersedes))
    claim, title = html.escape(fact.claim), html.escape(fact.title)
    return memory(claim, title=title, updated=fact.at, head=head)


def add(index: Index, facts: Iterable[Fact], paths: dict[str, str]) -> None:
    """Project the records of facts; `paths` gains the path of each by its id."""
    with writing(index.conn):
        for fact in facts:
            paths[fact.id] = path_of(fact.id)
            reading_ = read_detail(paths[fact.id], page_of(fact).encode())
            assert reading_.detail is not None, (fact, reading_.problems)
            write_detail(index.conn, reading_.detail, at=AT)


def embed(index: Index, embedder: Embedder | None) -> None:
    """Give every chunk its vector."""
    if embedder is not None:
        stored.fill(index.conn, embedder, None, None)


def searched(embedder: Embedder | None) -> Order:
    """The first ten of a search, all steps taken."""

    def order(index: Index, question: Question) -> list[str]:
        answer = search(index, question.text, Scope(), K, embedder=embedder, now_s=NOW_S)
        assert answer["degraded"] is (embedder is None)
        return [hit["path"] for hit in answer["hits"]]

    return order


def folded(embedder: Embedder | None) -> Order:
    """The first ten of the fold of all arms alone, for comparison."""

    def order(index: Index, question: Question) -> list[str]:
        near = vectors.plane(index.conn, question.text, embedder, 0.95)
        with reading(index.conn):
            pool = fused_pool(index, question.text, Scope(), near, K, now_s=NOW_S)
        return [each.path for each in pool.candidates]

    return order


def baselines(embedder: Embedder | None) -> dict[str, Order]:
    """What the arms that read the query find alone and, with two of them, by their plain mixes."""
    found: dict[str, Order] = {"words": _mixed(embedder, lambda words, _near: words)}
    if embedder is not None:
        found["vector"] = _mixed(embedder, lambda _words, near: near)
        found["rrf"] = _mixed(embedder, lambda words, near: _added(_by_rank(words), _by_rank(near)))
        found["mix"] = _mixed(embedder, lambda words, near: _added(_scaled(words), _scaled(near)))
    return found


def _mixed(embedder: Embedder | None, mix: Callable[[Scores, Scores], Scores]) -> Order:
    def order(index: Index, question: Question) -> list[str]:
        scope = make_filter(index.conn, Scope())
        near = vectors.plane(index.conn, question.text, embedder, 0.95)
        match = match_of(question.text)
        words = dict(lexical(index.conn, match, scope)) if match else {}
        nearest = {} if near.query is None else dict(vectors.nearest(index.conn, near, scope))
        mixed = mix(words, nearest)
        best = sorted(mixed, key=lambda number: (-mixed[number], number))[:K]
        paths = dict(index.conn.execute("SELECT id, path FROM files"))
        return [paths[number] for number in best]

    return order


def _by_rank(scores: Scores) -> Scores:
    return {number: 1 / (60 + place) for place, number in enumerate(scores, 1)}


def _scaled(scores: Scores) -> Scores:
    """To 0 for the lowest and 1 for the highest."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {number: (score - low) / ((high - low) or 1.0) for number, score in scores.items()}


def _added(one: Scores, other: Scores) -> Scores:
    return {number: one.get(number, 0.0) + other.get(number, 0.0) for number in one | other}


def measure(
    index: Index, questions: Sequence[Question], paths: dict[str, str], order: Order
) -> list[tuple[Question, int | None]]:
    """The rank of the first right answer of each question, None when it is not among the ten."""
    found = []
    for question in questions:
        right = {paths[answer] for answer in question.answers}
        ranks = [place for place, path in enumerate(order(index, question), 1) if path in right]
        found.append((question, min(ranks, default=None)))
    return found


def score(ranked: Iterable[tuple[Question, int | None]], spent_s: float = 0.0) -> Score:
    """The score of questions with their ranks."""
    ranks = [rank for _question, rank in ranked]
    asked = max(1, len(ranks))
    hits = [rank for rank in ranks if rank is not None]
    mrr = sum(1 / rank for rank in hits) / asked
    return Score(mrr, len(hits) / asked, len(ranks), 1_000 * spent_s / asked)


def timed(
    index: Index, questions: Sequence[Question], paths: dict[str, str], order: Order
) -> tuple[list[tuple[Question, int | None]], float]:
    """As `measure`, with the seconds it took."""
    started = time.perf_counter()
    found = measure(index, questions, paths, order)
    return found, time.perf_counter() - started


def read_facts(path: str) -> list[Fact]:
    """Facts of a file: JSON lines with `id`, `text`, and if known `title`, `entities`, `at` (an
    isoSecond) and `supersedes` (an id of an earlier line)."""
    found = []
    with open(path, encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            item = json.loads(line)
            text = item["text"]
            found.append(
                Fact(
                    str(item["id"]),
                    item.get("title") or " ".join(text.split()[:8]),
                    text,
                    tuple(item.get("entities", ())),
                    item.get("at", AT),
                    item.get("supersedes"),
                )
            )
    return found


def read_questions(path: str) -> list[Question]:
    """Questions of a file: JSON lines with `text`, `answers` (ids) and if known `kind`."""
    with open(path, encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines if line.strip()]
    return [
        Question(item["text"], tuple(map(str, item["answers"])), item.get("kind", "any"), NO_HALF)
        for item in items
    ]
