"""Makes a store out of a folder, and sees that git ignores what sessions leave beside the records.

Spec `format` §1.1 and `cli` §10 `init`. `init` converges: it adds what is missing, overwrites
nothing, and commits its own files alone, whatever else is staged.
"""

from __future__ import annotations

import errno
import os
import time
from typing import NamedTuple

from memhtml import log
from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import commit as commits
from memhtml.store import index, refs
from memhtml.store.atomic import write_all
from memhtml.store.child import git_failed, run_git
from memhtml.store.lock import DirectoryLock, checkout_lock
from memhtml.store.repo import MODE_FILE, Repo
from memhtml.store.tree import build_tree
from memhtml.store.worktree import WorkTree
from memhtml_format.digest import blob_sha

FOLDERS = (
    "projects",
    "areas",
    "resources",
    "archive",
    "areas/arcs",
    "resources/people",
    "areas/inbox",
    ".memhtml/state",
)
IGNORED = (
    ".memhtml/index.db",
    ".memhtml/state.db",
    ".memhtml/index.db-*",
    ".memhtml/state.db-*",
    ".memhtml/sessions/",
    ".memhtml/snapshots/",
    ".memhtml/vectors/",
    ".memhtml/head.sock",
    ".memhtml/checkout.lock",
    ".memhtml/sandbox/",
    ".memhtml/migrations/",
    ".memhtml/hooks/",
    ".memhtml/hooks.json",
)
ATTRIBUTES = ("index.html merge=ours", "sitemap.xml merge=ours", "*.html diff=html")
COMMIT_TEXT = "scaffold the memory repository"

README = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>A memory store</title>
</head>
<body>
<article>
<p><mark>This repository is the long-term memory of an agent: one HTML file is one fact.</mark></p>
<p>Facts about running work lie in projects, standing concerns in areas, topics in resources, and
what is no longer true in archive. Each file states its claim in a mark, its kind and its entities
in the head, and its ties to other facts as links.</p>
<p>Files are written by the memhtml command, which judges every change before it is committed.
Listings named index.html are generated; edit the facts instead.</p>
</article>
</body>
</html>
"""


class InitReport(NamedTuple):
    """What `init` did; the fields of the `repo.init` answer."""

    root: str
    created: bool
    head_sha: str | None
    wrote: tuple[str, ...]


def scaffold_files() -> dict[str, bytes]:
    """Every file of the scaffold with its bytes, in scaffold order."""
    files = {f"{folder}/.gitkeep": b"" for folder in FOLDERS}
    files[".gitignore"] = _lines(IGNORED)
    files[".gitattributes"] = _lines(ATTRIBUTES)
    files["README.html"] = README.encode()
    return files


def init(root: str) -> InitReport:
    """Make `root` a store, or complete one.

    Raises `StorageError` `init.write` when the folder or a file cannot be written; no file and no
    repository of this call is then left. Raises `MemhtmlError` `ERR_GIT` when git fails.
    """
    root = os.path.abspath(root)
    created = _make_repository(root)
    refs.require_worktree(root)
    try:
        with _lock(root):
            _set_merge_driver(root)
            return _complete(root, created=created)
    except StorageError as error:
        if created and error.reason == "init.write":
            _remove_repository(root)
        raise


def ensure_ignored(root: str) -> None:
    """See that git ignores our local files in a clone whose `.gitignore` is from an older build.

    The missing patterns go to the clone's own exclude file; the committed file stays as it is.
    Cheap when nothing is missing. A failure is a log line, never an error (spec `format` §1.1).
    """
    try:
        missing = _without(IGNORED, _read_lines(os.path.join(root, ".gitignore")))
        if not missing:
            return
        path = os.path.join(refs.git_dirs(root)[1], "info", "exclude")
        missing = _without(missing, _read_lines(path))
        if missing:
            _append_lines(path, missing)
    except (OSError, MemhtmlError) as error:
        log.warn(f"git's exclude file could not be completed: {error}")


def _make_repository(root: str) -> bool:
    try:
        os.makedirs(root, exist_ok=True)
    except OSError as error:
        raise StorageError("init.write", f"{root}: {error.strerror}") from error
    if os.path.lexists(os.path.join(root, ".git")):
        return False
    if refs.is_bare(root):
        raise MemhtmlError("ERR_GIT", f"a bare git repository cannot be a store: {root}")
    if not os.access(root, os.W_OK | os.X_OK):
        raise StorageError("init.write", f"{root}: Permission denied")
    run = run_git(root, "init", "--quiet", "--initial-branch=main")
    if run.status != 0:
        raise git_failed("init", run)
    return True


def _remove_repository(root: str) -> None:
    """Take back the repository that this call made: a failed `init` changes nothing."""
    import shutil

    shutil.rmtree(os.path.join(root, ".git"), ignore_errors=True)


def _set_merge_driver(root: str) -> None:
    """The `merge=ours` attribute means nothing without it, and configuration is per clone."""
    run = run_git(root, "config", "--replace-all", "merge.ours.driver", "true")
    if run.status != 0:
        raise git_failed("config", run)


def _lock(root: str) -> DirectoryLock:
    try:
        return checkout_lock(root)
    except StorageError as error:
        raise StorageError("init.write", error.detail) from error


def _complete(root: str, *, created: bool) -> InitReport:
    head = refs.head_commit(root)
    repo = Repo(root)
    files = scaffold_files()
    committed = _listed(root, "ls-tree", "-r", head) if head is not None else {}
    try:
        with WorkTree(root) as tree:
            # Deleted by hand and not committed: what the store had comes back.
            missing = {
                path: repo.data(committed[path]) if path in committed else data
                for path, data in files.items()
                if _is_missing(tree, path)
            }
            _write_all_or_none(tree, missing)
            fresh = _not_committed(root, tree, files, committed)
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else root
        raise StorageError("init.write", f"{name}: {error.strerror}") from error
    if fresh:
        head = _commit(repo, head, fresh)
    return InitReport(root, created, head, tuple(missing))


def _is_missing(tree: WorkTree, path: str) -> bool:
    seen = tree.look(path)
    if seen.kind == "blocked":
        raise NotADirectoryError(errno.ENOTDIR, "is no folder", seen.blocker)
    return seen.kind == "absent"


def _write_all_or_none(tree: WorkTree, files: dict[str, bytes]) -> None:
    done: list[str] = []
    try:
        for path, data in files.items():
            done.append(path)
            spare = tree.spare_file(data, path)
            try:
                tree.place(spare, path, replace=False)
            except BaseException:
                tree.discard(spare)
                raise
    except BaseException:
        for path in reversed(done):
            if tree.look(path).kind == "file" and tree.read(path) == files[path]:
                tree.discard(tree.take_away(path))
            tree.remove_empty_folders(path)
        raise


def _not_committed(
    root: str, tree: WorkTree, files: dict[str, bytes], committed: dict[str, str]
) -> dict[str, bytes]:
    """Scaffold files as we write them that no commit holds and that nobody staged otherwise.

    Those of an earlier call that was killed before its commit are among them.
    """
    waiting = {path: data for path, data in files.items() if path not in committed}
    if not waiting:
        return {}
    staged = _listed(root, "ls-files", "-s")
    return {
        path: data
        for path, data in waiting.items()
        if staged.get(path, blob_sha(data)) == blob_sha(data)
        and tree.look(path).kind == "file"
        and tree.read(path) == data
    }


def _commit(repo: Repo, head: str | None, files: dict[str, bytes]) -> str:
    """One commit of exactly `files` on the branch that is open, or on a detached HEAD."""
    root = repo.root
    tree = build_tree(repo, head, files, ())
    text = commits.message("init", COMMIT_TEXT, ())
    sha = commits.create(repo, tree, [head] if head is not None else [], text, int(time.time()))
    entries = {path: (MODE_FILE, blob_sha(data)) for path, data in files.items()}
    index.set_entries(root, entries, index.LockWait(root))
    run_git(root, "update-index", "-q", "--refresh", changes=True)  # For their stat data only.
    ref = refs.checked_out(root) or "HEAD"
    if not refs.swap(root, ref, sha, head, commits.subject("init", COMMIT_TEXT)):
        import shlex  # 2 ms, and only here.

        raise MemhtmlError(
            "ERR_GIT",
            "the branch moved while the scaffold was committed; run it again",
            suggestions=(f"memhtml init --repo {shlex.quote(root)}",),
        )
    return sha


def _listed(root: str, command: str, option: str, *version: str) -> dict[str, str]:
    """The object ids that a version or the index has at the scaffold's paths."""
    run = run_git(root, command, option, "-z", *version, "--", *scaffold_files())
    if run.status != 0:
        raise git_failed(command, run)
    found = {}
    for line in run.stdout.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        # `ls-tree` puts the kind between mode and id, `ls-files` the stage after them.
        found[os.fsdecode(path)] = next(w for w in head.decode().split() if len(w) == 40)
    return found


def _lines(patterns: tuple[str, ...] | list[str]) -> bytes:
    return "".join(f"{pattern}\n" for pattern in patterns).encode()


def _read_lines(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _without(patterns: tuple[str, ...], data: bytes) -> tuple[str, ...]:
    """The patterns that no whole trimmed line of `data` equals."""
    present = {line.strip() for line in data.splitlines()}
    return tuple(pattern for pattern in patterns if pattern.encode() not in present)


def _append_lines(path: str, patterns: tuple[str, ...]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    before = _read_lines(path)
    joint = b"\n" if before and not before.endswith(b"\n") else b""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, joint + _lines(patterns))  # One append: two writers cannot mix.
    finally:
        os.close(descriptor)
