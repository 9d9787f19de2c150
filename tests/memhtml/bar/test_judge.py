"""The walk as a whole: cap, order, worked cases (spec `write-bar` §3, §4.2, §10)."""

from __future__ import annotations

import time

import pytest
from tests.support.bar import STRICT, A, B, C, corpus, judged, kinds, page

from memhtml.bar.judge import REASON_CHARS, REASONS_CAP, judge
from memhtml.bar.readings import Readings
from memhtml.policy import DEFAULT
from memhtml_format import html
from memhtml_format import violations as shapes
from memhtml_format.ops import AddLabel, AddLink, Archive, Move, Op, Put
from memhtml_format.violations import Violation, sentence

OLD = page("the cache ttl is five")
TWIN = f"archive/2026/{A}"
TWIN_2 = f"archive/2026.2/{A}"
NONE = "areas/inbox/none.html"


def puts(count: int) -> list[Op]:
    """As many new facts."""
    return [Put(f"areas/inbox/n{n}.html", page(f"number {n} is here")) for n in range(count)]


def test_more_operations_than_the_cap_are_one_violation_alone() -> None:
    found = judged(corpus({}), *puts(200), Put(".memhtml/x", "<p>"))
    assert found == [Violation("batch-cap", held=201, cap=200)]
    text = sentence(found[0])
    assert "201" in text
    assert "200" in text


def test_exactly_the_cap_passes() -> None:
    assert judged(corpus({}), *puts(200)) == []


def test_an_empty_log_has_no_violation_and_asks_nothing() -> None:
    base = corpus({A: OLD})
    assert judged(base) == []
    assert base.tree_questions == []


def test_findings_follow_the_log() -> None:
    base = corpus({A: OLD})
    found = judged(
        base,
        AddLabel(B, "x:y"),
        Put(C, page("the cache ttl is five")),
        Put("areas/arcs/z.html", page("the cache ttl is five")),
        Put(A, page("the cache ttl is ten")),
        AddLink(B, "supports", f"/{NONE}"),
        policy=STRICT,
    )
    assert kinds(found) == [
        ("format", B),
        ("duplicate", C),
        ("write-bar", C),
        ("reserved-path", "areas/arcs/z.html"),
        ("duplicate", "areas/arcs/z.html"),
        ("write-bar", "areas/arcs/z.html"),
        ("claim-edit", A),
        ("write-bar", A),
        ("format", B),
    ]


def test_every_sentence_starts_with_its_path() -> None:
    found = judged(corpus({A: OLD}), Put(A, OLD), Put("areas/arcs/z.html", "<p>"), AddLabel(B, "x"))
    assert len(found) == 4
    for violation in found:
        assert violation.path is not None
        assert sentence(violation).startswith(f"{violation.path}: ")


WORKED: list[tuple[str, dict[str, str], list[Op], list[tuple[str, str]], str]] = [
    ("new claim over a", {}, [Put(A, page("the cache ttl is ten"))], [("claim-edit", A)], ""),
    ("a's bytes at b", {}, [Put(B, OLD)], [("duplicate", B)], A),
    (
        "supersede and archive",
        {},
        [
            Put(B, page("the cache ttl is ten", links=[("supersedes", f"/{TWIN}")])),
            Archive(A, TWIN, OLD),
        ],
        [],
        "",
    ),
    (
        "link to nothing",
        {B: page("b")},
        [AddLink(B, "supports", f"/{NONE}")],
        [("format", B)],
        NONE,
    ),
    ("held slot", {TWIN: page("z")}, [Archive(A, TWIN, OLD)], [("format", A)], TWIN_2),
    ("skipped slot", {}, [Archive(A, TWIN_2, OLD)], [("format", A)], f"is {TWIN}"),
    (
        "archive twice",
        {},
        [Archive(A, TWIN, OLD), Archive(A, TWIN_2, OLD)],
        [("format", A)],
        "archived earlier",
    ),
    (
        "archive, then label",
        {},
        [Archive(A, TWIN, OLD), AddLabel(A, "x:y")],
        [("format", A)],
        "archived",
    ),
    (
        "move, then label there",
        {},
        [Move(A, "projects/p/a.html", OLD), AddLabel("projects/p/a.html", "x:y")],
        [],
        "",
    ),
    (
        "move with a holder",
        {C: page("c", links=[("part_of", f"/{A}")])},
        [Move(A, "projects/p/a.html", OLD)],
        [("format", A)],
        C,
    ),
]


