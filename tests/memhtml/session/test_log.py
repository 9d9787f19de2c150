"""The log file: what decodes, what is refused and why, and writes that cannot lose anything."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyfakefs.fake_filesystem import FakeFilesystem
from tests.support.session import make_store

from memhtml.errors import StorageError
from memhtml.session.log import (
    Log,
    append,
    decode_log,
    encode_log,
    log_path,
    make_folder,
    read_log,
    sessions_folder,
    store_log,
    update,
    update_held,
)
from memhtml.store.lock import session_lock
from memhtml_format.ops import AddLabel, AddLink, Archive, DropLabel, DropLink, Move, Op, Put

SHA = "3f8a37e2af22c26d600a68e5f5179145c25318d3"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OPS = st.one_of(
    st.builds(Put, TEXT, TEXT),
    st.builds(AddLink, TEXT, TEXT, TEXT),
    st.builds(DropLink, TEXT, TEXT, TEXT),
    st.builds(AddLabel, TEXT, TEXT),
    st.builds(DropLabel, TEXT, TEXT),
    st.builds(Archive, TEXT, TEXT, TEXT),
    st.builds(Move, TEXT, TEXT, TEXT),
)


@given(st.lists(OPS, max_size=6), st.booleans(), st.data())
def test_log_decodes_to_what_was_encoded(ops: list[Op], pending: bool, data: st.DataObject) -> None:
    carried = data.draw(st.integers(0, len(ops))) if pending else 0
    log = Log("s1", SHA, "refs/heads/main", tuple(ops), SHA if pending else None, carried)
    assert decode_log(encode_log(log), "s1") == log


@given(st.binary(max_size=200))
def test_any_bytes_give_a_log_or_a_named_reason(data: bytes) -> None:
    with pytest.raises(StorageError) as caught:
        decode_log(data, "s1")
    assert caught.value.reason in ("session.parse", "session.decode", "session.id-mismatch")


def shape(**changes: object) -> bytes:
    """An empty log as JSON with some fields changed; None takes a field out."""
    value: dict[str, object] = {"id": "s1", "baseSha": SHA, "ref": "refs/heads/main", "ops": []}
    value.update(changes)
    return json.dumps({k: v for k, v in value.items() if v is not None}).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "session.parse"),
        (b"\xff\xfe", "session.parse"),
        (b"[" * 100_000, "session.parse"),
        (b"[]", "session.decode"),
        (shape(extra=1), "session.decode"),
        (shape(ops=None), "session.decode"),
        (shape(ops={}), "session.decode"),
        (shape(baseSha=SHA.upper()), "session.decode"),
        (shape(baseSha=SHA[:39]), "session.decode"),
        (shape(ref="main"), "session.decode"),
        (shape(ref=3), "session.decode"),
        (shape(ref="refs/heads/a..b"), "session.decode"),
        (shape(ref="refs/heads/\ud800"), "session.decode"),
        (shape(id="\udfff"), "session.decode"),
        (shape(ops=[{"kind": "label", "path": "a", "entity": "\udc00"}]), "session.decode"),
        (shape(ops=[{"kind": "put", "path": "a", "html": "\ud83d"}]), "session.decode"),
        (shape().replace(b"s1", b"\xed\xa0\x80"), "session.parse"),
        (shape(pending="x"), "session.decode"),
        (shape(pendingOps=0), "session.decode"),
        (shape(pending=SHA, pendingOps=1), "session.decode"),
        (shape(pending=SHA, pendingOps=True), "session.decode"),
        (shape(ops=[{"kind": "delete", "path": "a"}]), "session.decode"),
        (shape(ops=[{"kind": "put", "path": "a"}]), "session.decode"),
        (shape(ops=[{"kind": "put", "path": "a", "html": 1}]), "session.decode"),
        (shape(ops=[{"kind": "put", "path": "a", "html": "", "rel": ""}]), "session.decode"),
        (shape(id="s2"), "session.id-mismatch"),
    ],
)
def test_bad_log_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(StorageError) as caught:
        decode_log(data, "s1")
    assert caught.value.reason == reason


def test_an_escaped_pair_of_surrogates_is_the_character_it_stands_for(tmp_path: Path) -> None:
    op = {"kind": "put", "path": "a", "html": "\U0001f600 \\ud800"}
    data = shape(ops=[op])
    assert b"\\ud83d\\ude00" in data
    assert decode_log(data, "s1").ops == (Put("a", "\U0001f600 \\ud800"),)


def test_log_without_pending_ops_is_read_as_carrying_all(tmp_path: Path) -> None:
    op = {"kind": "label", "path": "a", "entity": "b:c"}
    assert decode_log(shape(pending=SHA, ops=[op, op]), "s1").pending_ops == 2


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one empty session."""
    root = make_store(str(tmp_path / "store"))
    make_folder(root)
    store_log(root, Log("s1", SHA, "refs/heads/main"))
    return root


