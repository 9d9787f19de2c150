"""The report as a whole: when a store is healthy, and what makes it ill."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.health import accessed, follow, indexed_store, land
from tests.support.reads import link, task
from tests.support.session import git, page

from memhtml.doctor.examine import examine, is_healthy
from memhtml.embed.hashed import HashedEmbedder
from memhtml.errors import StorageError
from memhtml.index.database import open_index
from memhtml.index.follow import update
from memhtml.index.vectors import fill
from memhtml.store.repo import Repo

A, B = "areas/inbox/a.html", "areas/inbox/b.html"
FIELDS = [
    *("root", "healthy", "dangling", "orphanAccessRows", "inboxDepth", "inboxCrowded"),
    *("inboxTaskDepth", "inboxTasksCrowded", "overdueTasks", "staleBlockers"),
    *("untypedEntities", "untypedEntityTotal", "warnings", "unparseable", "supersededLive"),
    *("indexFresh", "indexHeadSha", "headSha", "embedModelMatches", "storedEmbedModel"),
    *("configuredEmbedModel", "vectorCoverage", "vectorCoverageFloor", "vectorCoverageLow"),
    *("vectorCoverageRemedy", "chunks", "embeddings", "dirty", "policy", "hooks", "repaired"),
]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A healthy store of two memories."""
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    files = {A: page("Fact a.", head=link("supports", B)), B: page("Fact b.")}
    return indexed_store(str(tmp_path / "store"), files)


def write(root: str, path: str, text: str) -> None:
    """A file that is not committed."""
    Path(root, path).write_text(text)


def test_sound_store_is_healthy_and_has_every_field_in_order(root: str) -> None:
    report = examine(root)
    assert list(report) == FIELDS
    assert report["healthy"] is True
    assert report["headSha"] == report["indexHeadSha"] == git(root, "rev-parse", "HEAD")
    assert (report["chunks"], report["embeddings"], report["vectorCoverageLow"]) == (2, 0, False)
    assert report["root"] == root


def test_examination_writes_nothing(root: str) -> None:
    before = git(root, "rev-parse", "HEAD")
    examine(root)
    assert git(root, "rev-parse", "HEAD") == before
    assert git(root, "status", "--porcelain") == ""


ILL: dict[str, Callable[[str], object]] = {
    "dangling": lambda root: land(root, {B: page("B.", head=link("supports", "areas/gone.html"))}),
    "orphanAccessRows": lambda root: accessed(root, "areas/gone.html"),
    "warnings": lambda root: land(root, {B: page("A <blink>fact</blink>.")}),
    "unparseable": lambda root: land(root, {B: "<p>broken</p>"}),
    "inboxCrowded": lambda root: land(
        root, {f"areas/inbox/f{number}.html": page(f"F {number}.") for number in range(20)}
    ),
    "inboxTasksCrowded": lambda root: land(
        root, {f"areas/inbox/tasks/t{number}.html": task(f"T {number}.") for number in range(11)}
    ),
}


@pytest.mark.parametrize("field", ILL)
def test_finding_that_counts_makes_the_store_unhealthy(root: str, field: str) -> None:
    ILL[field](root)
    report = examine(root)
    assert report[field]
    assert report["healthy"] is False


def test_index_that_is_behind_makes_the_store_unhealthy(root: str) -> None:
    write(root, B, page("Fact b, newer."))
    git(root, "commit", "-qam", "by hand")
    report = examine(root)
    assert (report["indexFresh"], report["healthy"]) == (False, False)
    assert report["indexHeadSha"] == git(root, "rev-parse", "HEAD~1")


def test_store_without_an_index_says_so(root: str) -> None:
    for file in Path(root, ".memhtml").glob("index.db*"):
        file.unlink()
    report = examine(root)
    assert (report["indexFresh"], report["indexHeadSha"], report["healthy"]) == (False, None, False)


def verdicts(root: str) -> tuple[bool, bool, bool]:
    """Whether the policy, the hook switches and the store are fine."""
    report = examine(root)
    return report["policy"]["ok"], report["hooks"]["ok"], report["healthy"]


def test_bad_settings_make_the_store_unhealthy(root: str) -> None:
    write(root, "memhtml.config.json", "{")
    report = examine(root)
    assert (report["policy"]["ok"], report["hooks"]["ok"], report["healthy"]) == (
        False,
        True,
        False,
    )
    Path(root, "memhtml.config.json").unlink()
    write(root, ".memhtml/hooks.json", "[]")
    report = examine(root)
    assert (report["policy"]["ok"], report["hooks"]["ok"], report["healthy"]) == (
        True,
        False,
        False,
    )


