"""Reads and moves refs, mostly without git and always without pygit2.

A branch of a plain repository is one small file, so it is read directly; anything unusual (a
linked worktree, another ref store, a ref that names another, a tag) is asked of one git child.
Moving a ref is always git's own compare-and-swap.
"""

from __future__ import annotations

import os

from memhtml.errors import MemhtmlError
from memhtml.store.child import GitRun, git_failed, run_git

HEX_DIGITS = frozenset("0123456789abcdef")
ZERO_ID = "0" * 40

# Words in a repository's own configuration that make its files mean something else.
_UNUSUAL_SETTINGS = (
    "worktree",
    "refstorage",
    "objectformat",
    "[include",
    "bare = true",
    "sharedrepository",
    "fsync",
)
_FORBIDDEN_IN_REFS = frozenset(" ~^:?*[\\\x7f")
_REF_LOCK_WAIT_MS = 2000
_TABLE_MARK = b"\xfftOc\0\0\0\x02"


def normalise_ref(name: str) -> str:
    """The full name of a ref: trimmed, and `refs/heads/` in front unless it is under `refs/`.

    Spec `sessions` §3. The answer may still be no legal name: see `valid_ref`.
    """
    trimmed = name.strip()
    return trimmed if trimmed.startswith("refs/") else f"refs/heads/{trimmed}"


def valid_ref(name: str) -> bool:
    """Whether git accepts `name` as a full ref name (the rules of git-check-ref-format)."""
    if not name.startswith("refs/") or name.endswith((".", "/")) or "@{" in name or ".." in name:
        return False
    if any(c in _FORBIDDEN_IN_REFS or ord(c) < 0x20 or 0xD800 <= ord(c) < 0xE000 for c in name):
        return False
    parts = name.split("/")
    if parts[:2] == ["refs", "heads"] and parts[2:] and parts[2].startswith("-"):
        return False
    return len(parts) > 1 and all(
        part and not part.startswith(".") and not part.endswith(".lock") for part in parts
    )


def require_worktree(root: str) -> None:
    """Refuse a root that is not the top of a git work tree we may use (spec `cli` §4).

    Raises `MemhtmlError` `ERR_GIT`; it suggests `memhtml init` where that can help.
    """
    if plain_git_dir(root) is not None:
        return
    run = _rev_parse(root, "--show-toplevel") if os.path.isdir(root) else None
    if run is not None and run.status == 0:
        top = os.fsdecode(run.stdout.removesuffix(b"\n"))
        if os.path.realpath(top) == os.path.realpath(root):
            _refuse_other_formats(root)
            return
    if run is not None and "dubious ownership" in run.stderr:
        raise refused_owner(root)
    raise no_worktree(root)


def is_bare(root: str) -> bool:
    """Whether the folder is itself a git folder, as a repository without a work tree is."""
    return all(os.path.exists(os.path.join(root, name)) for name in ("HEAD", "objects", "refs"))


def no_worktree(root: str) -> MemhtmlError:
    """The failure on a root that is no work tree; it suggests nothing that would fail as well."""
    text, place = f"not the top of a git work tree: {root}", root
    top = _worktree_above(root)
    if os.path.lexists(root) and not os.path.isdir(root):
        return MemhtmlError("ERR_GIT", f"{text} is no folder")
    if os.path.lexists(os.path.join(root, ".git")):
        return MemhtmlError("ERR_GIT", f"{text} has a .git that git cannot read")
    if is_bare(root):
        return MemhtmlError("ERR_GIT", f"{text} is a bare repository, which cannot be a store")
    if top is not None:
        text = f"{text} lies inside the work tree at {top}"
        # Elsewhere, as in a home folder under git, a store of its own may be what is wanted.
        place = top if os.path.isdir(os.path.join(top, ".memhtml")) else root
    import shlex  # 2 ms, and only here.

    suggestions = (f"memhtml init --repo {shlex.quote(place)}",)
    return MemhtmlError("ERR_GIT", text, suggestions=suggestions)


def _worktree_above(root: str) -> str | None:
    """The nearest folder above `root` that has a `.git`."""
    folder = os.path.dirname(root)
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None
    return folder


