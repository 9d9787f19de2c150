"""The piece of text that stands for a hit (spec `retrieval` §12)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.retrieve import memory, statements, store

from memhtml.retrieve.snippets import LONGEST, shortened, snippets


@given(st.text(max_size=2 * LONGEST))
def test_a_snippet_is_never_longer_than_700_characters(text: str) -> None:
    cut = shortened(text)
    assert len(cut) <= LONGEST
    assert cut == text if len(text) <= LONGEST else cut == text[: LONGEST - 1] + "…"


@pytest.mark.parametrize("size", [699, 700, 701])
def test_the_cut_begins_at_701_characters(size: int) -> None:
    assert shortened("a" * size).endswith("…") == (size > 700)


def test_one_statement_reads_the_wanted_chunks(tmp_path: Path) -> None:
    many = "".join(f"<p>Sentence number {number} of many.</p>\n" for number in range(200))
    files = {
        "areas/inbox/long.html": memory("Long.", more=many),
        "areas/inbox/short.html": memory("Short."),
    }
    with store(str(tmp_path), files) as index:
        ids = dict(index.conn.execute("SELECT path, id FROM files").fetchall())
        text = index.conn.execute("SELECT text FROM chunks WHERE ordinal = 1").fetchone()[0]
        index.conn.execute("DELETE FROM chunks WHERE path = 'areas/inbox/short.html'")
        wanted = {ids["areas/inbox/long.html"]: 1, ids["areas/inbox/short.html"]: 0}
        with statements(index) as seen:
            found = snippets(index.conn, wanted)
    assert found == {ids["areas/inbox/long.html"]: text[:699] + "…"}
    assert len(seen) == 1


def test_a_text_is_cut_by_characters_and_not_by_bytes(tmp_path: Path) -> None:
    with store(str(tmp_path), {"areas/inbox/a.html": memory("A.")}) as index:
        index.conn.execute("UPDATE chunks SET text = ?", ("é" * 800,))
        (text,) = snippets(index.conn, {1: 0}).values()
    assert text == "é" * 699 + "…"
