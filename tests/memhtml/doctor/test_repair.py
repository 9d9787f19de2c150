"""`doctor --fix`: what it mends, what it leaves alone, and that it is one commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.health import accessed, accesses, follow, indexed_store, land
from tests.support.reads import link
from tests.support.session import changed_in, checkout_state, git, log_subjects, page

from memhtml.doctor.examine import examine
from memhtml.errors import StorageError
from memhtml.store.atomic import temporary_name
from memhtml.store.land import Landing
from memhtml.store.lock import checkout_lock
from memhtml_format.record import Link, read_detail

A, B, C = "areas/inbox/a.html", "areas/inbox/b.html", "areas/inbox/c.html"
GONE, OLD_B = "areas/inbox/gone.html", f"archive/2026/{B}"
NOTHING = {
    "rewritten": 0,
    "dropped": 0,
    "failedWrites": [],
    "prunedAccessRows": 0,
    "commitSha": None,
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two links of `a` and one of `c` dangle; what `b` was is archived."""
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    head = link("supports", B) + link("relates_to", GONE) + link("part_of", C)
    files = {
        A: page("Fact a.", head=head),
        C: page("Fact c.", head=f'<link rel="memhtml-caused_by" href="/{B}?v=1#top"/>\n'),
        OLD_B: page("Fact b."),
    }
    return indexed_store(str(tmp_path / "store"), files)


def fix(root: str) -> dict[str, Any]:
    """What was repaired."""
    repaired: dict[str, Any] = examine(root, fix=True)["repaired"]
    return repaired


def links(root: str, path: str) -> tuple[Link, ...]:
    """The links of the file in the working tree."""
    detail = read_detail(path, Path(root, path).read_bytes()).detail
    assert detail is not None
    return detail.record.links


def test_dangling_links_are_rewritten_or_dropped_in_one_commit(root: str) -> None:
    before = git(root, "rev-parse", "HEAD")
    report = examine(root, fix=True)
    assert [tuple(edge.values()) for edge in report["dangling"]] == [
        (A, "relates_to", GONE, None),
        (A, "supports", B, OLD_B),
        (C, "caused_by", B, OLD_B),
    ]
    sha = git(root, "rev-parse", "HEAD")
    assert report["repaired"] == {**NOTHING, "rewritten": 2, "dropped": 1, "commitSha": sha}
    assert log_subjects(root)[:2] == ["memhtml(link): repair 3 dangling links", "seed"]
    assert git(root, "rev-parse", "HEAD~1") == before
    assert changed_in(root, sha) == [A, C]
    assert checkout_state(root) == ""
    assert set(links(root, A)) == {Link("part_of", f"/{C}"), Link("supports", f"/{OLD_B}")}
    assert links(root, C) == (Link("caused_by", f"/{OLD_B}?v=1#top"),)
    after = examine(root)
    assert (after["healthy"], after["dangling"]) == (True, [])


def test_repair_stamps_the_update_and_leaves_every_other_byte(root: str) -> None:
    before = Path(root, A).read_text().splitlines()
    fix(root)
    after = Path(root, A).read_text().splitlines()
    gone = [line for line in before if line not in after]
    came = [line for line in after if line not in before]
    assert [line[:26] for line in came] == [
        '<meta name="memhtml-update',
        '<link rel="memhtml-support',
    ]
    assert len(gone) == 3
    assert "2026-05-04T09:00:00Z" not in came[0]


def test_report_describes_the_store_as_found(root: str) -> None:
    report = examine(root, fix=True)
    assert report["healthy"] is False
    assert len(report["dangling"]) == 3
    assert report["headSha"] == git(root, "rev-parse", "HEAD~1")


def test_second_repair_does_nothing(root: str) -> None:
    accessed(root, A, GONE)
    assert fix(root)["prunedAccessRows"] == 1
    head = git(root, "rev-parse", "HEAD")
    assert fix(root) == NOTHING
    assert git(root, "rev-parse", "HEAD") == head


def test_repair_of_accesses_alone_makes_no_commit(tmp_path: Path) -> None:
    root = indexed_store(str(tmp_path / "store"), {A: page("Fact a.")})
    accessed(root, A, GONE, "areas/other.html")
    head = git(root, "rev-parse", "HEAD")
    assert fix(root) == {**NOTHING, "prunedAccessRows": 2}
    assert accesses(root) == [A]
    assert git(root, "rev-parse", "HEAD") == head


def test_without_fix_nothing_changes(root: str) -> None:
    accessed(root, GONE)
    head = git(root, "rev-parse", "HEAD")
    assert examine(root)["repaired"] is None
    assert (git(root, "rev-parse", "HEAD"), accesses(root)) == (head, [GONE])


