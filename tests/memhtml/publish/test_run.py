"""`publish` over stores: what it commits, what it leaves alone, and that it is done after once."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path
from urllib.parse import unquote

import pytest
from lxml import html as lxml_html
from tests.support.health import follow, indexed_store, land
from tests.support.reads import link, task
from tests.support.session import changed_in, checkout_state, die, git, in_child, log_subjects, page

from memhtml.errors import MemhtmlError, StorageError
from memhtml.index.database import open_index
from memhtml.publish.run import publish
from memhtml.store import land as landing
from memhtml.store.land import Landing

A, B = "areas/inbox/a.html", "resources/queue/b.html"
FIRST = [
    "archive/index.html",
    "areas/inbox/index.html",
    "areas/index.html",
    "index.html",
    "projects/index.html",
    "resources/index.html",
    "resources/queue/index.html",
    "sitemap.xml",
]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of two memories, indexed and not published."""
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    return indexed_store(str(tmp_path / "store"), {A: page("Fact a."), B: page("Fact b.")})


def hrefs(root: str, listing: str) -> list[str]:
    """The addresses on a page."""
    tree = lxml_html.fromstring(Path(root, listing).read_bytes())
    return [str(each.get("href")) for each in tree.iter("a")]


def test_first_run_commits_every_page_and_the_second_nothing(root: str) -> None:
    Path(root, "areas/other.txt").write_text("staged")
    git(root, "add", "areas/other.txt")
    report = publish(root)
    sha = git(root, "rev-parse", "HEAD")
    assert report == {
        "root": root,
        "artifacts": 8,
        "written": 8,
        "paths": FIRST,
        "commitSha": sha,
    }
    assert log_subjects(root)[0] == "memhtml(publish): regenerate 8 generated artifacts"
    assert changed_in(root, sha) == sorted(FIRST)
    assert checkout_state(root) == "A  areas/other.txt"
    again = publish(root)
    assert again == {**report, "written": 0, "paths": [], "commitSha": None}
    assert git(root, "rev-parse", "HEAD") == sha


def test_every_address_leads_to_a_file(root: str) -> None:
    land(root, {f"archive/2026/{A}": page("Old."), "projects/p q/x#1.html": page("Odd.")})
    publish(root)
    committed = git(root, "ls-files", "-z").split("\0")
    pages = [path for path in committed if path.endswith("index.html")]
    assert len(pages) == 11
    for listing in pages:
        for href in hrefs(root, listing):
            assert Path(root, Path(listing).parent, unquote(href)).is_file(), (listing, href)
    assert "../../archive/2026/areas/inbox/index.html" in hrefs(root, "areas/inbox/index.html")


def test_change_rewrites_the_pages_that_show_it_and_no_other(root: str) -> None:
    publish(root)
    land(root, {A: page("Fact a, newer.", title="Newer")})
    report = publish(root)
    assert report["paths"] == ["areas/inbox/index.html", "index.html"]
    assert report["written"] == 2


def test_index_that_is_behind_is_brought_forward_first(root: str) -> None:
    Path(root, "areas/new.html").write_text(page("New."))
    git(root, "add", "areas/new.html")
    git(root, "commit", "-qm", "by hand")
    publish(root)
    assert "new.html" in hrefs(root, "areas/index.html")


def test_store_that_was_never_indexed_is_published_whole(root: str) -> None:
    for file in Path(root, ".memhtml").glob("index.db*"):
        file.unlink()
    assert publish(root)["artifacts"] == 8


def test_uncommitted_edit_is_not_published(root: str) -> None:
    gone, new = "areas/inbox/gone.html", "areas/inbox/new.html"
    land(root, {gone: page("Fact gone.", title="Was here")})
    Path(root, A).write_text(page("Half an edit.", title="Half an edit"))
    Path(root, new).write_text(page("Untracked.", title="Untracked"))
    Path(root, gone).unlink()
    follow(root, dirty=True)
    publish(root)
    text = Path(root, "areas/inbox/index.html").read_text()
    assert ("Fact a." in text, "Was here" in text) == (True, True)
    assert ("Half an edit" in text, "Untracked" in text) == (False, False)
    assert new not in Path(root, "sitemap.xml").read_text()


def test_listing_of_a_folder_that_is_gone_is_removed(root: str) -> None:
    publish(root)
    land(root, {B: None, f"archive/2026/{B}": page("Fact b.")})
    report = publish(root)
    assert "resources/queue/index.html" in report["paths"]
    assert report["written"] == len(report["paths"])
    assert not Path(root, "resources/queue").exists()
    assert publish(root)["paths"] == []


