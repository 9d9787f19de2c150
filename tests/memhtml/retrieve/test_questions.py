"""The generated question set is what the figures of `docs/retrieval.md` rest on."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.support import measuring
from tests.support.questions import CLASSES, crowded, distractors, generated

from memhtml.index.database import open_index


def test_the_set_is_large_and_the_same_every_time() -> None:
    facts, questions = generated()
    assert (facts, questions) == generated()
    assert len(facts) >= 2_500 and len(questions) >= 1_300
    assert (facts, questions) != generated(seed=1)


def test_every_question_has_answers_among_distinct_facts() -> None:
    facts, questions = generated()
    known = {fact.id for fact in facts}
    assert len(known) == len({fact.claim for fact in facts}) == len(facts)
    assert all(question.answers and known.issuperset(question.answers) for question in questions)
    assert {question.kind for question in questions} == set(CLASSES)


def test_both_halves_have_every_class_and_no_words_in_common() -> None:
    facts, questions = generated()
    halves = [[each for each in questions if each.half == half] for half in (0, 1)]
    assert min(map(len, halves)) > 600
    assert {each.kind for each in halves[0]} == {each.kind for each in halves[1]} == set(CLASSES)
    answered = [{answer for each in half for answer in each.answers} for half in halves]
    far = [{each.text for each in half if each.kind == "far"} for half in halves]
    assert not far[0] & far[1]
    assert len(answered[0] & answered[1]) < 0.05 * len(facts)


def test_a_crowded_set_has_two_people_where_eight_were() -> None:
    facts, questions = crowded()
    assert len(facts) == len(generated()[0])
    assert sum("Noemi" in fact.claim for fact in facts) > 200
    assert not any("Paloma" in fact.claim or "Paloma" in fact.title for fact in facts)
    assert len(questions) > 200


def test_distractors_are_about_nobody_of_the_set() -> None:
    claims = {fact.claim for fact in generated()[0]}
    more = list(itertools.islice(distractors(), 2_000))
    assert len({fact.id for fact in more}) == 2_000
    assert not claims & {fact.claim for fact in more}
    assert more == list(itertools.islice(distractors(), 2_000))


def test_a_search_over_the_set_finds_more_than_the_fold_alone(tmp_path: Path) -> None:
    facts, questions = generated()
    wanted = questions[::16]
    needed = {answer for question in wanted for answer in question.answers}
    kept = [fact for at, fact in enumerate(facts) if fact.id in needed or at % 3 == 0]
    ids = {fact.id for fact in kept}
    kept = [fact if fact.supersedes in ids else fact._replace(supersedes=None) for fact in kept]
    paths: dict[str, str] = {}
    with open_index(str(tmp_path)) as index:
        measuring.add(index, kept, paths)
        fold = measuring.score(measuring.measure(index, wanted, paths, measuring.folded(None)))
        found = measuring.score(measuring.measure(index, wanted, paths, measuring.searched(None)))
    assert found.asked == len(wanted) > 90
    assert found.mrr > fold.mrr + 0.05 and found.recall > fold.recall
