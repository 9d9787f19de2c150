"""The lexical arm of head search and the fold of both arms (spec `retrieval` §20)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.head import MAIN, Store, page, searches

from memhtml.corpus.head import open_head
from memhtml.corpus.layers import Layers
from memhtml.retrieve.neighbours import (
    Hit,
    fuse,
    match_expression,
    search_all,
)
from memhtml.store.snapshot import write_snapshot
from memhtml.store.snapshot_fts import Match


def relay(number: int) -> bytes:
    return page("Relay", f"The relay batch limit is {number}.")


FILES = {
    "areas/inbox/relay.html": relay(11),
    "areas/inbox/other.html": page("Gardens", "Roses need water."),
    "archive/2026/areas/inbox/old.html": page("Relay", "The relay was slow."),
    "projects/p/tasks/t.html": page("Painting", "Fences are painted.", updated="2026-04-01"),
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(str(tmp_path))
    sha = made.commit(FILES)
    write_snapshot(made.root, MAIN, sha, made.repo())
    return made


def tip(store: Store) -> str:
    return str(store.git.references[MAIN].target)


def neighbours(view: Layers, title: str, claim: str, limit: int = 3) -> list[Hit]:
    return search_all(view, [f"{title} {claim}"], limit)[0]


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("The relay limit", '"relay" OR "limit"'),
        ("relay RELAY relay", '"relay"'),
        ("to be or not to be", '"to" OR "be" OR "or" OR "not"'),
        (
            "a\"b AND NEAR(x) it's snake_case 11",
            '"b" OR "near" OR "x" OR "snake" OR "case" OR "11"',
        ),
        ("Größe cafe\u0301", '"größe" OR "café"'),
        ("— … !", ""),
        ("", ""),
    ],
)
def test_a_query_is_any_of_its_distinct_telling_words(query: str, expression: str) -> None:
    assert match_expression(query) == expression


def test_a_lone_first_place_scores_one_over_sixty_one(store: Store) -> None:
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        expected = Hit(
            "areas/inbox/relay.html",
            0.01639344262295082,
            ("lexical",),
            "The relay batch limit is 11.",
        )
        assert neighbours(head, "Relays", "limits") == [expected]
        assert neighbours(head, "fence", "") == [
            Hit("projects/p/tasks/t.html", 1 / 61, ("lexical",), "Fences are painted.")
        ]
        assert neighbours(head, "nothing", "matches") == neighbours(head, "", "!") == []
        assert neighbours(head, "relay", "", limit=-1) == []


def test_the_records_of_a_log_are_ranked_with_the_rest_and_its_removals_are_not(
    store: Store,
) -> None:
    before = Path(store.database()).read_bytes()
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        new = {"areas/inbox/new.html": relay(12), "areas/inbox/other.html": relay(13)}
        view = head.view(new, ["areas/inbox/relay.html"])
        found = [hit.path for hit in neighbours(view, "Relay", "limit")]
        assert found == ["areas/inbox/new.html", "areas/inbox/other.html"]
        assert neighbours(view, "roses", "11") == []
        assert [hit.path for hit in neighbours(head, "Relay", "limit")] == [
            "areas/inbox/relay.html"
        ]
    assert Path(store.database()).read_bytes() == before


def test_a_view_is_searched_as_if_it_were_committed(store: Store, tmp_path: Path) -> None:
    changed = {f"areas/n{number}.html": relay(number) for number in range(5)}
    after = {**FILES, **changed}
    del after["areas/inbox/relay.html"]
    queries = ("relay batch limit", "roses water", "relay 3", "fence")
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        laid = searches(head.view(changed, ["areas/inbox/relay.html"]), queries)
    fresh = Store(str(tmp_path / "fresh"))
    sha = fresh.commit(after)
    with open_head(fresh.root, MAIN, sha, repo=fresh.repo()) as built:
        assert searches(built, queries) == laid


def test_a_busy_database_is_searched_without_the_log_and_with_a_warning(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = sqlite3.connect(store.database(), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        view = head.view({"areas/new.html": relay(12)}, ["areas/inbox/other.html"])
        found = [hit.path for hit in search_all(view, ["relay roses"], 3)[0]]
        assert found == ["areas/inbox/relay.html"]
    assert "WARN" in capsys.readouterr().err
    writer.close()


def test_a_database_moved_on_meanwhile_is_searched_without_the_log(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tip(store)
    with open_head(store.root, MAIN, old, repo=store.repo()) as head:
        new = store.commit({**FILES, "areas/more.html": relay(14)}, old)
        write_snapshot(store.root, MAIN, new, store.repo())
        view = head.view({"areas/new.html": relay(12)}, [])
        found = [hit.path for hit in search_all(view, ["relay"], 3)[0]]
        assert found == ["areas/inbox/relay.html"]
    assert "WARN" in capsys.readouterr().err


def test_a_private_database_is_left_as_it_was_by_a_search(store: Store) -> None:
    from tests.support.head import dump

    from memhtml.store.snapshot import private_database
    from memhtml.store.snapshot_fts import matching
    from memhtml_format.record import read

    database = private_database(MAIN, tip(store), store.repo())
    before = dump(database.conn)
    record = read("areas/new.html", relay(12)).record
    assert record is not None
    with matching(database, ["areas/inbox/relay.html"], [record]) as matcher:
        assert [match.path for match in matcher.match('"relay"', 40)] == ["areas/new.html"]
    assert dump(database.conn) == before
    database.close()


def test_forty_candidates_are_kept_lowest_paths_first_when_all_tie(store: Store) -> None:
    files = {f"areas/t{number:02}.html": page("Tie", "Zebra stripes.") for number in range(50)}
    sha = store.commit(files)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        hits = search_all(head, ["zebra"], 100)[0]
    assert [hit.path for hit in hits] == sorted(files)[:40]
    assert {hit.score for hit in hits} == {1 / 61}
    assert {hit.arms for hit in hits} == {("lexical", "recency")}


def match(rank: float, path: str, updated: str = "2026-01-01", event: str | None = None) -> Match:
    return Match(rank, path, "claim", event, updated)


def test_equal_ranks_share_the_best_place_and_the_newer_goes_first() -> None:
    matches = [
        match(-9.0, "a"),
        match(-5.0, "b", "2026-01-01"),
        match(-5.0, "c", "2026-02-01"),
        match(-5.0, "d", "2026-01-01", event="2026-03-01"),
        match(-1.0, "e"),
    ]
    hits = fuse(matches)
    assert [(hit.path, hit.score) for hit in hits] == [
        ("a", 1 / 61),
        ("d", 1 / 62),
        ("c", 1 / 62),
        ("b", 1 / 62),
        ("e", 1 / 65),
    ]
    assert [hit.arms for hit in hits] == [
        ("lexical",),
        *[("lexical", "recency")] * 3,
        ("lexical",),
    ]


def test_instants_after_now_count_as_now() -> None:
    matches = [match(-5.0, "a", "2026-02-01"), match(-5.0, "b", "2027-01-01")]
    assert [hit.path for hit in fuse(matches)] == ["b", "a"]
    assert [hit.path for hit in fuse(matches, now="2026-02-01")] == ["a", "b"]


def test_a_query_of_thousands_of_words_is_answered(store: Store) -> None:
    words = " ".join(f"word{number}" for number in range(5000))
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        assert neighbours(head, words, "relay")[0].path == "areas/inbox/relay.html"


def test_the_two_arms_add_up_and_a_hit_names_what_ranked_it() -> None:
    lexical = [match(-9.0, "both"), match(-5.0, "words"), match(-5.0, "more words")]
    vector = [match(-0.9, "near"), match(-0.8, "both"), match(-0.8, "nearly")]
    hits = fuse(lexical, vector)
    assert [(hit.path, hit.score, hit.arms) for hit in hits] == [
        ("both", 1 / 61 + 1 / 62, ("lexical", "vector")),
        ("near", 1 / 61, ("vector",)),
        ("more words", 1 / 62, ("lexical", "recency")),
        ("nearly", 1 / 62, ("recency", "vector")),
        ("words", 1 / 62, ("lexical", "recency")),
    ]


def test_two_places_swapped_between_the_arms_are_a_tie() -> None:
    lexical = [match(-9.0, "a"), match(-5.0, "b", "2026-05-01")]
    vector = [match(-0.9, "b", "2026-05-01"), match(-0.8, "a")]
    hits = fuse(lexical, vector)
    assert [hit.path for hit in hits] == ["b", "a"]
    assert {hit.arms for hit in hits} == {("lexical", "recency", "vector")}


def test_no_arm_gives_no_hit() -> None:
    assert fuse([], []) == []


def replacing(title: str, claim: str, *old: str) -> bytes:
    return page(title, claim, links=[("supersedes", f"/{path}") for path in old])


def found_in(store: Store, files: dict[str, bytes], query: str, limit: int = 10) -> list[Hit]:
    sha = store.commit(files)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        return search_all(head, [query], limit)[0]


OLD, NEW, NEWER = "areas/old.html", "areas/new.html", "areas/newer.html"


def test_a_replaced_record_is_below_the_one_that_replaces_it(store: Store) -> None:
    files = {
        OLD: page("Relay", "The relay relay relay limit is 7."),
        NEW: replacing("The limit of the message relay was raised", "It is 11 now.", OLD),
        "areas/other.html": page("Relay", "A relay is slow, as a long sentence about it says."),
    }
    hits = found_in(store, files, "relay")
    assert [hit.path for hit in hits] == [NEW, OLD, "areas/other.html"]
    # Without its link the new one would have been the last; it takes the place of the old one.
    assert [hit.score for hit in hits] == [1 / 61, 1 / 61, 1 / 62]
    assert [hit.path for hit in found_in(store, files, "relay", 1)] == [NEW]


def test_what_replaces_a_hit_comes_in_although_no_arm_ranks_it(store: Store) -> None:
    files = {OLD: page("Relay", "The relay limit is 7."), NEW: replacing("Now", "It is 11.", OLD)}
    assert found_in(store, files, "relay") == [
        Hit(NEW, 1 / 61, (), "It is 11."),
        Hit(OLD, 1 / 61, ("lexical",), "The relay limit is 7."),
    ]


def test_a_chain_of_replacements_is_in_its_order(store: Store) -> None:
    files = {
        OLD: page("Relay", "The relay limit is 7."),
        NEW: replacing("Relay", "The relay limit, which is long to tell, is 9.", OLD),
        NEWER: replacing("Now", "It is 11.", NEW),
    }
    assert [hit.path for hit in found_in(store, files, "relay limit")] == [NEWER, NEW, OLD]


def test_a_circle_of_replacements_orders_nothing(store: Store) -> None:
    files = {
        OLD: replacing("Relay", "The relay relay limit is 7.", NEW, OLD),
        NEW: replacing("Relay", "The relay limit, which is long to tell, is 9.", OLD),
    }
    assert [hit.path for hit in found_in(store, files, "relay")] == [OLD, NEW]


def test_what_is_archived_replaces_nothing(store: Store) -> None:
    gone = "archive/2026/areas/new.html"
    files = {OLD: page("Relay", "The relay limit is 7."), gone: replacing("N", "It is 11.", OLD)}
    assert [hit.path for hit in found_in(store, files, "relay")] == [OLD]


def test_another_relation_replaces_nothing(store: Store) -> None:
    about = page("Now", "It is 11.", links=[("relates_to", f"/{OLD}")])
    files = {OLD: page("Relay", "The relay limit is 7."), NEW: about}
    assert [hit.path for hit in found_in(store, files, "relay")] == [OLD]


def test_the_log_of_a_session_replaces_and_frees_records(store: Store) -> None:
    old = page("Relay", "The relay limit is 7.")
    new = replacing("Now", "It is 11.", OLD)
    sha = store.commit({OLD: old})
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        view = head.view({NEW: new}, [])
        assert [hit.path for hit in search_all(view, ["relay"], 3)[0]] == [NEW, OLD]
        assert [hit.path for hit in search_all(head, ["relay"], 3)[0]] == [OLD]
    sha = store.commit({OLD: old, NEW: new}, sha)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        unlinked = head.view({NEW: page("Now", "It is 11.")}, [])
        assert [hit.path for hit in search_all(unlinked, ["relay"], 3)[0]] == [OLD]
        assert [hit.path for hit in search_all(head.view({}, [NEW]), ["relay"], 3)[0]] == [OLD]


@given(
    links=st.dictionaries(st.integers(0, 7), st.sets(st.integers(0, 7), max_size=3), max_size=8),
    words=st.lists(st.integers(0, 5), min_size=8, max_size=8),
    limit=st.integers(0, 9),
)
def test_no_replaced_record_is_above_its_replacement(
    links: dict[int, set[int]],
    words: list[int],
    limit: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = Store(str(tmp_path_factory.mktemp("links")))
    # Newer numbers replace older ones, so there is no circle.
    older = {new: {old for old in olds if old < new} for new, olds in links.items()}
    files = {
        f"areas/{at}.html": replacing(
            "T",
            f"{'relay ' * words[at]}fact {at}.",
            *(f"areas/{n}.html" for n in older.get(at, ())),
        )
        for at in range(8)
    }
    hits = found_in(store, files, "relay", limit)
    order = [int(hit.path[6]) for hit in hits]
    assert len(order) == len(set(order)) <= limit
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for new, olds in older.items():
        for old in olds & set(order):
            assert new in order and order.index(new) < order.index(old)
