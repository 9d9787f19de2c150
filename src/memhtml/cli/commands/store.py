"""`init`: the one command that may make a store."""

from __future__ import annotations

from memhtml.cli.call import Answer, Call


def init(call: Call) -> Answer:
    """`init`: make the root a store, or add what is missing."""
    from memhtml.store import scaffold

    report = scaffold.init(call.root())
    return Answer(
        "repo.init",
        {
            "root": report.root,
            "created": report.created,
            "headSha": report.head_sha,
            "wrote": list(report.wrote),
        },
    )