def test_what_only_wants_a_look_leaves_the_store_healthy(root: str) -> None:
    waiting = "projects/p/tasks/waiting.html"
    head = link("supersedes", B) + '<meta name="memhtml-entity" content="relay">\n'
    files = {
        "areas/new.html": page("New.", head=head),
        waiting: task("Waiting.", status="blocked", due="2020-01-01"),
        "archive/2026/projects/p/tasks/a.html": task("A.", head=link("blocks", waiting)),
    }
    land(root, dict(files))
    write(root, "areas/untracked.html", page("Untracked."))
    report = examine(root)
    for field in ("overdueTasks", "staleBlockers", "untypedEntities", "supersededLive", "dirty"):
        assert report[field], field
    assert report["dirty"] == ["areas/untracked.html"]
    assert report["healthy"] is True


def test_uncommitted_edit_is_looked_at(root: str) -> None:
    write(root, A, "<p>half an edit</p>")
    report = examine(root)
    assert (report["unparseable"], report["dirty"]) == ([A], [A])


@pytest.mark.parametrize("bound", [True, False])
def test_missing_vectors_are_low_once_there_is_somebody_to_miss_them(
    root: str, bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examine(root)["vectorCoverageLow"] is False
    if bound:
        monkeypatch.setenv("MEMHTML_EMBED", "hash")
    else:
        with open_index(root) as index:
            fill(index.conn, HashedEmbedder(), [A])
    report = examine(root)
    assert (report["vectorCoverageLow"], report["healthy"]) == (True, False)
    assert report["vectorCoverageRemedy"] == "memhtml index embed"
    assert report["vectorCoverage"] == (0 if bound else 0.5)


def test_vectors_of_another_model_are_told(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET embed_model = 'other@8', embed_dim = 8")
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    report = examine(root)
    assert (report["embedModelMatches"], report["storedEmbedModel"]) == (False, "other@8")
    assert report["vectorCoverageRemedy"] == "memhtml index rebuild --embed"
    assert report["healthy"] is False


def test_full_vectors_are_healthy(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    with closing(Repo(root)) as repo:
        update(root, repo=repo, embedder=HashedEmbedder())
    with open_index(root) as index:
        fill(index.conn, HashedEmbedder())
    report = examine(root)
    assert (report["vectorCoverage"], report["healthy"]) == (1, True)
    assert report["storedEmbedModel"] == report["configuredEmbedModel"]


@pytest.mark.parametrize(
    ("name", "reason"), [("index.db", "index.open"), ("state.db", "state.open")]
)
def test_damaged_database_is_an_error_and_is_not_touched(root: str, name: str, reason: str) -> None:
    file = Path(root, ".memhtml", name)
    for side in file.parent.glob(f"{name}-*"):
        side.unlink()
    file.write_bytes(b"no database at all" * 300)
    for fix in (False, True):
        with pytest.raises(StorageError) as caught:
            examine(root, fix=fix)
        assert caught.value.reason == reason
        assert caught.value.suggestions
    assert file.read_bytes() == b"no database at all" * 300


def test_file_that_cannot_be_read_is_named(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, A, page("Edited."))

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied", A)

    monkeypatch.setattr("memhtml.store.worktree.WorkTree.read", refuse)
    with pytest.raises(StorageError) as caught:
        examine(root)
    assert (caught.value.reason, caught.value.detail) == ("read", f"{A}: Permission denied")


def test_store_without_a_commit_is_examined(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    report = examine(str(tmp_path))
    assert (report["headSha"], report["indexFresh"], report["healthy"]) == (None, True, True)


def test_health_is_every_count_of_the_list(root: str) -> None:
    fine: dict[str, Any] = examine(root)
    assert is_healthy(fine)
    for name, bad in (("embedModelMatches", False), ("vectorCoverageLow", True)):
        ill = copy.deepcopy(fine)
        ill[name] = bad
        assert not is_healthy(ill)


def test_dirty_rows_of_the_index_are_no_illness(root: str) -> None:
    write(root, B, page("Fact b, better."))
    follow(root, dirty=True)
    assert examine(root)["healthy"] is True
