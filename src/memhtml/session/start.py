"""`session start`: write an empty log over the commit a ref stands at (spec `sessions` §5)."""

from __future__ import annotations

from typing import Any

from memhtml import log as report
from memhtml.errors import MemhtmlError
from memhtml.session.bound import MAIN, Identity, base_of, create
from memhtml.session.log import Log
from memhtml.store import refs

LONGEST_REF_BYTES = 200
SHOWN_CHARS = 80


def full_ref(name: str | None) -> str:
    """`--ref` as a full ref name; main when blank. `ERR_GIT` for a name git refuses."""
    text = (name or "").strip()
    if not text:
        return MAIN
    ref = refs.normalise_ref(text)
    shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    if text == "HEAD":
        raise MemhtmlError("ERR_GIT", "HEAD names no branch; give --ref the branch itself")
    if len(ref.encode("utf-8", "surrogateescape")) > LONGEST_REF_BYTES:
        text = f"the ref name {shown} is longer than {LONGEST_REF_BYTES} bytes"
        raise MemhtmlError("ERR_GIT", text)
    if not refs.valid_ref(ref):
        raise MemhtmlError("ERR_GIT", f"{shown} is not a legal ref name")
    return ref


def refuse_collision(root: str, ref: str) -> None:
    """A new ref may lie neither below nor above one that exists: git could never make it."""
    if refs.standing(root, ref)[0] is not None:
        return
    parts = ref.split("/")
    above = ["/".join(parts[:depth]) for depth in range(3, len(parts))]
    taken = [name for name in above if refs.standing(root, name)[0] is not None]
    taken += [name for name, _oid, _date in refs.list_refs(root, ref)]
    if taken:
        raise MemhtmlError("ERR_GIT", f"the ref {ref} cannot be made while {taken[0]} exists")


def start(root: str, identity: Identity, *, ref: str | None, force: bool) -> dict[str, Any]:
    """The payload of `session.started`; its `ref` is the end of a chain of symbolic ones.

    Errors raised: `session.exists`, `session.locked`, and `ERR_GIT` for no legal name.
    """
    from memhtml.corpus.head import open_head
    from memhtml.store.repo import Repo

    try:
        name = refs.final(root, full_ref(ref))
        refuse_collision(root, name)
    except MemhtmlError as error:
        way = f"memhtml session start --id {identity.id} --ref main"
        raise MemhtmlError(error.code, str(error), suggestions=(way,)) from error
    sha = base_of(root, name)
    warn_of_other_object(root, name)
    with open_head(root, name, sha, repo=Repo(root)) as head:
        loaded = head.report.to_json()
    replaced = create(root, Log(identity.id, sha, name), force=force)
    if replaced is not None and replaced.pending is not None:
        report.warn(
            f"the replaced log of {identity.id} had a pending commit {replaced.pending}; "
            "it was not settled"
        )
    return {"id": identity.id, "baseSha": sha, "ref": name, "ops": 0, "head": loaded}


def warn_of_other_object(root: str, ref: str) -> None:
    """Such a ref counts as not there, but a commit does not overwrite it."""
    held, commit = refs.standing(root, ref)
    if held is not None and commit is None:
        report.warn(
            f"{ref} stands at an object that is missing or no commit; "
            "this session cannot land there"
        )