def git_accepts(root: str) -> bool:
    """Whether git itself works in `root`: its owner is ours or `safe.directory` names it."""
    return _rev_parse(root, "--git-dir").status == 0


def refused_owner(root: str) -> MemhtmlError:
    """The failure on a repository of another user, with git's own remedy."""
    import shlex  # 2 ms, and only here.

    return MemhtmlError(
        "ERR_GIT",
        f"git refuses this repository because another user owns it: {root}",
        suggestions=(f"git config --global --add safe.directory {shlex.quote(root)}",),
    )


def git_dirs(root: str) -> tuple[str, str]:
    """The work tree's own git folder and the one shared by all work trees, absolute."""
    plain = plain_git_dir(root)
    if plain is not None:
        return plain, plain
    run = _rev_parse(root, "--absolute-git-dir", "--git-common-dir")
    if run.status != 0:
        raise git_failed("rev-parse", run)
    own, common = run.stdout.removesuffix(b"\n").split(b"\n", 1)
    return os.fsdecode(own), os.path.join(root, os.fsdecode(common))


def resolve(root: str, ref: str) -> str | None:
    """The commit that the full ref name `ref` stands for, or None (spec `sessions` §3).

    Tags are peeled; what cannot be peeled to a commit counts as not there.
    """
    if not valid_ref(ref):
        return None
    git_dir = plain_git_dir(root)
    if git_dir is not None:
        found = _read_ref(git_dir, ref)
        if found is None:
            return None
        if is_hex_id(found) and _is_commit(git_dir, found, ref):
            return found
    return _ask_commit(root, ref)


def named(root: str, name: str) -> str | None:
    """The commit that any name git knows stands for: an id or the start of one, a branch, a tag,
    `HEAD~2`. None for a name of nothing, and of something else than a commit.
    """
    oid = _ask_oid(root, name)
    return None if oid is None else _ask_commit(root, oid)


def final(root: str, ref: str) -> str:
    """The name at the end of a chain of symbolic refs: where a write to `ref` would go.

    `ref` itself when it is no symbolic ref or does not exist; the last name may not exist either.
    """
    git_dir = plain_git_dir(root)
    if git_dir is not None and _symbolic(_read_small(os.path.join(git_dir, ref))) is None:
        return ref
    run = run_git(root, "symbolic-ref", "--quiet", ref)
    target = os.fsdecode(run.stdout.removesuffix(b"\n"))
    return target if run.status == 0 and valid_ref(target) else ref


def standing(root: str, ref: str) -> tuple[str | None, str | None]:
    """The object id that `ref` holds, and the commit it peels to; None each when there is none.

    From one look, so that a swap that expects the first cannot undo a move made since. They differ
    for an annotated tag.
    """
    if not valid_ref(ref):
        return None, None
    git_dir = plain_git_dir(root)
    found = _read_ref(git_dir, ref) if git_dir is not None else ""
    if found is not None and not is_hex_id(found):
        found = _ask_oid(root, ref)
    if found is None:
        return None, None
    if git_dir is not None and _is_commit(git_dir, found, ref):
        return found, found
    return found, _ask_commit(root, found)


def is_broken(root: str, ref: str) -> bool:
    """Whether there is something at the name `ref` that stands for no commit."""
    held, commit = standing(root, ref)
    loose = os.path.isfile(os.path.join(git_dirs(root)[1], ref))
    return commit is None and (held is not None or loose)


def head_commit(root: str) -> str | None:
    """HEAD's commit, or None on a branch without one."""
    git_dir = plain_git_dir(root)
    if git_dir is not None:
        text = _read_small(os.path.join(git_dir, "HEAD"))
        target = _symbolic(text)
        if target is not None:
            return resolve(root, target)
        if text is not None and is_hex_id(text) and _is_commit(git_dir, text, "HEAD"):
            return text
    return _ask_commit(root, "HEAD")


