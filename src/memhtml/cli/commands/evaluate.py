"""The `eval discriminate` command."""

from __future__ import annotations

import time

from memhtml.cli.call import Answer, Call
from memhtml.errors import MemhtmlError


def discriminate(call: Call) -> Answer:
    """`eval discriminate`: a report that did not pass is a failure, with its first inversion."""
    from memhtml.evaluate import gate
    from memhtml_format.text import number

    settings = gate.Settings(
        mode=call.text("mode") or gate.FAKE,
        seed=call.number("seed"),
        now_ms=call.number("now") if "now" in call.given else int(time.time() * 1000),
        size=call.number("size"),
        probes=call.number("probes"),
        mrr_floor=number(call.text("mrr-floor") or "") or 0.0,
    )
    report = gate.discriminate(settings)
    if not report["passed"]:
        raise MemhtmlError(
            "ERR_DISCRIMINATION_FAILED",
            gate.failure(report),
            suggestions=_ways_on(report),
        )
    return Answer("eval.discrimination", report)


def _ways_on(report: dict[str, object]) -> tuple[str, ...]:
    if report["mode"] == "live":
        return ("memhtml eval discriminate --mode fake",)
    return ("memhtml help eval discriminate",)
