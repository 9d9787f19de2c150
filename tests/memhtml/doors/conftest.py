"""A store to write to, and no embedder but where a test names one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.session import copy_store, make_store


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_store(str(tmp_path_factory.mktemp("template") / "store"))


@pytest.fixture
def store(template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    return copy_store(template, str(tmp_path / "store"))