def checked_out(root: str) -> str | None:
    """The full name of the branch HEAD is on, also before its first commit; None when detached."""
    git_dir = plain_git_dir(root)
    if git_dir is not None and not os.path.islink(os.path.join(git_dir, "HEAD")):
        text = _read_small(os.path.join(git_dir, "HEAD"))
        if text is not None and is_hex_id(text):
            return None
        target = _symbolic(text)
        if target is not None and valid_ref(target):
            behind = _read_small(os.path.join(git_dir, target))
            if _symbolic(behind) is None:
                return target
    run = run_git(root, "symbolic-ref", "--quiet", "HEAD")
    if run.status == 0:
        return os.fsdecode(run.stdout.removesuffix(b"\n"))
    if run.status == 1:
        return None
    raise git_failed("symbolic-ref", run)


def other_worktree_with(root: str, ref: str) -> str | None:
    """The path of another linked work tree that has `ref` checked out, or None."""
    git_dir = plain_git_dir(root)
    if git_dir is not None and not os.path.isdir(os.path.join(git_dir, "worktrees")):
        return None
    run = run_git(root, "worktree", "list", "--porcelain", "-z")
    if run.status != 0:
        return None
    here = os.path.realpath(root)
    for block in run.stdout.split(b"\0\0"):
        lines = block.strip(b"\0").split(b"\0")
        path = os.fsdecode(lines[0].removeprefix(b"worktree "))
        if b"branch " + ref.encode() in lines and os.path.realpath(path) != here:
            return path
    return None


def swap(root: str, ref: str, new: str, old: str | None, message: str) -> bool:
    """Move `ref` from `old` (None: absent) to `new` in one step; False when it stood elsewhere.

    `old` is the id that the ref itself holds, of an annotated tag the tag object's. Writes the
    branch's reflog. Raises `MemhtmlError` `ERR_GIT` when git failed for another reason: the ref's
    lock is held, the disk is full, or the name collides with another ref's.
    """
    note = " ".join(message.split())
    wait = f"core.filesRefLockTimeout={_REF_LOCK_WAIT_MS}"
    # A symbolic ref is the caller's to follow (`final`): what moves is what the caller looked at.
    words = ("update-ref", "--no-deref", "-m", note, ref, new, old or ZERO_ID)
    run = run_git(root, "-c", wait, *words, changes=True)
    if run.status == 0:
        return True
    if _ask_oid(root, ref) != old:
        return False
    raise git_failed("update-ref", run)


def delete_ref_if(root: str, ref: str, old: str) -> bool:
    """Delete `ref` when it stands at the object `old`; False when it does not."""
    run = run_git(root, "update-ref", "--no-deref", "-d", ref, old, changes=True)
    if run.status == 0:
        return True
    if _ask_oid(root, ref) != old:
        return False
    raise git_failed("update-ref", run)


def list_refs(root: str, prefix: str) -> list[tuple[str, str, int]]:
    """Every ref under `prefix` (a full name, or a folder of refs) with its object's id, by name.

    The third value is the object's date in seconds since 1970, 0 for what has none.
    """
    wanted = "%(objectname) %(creatordate:unix) %(refname)"
    run = run_git(root, "for-each-ref", f"--format={wanted}", prefix)
    if run.status != 0:
        raise git_failed("for-each-ref", run)
    lines = run.stdout.decode("utf-8", "surrogateescape").splitlines()
    fields = (line.split(" ", 2) for line in lines)
    return [(name, oid, int(date) if date.isdigit() else 0) for oid, date, name in fields]


def plain_git_dir(root: str) -> str | None:
    """`<root>/.git` when it is an ordinary repository of ours whose files can be read directly."""
    git_dir = os.path.join(root, ".git")
    try:
        seen = [os.lstat(git_dir), os.stat(root)]
    except OSError:
        return None
    if not os.path.isdir(git_dir) or os.path.islink(git_dir):
        return None
    if any(info.st_uid != os.geteuid() for info in seen):
        return None
    settings = _read_small(os.path.join(git_dir, "config"), limit_bytes=65536)
    if settings is None or any(word in settings.lower() for word in _UNUSUAL_SETTINGS):
        return None
    if not all(os.path.isdir(os.path.join(git_dir, name)) for name in ("objects", "refs")):
        return None
    return git_dir if os.path.lexists(os.path.join(git_dir, "HEAD")) else None


