"""The front door of this package: run one script on this host, or say why it cannot be done.

Nothing is ever run unconfined. What a change means is not decided here.
"""

from __future__ import annotations

from memhtml_sandbox.diagnose import SetupFailed, diagnose
from memhtml_sandbox.errors import SandboxUnavailable
from memhtml_sandbox.job import Request
from memhtml_sandbox.runner import Runner
from memhtml_sandbox.supervise import Outcome


class Sandbox(Runner):
    """Runs scripts on this host as `support` says it can be done (spec `sandbox` §4 and §11).

    A process with threads hands in a `spawner`, started before its first thread (§4.1). Without one
    the first run starts one, which ends with `close`, the `with` block, or this process.
    """

    def _attempt(self, request: Request) -> tuple[Outcome, int | None]:
        """When a remembered probe turns out to be stale, ask the host again and retry (§9)."""
        try:
            return super()._attempt(request)
        except SetupFailed as failed:
            if not self._support.remembered:
                raise _unavailable(failed) from failed
        from memhtml_sandbox import probe

        self._support = probe.again(self._support)
        try:
            return super()._attempt(request)
        except SetupFailed as failed:
            raise _unavailable(failed) from failed


def _unavailable(failed: SetupFailed) -> SandboxUnavailable:
    finding = diagnose(failed)
    return SandboxUnavailable(finding.reason, finding.remedy)
