"""Builds commit objects: the message, the identity and the object itself. Moves no ref.

Hooks are not run and nothing is signed (spec `cli` §8 rule 8), which is why the object is written
directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from memhtml.store.child import asking

if TYPE_CHECKING:
    from memhtml.store.repo import Repo

SUBJECT_LENGTH = 72
FALLBACK_NAME = "memhtml"
FALLBACK_EMAIL = "memhtml@localhost"

# What git cuts from both ends of a name, and what it removes anywhere in one.
_CRUD = "".join(map(chr, range(33))) + ".,:;<>\"\\'"
_NEVER = {ord(char): None for char in "<>\n\0"}


class Person(NamedTuple):
    """A name and an address as a commit object holds them."""

    name: str
    email: str


class Identity(NamedTuple):
    """Who made a commit and who recorded it."""

    author: Person
    committer: Person


def subject(scope: str, summary: str) -> str:
    """`memhtml(<scope>): <summary>`, the summary on one line of at most 72 characters.

    Spec `cli` §8: white space runs become one space, a longer text is cut to 71 and `…`, an empty
    one reads `(untitled)`.
    """
    text = " ".join(summary.replace("\0", " ").split())
    if len(text) > SUBJECT_LENGTH:
        text = text[: SUBJECT_LENGTH - 1].rstrip() + "…"
    return f"memhtml({scope}): {text or '(untitled)'}"


def message(
    scope: str, summary: str, trailers: Sequence[tuple[str, str]], body: str | None = None
) -> str:
    """A whole commit message with a final newline; blank trailer values are left out."""
    parts = [subject(scope, summary)]
    if body is not None and body.strip():
        parts.append(body.replace("\0", " ").strip())
    lines = [f"{name}: {' '.join(value.split())}" for name, value in trailers if value.strip()]
    if lines:
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def identity(repo: Repo) -> Identity:
    """Git's configured identity for this repository (spec `cli` §8 rule 7).

    `author.*` and `committer.*` go before `user.*`. Whatever git has no setting for is the
    fallback `memhtml <memhtml@localhost>`; no configuration is written, no variable is read.
    """
    with asking_identity(repo) as found:
        return found()


@contextmanager
def asking_identity(repo: Repo) -> Iterator[Callable[[], Identity]]:
    """`identity`, asked now and waited for when it is wanted: a commit has other work meanwhile."""
    words = ("config", "-z", "--get-regexp", r"^(user|author|committer)\.")
    with asking(repo.root, *words) as answer:
        yield lambda: _identity(answer().stdout)


def create(
    repo: Repo,
    tree: str,
    parents: Sequence[str],
    text: str,
    at_s: int,
    *,
    who: Identity | None = None,
) -> str:
    """Write a commit object and answer its id. `at_s` is its instant in seconds since 1970, UTC.

    `who` is the configured identity when the caller has asked for it already. Raises `MemhtmlError`
    `ERR_GIT` when the object cannot be written.
    """
    who = who or identity(repo)
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines.append(f"author {who.author.name} <{who.author.email}> {at_s} +0000")
    lines.append(f"committer {who.committer.name} <{who.committer.email}> {at_s} +0000")
    data = "\n".join([*lines, "", text])
    return repo.write_object("commit", data.encode("utf-8", "replace"))


def changed_paths(repo: Repo, sha: str) -> list[str]:
    """The paths a commit changed against its first parent, sorted; all of a first commit."""
    parent = repo.first_parent(sha)
    if parent is None:
        return sorted(path for path, _mode, _oid in repo.files(sha))
    return sorted({change.path for change in repo.difference(parent, sha)})


def _identity(settings: bytes) -> Identity:
    found: dict[str, str] = {}
    for item in settings.decode("utf-8", "replace").split("\0"):
        key, _, value = item.partition("\n")
        cleaned = value.translate(_NEVER).strip(_CRUD)
        if cleaned:
            found[key] = cleaned  # A later setting is the nearer one.
    return Identity(_person(found, "author"), _person(found, "committer"))


def _person(found: dict[str, str], role: str) -> Person:
    name = found.get(f"{role}.name") or found.get("user.name") or FALLBACK_NAME
    email = found.get(f"{role}.email") or found.get("user.email") or FALLBACK_EMAIL
    return Person(name, email)
