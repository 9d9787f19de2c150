"""What a run answers, in the form a fixture keeps it: for recording and for comparing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memhtml_format import violations as bar_findings
from memhtml_harvest.fixture import Expect, harvested_json

if TYPE_CHECKING:
    from memhtml.session.judgement import Judged
    from memhtml_sandbox.result import Run


def expect_of(run: Run, judged: Judged) -> Expect:
    """The expectation of a run as it was judged.

    `appended` is what an append would add. Whether another call got in its way is no property of
    the run, and a replay has no log to append to.
    """
    blocked = run.exit_code != 0 or bool(judged.blocking)
    return Expect(
        exit_code=run.exit_code,
        timed_out=run.timed_out,
        stdout=run.stdout.decode("utf-8", "replace"),
        stderr=run.stderr.decode("utf-8", "replace"),
        harvested=harvested_json(judged.ops),
        rejected=tuple({"path": item.path, "reason": item.reason} for item in judged.rejected),
        violations=tuple(bar_findings.encode(found) for found in judged.violations),
        blocking=tuple(judged.blocking),
        appended=0 if blocked else len(judged.ops),
    )
