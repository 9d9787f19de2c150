"""Folders from rows in path order: each once, complete, after those in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memhtml.publish.folders import Child, Folder, folders_of, newest_first
from memhtml.publish.rows import Row
from memhtml_format.paths import BUCKETS


def row(path: str, updated_at: str = "2026-01-01") -> Row:
    """A memory at a path."""
    return Row(path, "T", "C", "semantic", updated_at, None, None, None)


def folders(*paths: str) -> list[Folder]:
    """The folders of memories at these paths, as they come."""
    return list(folders_of(map(row, sorted(paths))))


def test_store_without_memories_has_its_buckets() -> None:
    found = folders()
    assert [folder.path for folder in found] == [*BUCKETS, ""]
    assert found[-1].children == [Child(bucket, 0) for bucket in BUCKETS]
    assert [folder.listing for folder in found[-2:]] == ["archive/index.html", "index.html"]


def test_folder_comes_after_those_in_it_and_counts_what_lies_below() -> None:
    found = folders("areas/a/x.html", "areas/a/b/y.html", "areas/a/b.html", "areas/a-b/z.html")
    shown = [(folder.path, len(folder.rows), folder.total) for folder in found[:4]]
    assert shown == [
        ("areas/a-b", 1, 1),
        ("areas/a/b", 1, 1),
        ("areas/a", 2, 3),
        ("areas", 0, 4),
    ]
    assert found[2].children == [Child("b", 1)]
    assert found[3].children == [Child("a-b", 1), Child("a", 3)]


def test_newest_update_below_is_the_folders_own() -> None:
    rows = [row("areas/a/old.html", "2025-01-01"), row("areas/new.html", "2026-02-02")]
    found = {folder.path: folder.newest for folder in folders_of(rows)}
    assert found["areas/a"] == "2025-01-01"
    assert found["areas"] == found[""] == "2026-02-02"
    assert found["projects"] == ""


def test_archive_and_all_in_it_is_told_apart() -> None:
    found = {
        folder.path: folder.archived for folder in folders("archive/2026/a.html", "areas/b.html")
    }
    assert found == {
        **dict.fromkeys(["archive", "archive/2026"], True),
        **dict.fromkeys(["areas", "projects", "resources", ""], False),
    }


def test_rows_are_ordered_by_their_update_and_then_by_path() -> None:
    rows = [row("b", "2026"), row("c", "2027"), row("a", "2026")]
    assert [each.path for each in newest_first(rows)] == ["c", "a", "b"]


SEGMENT = st.text(st.sampled_from("ab-./é".replace("/", "")), min_size=1, max_size=3).filter(
    lambda text: text not in (".", "..")
)
PATHS = st.sets(
    st.builds(
        lambda bucket, folders, name: "/".join([bucket, *folders, f"{name}.html"]),
        st.sampled_from(BUCKETS),
        st.lists(SEGMENT, max_size=3),
        SEGMENT,
    ),
    max_size=20,
)


@given(PATHS)
def test_every_folder_on_the_way_to_a_memory_comes_exactly_once(paths: set[str]) -> None:
    # A path cannot be a folder and a file, so drop those that are.
    files = {path for path in paths if not any(other.startswith(f"{path}/") for other in paths)}
    found = folders(*files)
    expected = {"", *BUCKETS}
    for path in files:
        parts = path.split("/")[:-1]
        expected |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    assert sorted(folder.path for folder in found) == sorted(expected)
    for folder in found:
        prefix = f"{folder.path}/" if folder.path else ""
        assert folder.total == sum(path.startswith(prefix) for path in files)
        assert sorted(each.path for each in folder.rows) == sorted(
            path for path in files if path.rpartition("/")[0] == folder.path
        )
        assert folder.total == len(folder.rows) + sum(child.total for child in folder.children)
