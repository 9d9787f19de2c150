"""Recorded runs on disk: what is written is what is read, and a bad folder says why."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.harvest import Doc

from memhtml_format.ops import AddLabel, Put
from memhtml_harvest.fixture import (
    Expect,
    Fixture,
    FixtureError,
    differences,
    load,
    save,
    to_json,
)
from memhtml_harvest.rows import FILE_BYTES_CAP
from memhtml_harvest.seed import Entry, FileEntry

NOTE = "areas/inbox/note ☕.html"


class Unreadable(FileEntry):
    """A file whose bytes cannot be had."""

    def read(self, limit: int) -> bytes:
        raise PermissionError


def expect(**changes: Any) -> Expect:
    plain = Expect(
        exit_code=0,
        timed_out=False,
        stdout="out\n",
        stderr="",
        harvested=({"kind": "put", "path": NOTE},),
        rejected=({"path": "x.txt", "reason": "not-html: because"},),
        violations=({"kind": "format", "path": NOTE, "reasons": ["one"]},),
        blocking=(f"{NOTE}: one",),
        appended=0,
    )
    return plain._replace(**changes)


def fixture(after: Mapping[bytes, Entry] | None = None, **changes: Any) -> Fixture:
    plain = Fixture(
        name="a-run",
        lang="bash",
        timeout_ms=30_000,
        run_bound=True,
        scope="curate",
        policy={"writeBar": {"requireAnchor": True}},
        ops=(Put("areas/a.html", "<p>é\r\n"), AddLabel("areas/a.html", "a:b")),
        limits={"procs": 4},
        vanished=("areas/b.html", "areas/a.html"),
        expect=expect(),
        script=b"echo \xff\r\n",
        seed={NOTE: Doc().data, "areas/crlf.html": b"a\r\nb"},
        base={"areas/a.html": b"before", "areas/notes": b"", "areas/link": None},
        after=after or {},
    )
    return plain._replace(**changes)


def test_fixture_survives_a_round_trip(tmp_path: Path) -> None:
    before = fixture()
    save(tmp_path / "new" / "folder", before)

    after = load(tmp_path / "new" / "folder")

    assert after == before._replace(vanished=("areas/a.html", "areas/b.html"))


def test_fixture_file_has_the_fields_of_the_table_in_its_order() -> None:
    value = to_json(fixture())

    fields = "format name lang timeoutMs runBound scope policy ops limits vanished expect"
    answers = "exitCode timedOut stdout stderr harvested rejected violations blocking appended"
    assert " ".join(value) == fields
    assert " ".join(value["expect"]) == answers


def test_after_tree_keeps_kinds_sizes_and_names(tmp_path: Path) -> None:
    entries: dict[bytes, Entry] = {
        b"areas/a.html": FileEntry(b"text\r\n"),
        b"areas/empty.html": FileEntry(),
        b"areas/\xff.html": FileEntry(b"x"),
        b"areas/.git/HEAD": FileEntry(b"x"),
        b"areas/link.html": FileEntry(kind="link"),
        b"areas/pipe.html": FileEntry(kind="pipe"),
        b"areas/socket.html": FileEntry(kind="socket"),
        b"areas/deep": FileEntry(kind="too-deep"),
        b"areas/giant.html": FileEntry(size_bytes=1 << 30),
        b"areas/shut.html": Unreadable(b"abc"),
    }
    save(tmp_path, fixture(entries))

    after = load(tmp_path).after

    assert {raw: entry.kind for raw, entry in after.items()} == {
        raw: entry.kind for raw, entry in entries.items()
    }
    assert after[b"areas/a.html"].read(100) == b"text\r\n"
    assert after[b"areas/a.html"].read(2) == b"te"
    assert after[b"areas/giant.html"].size == 1 << 30
    assert os.stat(tmp_path / "after/areas/giant.html").st_blocks == 0
    with pytest.raises(OSError, match="recorded as unreadable"):
        after[b"areas/shut.html"].read(1)


def test_file_of_exactly_the_cap_keeps_its_bytes(tmp_path: Path) -> None:
    data = b"a" * FILE_BYTES_CAP
    save(tmp_path, fixture({b"areas/a.html": FileEntry(data)}))

    assert load(tmp_path).after[b"areas/a.html"].read(FILE_BYTES_CAP + 1) == data


def test_file_whose_bytes_were_not_kept_has_its_size_and_takes_no_room(tmp_path: Path) -> None:
    class Unkept(FileEntry):
        def read(self, limit: int) -> bytes:
            return b""

    save(tmp_path, fixture({b"areas/a.html": Unkept(size_bytes=FILE_BYTES_CAP)}))

    assert load(tmp_path).after[b"areas/a.html"].size == FILE_BYTES_CAP
    assert os.stat(tmp_path / "after/areas/a.html").st_blocks == 0


def test_link_in_an_after_tree_is_not_followed(tmp_path: Path) -> None:
    save(tmp_path, fixture())
    (tmp_path / "after/areas").symlink_to(tmp_path / "seed/areas")

    assert [(raw, entry.kind) for raw, entry in load(tmp_path).after.items()] == [
        (b"areas", "link")
    ]


@pytest.mark.parametrize("path", ["../out.html", "areas/../../out.html", "/abs.html", ""])
def test_path_that_leads_out_of_the_folder_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match="no path below a fixture"):
        save(tmp_path / "f", fixture(seed={path: b""}))

    assert not (tmp_path / "out.html").exists()


def test_folder_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FixtureError) as caught:
        save(tmp_path / "file", fixture())

    assert str(tmp_path / "file") in caught.value.path


def test_missing_folder_is_no_fixture(tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match="no fixture") as caught:
        load(tmp_path / "none")

    assert caught.value.path == str(tmp_path / "none")


def test_link_in_a_seed_is_refused(tmp_path: Path) -> None:
    save(tmp_path, fixture())
    (tmp_path / "seed/areas/link.html").symlink_to("crlf.html")

    with pytest.raises(FixtureError, match="regular files alone"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 2}, "format 2 is not 1"),
        ({"format": True}, "format has the wrong type"),
        ({"lang": "ruby"}, "lang is not one of bash, js"),
        ({"scope": "all"}, "scope is not one of"),
        ({"policy": []}, "policy has the wrong type"),
        ({"vanished": [1]}, "vanished is not a list of strings"),
        ({"ops": [{"kind": "erase"}]}, "ops: unknown operation kind"),
        ({"extra": 1}, "expected an object with the keys"),
        ({"expect": {}}, "expected an object with the keys"),
    ],
)
def test_bad_field_is_named(change: dict[str, object], why: str, tmp_path: Path) -> None:
    save(tmp_path, fixture())
    value = to_json(fixture()) | change
    (tmp_path / "fixture.json").write_text(json.dumps(value))

    with pytest.raises(FixtureError, match=why):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rejected": [{"path": "x"}]}, "path, reason"),
        ({"violations": ["x"]}, "violations is not a list of objects"),
        ({"blocking": [1]}, "blocking is not a list of strings"),
        ({"exitCode": "0"}, "exitCode has the wrong type"),
    ],
)
def test_bad_expectation_is_named(change: dict[str, object], why: str, tmp_path: Path) -> None:
    save(tmp_path, fixture())
    value = to_json(fixture())
    value["expect"] |= change
    (tmp_path / "fixture.json").write_text(json.dumps(value))

    with pytest.raises(FixtureError, match=why):
        load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"rejected": ({"path": "x.txt", "reason": "not-html: said otherwise"},)},
        {"violations": ({"kind": "format", "path": NOTE, "reasons": ["said otherwise"]},)},
        {"blocking": ("said otherwise",)},
    ],
)
def test_wording_is_no_difference(change: dict[str, object]) -> None:
    assert differences(expect(), expect(**change)) == []


def test_instants_of_archive_stamps_are_no_difference() -> None:
    lines = [
        f'<meta name="memhtml-archived" content="{at}">\n'
        for at in ("2026-01-01T00:00:00Z", "2027-02-02T01:01:01Z")
    ]

    assert differences(expect(stdout=lines[0]), expect(stdout=lines[1])) == []
    assert differences(expect(stdout=lines[0]), expect(stdout="")) != []


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("exitCode", {"exit_code": 1}),
        ("timedOut", {"timed_out": True}),
        ("stdout", {"stdout": ""}),
        ("stderr", {"stderr": "x"}),
        ("harvested", {"harvested": ()}),
        ("rejected", {"rejected": ({"path": "x.txt", "reason": "deleted: x"},)}),
        ("rejected", {"rejected": ({"path": "y.txt", "reason": "not-html: because"},)}),
        ("violations", {"violations": ()}),
        ("blocking", {"blocking": ()}),
        ("appended", {"appended": 1}),
    ],
)
def test_every_field_of_an_expectation_is_compared(field: str, change: dict[str, object]) -> None:
    found = differences(expect(), expect(**change))

    assert [difference.field for difference in found] == [field]
