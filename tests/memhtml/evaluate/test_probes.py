"""Which memories are probed, with what words, among which twins."""

from __future__ import annotations

from itertools import pairwise

import pytest

from memhtml.evaluate import twins
from memhtml.evaluate.generator import Writer, generate, page
from memhtml.evaluate.probes import Probe, choose, query_of
from memhtml_format.record import read_detail

NOW_S = 1_795_996_800


def probes(size: int, count: int) -> list[Probe]:
    writer = Writer()
    return choose(generate(5, NOW_S, size, writer), count, writer)


@pytest.fixture(scope="module")
def chosen() -> list[Probe]:
    return probes(200, 36)


@pytest.mark.parametrize(
    ("claim", "query"),
    [
        ("The relay limit is 11.", "relay limit 11"),
        ("It does not take 1.5 hours!", "take 1.5 hours"),
        ("A b c d e f g h i j k l m n o p.", "b c d e f g h i j k l m"),
    ],
)
def test_a_query_is_the_telling_words_of_a_claim(claim: str, query: str) -> None:
    assert query_of(claim) == query


def test_probes_stand_at_an_even_stride_over_facts_and_procedures(chosen: list[Probe]) -> None:
    assert len(chosen) == 36
    assert {probe.target.draft.memory_type for probe in chosen} == {"semantic", "procedural"}
    writer = Writer()
    fit = [
        memory.path
        for memory in generate(5, NOW_S, 200, writer).base
        if memory.draft.memory_type in ("semantic", "procedural")
    ]
    places = [fit.index(probe.target.path) for probe in chosen]
    gaps = {after - before for before, after in pairwise(places)}
    assert gaps <= {len(fit) // 36, len(fit) // 36 + 1}


def test_a_twin_lies_beside_its_target_and_is_one_day_newer(chosen: list[Probe]) -> None:
    for probe in chosen:
        assert 1 <= len(probe.controls) <= 3
        for control in probe.controls:
            twin, target = control.memory, probe.target
            assert twin.at_s - target.at_s == 86_400
            assert twin.path.rpartition("/")[0] == target.path.rpartition("/")[0]
            assert twin.path != target.path
            assert (twin.draft.title, twin.draft.tags) == (target.draft.title, target.draft.tags)
            assert twins.diverges(control.family, target.claim, twin.claim)
            found = read_detail(twin.path, page(twin)).detail
            assert found is not None and found.record.claim == twin.claim


def test_every_family_is_among_the_twins(chosen: list[Probe]) -> None:
    families = [control.family for probe in chosen for control in probe.controls]
    assert all(families.count(family) >= 15 for family in twins.FAMILIES)


def test_no_more_probes_are_made_than_there_are_facts() -> None:
    assert len(probes(10, 100)) == 6
    assert [probe.target.draft.memory_type for probe in probes(1, 36)] == ["semantic"]
