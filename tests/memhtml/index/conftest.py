"""A store whose index stands at its commit, copied for each test that asks for `root`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.index import A, B, refresh
from tests.support.session import make_store, page


@pytest.fixture(scope="session")
def indexed_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two memories, indexed; not to be changed."""
    root = make_store(
        str(tmp_path_factory.mktemp("indexed") / "store"),
        {A: page("The limit is 11."), B: page("The port is 8080.")},
    )
    refresh(root)
    return root


@pytest.fixture
def root(indexed_store: str, tmp_path: Path) -> str:
    """A copy of it."""
    return str(shutil.copytree(indexed_store, str(tmp_path / "store"), symlinks=True))
