"""One version of the corpus, mounted for scripts: its lower tree, its head, and the run itself.

Shared by every command that runs a script. The head database is open only while something is asked
of it, never while a script runs (`design.md` §4), and no sooner than it is asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memhtml import __version__, config, log
from memhtml.errors import StorageError
from memhtml.execute.place import cache_folder, open_cache
from memhtml_sandbox.errors import NodeMissing, SandboxFailed, SandboxUnavailable
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import NO_LAYER, Lower, SessionLayer
from memhtml_sandbox.lower import Seed as Layers
from memhtml_sandbox.probe import Support, probe
from memhtml_sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from memhtml.corpus.fold import Folded
    from memhtml.corpus.head import Head
    from memhtml.corpus.interface import Corpus
    from memhtml.execute.script import Script
    from memhtml.store.repo import Repo
    from memhtml_sandbox.result import Run
    from memhtml_sandbox.spawner import Spawner


class HeadSource:
    """The records of commits, for the lower trees: which files, says the head; bytes, says git.

    `reports` has how the head of each commit was loaded, by the first time it was opened.
    """

    def __init__(self, root: str, ref: str) -> None:
        self.root = root
        self.ref = ref
        self.reports: dict[str, dict[str, Any]] = {}
        self._repo: Repo | None = None

    @property
    def repo(self) -> Repo:
        """The store's objects."""
        if self._repo is None:
            from memhtml.store.repo import Repo

            self._repo = Repo(self.root)
        return self._repo

    def open(self, sha: str) -> Head:
        """The head at a commit, in a read transaction of its own; the caller closes it."""
        # Not at the top: a script over a lower tree that stands ready can start before.
        from memhtml.corpus.head import open_head

        head = open_head(self.root, self.ref, sha, repo=self.repo)
        self.reports.setdefault(sha, head.report.to_json())
        return head

    def files(self, sha: str) -> Iterator[tuple[str, bytes]]:
        """Every record of the commit with its bytes."""
        with self.open(sha) as head:
            for path, blob in head.record_blobs():
                yield path, self.repo.data(blob)

    def difference(self, old: str, new: str) -> Iterator[tuple[str, bytes | None]]:
        """Records that differ between the commits; None for one that is gone."""
        if not self.repo.commit_exists(old):
            raise LookupError(f"no commit {old}")
        changes = [change.path for change in self.repo.difference(old, new)]
        with self.open(old) as head:
            before = {path for path in changes if head.record(path) is not None}
        with self.open(new) as head:
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
        self.sha = sha
        settings = config.sandbox()
        self.support = support(cache_folder(root, settings), settings)
        self.sandbox = Sandbox(self.support, spawner=spawner)
        self.cache = open_cache(root, settings)
        self.source = HeadSource(root, ref)
        self.layers = Layers(Lower(sha, ()))

    def seat(self) -> None:
        """Bring the lower tree to the commit; the head is asked only when that changes it."""
        with storage_errors():
            self.layers = Layers(self.cache.ensure(self.source, self.sha))

    def head(self) -> Head:
        """The head at the commit, in a read transaction of its own; the caller closes it."""
        return self.source.open(self.sha)

    @property
    def loaded(self) -> dict[str, Any]:
        """The `head` object of the payload (spec `sessions` §4.1), once the head was opened."""
        return self.source.reports[self.sha]

    def read(self, path: str) -> bytes | None:
        """The base's bytes at a path."""
        return self.layers.lower.read(path)

    def lay(self, folded: Folded | None) -> None:
        """Put the session's folded log over the base."""
        layer = NO_LAYER if folded is None else SessionLayer(folded.files, folded.gone)
        self.layers = Layers(self.layers.lower, layer)

    @contextmanager
    def run(
        self,
        script: Script,
        *,
        limits: Limits | None = None,
        read_only: bool = False,
        meanwhile: Sequence[Callable[[], object]] = (),
    ) -> Iterator[Run]:
        """Run the script; every process of it is dead when the block starts.

        `meanwhile` is what may be done while it runs, in short steps. Errors raised,
        as `StorageError`: `exec.sandbox-load`, `exec.node-missing`, `exec.seed`, `exec.run`,
        `exec.harvest`.
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
                meanwhile=meanwhile,
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
        ways: tuple[str, ...] = ()
        if isinstance(error, NodeMissing):
            ways = ("memhtml session exec --id <id> --lang bash <<'SH'",)
        raise StorageError(error.code, str(error), suggestions=ways) from error
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


@contextmanager
def mounted(root: str, ref: str, sha: str, spawner: Spawner | None = None) -> Iterator[Mount]:
    """The version `sha` of the ref, mounted. Errors raised: `exec.sandbox-load`, `exec.seed`."""
    mount = Mount(root, ref, sha, spawner)
    with mount.sandbox:
        mount.seat()
        yield mount