def test_page_that_somebody_wrote_and_no_commit_holds_is_left_alone(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {"index.html": "<h1>Mine</h1>", "areas/inbox/index.html": "<h1>Mine too</h1>"}
    for path, text in mine.items():
        Path(root, path).write_text(text)
    land(root, {"projects/gone/index.html": "<h1>No memories here</h1>"})
    report = publish(root)
    assert report["artifacts"] == 6
    assert not set(mine) & set(report["paths"])
    for path, text in mine.items():
        assert Path(root, path).read_text() == text
    assert Path(root, "projects/gone/index.html").exists()
    assert "areas/inbox/index.html was not generated" in capsys.readouterr().err
    Path(root, "index.html").unlink()
    assert publish(root)["paths"] == ["index.html"]


def test_committed_listing_of_another_program_is_generated_anew(root: str) -> None:
    land(root, {"index.html": "<h1>Theirs</h1>"})
    report = publish(root)
    assert "index.html" in report["paths"]
    assert git(root, "show", "HEAD~1:index.html") == "<h1>Theirs</h1>"
    Path(root, "index.html").write_text("<h1>Edited since</h1>")
    publish(root)
    assert Path(root, "index.html").read_text() == "<h1>Edited since</h1>"


def test_generated_page_that_was_edited_is_generated_again(root: str) -> None:
    publish(root)
    listing = Path(root, "areas/index.html")
    right = listing.read_text()
    listing.write_text(right.replace("inbox", "outbox"))
    report = publish(root)
    assert (report["paths"], report["commitSha"]) == (["areas/index.html"], None)
    assert listing.read_text() == right
    listing.unlink()
    assert publish(root)["written"] == 1
    assert checkout_state(root) == ""


def test_site_map_of_another_program_is_replaced(root: str) -> None:
    other = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>'
    land(root, {"sitemap.xml": other})
    assert "sitemap.xml" in publish(root)["paths"]
    Path(root, "sitemap.xml").write_text("<mine/>")
    assert "sitemap.xml" not in publish(root)["paths"]


def test_file_in_the_place_of_a_bucket_costs_its_pages_alone(root: str) -> None:
    Path(root, "projects/.gitkeep").unlink()
    Path(root, "projects").rmdir()
    Path(root, "projects").write_text("a file where a folder has to be")
    report = publish(root)
    assert report["paths"] == [path for path in FIRST if not path.startswith("projects/")]


def test_link_in_the_place_of_a_page_is_not_followed(root: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.html"
    outside.write_text("<meta name='generator' content='memhtml publish'>")
    Path(root, "areas/index.html").symlink_to(outside)
    report = publish(root)
    assert "areas/index.html" not in report["paths"]
    assert outside.read_text().startswith("<meta")


def test_listings_are_no_memories(root: str) -> None:
    publish(root)
    with open_index(root) as index:
        rows = index.conn.execute("SELECT path FROM files ORDER BY path").fetchall()
    assert [path for (path,) in rows] == [A, B]


def test_index_stands_at_the_commit_of_the_pages(root: str) -> None:
    sha = publish(root)["commitSha"]
    with open_index(root) as index:
        assert index.conn.execute("SELECT head_sha FROM index_state").fetchone() == (sha,)


def test_replaced_memory_names_what_replaced_it(root: str) -> None:
    old = f"archive/2026/{A}"
    land(
        root,
        {A: None, old: page("Old."), "areas/new.html": page("N.", head=link("supersedes", old))},
    )
    publish(root)
    assert "../../../../areas/new.html" in hrefs(root, "archive/2026/areas/inbox/index.html")


def test_task_shows_its_state(root: str) -> None:
    land(root, {"areas/inbox/tasks/t.html": task("Do it.", due="2026-12-24")})
    publish(root)
    assert "todo · due 2026-12-24" in Path(root, "areas/inbox/tasks/index.html").read_text()


def test_store_with_no_commit_gets_its_first(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    report = publish(str(tmp_path))
    assert report["commitSha"] == git(str(tmp_path), "rev-parse", "HEAD")
    assert report["artifacts"] == 6


def test_detached_head_moves_along(root: str) -> None:
    git(root, "checkout", "-q", "--detach")
    sha = publish(root)["commitSha"]
    assert git(root, "rev-parse", "HEAD") == sha
    assert git(root, "rev-parse", "main") != sha


def test_index_that_a_rebuild_left_half_built_is_an_error(root: str) -> None:
    with sqlite3.connect(f"{root}/.memhtml/index.db") as conn:
        conn.execute("UPDATE index_state SET head_sha = NULL")
    conn.close()
    with pytest.raises(MemhtmlError) as caught:
        publish(root)
    assert caught.value.code == "ERR_INDEX_STALE"
    assert not Path(root, "index.html").exists()


def test_disk_that_refuses_a_page_is_named_and_nothing_changes(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(*_: object) -> str | None:
        raise StorageError("write", ".index.html.0123456789abcdef.memhtml-tmp: No space left")

    monkeypatch.setattr(Landing, "commit", commit)
    with pytest.raises(StorageError) as caught:
        publish(root)
    assert caught.value.reason == "publish.write"
    assert str(caught.value.detail).endswith("index.html: No space left")
    assert checkout_state(root) == ""


def test_held_checkout_lock_is_an_error(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memhtml.store.lock.CHECKOUT_WAIT_S", 0.1)
    other = Path(root, ".memhtml/checkout.lock")
    other.mkdir()
    (other / "holder").write_text("{}")
    with pytest.raises(StorageError) as caught:
        publish(root)
    assert caught.value.reason == "checkout.locked"
    assert not Path(root, "index.html").exists()


@pytest.mark.parametrize("step", ["built", "noted", "moved", "staged", "swapped"])
def test_killed_run_leaves_the_store_before_or_after(root: str, step: str) -> None:
    before = git(root, "rev-parse", "HEAD")

    def act() -> None:
        landing.on_step = lambda name: die() if name == step else None
        publish(root)

    assert in_child(act) == -signal.SIGKILL
    landed = git(root, "rev-parse", "HEAD") != before
    assert landed == (step == "swapped")
    report = publish(root)
    assert report["written"] == (0 if landed else 8)
    assert checkout_state(root) == ""
