"""The hashed embedder (spec `retrieval` §19)."""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml.embed.hashed import HashedEmbedder
from memhtml.embed.port import ModelUnavailable, may_be_space, space


def places(word: str, dim: int) -> tuple[int, int]:
    digest = hashlib.sha256(word.encode()).digest()
    return int.from_bytes(digest[:4], "big") % dim, int.from_bytes(digest[4:8], "big") % dim


def test_a_word_adds_at_two_places_of_its_own_hash() -> None:
    first, second = places("relay", 256)
    expected = np.zeros(256)
    expected[first] += 1.0
    expected[second] += 0.5
    found = HashedEmbedder().embed_query("Relay!")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected / np.sqrt(1.25), rtol=1e-6)


def test_words_add_up_and_their_order_does_not_matter() -> None:
    one, two = HashedEmbedder(16).embed(["a b b", "b-a B"])
    np.testing.assert_array_equal(one, two)
    assert space(HashedEmbedder()) == "hash@256"


@given(st.text())
def test_every_text_has_unit_length_or_is_zero(text: str) -> None:
    found = HashedEmbedder(64).embed_query(text)
    length = float(np.linalg.norm(found))
    has_word = any(each.isascii() and each.isalnum() for each in text.lower())
    assert length == pytest.approx(1.0, abs=1e-6) if has_word else length == 0.0


def test_without_numpy_it_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ModelUnavailable) as caught:
        HashedEmbedder().embed(["a"])
    assert "memhtml[embed]" in caught.value.reason


@pytest.mark.parametrize(
    ("stored", "same"),
    [("hash@256", True), ("hash@128", False), ("other@256", False), ("hash", False), ("", False)],
)
def test_a_stored_space_is_told_from_another(stored: str, same: bool) -> None:
    assert may_be_space(HashedEmbedder(), stored) is same