def _refuse_other_formats(root: str) -> None:
    run = _rev_parse(root, "--show-object-format")
    if run.status == 0 and run.stdout.strip() != b"sha1":
        name = run.stdout.strip().decode("ascii", "replace")
        raise MemhtmlError("ERR_GIT", f"repositories with {name} object ids are not supported")


def _rev_parse(root: str, *arguments: str) -> GitRun:
    return run_git(root, "rev-parse", *arguments)


def _ask_commit(root: str, name: str) -> str | None:
    run = _rev_parse(root, "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    text = run.stdout.decode("ascii", "replace").strip()
    if run.status == 0 and is_hex_id(text):
        return text
    if "not a git repository" in run.stderr or "dubious ownership" in run.stderr:
        raise git_failed("rev-parse", run)
    return None


def _ask_oid(root: str, ref: str) -> str | None:
    run = _rev_parse(root, "--verify", "--quiet", "--end-of-options", ref)
    text = run.stdout.decode("ascii", "replace").strip()
    return text if run.status == 0 and is_hex_id(text) else None


def _read_ref(git_dir: str, ref: str) -> str | None:
    """The text a ref holds, loose before packed."""
    loose = _read_small(os.path.join(git_dir, ref))
    if loose is not None:
        return loose
    wanted = b" " + ref.encode("utf-8") + b"\n"
    try:
        with open(os.path.join(git_dir, "packed-refs"), "rb") as packed:
            data = packed.read()
    except OSError:
        return None
    at = data.find(wanted)
    return data[at - 40 : at].decode("ascii", "replace") if at >= 40 else None


def _is_commit(git_dir: str, oid: str, ref: str) -> bool:
    """Whether `oid` is known to be a commit that is there, without asking git.

    A loose object says what it is in its first bytes. Git lets a branch stand at nothing but a
    commit, so for branches and HEAD it is enough that a pack has the object. False decides
    nothing: it may lie elsewhere.
    """
    path = os.path.join(git_dir, "objects", oid[:2], oid[2:])
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except FileNotFoundError:
        return (ref == "HEAD" or ref.startswith("refs/heads/")) and is_packed(git_dir, oid)
    except OSError:
        return False
    import zlib

    try:
        return zlib.decompressobj().decompress(head, 7) == b"commit "
    except zlib.error:
        return False


def is_packed(git_dir: str, oid: str) -> bool:
    """Whether the table of a pack of this repository's own lists the object."""
    folder = os.path.join(git_dir, "objects", "pack")
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    wanted = bytes.fromhex(oid)
    tables = (os.path.join(folder, name) for name in names if name.endswith(".idx"))
    return any(_lists(table, wanted) for table in tables)


def _lists(table: str, wanted: bytes) -> bool:
    """Whether a pack's table (version 2: 256 counts by first byte, then sorted ids) has an id."""
    try:
        with open(table, "rb", buffering=0) as file:
            head = file.read(len(_TABLE_MARK) + 4 * 256)
            if len(head) != len(_TABLE_MARK) + 4 * 256 or not head.startswith(_TABLE_MARK):
                return False
            end = len(_TABLE_MARK) + 4 * wanted[0]
            low = int.from_bytes(head[end - 4 : end], "big") if wanted[0] else 0
            high = int.from_bytes(head[end : end + 4], "big")
            ids = os.pread(file.fileno(), 20 * (high - low), len(head) + 20 * low)
    except OSError:
        return False
    return any(ids[at : at + 20] == wanted for at in range(0, len(ids), 20))


def _read_small(path: str, limit_bytes: int = 4096) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(limit_bytes).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return None


def _symbolic(text: str | None) -> str | None:
    if text is None or not text.startswith("ref:"):
        return None
    return text[4:].strip()


def is_hex_id(text: str) -> bool:
    """Whether a text is an object's id: 40 lower-case hex digits."""
    return len(text) == 40 and HEX_DIGITS.issuperset(text)
