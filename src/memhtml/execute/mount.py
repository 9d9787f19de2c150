"""One version of the corpus, mounted for scripts: its lower tree, its head, and the run itself.

Shared by every command that runs a script. The head database is open only while something is asked
of it, never while a script runs (`design.md` §4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from memhtml import __version__, config, log
from memhtml.corpus.head import open_head
from memhtml.errors import StorageError
from memhtml.execute.script import Script
from memhtml.store.repo import Repo
from memhtml_sandbox.cache import CorpusCache
from memhtml_sandbox.errors import SandboxFailed, SandboxUnavailable
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import NO_LAYER, Lower, SessionLayer
from memhtml_sandbox.lower import Seed as Layers
from memhtml_sandbox.probe import Support, probe
from memhtml_sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from memhtml.corpus.fold import Folded
    from memhtml.corpus.head import Head
    from memhtml.corpus.interface import Corpus
    from memhtml_sandbox.result import Run
    from memhtml_sandbox.spawner import Spawner


class HeadSource:
    """The records of commits, for the lower trees: which files, says the head; bytes, says git."""

    def __init__(self, root: str, ref: str, repo: Repo) -> None:
        self.root = root
        self.ref = ref
        self.repo = repo

    def files(self, sha: str) -> Iterator[tuple[str, bytes]]:
        """Every record of the commit with its bytes."""
        with open_head(self.root, self.ref, sha, repo=self.repo) as head:
            for path, blob in head.record_blobs():
                yield path, self.repo.data(blob)

    def difference(self, old: str, new: str) -> Iterator[tuple[str, bytes | None]]:
        """Records that differ between the commits; None for one that is gone."""
        if not self.repo.commit_exists(old):
            raise LookupError(f"no commit {old}")
        changes = [change.path for change in self.repo.difference(old, new)]
        with open_head(self.root, self.ref, old, repo=self.repo) as head:
            before = {path for path in changes if head.record(path) is not None}
        with open_head(self.root, self.ref, new, repo=self.repo) as head:
            for path in changes:
                data = head.read(path) if head.record(path) is not None else None
                if data is not None or path in before:
                    yield path, data


class RecordSeed:
    """What the harvester compares with: the seeded layers, and content hashes without parsing."""

    def __init__(self, layers: Layers, head: Corpus) -> None:
        self.layers = layers
        self.head = head

    def read(self, path: str) -> bytes | None:
        """The seeded bytes."""
        return self.layers.read(path)

    def holds(self, path: str) -> bool:
        """Whether a record is seeded at the path."""
        return self.layers.holds(path)

    def holds_under(self, folder: str) -> bool:
        """Whether a record is seeded below the folder."""
        return self.first_under(folder) is not None

    def first_under(self, folder: str) -> str | None:
        """The first seeded record below the folder."""
        return next(self.layers.under(folder), None)

    def content_hash(self, path: str) -> str | None:
        """The article's hash of a seeded record."""
        from memhtml_format.record import content_hash

        data = self.layers.layer.files.get(path)
        if data is not None:
            return content_hash(data)
        row = self.head.record(path)
        return None if row is None else row.content_hash


class Mount:
    """A lower tree that stands ready, and the sandbox that runs scripts over it."""

    def __init__(self, root: str, ref: str, sha: str, spawner: Spawner | None = None) -> None:
        self.root = root
        self.ref = ref
        self.sha = sha
        self.repo = Repo(root)
        settings = config.sandbox()
        self.support = support(cache_folder(root, settings), settings)
        self.sandbox = Sandbox(self.support, spawner=spawner)
        self.cache = open_cache(root, settings)
        self.source = HeadSource(root, ref, self.repo)
        self.loaded: dict[str, Any] = {}
        self.layers = Layers(Lower(sha, ()))

    def seat(self) -> None:
        """Load the head once for the report, and bring the lower tree to the commit."""
        with self.head() as head:
            self.loaded = head.report.to_json()
        with storage_errors():
            self.layers = Layers(self.cache.ensure(self.source, self.sha))

    def head(self) -> AbstractContextManager[Head]:
        """The head at the commit, in a read transaction of its own."""
        return open_head(self.root, self.ref, self.sha, repo=self.repo)

    def read(self, path: str) -> bytes | None:
        """The base's bytes at a path."""
        return self.layers.lower.read(path)

    def lay(self, folded: Folded | None) -> None:
        """Put the session's folded log over the base."""
        layer = NO_LAYER if folded is None else SessionLayer(folded.files, folded.gone)
        self.layers = Layers(self.layers.lower, layer)

    @contextmanager
    def run(
        self, script: Script, *, limits: Limits | None = None, read_only: bool = False
    ) -> Iterator[Run]:
        """Run the script; every process of it is dead when the block starts.

        Errors raised: `exec.sandbox-load`, `exec.node-missing`, `exec.seed`, `exec.run`,
        `exec.harvest` as `StorageError`.
        """
        bounds = (limits or Limits())._replace(timeout_ms=script.timeout_ms)
        with (
            storage_errors(),
            self.sandbox.run(
                self.layers.lower,
                self.layers.layer,
                script=script.text.encode(),
                lang=script.lang,
                limits=bounds,
                read_only=read_only,
            ) as run,
        ):
            yield run

    def seed(self, head: Corpus) -> RecordSeed:
        """The harvester's view of what was seeded."""
        return RecordSeed(self.layers, head)

    def tidy(self) -> None:
        """After answering: a new base when the delta grew too large (spec `sandbox` §3.1)."""
        with storage_errors():
            self.cache.maintain(self.source, self.sha)


