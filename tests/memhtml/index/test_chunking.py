"""How bodies are cut for embedding."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from memhtml.index.chunking import CHUNK_CHARS, chunks_of
from memhtml_format.text import trim

HASH = "sha256:" + "0" * 64
sentences = st.text("abc .!?\n\u00a0", max_size=60)


def test_a_blank_body_has_no_chunk() -> None:
    assert chunks_of(HASH, "") == []
    assert chunks_of(HASH, " \n\u00a0") == []


def test_a_body_up_to_the_limit_is_one_chunk_as_it_is() -> None:
    text = "One. Two.  Three " + "x" * (CHUNK_CHARS - 17)
    assert len(text) == CHUNK_CHARS
    assert [chunk.text for chunk in chunks_of(HASH, f" {text}\n")] == [text]


def test_sentences_are_packed_up_to_the_limit() -> None:
    one, two, three = "a" * 899 + ".", "b" * 899 + "!", "c" * 10 + "?"
    texts = [chunk.text for chunk in chunks_of(HASH, f"{one}  {two}\n{three}")]
    assert texts == [one, f"{two} {three}"]


def test_two_sentences_that_fill_a_chunk_exactly_stay_together() -> None:
    one, two = "a" * 899 + ".", "b" * 899
    assert len(f"{one} {two}") == CHUNK_CHARS
    texts = [chunk.text for chunk in chunks_of(HASH, f"{one} {two}. c")]
    assert texts == [one, f"{two}. c"]


def test_a_long_sentence_is_cut_into_full_pieces() -> None:
    texts = [chunk.text for chunk in chunks_of(HASH, "x" * 4000)]
    assert [len(text) for text in texts] == [1800, 1800, 400]


def test_a_chunks_id_is_made_of_the_articles_hash_and_its_place() -> None:
    found = chunks_of(HASH, "x" * 2000)
    assert [chunk.ordinal for chunk in found] == [0, 1]
    assert [chunk.id for chunk in found] == [
        sha256(f"{HASH}:{place}".encode()).hexdigest() for place in (0, 1)
    ]


@given(st.lists(st.one_of(sentences, st.integers(1700, 4000).map(lambda n: "x" * n)), max_size=80))
def test_no_text_is_lost_and_no_chunk_is_too_long(parts: list[str]) -> None:
    body = "".join(parts)
    texts = [chunk.text for chunk in chunks_of(HASH, body)]
    assert all(0 < len(text) <= CHUNK_CHARS for text in texts)
    assert "".join("".join(texts).split()) == "".join(trim(body).split())
