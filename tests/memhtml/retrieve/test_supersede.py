"""Replaced records stand below what replaces them (`memhtml.retrieve.supersede`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reads import link
from tests.support.retrieve import NOW_S, memory, store

from memhtml.index.database import Index
from memhtml.retrieve.recall import recall
from memhtml.retrieve.scope import Scope
from memhtml.retrieve.search import search
from memhtml.retrieve.supersede import settled

OLD, NEW, NEWEST = "areas/inbox/a.html", "areas/inbox/b.html", "areas/inbox/c.html"
OTHER = "areas/inbox/d.html"
ARCHIVED = "archive/2026/areas/inbox/e.html"


@pytest.mark.parametrize(
    ("order", "later", "expected"),
    [
        (["old", "x", "new"], {"old": ["new"]}, ["new", "old", "x"]),
        (["new", "x", "old"], {"old": ["new"]}, ["new", "x", "old"]),
        (["x", "old", "y"], {"old": ["new"]}, ["x", "new", "old", "y"]),
        (["old", "newest"], {"old": ["new"], "new": ["newest"]}, ["newest", "new", "old"]),
        (["old"], {"old": ["b", "a"]}, ["a", "b", "old"]),
        (["old", "b"], {"old": ["a", "b"]}, ["b", "a", "old"]),
        (["a", "b"], {"a": ["b"], "b": ["a"]}, ["a", "b"]),
        (["a", "b", "c"], {"a": ["b", "c"], "b": ["a"]}, ["c", "a", "b"]),
        ([], {"old": ["new"]}, []),
    ],
    ids=[
        "moves-up",
        "already-above",
        "comes-in",
        "chain",
        "two-come-in",
        "ranked-one-first",
        "circle",
        "circle-with-a-way-out",
        "nothing",
    ],
)
def test_a_replaced_path_stands_directly_below_what_replaces_it(
    order: list[str], later: Mapping[str, Sequence[str]], expected: list[str]
) -> None:
    assert settled(order, later) == expected


_PATHS = st.sampled_from("abcdefgh")


@given(
    st.lists(_PATHS, unique=True),
    st.dictionaries(_PATHS, st.lists(_PATHS, unique=True, max_size=3), max_size=8),
)
def test_no_path_stands_above_one_that_replaces_it_unless_in_a_circle(
    order: list[str], later: dict[str, list[str]]
) -> None:
    found = settled(order, later)
    assert len(found) == len(set(found)) and set(order) <= set(found)
    replacing = {path: _closure(path, later) for path in found}
    for place, path in enumerate(found):
        for newer in replacing[path]:
            if path not in _closure(newer, later):
                assert found.index(newer) < place
    # What no link concerns keeps its order.
    apart = [path for path in order if not replacing[path] and not _replaces(path, later)]
    assert [path for path in found if path in apart] == apart


def _closure(path: str, later: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [path]
    while waiting:
        fresh = set(later.get(waiting.pop(), ())) - found
        found |= fresh
        waiting += fresh
    return found


def _replaces(path: str, later: Mapping[str, Sequence[str]]) -> bool:
    return any(path in newer for newer in later.values())


def test_a_chain_of_thousands_is_settled() -> None:
    later = {str(number): [str(number + 1)] for number in range(3_000)}
    assert settled(["0"], later) == [str(number) for number in range(3_000, -1, -1)]


def test_the_pure_part_loads_nothing_of_the_index() -> None:
    code = (
        "import sys, memhtml.retrieve.supersede; print('memhtml.retrieve.vectors' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"False\n"


def _hits(index: Index, query: str, limit: int = 10, scope: Scope | None = None) -> list[str]:
    answer = search(index, query, scope or Scope(), limit, now_s=NOW_S)
    return [hit["path"] for hit in answer["hits"]]


def _files(**more: str) -> dict[str, str]:
    return {
        OLD: memory("Deploys of the ledger go out on Tuesday.", title="Ledger deploys"),
        NEW: memory(
            "Since the audit nothing ships before noon on Wednesday.",
            title="Shipping hours",
            head=link("supersedes", OLD),
        ),
        OTHER: memory("The ledger is read by two teams.", title="Ledger readers"),
        **more,
    }


def test_the_replacement_comes_first_though_the_query_has_the_old_words(tmp_path: Path) -> None:
    with store(str(tmp_path), _files()) as index:
        found = _hits(index, "deploys of the ledger go out on Tuesday")
    assert found.index(NEW) + 1 == found.index(OLD)


def test_the_replacement_comes_in_when_the_limit_had_left_it_out(tmp_path: Path) -> None:
    newer = {
        f"areas/inbox/n{number}.html": memory(f"Note {number}.", updated="2026-09-01T00:00:00Z")
        for number in range(200)
    }
    files = {**_files(), **newer}
    with store(str(tmp_path), files) as index:
        answer = search(index, "ledger deploys on Tuesday", Scope(), 2, now_s=NOW_S)
    assert [(hit["path"], hit["score"]) for hit in answer["hits"]] == [(NEW, 1.0), (OLD, 1.0)]
    assert answer["hits"][1]["supersededBy"] == NEW
    assert answer["hits"][0]["gist"] == "Since the audit nothing ships before noon on Wednesday."


def test_a_pack_quotes_the_replacement_before_the_replaced(tmp_path: Path) -> None:
    with store(str(tmp_path), _files()) as index:
        pack = recall(index, "ledger deploys on Tuesday", Scope(), now_s=NOW_S)
    quoted = [each["path"] for each in pack["memories"]["disclosed"]]
    assert quoted.index(NEW) < quoted.index(OLD)


def test_the_newest_of_a_chain_comes_first(tmp_path: Path) -> None:
    newest = memory("All releases stop in December.", head=link("supersedes", NEW))
    with store(str(tmp_path), {**_files(), NEWEST: newest}) as index:
        assert _hits(index, "deploys of the ledger go out on Tuesday")[:3] == [NEWEST, NEW, OLD]


def test_a_replacement_outside_the_scope_stays_outside(tmp_path: Path) -> None:
    files = _files()
    files[NEW] = files[NEW].replace("semantic", "procedural")
    with store(str(tmp_path), files) as index:
        found = _hits(index, "ledger deploys", scope=Scope(memory_types=("semantic",)))
    assert found == [OLD, OTHER]


@pytest.mark.parametrize(
    "scope", [Scope(include_archived=True), Scope(as_of="2026-11-01")], ids=["archived", "as-of"]
)
def test_what_was_is_ranked_as_it_was(tmp_path: Path, scope: Scope) -> None:
    with store(str(tmp_path), _files()) as index:
        assert _hits(index, "deploys of the ledger go out on Tuesday", scope=scope)[0] == OLD


def test_an_archived_record_replaces_nothing(tmp_path: Path) -> None:
    files = _files()
    files[ARCHIVED] = files.pop(NEW)
    with store(str(tmp_path), files) as index:
        assert _hits(index, "deploys of the ledger go out on Tuesday") == [OLD, OTHER]


def test_a_mined_link_replaces_nothing(tmp_path: Path) -> None:
    with store(str(tmp_path), _files()) as index:
        index.conn.execute("UPDATE edges SET derived = 1, provenance = 'mined'")
        assert _hits(index, "deploys of the ledger go out on Tuesday")[0] == OLD


def test_two_records_that_replace_each_other_are_both_found(tmp_path: Path) -> None:
    files = _files()
    files[OLD] = memory("Deploys of the ledger go out on Tuesday.", head=link("supersedes", NEW))
    with store(str(tmp_path), files) as index:
        assert sorted(_hits(index, "deploys of the ledger")) == [OLD, NEW, OTHER]
