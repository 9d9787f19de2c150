"""From a change set to operations and findings: what exec, its recordings and replay share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from memhtml.corpus.interface import Corpus
    from memhtml.policy import Policy
    from memhtml.session.log import Log
    from memhtml_format.ops import Op
    from memhtml_format.violations import Violation
    from memhtml_harvest.report import Rejected
    from memhtml_harvest.seed import Seed
    from memhtml_sandbox.result import Run


class Judged(NamedTuple):
    """What a run changed and what the bar says of it."""

    ops: tuple[Op, ...]
    rejected: tuple[Rejected, ...]
    violations: list[Violation]
    blocking: list[str]


class OverTime(Exception):
    """The whole run is over its time."""


def judge_changes(
    run: Run, seed: Seed, base: Corpus, log: Log, policy: Policy, *, run_bound: bool
) -> Judged:
    """Harvest what the run changed, and judge log and harvest against the base (§4).

    A run that is over its whole time before this is done counts as timed out; nothing of it is
    harvested and nothing is judged (spec `harvest` §2.2).
    """
    changes = run.changes()
    if not changes.changed and not changes.vanished and not log.ops:
        # Before the parser and the bar are loaded, which costs more than a whole no-op.
        return Judged((), (), [], [])
    from memhtml.bar.judge import judge
    from memhtml.session.view import touched_by
    from memhtml_format.violations import blocking, sentence
    from memhtml_harvest.diff import harvest

    def check() -> None:
        if run.overdue:
            raise OverTime

    try:
        found = harvest(changes.changed, changes.vanished, seed, scope=log.scope, check=check)
        violations = judge((*log.ops, *found.ops), base, policy, log.scope, check=check)
    except OverTime:
        run.give_up()
        return Judged((), (), [], [])
    blocked = blocking(violations, touched_by(found.ops), run_bound=run_bound)
    return Judged(found.ops, found.rejected, violations, [sentence(v) for v in blocked])
