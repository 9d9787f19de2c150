"""The `replay` command: run recorded fixtures again and say what changed."""

from __future__ import annotations

from memhtml.cli.call import Answer, Call


def replay(call: Call) -> Answer:
    """`replay`: exit status 1, with its ordinary envelope, when a fixture changed."""
    from memhtml.replay.run import as_text
    from memhtml.replay.run import replay as run

    report = run(call.args)
    failed = report["failed"] > 0
    return Answer("replay.report", report, exit_status=1 if failed else 0, stderr=as_text(report))
