"""The table of spec `harvest` §3.3, row by row, on plain values."""

from __future__ import annotations

import pytest
from tests.support.harvest import Doc, judge, summary

from memhtml_harvest.diff import harvest
from memhtml_harvest.report import (
    REJECTED_CAP,
    SHOWN_PATH_CHARS,
    SHOWN_REASON_CHARS,
    Rejected,
)
from memhtml_harvest.rows import FILE_BYTES_CAP
from memhtml_harvest.seed import FileEntry, MapSeed

NOTE = "areas/inbox/note.html"


class Unreadable(FileEntry):
    """A file whose bytes cannot be had."""

    def read(self, limit: int) -> bytes:
        raise PermissionError(13, "Permission denied")


class Untouchable(FileEntry):
    """An entry that must not be opened."""

    def read(self, limit: int) -> bytes:
        raise AssertionError("the harvest opened what it must not open")


def test_no_change_gives_an_empty_harvest() -> None:
    assert judge({NOTE: Doc()}, {NOTE: Doc()}) == ((), ())


def test_equal_bytes_are_skipped_before_every_rule() -> None:
    seed = {"areas/arcs/arc.html": Doc(), "areas/.git/x.html": Doc(), "archive/bad.html": Doc()}
    entries = {path.encode(): FileEntry(doc.data) for path, doc in seed.items()}
    data = {path: doc.data for path, doc in seed.items()}

    assert harvest(entries, (), MapSeed(data), scope="session") == ((), ())


def test_a_seeded_record_over_the_cap_is_no_change_when_only_touched() -> None:
    big = b"x" * (FILE_BYTES_CAP + 1)
    entries = {NOTE.encode(): FileEntry(big)}

    assert harvest(entries, (), MapSeed({NOTE: big}), scope="session") == ((), ())


def test_new_file_is_a_put_with_its_own_text() -> None:
    text = "\ufeff<p>any\r\ntext</p>\0"

    assert judge({}, {NOTE: text.encode()}).ops == (("areas/inbox/note.html", text, "put"),)


@pytest.mark.parametrize(
    ("name", "outermost"),
    [
        (b".git", b".git"),
        (b".git/refs/a.html", b".git"),
        (b"areas/.GIT/x", b"areas/.GIT"),
        (b"areas/.Git/.git/x", b"areas/.Git"),
        (b"a\xff/.git/x", b"a\xff/.git"),
    ],
)
def test_git_entries_are_one_rejection_for_the_outermost(name: bytes, outermost: bytes) -> None:
    result = judge({}, {name: FileEntry(), name + b"\xff": FileEntry(kind="pipe")})

    shown = outermost.decode("utf-8", "replace")
    codes = [item.code for item in result.rejected if item.path == shown]
    assert result.ops == ()
    assert codes == ["git-internal"]


def test_names_that_only_resemble_git_are_no_git_entries() -> None:
    result = judge({}, {"areas/.gitignore.html": Doc(), "areas/x.git/y.html": Doc()})

    assert summary(result)[0] == ["put areas/.gitignore.html", "put areas/x.git/y.html"]


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "device"])
@pytest.mark.parametrize("name", [b"areas/inbox/x.html", b"index.html", b"x.txt", b"a\xff.html"])
def test_special_files_are_never_opened_and_say_so_before_their_name_counts(
    kind: str, name: bytes
) -> None:
    result = judge({}, {name: Untouchable(kind=kind)})

    assert [item.code for item in result.rejected] == ["not-a-regular-file"]
    assert result.ops == ()


def test_entries_below_the_walk_are_no_memory_path() -> None:
    result = judge({}, {"areas/deep/x": Untouchable(kind="too-deep")})

    assert summary(result) == ([], ["not-a-memory-path areas/deep/x"])


def test_undecodable_names_are_shown_with_one_replacement_for_each_sequence() -> None:
    result = judge({}, {b"areas/\xff\xfe.html": FileEntry(), b"areas/\xfe\xff.html": FileEntry()})

    assert summary(result)[1] == ["not-a-memory-path areas/��.html"] * 2


def test_a_truncated_sequence_is_one_replacement() -> None:
    result = judge({}, {b"areas/\xe2\x82x.html": FileEntry()})

    assert [item.path for item in result.rejected] == ["areas/�x.html"]


