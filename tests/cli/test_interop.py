"""Stores of our golden files: the same bytes, paths, hashes and rows, whoever wrote them."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import golden
from tests.support.command import PROJECT, memhtml
from tests.support.session import git

from memhtml.index import follow
from memhtml.index.database import open_index
from memhtml.store.repo import Repo
from memhtml_format import record

_INSTANT = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_DATE = re.compile("/[0-9]{8}-")


def test_the_golden_stream_becomes_the_golden_files(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    memhtml("init", "--repo", root)
    said = memhtml("apply", "--continue-on-error", "--repo", root, text=golden.stream())
    assert said.status == 0
    got = [_became(root, result) for result in said.data["results"]]
    assert got == [_undated(expected) for expected in golden.load("apply.json")]
    assert git(root, "status", "--porcelain") == ""


def _became(root: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result in the form of `apply.json`."""
    if not result["ok"]:
        return {"code": result["code"]}
    if result["deduped"]:
        return {"deduped": _undate(result["existing_path"])}
    with open(os.path.join(root, result["path"]), "rb") as file:
        data = file.read()
    return _undated(
        {
            "path": result["path"],
            "contentHash": record.content_hash(data),
            "html": data.decode(),
        }
    )


def _undate(path: str) -> str:
    return _DATE.sub("/{DATE}-", path)


def _undated(expected: dict[str, Any]) -> dict[str, Any]:
    """The same without instants of writing; a due day of the golden stream has a date alone."""
    if "html" not in expected:
        return expected
    head, rest = expected["html"].split('<meta name="memhtml-updated"', 1)
    stamp, rest = rest.split("\n", 1)
    return expected | {
        "path": _undate(expected["path"]),
        "html": f"{_INSTANT.sub('{AT}', head + stamp)}\n{rest}",
    }


def test_the_golden_store_is_indexed_to_the_golden_rows(tmp_path: Path) -> None:
    root = golden.golden_store(str(tmp_path / "store"))
    expected = golden.load("index.json")
    report = follow.rebuild(root, repo=Repo(root), embedder=None)
    with open_index(root) as index:
        found = golden.rows(index.conn)
    for table, rows in expected["tables"].items():
        assert found[table] == rows, table
    assert [path for path, _reason in report.skipped] == expected["skipped"]


def test_every_golden_record_is_read_with_its_hash(tmp_path: Path) -> None:
    root = golden.golden_store(str(tmp_path / "store"))
    rows = golden.load("index.json")["tables"]["files"]
    for row in rows:
        with open(os.path.join(root, row["path"]), "rb") as file:
            found = record.read(row["path"], file.read()).record
        assert found is not None
        assert (found.content_hash, found.blob_sha) == (row["content_hash"], row["blob_sha"])
        assert (found.title, found.claim, found.frame_key) == (
            row["title"],
            row["gist"],
            row["frame_key"],
        )


def test_the_access_tables_have_the_names_and_columns_of_the_reference(tmp_path: Path) -> None:
    """It opens a `state.db` of ours only when both migrations stand there under its names."""
    with open_index(str(tmp_path)):
        pass
    conn = sqlite3.connect(tmp_path / ".memhtml" / "state.db")
    names = [name for (name,) in conn.execute("SELECT name FROM schema_migrations ORDER BY name")]
    columns = [row[1] for row in conn.execute("PRAGMA table_info(access)")]
    conn.close()
    assert names == ["S0001_access.sql", "S0002_entity_corroboration.sql"]
    assert columns == [
        "path",
        "access_count",
        "reinforcement_count",
        "outcome_score",
        "last_accessed_at",
        "last_reinforced_at",
        "updated_at",
    ]


@pytest.mark.slow
def test_the_interop_script_finds_us_at_one_with_ourselves(tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    script = os.path.join(PROJECT, "scripts", "interop")
    words = ["--quick", "--json", str(rows), f"{sys.executable} -m memhtml"]
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    failed = [row for row in json.loads(rows.read_text()) if row["verdict"] == "FAIL"]
    assert (done.returncode, failed) == (0, []), done.stderr