@pytest.mark.parametrize(
    ("records", "ops", "expected", "mentions"),
    [case[1:] for case in WORKED],
    ids=[case[0] for case in WORKED],
)
def test_worked_case(
    records: dict[str, str], ops: list[Op], expected: list[tuple[str, str]], mentions: str
) -> None:
    found = judged(corpus({A: OLD, **records}), *ops)
    assert kinds(found) == expected
    assert mentions in " ".join(sentence(violation) for violation in found)


def test_same_fact_after_a_rebase_is_a_duplicate_and_another_one_a_claim_edit() -> None:
    landed = corpus({A: OLD})
    assert kinds(judged(landed, Put(A, OLD))) == [("duplicate", A)]
    assert kinds(judged(landed, Put(A, page("the cache ttl is ten")))) == [("claim-edit", A)]


def test_path_that_is_not_normalised_is_format_for_every_kind() -> None:
    base = corpus({A: OLD})
    for op in (AddLabel(f"/{A}", "x:y"), Move(A, "/projects/p/a.html", OLD), Put(f"{B}/", OLD)):
        found = judged(base, op)
        assert kinds(found) == [("format", op.path)]
        assert "normalised" in found[0].reasons[0]


def test_readings_are_shared_and_each_text_is_read_once() -> None:
    readings = Readings()
    html = page("x is new")
    judge([Put(A, html), Put(B, html)], corpus({}), DEFAULT, "session", readings=readings)
    first = readings.record(html)
    assert first is not None
    assert readings.record(html) is first


def test_only_rebasable_kinds_stay_open_outside_a_run() -> None:
    found = judged(corpus({A: OLD}), Put(B, OLD), Put(A, page("x is")), Put(C, "<p>"))
    assert kinds(found) == [("duplicate", B), ("claim-edit", A), ("format", C)]
    touched = {A, B, C}
    assert shapes.blocking(found, touched, run_bound=False) == [found[2]]
    assert shapes.blocking(found, touched, run_bound=True) == found
    assert shapes.blocking(found, {A}, run_bound=False) == []


def test_two_hundred_puts_are_judged_in_time() -> None:
    ops, base = puts(200), corpus({A: OLD})
    judged(base, *ops[:5])  # Imports are not what is measured.
    start = time.perf_counter()
    assert judged(base, *ops) == []
    assert time.perf_counter() - start < 2.0  # Far above what it takes; a quadratic walk fails.


def test_deadline_is_looked_at_for_each_operation() -> None:
    class TooLateError(Exception):
        pass

    def check() -> None:
        asked.append(None)
        if len(asked) == 3:
            raise TooLateError

    asked: list[None] = []
    judge(puts(2), corpus({}), DEFAULT, "session", check=check)
    assert len(asked) == 2
    asked.clear()
    with pytest.raises(TooLateError):
        judge(puts(5), corpus({}), DEFAULT, "session", check=check)


def test_reasons_without_end_are_counted_and_long_ones_cut() -> None:
    links = [f'<link rel="memhtml-nonsense-{n}" href="/x.html">' for n in range(REASONS_CAP + 7)]
    links[0] = f'<link rel="memhtml-{"x" * 5_000}" href="/x.html">'
    found = judged(corpus({}), Put(A, page("the cache ttl is five", extra_head=links)))
    reasons = found[0].reasons
    assert len(reasons) == REASONS_CAP + 1
    assert len(reasons[0]) == REASON_CHARS + 1
    assert reasons[-1] == "and 7 more reasons"


def test_new_text_is_parsed_once_for_all_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = html.parse

    def counting(text: str) -> object:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(html, "parse", counting)
    assert judged(corpus({}), *puts(3)) == []
    assert len(parsed) == 3
