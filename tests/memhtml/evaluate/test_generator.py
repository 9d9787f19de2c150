"""The generated memories: the shapes the gate needs, and nothing that chance may change."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from tests.support.command import ROOTS

from memhtml.evaluate import wording
from memhtml.evaluate.chance import Chance
from memhtml.evaluate.generator import Corpus, Writer, generate, page
from memhtml_format.paths import href_target
from memhtml_format.record import read_detail

SEED = 20260802
NOW_S = 1_795_996_800
DIGEST = (
    "import sys, hashlib; sys.path[:0] = sys.argv[1:]\n"
    "from memhtml.evaluate.generator import Writer, generate, page\n"
    f"corpus = generate({SEED}, {NOW_S}, 60, Writer())\n"
    "parts = [m.path.encode() + page(m) for m in corpus.base]\n"
    "parts += [repr(corpus.access).encode(), repr(corpus.archived).encode()]\n"
    "print(hashlib.sha256(b''.join(parts)).hexdigest())\n"
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(SEED, NOW_S, 200, Writer())


def test_a_corpus_has_the_shape_of_a_used_store(corpus: Corpus) -> None:
    types = {memory.draft.memory_type for memory in corpus.base}
    assert len(corpus.base) == 200
    assert len(types) == 9 and "task" not in types
    assert {memory.draft.tags[0] for memory in corpus.base} == {
        topic.tag for topic in wording.TOPICS
    }
    assert len(corpus.people) == 5
    assert 5 <= len(corpus.archived) <= 20
    assert 100 <= len(corpus.access) <= 140
    assert sum(bool(memory.draft.links) for memory in corpus.base) > 40


def test_every_file_is_a_record_that_says_what_was_drawn(corpus: Corpus) -> None:
    for memory in (*corpus.base, *corpus.people):
        reading = read_detail(memory.path, page(memory))
        assert reading.detail is not None and not reading.warnings
        assert reading.detail.record.claim == memory.claim
    for path, data in corpus.archived:
        found = read_detail(path, data).detail
        assert found is not None
        assert found.record.archived and found.superseded_by is not None


def test_claims_paths_and_articles_are_distinct(corpus: Corpus) -> None:
    memories = (*corpus.base, *corpus.people)
    assert len({memory.claim for memory in memories}) == len(memories)
    assert len({memory.path for memory in memories}) == len(memories)
    hashes = [read_detail(each.path, page(each)).detail for each in memories]
    assert len({each.record.content_hash for each in hashes if each}) == len(memories)


def test_every_edge_leads_to_a_file_of_the_corpus(corpus: Corpus) -> None:
    known = {memory.path for memory in (*corpus.base, *corpus.people)}
    known |= {path for path, _data in corpus.archived}
    targets = {href_target(href) for memory in corpus.base for _rel, href in memory.draft.links}
    assert targets <= known
    rels = {rel for memory in corpus.base for rel, _href in memory.draft.links}
    assert {"supersedes", "about_person", "relates_to"} <= rels


def test_everything_was_written_and_read_before_now(corpus: Corpus) -> None:
    for memory in (*corpus.base, *corpus.people):
        assert NOW_S - 401 * 86_400 <= memory.at_s <= NOW_S - 3 * 86_400
    written = {memory.path: memory.at_s for memory in corpus.base}
    for row in corpus.access:
        assert written[row.path] <= row.last_s < NOW_S
        assert row.reads >= 1 and -1 <= row.outcome <= 1 and row.reinforced <= row.reads


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_corpus_does_not_depend_on_the_order_of_sets(hash_seed: str) -> None:
    made = subprocess.run(
        [sys.executable, "-c", DIGEST, *ROOTS],
        env={"PYTHONHASHSEED": hash_seed, "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    )
    corpus = generate(SEED, NOW_S, 60, Writer())
    parts = [memory.path.encode() + page(memory) for memory in corpus.base]
    parts += [repr(corpus.access).encode(), repr(corpus.archived).encode()]
    assert made.stdout.strip() == hashlib.sha256(b"".join(parts)).hexdigest()


def test_another_seed_draws_another_corpus() -> None:
    claims = [
        [memory.claim for memory in generate(seed, NOW_S, 20, Writer()).base] for seed in (1, -1)
    ]
    assert claims[0] != claims[1]


def test_claims_stay_distinct_when_the_words_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "PLACES", wording.PLACES[:1])
    monkeypatch.setattr(wording, "TOPICS", wording.TOPICS[:5])
    monkeypatch.setattr(wording, "PARTICIPLES", wording.PARTICIPLES[:1])
    corpus = generate(SEED, NOW_S, 1200, Writer())
    assert len({memory.claim for memory in corpus.base}) == 1200


def test_a_draw_is_the_same_everywhere() -> None:
    chance = Chance(7)
    assert [chance.below(1000) for _ in range(5)] == [107, 660, 959, 267, 107]
    assert "".join(chance.pick("abc") for _ in range(5)) == "acbca"
    assert [chance.percent(50) for _ in range(5)] == [True, True, True, False, False]
