"""What the index says about itself in numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.embed import Fixed
from tests.support.index import OLD_A, A, B, C, anew, commit, refresh, state_of, write_file
from tests.support.session import page, tip

from memhtml.embed.hashed import HashedEmbedder
from memhtml.index.database import open_index
from memhtml.index.report import Health, embedder_answers, health, status_json


def test_an_index_that_was_never_filled_counts_nothing_and_is_covered(tmp_path: Path) -> None:
    with open_index(str(tmp_path)) as index:
        found = health(index, None)
    assert found == Health(
        head_sha=None,
        unfinished=False,
        rebuilt_at=None,
        updated_at=None,
        stored_space=None,
        stored_dim=None,
        configured_space=None,
        spaces_match=True,
        files=0,
        active_files=0,
        archived_count=0,
        counts_by_type={},
        chunks=0,
        embeddings=0,
        vector_coverage=1.0,
        edges=0,
        derived_edges=0,
        tags=0,
        entities=0,
        traces=0,
        has_state=True,
    )


def test_every_count_is_of_what_is_there(root: str) -> None:
    links = f'<link rel="memhtml-supports" href="/{B}">\n<meta name="memhtml-tag" content="t">\n'
    write_file(root, C, page("The host is new.", kind="verdict", head=links))
    write_file(root, OLD_A, page("The limit was 9."))
    commit(root)
    refresh(root, HashedEmbedder())
    with open_index(root) as index:
        index.conn.execute(
            "INSERT INTO edges VALUES(?, 'supports', ?, 'memory', 1, 0.5, 'm', '', '', '')", (A, B)
        )
        found = health(index, HashedEmbedder())
    state = state_of(root)
    assert found == Health(
        head_sha=tip(root),
        unfinished=False,
        rebuilt_at=state.rebuilt_at,
        updated_at=state.updated_at,
        stored_space="hash@256",
        stored_dim=256,
        configured_space="hash@256",
        spaces_match=True,
        files=4,
        active_files=3,
        archived_count=1,
        counts_by_type={"semantic": 2, "verdict": 1},
        chunks=4,
        embeddings=2,
        vector_coverage=0.5,
        edges=1,
        derived_edges=1,
        tags=1,
        entities=4,
        traces=0,
        has_state=True,
    )


def test_coverage_is_of_the_configured_space_and_else_of_the_stored_one(root: str) -> None:
    anew(root, HashedEmbedder())
    with open_index(root) as index:
        own, other, none = (health(index, each) for each in (HashedEmbedder(), Fixed(), None))
    assert (own.vector_coverage, own.spaces_match) == (1.0, True)
    assert (other.vector_coverage, other.spaces_match) == (0.0, False)
    assert (none.vector_coverage, none.spaces_match, none.configured_space) == (1.0, True, None)


@pytest.mark.parametrize("column", ["head_sha = NULL", "unfinished = 1"])
def test_an_index_that_was_left_half_way_is_called_unfinished(root: str, column: str) -> None:
    with open_index(root) as index:
        index.conn.execute(f"UPDATE index_state SET {column}")
        assert health(index, None).unfinished


def test_an_embedder_is_up_when_it_answers() -> None:
    assert not embedder_answers(None)
    assert embedder_answers(HashedEmbedder())
    assert not embedder_answers(Fixed(failing="no weights"))


def test_the_status_names_the_configured_floor(root: str) -> None:
    with open_index(root, state=False) as index:
        data = status_json(health(index, None), 0.7)
    assert data["vectorCoverageFloor"] == 0.7
    assert data["hasState"] is False
