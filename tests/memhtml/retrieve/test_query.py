"""The full-text expressions of a query (spec `retrieval` §5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml.retrieve.query import MOST_TERMS, Match, match_of, terms_of


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("don't drain", ["don", "drain"]),
        ("don't", ["don"]),
        ("service:checkout-api", ["service", "checkout", "api"]),
        ('find "drain the vip" fast', ["find", "drain the vip", "fast"]),
        ("AND", ["and"]),
        ("relay AND queue OR", ["relay", "queue"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ('the "the" relay', ["the", "relay"]),
        ("Relay relay RELAY", ["relay"]),
        ('an odd "quote of the relay', ["odd", "quote", "relay"]),
        ('"" relay "—"', ["relay"]),
        ('"the"', ["the"]),
        ("Größe CAFE\u0301 snake_case 11", ["größe", "café", "snake", "case", "11"]),
        ("— … !", []),
        ("   ", []),
        ("", []),
    ],
)
def test_terms_are_the_words_and_the_balanced_phrases(query: str, terms: list[str]) -> None:
    assert terms_of(query) == terms


def test_the_two_forms_join_the_terms_in_quotes() -> None:
    assert match_of('relay "batch limit"') == Match(
        '"relay" AND "batch limit"', '"relay" OR "batch limit"'
    )


def test_one_term_makes_both_forms_equal() -> None:
    assert match_of("the relay") == Match('"relay"', '"relay"')


def test_no_term_makes_no_expression() -> None:
    assert match_of("?!") is None


def test_a_page_of_text_is_cut_to_its_first_terms() -> None:
    words = [f"w{number}" for number in range(2 * MOST_TERMS)]
    assert terms_of(" ".join(words)) == words[:MOST_TERMS]


@pytest.fixture(scope="module")
def full_text() -> Iterator[sqlite3.Connection]:
    """One row in a full-text table like the index's."""
    conn = sqlite3.connect(":memory:")
    conn.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
    conn.execute("INSERT INTO t(x) VALUES('The relay batch limit is 11. Größe café')")
    yield conn
    conn.close()


SYNTAX = st.sampled_from(
    ['"', "'", "(", ")", "*", "^", ":", "{", "}", "+", "-", "NEAR", " AND ", " OR ", " NOT ", "\0"]
)
QUERIES = st.one_of(st.text(), st.lists(st.one_of(SYNTAX, st.text(max_size=4))).map("".join))


@given(query=QUERIES)
def test_no_query_is_a_syntax_error(full_text: sqlite3.Connection, query: str) -> None:
    match = match_of(query)
    if match is None:
        return
    for expression in match:
        full_text.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)).fetchall()


@given(word=st.sampled_from(["relay", "LIMITS", "batches", "größe", "Cafe\u0301", "GROSSE"]))
def test_text_and_query_fold_alike(full_text: sqlite3.Connection, word: str) -> None:
    match = match_of(word)
    assert match is not None
    sql = "SELECT count(*) FROM t WHERE t MATCH ?"
    found = full_text.execute(sql, (match.every,)).fetchone()[0]
    assert found == (word != "GROSSE")
