"""Where a session starts and lands: symbolic refs, tags, and refs that hold no commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.session import (
    checkout_state,
    git,
    land,
    log_subjects,
    make_store,
    page,
    put_op,
    start_log,
    tip,
    who,
)

from memhtml.errors import MemhtmlError
from memhtml.session.bound import Identity, open_session
from memhtml.session.log import read_log, update
from memhtml.session.rebase import rebase
from memhtml.session.start import start
from memhtml.session.status import status
from memhtml_format.ops import Op, Put

A = "areas/inbox/a.html"
ALIAS = "refs/heads/alias"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one record."""
    return make_store(str(tmp_path / "store"), {A: page("Fact a holds.")})


def fill(root: str, session_id: str, *ops: Op) -> None:
    """Give a started session its operations."""
    update(root, session_id, (), lambda log: log._replace(ops=ops))


def test_start_on_a_symbolic_ref_works_on_the_ref_it_names(store: str) -> None:
    git(store, "symbolic-ref", ALIAS, "refs/heads/main")
    assert start(store, who("s1"), ref="alias", force=False)["ref"] == "refs/heads/main"
    fill(store, "s1", put_op("one"))
    answer = land(store, "s1")
    assert answer["worktreeSynced"]
    assert Path(store, "areas/inbox/one.html").is_file()
    assert checkout_state(store) == ""


def test_a_log_that_names_a_symbolic_ref_lands_where_it_leads(store: str) -> None:
    git(store, "symbolic-ref", ALIAS, "refs/heads/main")
    start_log(store, "s1", [put_op("one")], ref=ALIAS)
    answer = land(store, "s1")
    assert answer["kind"] == "committed"
    assert answer["worktreeSynced"]
    assert tip(store) == answer["sha"]
    assert git(store, "symbolic-ref", ALIAS) == "refs/heads/main"
    assert checkout_state(store) == ""
    assert status(store, who("s1"))["ref"] == answer["ref"] == ALIAS


def test_start_on_a_symbolic_ref_without_a_branch_makes_the_branch(store: str) -> None:
    git(store, "symbolic-ref", ALIAS, "refs/heads/later")
    base = tip(store)
    start(store, who("s1"), ref="alias", force=False)
    fill(store, "s1", put_op("one"))
    assert land(store, "s1")["kind"] == "committed"
    assert git(store, "rev-parse", "later~1") == base
    assert git(store, "symbolic-ref", ALIAS) == "refs/heads/later"


def test_the_scope_is_that_of_the_ref_a_symbolic_one_leads_to(store: str) -> None:
    git(store, "branch", "curate/today")
    git(store, "symbolic-ref", ALIAS, "refs/heads/curate/today")
    git(store, "symbolic-ref", "refs/heads/curate/main", "refs/heads/main")
    arc = Put("areas/arcs/arc.html", page("The arc holds.", kind="arc"))
    start_log(store, "c1", [arc], ref=ALIAS)
    assert land(store, "c1")["kind"] == "committed"
    assert log_subjects(store, "curate/today")[0] == "memhtml(curate): land c1"
    start_log(store, "c2", [arc], ref="refs/heads/curate/main")
    assert land(store, "c2")["kind"] == "refused"


def test_implicit_start_on_a_symbolic_main_works_on_the_ref_it_names(store: str) -> None:
    git(store, "branch", "-m", "main", "trunk")
    git(store, "symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    log, started = open_session(store, Identity("run", run_bound=True, implicit=True))
    assert started
    assert (log.ref, log.base_sha) == ("refs/heads/trunk", tip(store, "trunk"))


def test_a_session_on_an_annotated_tag_lands_and_can_go_on(store: str) -> None:
    git(store, "tag", "-a", "v1", "-m", "one")
    base = tip(store)
    assert start(store, who("s1"), ref="refs/tags/v1", force=False)["baseSha"] == base
    fill(store, "s1", put_op("one"))
    answer = land(store, "s1")
    assert answer["kind"] == "committed"
    assert tip(store, "refs/tags/v1") == answer["sha"]
    assert git(store, "rev-parse", "refs/tags/v1~1") == base == tip(store)
    fill(store, "s1", put_op("two"))
    assert land(store, "s1")["kind"] == "committed"


def test_a_tag_that_moves_to_another_tag_object_makes_a_commit_rebase(store: str) -> None:
    git(store, "tag", "-a", "v1", "-m", "one")
    start(store, who("s1"), ref="refs/tags/v1", force=False)
    fill(store, "s1", put_op("one"))
    git(store, "commit", "-q", "--allow-empty", "-m", "on")
    git(store, "tag", "-f", "-a", "v1", "-m", "two")
    behind = land(store, "s1")
    assert behind["kind"] == "rebase-needed"
    assert behind["mainSha"] == tip(store)
    assert rebase(store, who("s1"))["moved"]
    assert land(store, "s1")["kind"] == "committed"


def test_a_ref_that_holds_no_commit_is_never_overwritten(
    store: str, capfd: pytest.CaptureFixture[str]
) -> None:
    blob = tip(store, f"main:{A}")
    git(store, "tag", "blob", blob)
    answer = start(store, who("s1"), ref="refs/tags/blob", force=False)
    assert answer["baseSha"] == tip(store)
    assert "refs/tags/blob" in capfd.readouterr().err
    fill(store, "s1", put_op("one"))
    with pytest.raises(MemhtmlError) as caught:
        land(store, "s1")
    assert caught.value.code == "ERR_GIT"
    assert "refs/tags/blob" in str(caught.value)
    assert tip(store, "refs/tags/blob") == blob
    assert read_log(store, "s1").pending is None


@pytest.mark.parametrize(
    ("ref", "part"),
    [
        ("HEAD", "names no branch"),
        ("main/sub", "while refs/heads/main exists"),
        ("topic", "while refs/heads/topic/one exists"),
        ("a" * 200, "longer than 200 bytes"),
        ("a b", "not a legal ref name"),
    ],
)
def test_start_refuses_a_ref_that_no_commit_could_make(store: str, ref: str, part: str) -> None:
    git(store, "branch", "topic/one")
    with pytest.raises(MemhtmlError) as caught:
        start(store, who("s1"), ref=ref, force=False)
    assert (caught.value.code, part in str(caught.value)) == ("ERR_GIT", True), str(caught.value)
    assert caught.value.suggestions == ("memhtml session start --id s1 --ref main",)
    assert start(store, who("s1"), ref="a" * 189, force=False)["ref"].endswith("a" * 189)


def test_a_broken_branch_is_not_called_a_repository_without_commits(store: str) -> None:
    Path(store, ".git/refs/heads/main").write_text("rubbish\n")
    with pytest.raises(MemhtmlError, match="refs/heads/main is broken") as caught:
        start(store, who("s1"), ref=None, force=False)
    assert caught.value.code == "ERR_GIT"


@pytest.mark.parametrize("text", ["{", "{}"])
def test_a_log_that_cannot_be_used_suggests_a_new_one(store: str, text: str) -> None:
    start(store, who("s1"), ref=None, force=False)
    Path(store, ".memhtml/sessions/s1.json").write_text(text)
    with pytest.raises(MemhtmlError) as caught:
        status(store, who("s1"))
    assert caught.value.suggestions == ("memhtml session start --id s1 --force",)
