"""Messages, identities and commit objects (spec `cli` §8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.store import commit_on, git, line, make_repository, put_file

from memhtml.store import commit as commits
from memhtml.store.commit import Identity, Person
from memhtml.store.repo import Repo


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("Cache ttl", "Cache ttl"),
        ("  two\n\tlines \u00a0 here ", "two lines here"),
        ("", "(untitled)"),
        (" \n ", "(untitled)"),
        ("x" * 72, "x" * 72),
        ("x" * 73, "x" * 71 + "…"),
        ("x" * 70 + " yz", "x" * 70 + "…"),
        ("a\0b", "a b"),
    ],
)
def test_the_summary_is_one_line_of_at_most_72(summary: str, expected: str) -> None:
    assert commits.subject("session", summary) == f"memhtml(session): {expected}"


def test_trailers_follow_one_blank_line() -> None:
    trailers = [("Memhtml-Session", "s1"), ("Memhtml-Prompt", " "), ("Memhtml-Turn", "a\nb")]
    assert commits.message("write", "Title", trailers) == (
        "memhtml(write): Title\n\nMemhtml-Session: s1\nMemhtml-Turn: a b\n"
    )
    assert commits.message("correct", "T", [("A", "b")], body="why\n") == (
        "memhtml(correct): T\n\nwhy\n\nA: b\n"
    )
    assert commits.message("init", "T", []) == "memhtml(init): T\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository of somebody who never told git a name."""
    path = str(tmp_path / "store")
    make_repository(path, {"a": b"a"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return path


FALLBACK = Person("memhtml", "memhtml@localhost")


def test_without_an_identity_the_fallback_is_used_and_nothing_written(root: str) -> None:
    before = git(root, "config", "--list", "--local")
    assert commits.identity(Repo(root)) == Identity(FALLBACK, FALLBACK)
    assert git(root, "config", "--list", "--local") == before


def test_the_configured_identity_is_used_and_roles_go_first(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    assert commits.identity(Repo(root)).author == Person("Ada", "ada@example.org")
    git(root, "config", "user.name", "Ada <L>\n of Loc.")
    git(root, "config", "committer.email", "robot@example.org")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Mallory")
    found = commits.identity(Repo(root))
    assert found.author == Person("Ada L of Loc", "ada@example.org")
    assert found.committer == Person("Ada L of Loc", "robot@example.org")


def test_half_an_identity_is_completed(root: str) -> None:
    git(root, "config", "user.name", "Ada")
    assert commits.identity(Repo(root)).author == Person("Ada", "memhtml@localhost")
    git(root, "config", "user.name", " <> ")
    assert commits.identity(Repo(root)).author == FALLBACK


def test_a_commit_is_one_git_reads_back(root: str) -> None:
    repo, base = Repo(root), line(root, "rev-parse", "HEAD")
    git(root, "config", "user.name", "Zoë")
    text = commits.message("session", "Fünf", [("Memhtml-Session", "s1")])
    sha = commits.create(repo, repo.root_tree(base), [base], text, 1_800_000_000)
    shown = git(root, "log", "-1", "--format=%an|%ae|%at|%cn|%ct|%P|%B", sha).decode()
    assert shown == (
        f"Zoë|memhtml@localhost|1800000000|Zoë|1800000000|{base}|"
        "memhtml(session): Fünf\n\nMemhtml-Session: s1\n\n"
    )
    assert (
        line(root, "log", "-1", "--format=%(trailers:key=Memhtml-Session,valueonly)", sha) == "s1"
    )
    assert git(root, "fsck", "--strict", "--no-dangling") == b""


def test_text_that_cannot_be_encoded_is_replaced(root: str) -> None:
    repo, base = Repo(root), line(root, "rev-parse", "HEAD")
    text = commits.message("session", "bad \udcff byte", [])
    sha = commits.create(repo, repo.root_tree(base), [base], text, 1)
    assert line(root, "log", "-1", "--format=%s", sha) == "memhtml(session): bad ? byte"


def test_hooks_and_signing_take_no_part(root: str) -> None:
    git(root, "config", "commit.gpgSign", "true")
    git(root, "config", "user.signingKey", "nobody")
    put_file(root, ".git/hooks/commit-msg", b"#!/bin/sh\nexit 1\n")
    Path(root, ".git/hooks/commit-msg").chmod(0o755)
    repo, base = Repo(root), line(root, "rev-parse", "HEAD")
    sha = commit_on(repo, base, {"b": b"b"})
    assert b"gpgsig" not in git(root, "cat-file", "commit", sha)


def test_changed_paths_are_those_against_the_first_parent(root: str) -> None:
    repo, base = Repo(root), line(root, "rev-parse", "HEAD")
    sha = commit_on(repo, base, {"c": b"c", "b/d": b"d"}, ("a",))
    assert commits.changed_paths(repo, sha) == ["a", "b/d", "c"]
    assert commits.changed_paths(repo, base) == ["a"]
