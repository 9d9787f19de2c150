"""The vocabulary tables."""

from __future__ import annotations

import pytest

from memhtml_format import vocab


def test_every_rel_has_one_token_that_reads_back() -> None:
    for rel in vocab.RELS:
        token = vocab.rel_token(rel)
        assert "_" not in token
        assert vocab.rel_of_token(token) == rel
        assert vocab.rel_of_token(f"memhtml-{rel}") == rel


@pytest.mark.parametrize(
    "token", ["memhtml-unknown", "supports", "MEMHTML-SUPPORTS", "memhtml-supports x", "memhtml-"]
)
def test_other_tokens_are_no_rels(token: str) -> None:
    assert vocab.rel_of_token(token) is None


def test_metas_stand_in_emission_order() -> None:
    assert vocab.REQUIRED == ("type", "status", "created", "updated")
    assert {"entity", "tag", "alias"} == vocab.REPEATABLE
    assert list(vocab.METAS)[-5:] == ["task-status", "due", "entity", "tag", "alias"]
    assert len(vocab.METAS) == 22


def test_language_tokens() -> None:
    assert vocab.is_language("C++")
    assert vocab.is_language("objective-c")
    assert not vocab.is_language("")
    assert not vocab.is_language("-x")
    assert not vocab.is_language("a b")
    assert not vocab.is_language("sh\n")