@pytest.mark.parametrize("name", ["areas/a\nb.txt", "areas/\x7f/index.html", "a\x01"])
def test_control_characters_come_before_every_rule_about_names(name: str) -> None:
    assert summary(judge({}, {name: Doc()}))[1] == [f"not-a-memory-path {name}"]


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "areas/index.html",
        ".memhtml/sitemap.xml",
        "sitemap.xml",
        "archive/2026/areas/index.html",
        "memhtml.config.json",
        ".memhtml/state.html",
        ".memhtml/a/b.html",
        "areas/arcs/arc.html",
        "resources/people/a/b.html",
        "archive/2026/areas/arcs/arc.html",
        "archive/2026.2/resources/people/p.html",
        "archive/2025/archive/2026/resources/people/p.html",
    ],
)
def test_reserved_names_are_listed(name: str) -> None:
    assert summary(judge({}, {name: Doc()})) == ([], [f"reserved-path {name}"])


def test_reserved_folders_open_under_curation_and_the_stores_own_stay_closed() -> None:
    after = {
        "areas/arcs/arc.html": Doc(),
        "resources/people/p.html": Doc(),
        ".memhtml/x.html": Doc(),
        "areas/index.html": Doc(),
    }
    result = judge({}, after, scope="curate")

    assert summary(result) == (
        ["put areas/arcs/arc.html", "put resources/people/p.html"],
        ["reserved-path .memhtml/x.html", "reserved-path areas/index.html"],
    )
    assert all("no session" in item.reason for item in result.rejected)


def test_reason_of_a_curation_path_says_who_writes_it() -> None:
    assert "only curation" in judge({}, {"areas/arcs/a.html": Doc()}).rejected[0].reason


@pytest.mark.parametrize(
    "name", ["areas/inbox/x.md", "areas/inbox/X.HTML", ".memhtml/z.json", "archive", "x/areas"]
)
def test_other_suffixes_are_not_read(name: str) -> None:
    assert summary(judge({}, {name: Untouchable()}))[1] == [f"not-html {name}"]


@pytest.mark.parametrize(
    "name",
    [
        "loose.html",
        "README.html",
        "notes/x.html",
        "Areas/x.html",
        "areas/a\\b.html",
        "archive/x.html",
        "archive/26/areas/x.html",
        "archive/2026.1/areas/x.html",
        "archive/2026.02/areas/x.html",
        "archive/2026/x.html",
        "archive/2026/.memhtml/x.html",
    ],
)
def test_paths_that_hold_no_memory_are_listed(name: str) -> None:
    assert summary(judge({}, {name: Untouchable()}))[1] == [f"not-a-memory-path {name}"]


def test_file_below_a_record_is_listed_whether_the_record_is_there_or_not() -> None:
    result = judge({NOTE: Doc()}, {f"{NOTE}/below.html": Untouchable()})

    assert summary(result)[1] == [f"deleted {NOTE}", f"path-under-record {NOTE}/below.html"]


def test_file_in_place_of_a_folder_of_records_is_listed() -> None:
    result = judge({"areas/f.html/x.html": Doc()}, {"areas/f.html": Doc("Other words.")})

    assert summary(result)[1] == ["path-under-record areas/f.html", "deleted areas/f.html/x.html"]


def test_neighbours_of_a_folder_name_are_not_below_it() -> None:
    result = judge(
        {"areas/f.html-x/a.html": Doc()},
        {
            "areas/f.html-x/a.html": Doc(),
            "areas/f.html": Doc("Other words."),
        },
    )

    assert summary(result) == (["put areas/f.html"], [])


def test_size_is_asked_before_a_byte_is_read() -> None:
    giant = Untouchable(size_bytes=1 << 40)

    assert summary(judge({}, {NOTE: giant}))[1] == [f"too-large {NOTE}"]


def test_a_file_of_exactly_the_cap_is_taken() -> None:
    assert summary(judge({}, {NOTE: b"a" * FILE_BYTES_CAP}))[0] == [f"put {NOTE}"]
    assert summary(judge({}, {NOTE: b"a" * (FILE_BYTES_CAP + 1)}))[1] == [f"too-large {NOTE}"]