def test_file_somebody_edits_is_left_to_them(root: str) -> None:
    edited = Path(root, A).read_text().replace("Fact a.", "Fact a, better.")
    Path(root, A).write_text(edited)
    Path(root, "areas/other.txt").write_text("staged")
    git(root, "add", "areas/other.txt")
    repaired = fix(root)
    assert (repaired["rewritten"], repaired["failedWrites"]) == (1, [A])
    assert Path(root, A).read_text() == edited
    assert changed_in(root, "HEAD") == [C]
    assert checkout_state(root) == f" M {A}\nA  areas/other.txt"


def test_file_with_a_staged_edit_alone_is_left_to_them_too(root: str) -> None:
    committed = Path(root, A).read_text()
    Path(root, A).write_text(committed.replace("Fact a.", "Staged."))
    git(root, "add", A)
    Path(root, A).write_text(committed)
    assert fix(root)["failedWrites"] == [A]
    assert "Staged." in git(root, "show", f":{A}")


def test_file_that_is_not_committed_is_left_alone(root: str) -> None:
    new = "areas/new.html"
    Path(root, new).write_text(page("New.", head=link("supports", GONE)))
    follow(root, dirty=True)
    assert fix(root)["failedWrites"] == [new]
    assert checkout_state(root) == f"?? {new}"


def test_link_that_is_gone_since_the_index_looked_is_nothing_to_mend(root: str) -> None:
    Path(root, A).write_text(page("Fact a."))
    git(root, "commit", "-qam", "cut the links by hand")
    repaired = fix(root)
    assert (repaired["rewritten"], repaired["dropped"], repaired["failedWrites"]) == (1, 0, [])
    assert changed_in(root, "HEAD") == [C]


def test_link_that_is_there_already_is_not_doubled(root: str) -> None:
    both = link("supports", B) + link("supports", OLD_B)
    land(root, {A: page("Fact a.", head=both)})
    fix(root)
    assert links(root, A) == (Link("supports", f"/{OLD_B}"),)


def test_every_spelling_of_one_dangling_edge_goes(root: str) -> None:
    hrefs = (f"/{GONE}", f"/{GONE}#a", f"/{GONE}?b")
    head = "".join(f'<link rel="memhtml-supports" href="{href}">\n' for href in hrefs)
    land(root, {A: page("Fact a.", head=head), C: page("Fact c.")})
    repaired = fix(root)
    assert (repaired["dropped"], links(root, A)) == (1, ())


def test_head_that_no_edit_finds_its_place_in_is_left_alone(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml_format.edit.remove_link", lambda data, *_: data)
    repaired = fix(root)
    assert repaired == {**NOTHING, "failedWrites": [A, C]}


@pytest.mark.parametrize("name", [A, temporary_name("a.html")], ids=["the file", "its spare"])
def test_file_that_the_disk_refuses_does_not_keep_the_others_back(
    root: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Landing.commit

    def commit(self: Landing, writes: Any, removals: Any, text: str) -> str | None:
        if A in writes:
            raise StorageError("write", f"{name}: Permission denied")
        return real(self, writes, removals, text)

    monkeypatch.setattr(Landing, "commit", commit)
    repaired = fix(root)
    assert (repaired["rewritten"], repaired["dropped"], repaired["failedWrites"]) == (1, 0, [A])
    assert log_subjects(root)[0] == "memhtml(link): repair 1 dangling links"


def test_disk_that_refuses_everything_is_an_error_and_changes_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(*_: object) -> str | None:
        raise StorageError("write", "the working tree: No space left on device")

    monkeypatch.setattr(Landing, "commit", commit)
    with pytest.raises(StorageError) as caught:
        fix(root)
    assert caught.value.reason == "doctor.write"
    assert checkout_state(root) == ""


def test_held_checkout_lock_is_an_error_and_nothing_is_written(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml.store.lock.CHECKOUT_WAIT_S", 0.1)
    accessed(root, GONE)
    code = (
        "import sys, time\nfrom memhtml.store.lock import checkout_lock\n"
        "with checkout_lock(sys.argv[1]):\n print('held', flush=True)\n time.sleep(60)\n"
    )
    held = subprocess.Popen([sys.executable, "-c", code, root], stdout=subprocess.PIPE)
    out = held.stdout
    assert out is not None
    try:
        out.readline()
        with pytest.raises(StorageError) as caught:
            fix(root)
        assert caught.value.reason == "checkout.locked"
    finally:
        held.kill()
        held.wait()
        out.close()
    assert accesses(root) == [GONE]
    assert len(log_subjects(root)) == 2


def test_archived_holder_is_mended_as_well(root: str) -> None:
    holder = f"archive/2026/{C}"
    land(root, {C: None, A: page("Fact a."), holder: page("C.", head=link("supports", B))})
    assert fix(root)["rewritten"] == 1
    assert links(root, holder) == (Link("supports", f"/{OLD_B}"),)


def test_lock_is_free_again_after_a_repair(root: str) -> None:
    fix(root)
    with checkout_lock(root):
        assert Path(root, ".memhtml/checkout.lock").is_dir()
