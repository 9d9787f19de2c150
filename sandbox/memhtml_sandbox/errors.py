"""The exceptions of this package, each with the dotted token a caller reports it under.

The caller turns them into `ERR_STORAGE` (spec `sandbox` §11); nothing here prints or exits.
"""

from __future__ import annotations


class SandboxUnavailable(Exception):
    """This host cannot run a script confined; nothing was run (spec `sandbox` §9).

    `reason` says what is missing, `remedy` what a person can do about it ("" when nothing).
    """

    code = "exec.sandbox-load"

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.reason = reason
        self.remedy = remedy


class NodeMissing(SandboxUnavailable):
    """A `js` script was asked for and there is no node 18 or newer; bash still works."""

    code = "exec.node-missing"


class SandboxFailed(Exception):
    """The sandbox could be had, but one step of this call went wrong.

    `code` is `exec.run`, `exec.seed` or `exec.harvest`; `reason` is a sentence for people.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason
