"""`recall`: the fold of a pack, its budgets and its cap (spec `retrieval` §13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reads import meta
from tests.support.retrieve import NOW_S, memory, store

from memhtml.retrieve.recall import Quotable, fold, recall
from memhtml.retrieve.scope import Scope


def quotable(name: str, text: str, *names: str, kind: str = "semantic") -> Quotable:
    """A candidate with a text to quote."""
    return Quotable(f"areas/inbox/{name}.html", name, f"{name}.", kind, text, 10, frozenset(names))


def quoted(pack: dict[str, list[dict[str, str]]]) -> str:
    """The titles of what is quoted."""
    return "".join(each["title"] for each in pack["disclosed"])


def named(pack: dict[str, list[dict[str, str]]]) -> str:
    """The titles of the index lines."""
    return "".join(each["title"] for each in pack["indexLines"])


def test_a_later_shorter_text_still_fits() -> None:
    pack = fold([quotable("a", "x" * 6), quotable("b", "x" * 6), quotable("c", "x" * 4)], 10)
    assert (quoted(pack), named(pack)) == ("ac", "b")
    assert (pack["spentChars"], pack["truncated"]) == (10, True)


def test_a_name_is_quoted_twice_and_then_no_more() -> None:
    pack = fold(
        [
            quotable("a", "x", "relay", "queue"),
            quotable("b", "x", "relay"),
            quotable("c", "x", "relay", "pump"),
            quotable("d", "x", "queue", "pump"),
            quotable("e", "x", "queue"),
            quotable("f", "x"),
        ],
        100,
    )
    assert (quoted(pack), named(pack)) == ("abdf", "ce")


def test_what_is_not_quoted_counts_for_no_name() -> None:
    long = quotable("a", "x" * 9, "relay")
    short = [quotable(name, "x", "relay") for name in "bcd"]
    assert quoted(fold([long, *short], 5)) == "bc"


def test_a_budget_of_zero_gives_index_lines_only() -> None:
    pack = fold([quotable("a", "x"), quotable("b", "")], 0)
    assert (quoted(pack), named(pack)) == ("", "ab")
    assert fold([], 0) == {
        "disclosed": [],
        "indexLines": [],
        "spentChars": 0,
        "truncated": False,
    }


@given(
    rows=st.lists(st.tuples(st.text(max_size=8), st.sets(st.sampled_from("xyz")))),
    budget=st.integers(0, 40),
)
def test_a_pack_keeps_its_budget_its_cap_and_its_order(
    rows: list[tuple[str, set[str]]], budget: int
) -> None:
    given_rows = [quotable(str(place), text, *names) for place, (text, names) in enumerate(rows)]
    pack = fold(given_rows, budget)
    bodies = {each["path"]: each["body"] for each in pack["disclosed"]}
    lines = [each["path"] for each in pack["indexLines"]]
    assert sum(map(len, bodies.values())) == pack["spentChars"] <= budget
    assert sorted([*bodies, *lines]) == sorted(row.path for row in given_rows)
    kept = [row for row in given_rows if row.path in bodies]
    assert [row.path for row in kept] == list(bodies)
    assert [row.path for row in given_rows if row.path not in bodies] == lines
    for name in "xyz":
        assert sum(name in row.names for row in kept) <= 2


RELAY = "areas/inbox/relay.html"
FILES = {
    RELAY: memory(
        "The relay batch limit is 11.",
        title="Relay",
        head=meta("entity", "service:relay"),
        more="<details><summary>Why</summary><p>Secret depths.</p></details>\n"
        "<aside>An aside.</aside>\n"
        "<dl><dt>region</dt><dd>eu</dd></dl>\n",
    ),
    "areas/arcs/relay.html": memory("A year of the relay.", title="Arc", kind="arc"),
}


def test_arcs_and_memories_are_packed_apart(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = recall(index, "relay", Scope(), now_s=NOW_S)
    body = "The relay batch limit is 11.\nWhy\nregion: eu"
    assert answer == {
        "arcs": {
            "disclosed": [
                {
                    "path": "areas/arcs/relay.html",
                    "title": "Arc",
                    "gist": "A year of the relay.",
                    "memoryType": "arc",
                    "body": "A year of the relay.",
                }
            ],
            "indexLines": [],
            "spentChars": 20,
            "truncated": False,
        },
        "memories": {
            "disclosed": [
                {
                    "path": RELAY,
                    "title": "Relay",
                    "gist": "The relay batch limit is 11.",
                    "memoryType": "semantic",
                    "body": body,
                }
            ],
            "indexLines": [],
            "spentChars": len(body),
            "truncated": False,
        },
        "spentChars": 20 + len(body),
        "truncated": False,
        "degraded": True,
        "vectorCoverage": 0.0,
    }


def test_the_budget_is_not_that_of_the_arcs(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = recall(index, "relay", Scope(), 0, now_s=NOW_S)
    assert [each["path"] for each in answer["memories"]["indexLines"]] == [RELAY]
    assert answer["memories"]["indexLines"][0]["estTokens"] > 0
    assert len(answer["arcs"]["disclosed"]) == 1
    assert (answer["spentChars"], answer["truncated"]) == (20, True)


def test_a_pack_holds_the_best_thirty(tmp_path: Path) -> None:
    files = {f"areas/inbox/{n:02d}.html": memory(f"Relay {n:02d}.") for n in range(50)}
    with store(str(tmp_path), files) as index:
        answer = recall(index, "relay", Scope(), now_s=NOW_S)
    assert len(answer["memories"]["disclosed"]) == 30


@pytest.mark.parametrize(("wanted", "count"), [(Scope(), 1), (Scope(memory_types=("arc",)), 0)])
def test_a_scope_holds_for_a_pack(tmp_path: Path, wanted: Scope, count: int) -> None:
    with store(str(tmp_path), FILES) as index:
        answer = recall(index, "relay", wanted, now_s=NOW_S)
    assert len(answer["memories"]["disclosed"]) == count
    assert len(answer["arcs"]["disclosed"]) == 1