def test_a_file_that_holds_more_than_it_stated_is_too_large() -> None:
    class Growing(FileEntry):
        def read(self, limit: int) -> bytes:
            return b"a" * limit

    assert summary(judge({}, {NOTE: Growing(b"a")}))[1] == [f"too-large {NOTE}"]


def test_unreadable_and_undecodable_records_are_present_and_not_deleted() -> None:
    before = {NOTE: Doc(), "areas/inbox/other.html": Doc("Other words.")}
    after = {NOTE: Unreadable(b"x" * len(Doc().data)), "areas/inbox/other.html": b"\xff"}

    assert summary(judge(before, after))[1] == [
        f"unreadable {NOTE}",
        "not-utf8 areas/inbox/other.html",
    ]


def test_surrogates_spelled_in_utf8_are_not_utf8() -> None:
    assert summary(judge({}, {NOTE: b"\xed\xa0\x80"}))[1] == [f"not-utf8 {NOTE}"]


def test_edit_of_an_archived_record_is_listed_whatever_changed() -> None:
    path = "archive/2026/areas/inbox/note.html"
    reserved = "archive/2026/areas/arcs/arc.html"
    before = {path: Doc(), reserved: Doc("Arc.")}
    after = {path: Doc("Other words."), reserved: Doc("Arc.", title="Other")}

    assert summary(judge(before, after)) == (
        [],
        [f"archived-record {reserved}", f"archived-record {path}"],
    )


def test_empty_file_is_a_put_for_the_bar_to_judge() -> None:
    assert summary(judge({}, {NOTE: b""}))[0] == [f"put {NOTE}"]


def test_new_archive_copy_of_nothing_is_a_put() -> None:
    path = "archive/2031.7/areas/inbox/note.html"

    assert summary(judge({}, {path: Doc()})) == ([f"put {path}"], [])


def test_names_are_compared_exactly() -> None:
    before = {"areas/caf\u00e9.html": Doc(), "areas/A.html": Doc("Upper.")}
    after = {
        **before,
        "areas/cafe\u0301.html": Doc("Decomposed."),
        "areas/a.html": Doc("Lower."),
    }

    assert summary(judge(before, after))[0] == [
        "put areas/a.html",
        "put areas/cafe\u0301.html",
    ]


def test_every_reason_starts_with_its_code() -> None:
    result = judge({}, {"x.txt": FileEntry(), "x.html": FileEntry()})

    assert all(item.reason.startswith(f"{item.code}: ") for item in result.rejected)
    assert Rejected("x", "not-html: a: b").code == "not-html"


def test_rejections_past_the_cap_are_counted_in_one_last_entry() -> None:
    names = [f"n{n:04}.txt" for n in range(REJECTED_CAP + 3)]
    rejected = judge({}, {name: FileEntry() for name in reversed(names)}).rejected

    assert [item.path for item in rejected] == names[: REJECTED_CAP + 1]
    assert rejected[-1].code == "not-html"
    assert "and 2 more rejected changes" in rejected[-1].reason
    assert not any("more rejected" in item.reason for item in rejected[:-1])


def test_one_rejection_past_the_cap_is_listed_like_any_other() -> None:
    names = [f"n{n:04}.txt" for n in range(REJECTED_CAP + 1)]
    rejected = judge({}, {name: FileEntry() for name in names}).rejected

    assert len({item.reason for item in rejected}) == 1
    assert [item.path for item in rejected] == names


def test_names_beyond_measure_are_cut_in_rejections_and_keep_their_order() -> None:
    folder = "/".join(["\x01" * 250] * 20)
    names = [f"{folder}/{last}" for last in "ba"] + ["c"]
    rejected = judge({}, {name: FileEntry(kind="pipe") for name in names}).rejected

    cut = f"{folder[:SHOWN_PATH_CHARS]}…"
    assert [item.path for item in rejected] == [cut, cut, "c"]


def test_explanations_beyond_measure_are_cut() -> None:
    title = Doc(title="Old")
    links = tuple(("supports", f"/areas/{n:04}.html") for n in range(1_000))
    item = judge({NOTE: title}, {NOTE: title._replace(title="New", links=links)}).rejected[0]

    assert item.code == "head-edit"
    assert len(item.reason) == len("head-edit: ") + SHOWN_REASON_CHARS + 1
    assert item.reason.endswith("…")
