"""The `index` commands: call `memhtml.index`, wrap the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memhtml.cli.call import Answer, Call

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder

TYPE = "index.report"
_BAR = "embedding"


def rebuild(call: Call) -> Answer:
    """`index rebuild`."""
    from memhtml.cli.progress import Bar
    from memhtml.index import follow
    from memhtml.store.repo import Repo

    root, embedder = call.store(), _embedder()
    repo = Repo(root)
    try:
        with Bar(_BAR) as bar:
            done = follow.rebuild(
                root,
                repo=repo,
                embedder=embedder,
                embed=call.switch("embed"),
                force=call.switch("force"),
                progress=bar,
            )
    finally:
        repo.close()
    return Answer(TYPE, done.to_json())


def update(call: Call) -> Answer:
    """`index update`."""
    from memhtml.cli.progress import Bar
    from memhtml.index import follow
    from memhtml.store.repo import Repo

    root, embedder = call.store(), _embedder()
    repo = Repo(root)
    try:
        with Bar(_BAR) as bar:
            done = follow.update(
                root, repo=repo, embedder=embedder, embed=call.switch("embed"), progress=bar
            )
    finally:
        repo.close()
    return Answer(TYPE, done.to_json())


def embed(call: Call) -> Answer:
    """`index embed`."""
    from memhtml.cli.progress import Bar
    from memhtml.index.filling import embed as run

    root, embedder = call.store(), _embedder()
    with Bar(_BAR) as bar:
        data = run(root, embedder, dry_run=call.switch("dry-run"), progress=bar)
    return Answer(TYPE, data)


def status(call: Call) -> Answer:
    """`index status`."""
    from memhtml import config
    from memhtml.index.database import open_index
    from memhtml.index.report import health, status_json

    root, embedder, floor = call.store(), _embedder(), config.coverage_floor()
    with open_index(root) as index:
        return Answer(TYPE, status_json(health(index, embedder), floor))


def _embedder() -> Embedder | None:
    from memhtml.embed.choose import bound_embedder

    return bound_embedder()