def test_missing_log_suggests_starting_it(store: str) -> None:
    with pytest.raises(StorageError) as caught:
        read_log(store, "s2")
    assert caught.value.reason == "session.read"
    assert caught.value.suggestions == ("memhtml session start --id s2",)


def test_update_writes_nothing_when_the_operations_moved(store: str) -> None:
    mine, theirs = AddLabel("a", "b:c"), AddLabel("a", "d:e")
    update(store, "s1", (), lambda log: log._replace(ops=(theirs,)))
    before = Path(log_path(store, "s1")).read_bytes()
    with pytest.raises(StorageError) as caught:
        update(store, "s1", (), lambda log: log._replace(ops=(mine,)))
    assert caught.value.reason == "session.moved"
    assert Path(log_path(store, "s1")).read_bytes() == before


def test_update_is_refused_while_another_holds_the_lock(store: str) -> None:
    with session_lock(store, "s1"), pytest.raises(StorageError) as caught:
        update(store, "s1", (), lambda log: log)
    assert caught.value.reason == "session.locked"


def test_rebase_between_read_and_append_keeps_the_new_base(store: str) -> None:
    other = "0" * 40
    update(store, "s1", (), lambda log: log._replace(base_sha=other))
    op = AddLabel("a", "b:c")
    assert update(store, "s1", (), lambda log: log._replace(ops=(op,))).base_sha == other


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_full_disk_leaves_the_old_log_and_no_litter(
    store: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    before = Path(log_path(store, "s1")).read_bytes()
    names = sorted(os.listdir(os.path.dirname(log_path(store, "s1"))))

    def full(*_arguments: object, **_named: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    op, stored = AddLabel("a", "b:c"), read_log(store, "s1")
    with session_lock(store, "s1") as lock:
        monkeypatch.setattr(f"os.{call}", full)
        with pytest.raises(StorageError) as caught:
            update_held(store, stored, lambda log: log._replace(ops=(op,)), lock)
        monkeypatch.undo()
    assert caught.value.reason == "session.write"
    assert Path(log_path(store, "s1")).read_bytes() == before
    assert sorted(os.listdir(os.path.dirname(log_path(store, "s1")))) == names


def test_log_that_no_longer_fits_on_the_disk_stays_as_it_was(fs: FakeFilesystem) -> None:
    fs.create_dir("/store/.memhtml/sessions")
    log = Log("s1", SHA, "refs/heads/main", (AddLabel("a", "b:c"),))
    store_log("/store", log)
    fs.set_disk_usage(fs.get_disk_usage()[1] + 512)
    big = log._replace(ops=(Put("areas/inbox/a.html", "x" * 4096),))
    with pytest.raises(StorageError) as caught:
        store_log("/store", big)
    assert caught.value.reason == "session.write"
    assert read_log("/store", "s1") == log
    assert os.listdir("/store/.memhtml/sessions") == ["s1.json"]


def test_a_held_lock_that_was_lost_writes_nothing(store: str) -> None:
    stored = read_log(store, "s1")
    with session_lock(store, "s1") as lock:
        Path(lock.path, "holder").write_text('{"pid": 1, "token": "another"}', encoding="utf-8")
        with pytest.raises(StorageError) as caught:
            update_held(store, stored, lambda log: log._replace(ops=(AddLabel("a", "b:c"),)), lock)
    assert caught.value.reason == "session.locked"
    assert read_log(store, "s1") == stored


@pytest.mark.parametrize("change", [{"pending": SHA}, {"ops": (AddLabel("a", "b:c"),)}])
def test_a_commit_writes_only_over_the_log_it_settled(store: str, change: dict[str, Any]) -> None:
    stored = read_log(store, "s1")
    theirs = stored._replace(**change)
    store_log(store, theirs)
    with session_lock(store, "s1") as lock, pytest.raises(StorageError) as caught:
        update_held(store, stored, lambda log: log._replace(base_sha="0" * 40), lock)
    assert caught.value.reason == "session.moved"
    assert read_log(store, "s1") == theirs


def test_append_answers_the_log_with_the_operations_added(store: str) -> None:
    first, second = AddLabel("a", "b:c"), AddLabel("a", "d:e")
    log = append(store, read_log(store, "s1"), [first])
    assert append(store, log, [second]).ops == (first, second) == read_log(store, "s1").ops


def test_a_folder_that_was_there_before_is_kept_out_of_git_as_well(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    Path(root, ".gitignore").write_text("", encoding="utf-8")
    os.makedirs(sessions_folder(root))
    make_folder(root)
    assert ".memhtml" in Path(root, ".git", "info", "exclude").read_text(encoding="utf-8")


def test_reading_an_empty_log_loads_no_operations_and_no_parser(store: str) -> None:
    code = (
        "import sys\n"
        "from memhtml.session.log import append, read_log\n"
        f"assert read_log({store!r}, 's1').ops == ()\n"
        "heavy = {'memhtml_format.ops', 'memhtml_format.render', 'selectolax', 'pygit2'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