@contextmanager
def storage_errors() -> Iterator[None]:
    """The sandbox's own exceptions as `ERR_STORAGE` with their dotted reason."""
    try:
        yield
    except SandboxUnavailable as error:
        raise StorageError(error.code, str(error)) from error
    except SandboxFailed as error:
        raise StorageError(error.code, error.reason) from error


def support(cache_dir: str, settings: config.SandboxSettings) -> Support:
    """What this host can do, or `exec.sandbox-load` with what is missing and the remedy.

    `cache_dir` is where a success is remembered and the command folder lies. Half measures are
    said on standard error, once a process (spec `sandbox` §6.3, §9).
    """
    found = probe(
        bwrap=settings.bwrap,
        backend=settings.backend,
        cache_dir=cache_dir,
        sandbox_uid=settings.uid,
        search=tuple(config.search_path().split(os.pathsep)),
        version=__version__,
    )
    if found.backend is None:
        detail = f"{found.reason}; {found.remedy}" if found.remedy else found.reason
        raise StorageError("exec.sandbox-load", detail)
    if found.backend == "copy" and found.reason:
        log.warn(f"scripts run over a copy of the corpus: {found.reason}; {found.remedy}")
    if not found.seccomp:
        log.warn("this machine's system calls are not filtered: there is no table for it")
    return found


def owner(settings: config.SandboxSettings) -> tuple[int, int]:
    """The ids that own the lower trees: the sandbox's for root, else the caller's."""
    uid, gid = os.geteuid(), os.getegid()
    return (settings.uid, settings.uid) if uid == 0 else (uid, gid)


def cache_folder(root: str, settings: config.SandboxSettings) -> str:
    """Where the lower trees lie (spec `sandbox` §3): in the store, unless it is on NFS or FUSE."""
    if settings.cache_dir is not None:
        return settings.cache_dir
    inside = os.path.join(root, ".memhtml", "sandbox")
    if os.path.isdir(inside) or not on_network(root):
        return inside
    from memhtml_format.digest import blob_sha

    return os.path.join(settings.cache_home, "memhtml", blob_sha(os.fsencode(root))[:16])


def on_network(root: str) -> bool:
    """Whether the store's file system is one that an overlay cannot lie on."""
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                left, _dash, right = line.partition(" - ")
                point = left.split(" ")[4]
                inside = point == "/" or root == point or root.startswith(f"{point}/")
                if inside and len(point) >= len(best):
                    best, kind = point, right.split(" ")[0]
    except OSError:
        return False
    return kind.startswith(("nfs", "fuse", "9p", "cifs", "smb"))


def open_cache(root: str, settings: config.SandboxSettings) -> CorpusCache:
    """The store's cache of lower trees."""
    uid, gid = owner(settings)
    return CorpusCache(cache_folder(root, settings), uid=uid, gid=gid)


@contextmanager
def mounted(root: str, ref: str, sha: str, spawner: Spawner | None = None) -> Iterator[Mount]:
    """The version `sha` of the ref, mounted. Errors raised: `exec.sandbox-load`, `exec.seed`."""
    mount = Mount(root, ref, sha, spawner)
    with mount.sandbox:
        mount.seat()
        yield mount


def prune_cache(root: str) -> None:
    """Remove lower trees that nothing used lately (spec `sandbox` §3)."""
    settings = config.sandbox()
    folder = cache_folder(root, settings)
    if os.path.isdir(folder):
        open_cache(root, settings).prune()
