"""Tries the sandbox out on this host: the part of `probe` that costs something.

Each program it starts is killed after half a second (spec `sandbox` §9). It leaves nothing behind
but the folders of the cache.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
import time
from typing import Literal

from memhtml_sandbox import cgroup
from memhtml_sandbox.diagnose import (
    INSTALL_BWRAP,
    INSTALL_NODE,
    NAME_A_CACHE,
    NAME_ANOTHER,
    Finding,
    SetupFailed,
    diagnose,
)
from memhtml_sandbox.errors import SandboxFailed, SandboxUnavailable
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import NO_LAYER, Lower
from memhtml_sandbox.runner import Runner
from memhtml_sandbox.support import (
    OLDEST_BWRAP,
    OLDEST_NODE,
    Asked,
    Support,
    Version,
    blank,
    bwrap_candidates,
    node_candidates,
)

STEP_S = 0.5
ALL_S = 2.0

TOO_LONG = Finding("trying the sandbox took too long", "")

_SCRIPT = b"""set -e
cd /mnt/memhtml
echo new > new.html
rm -r folder
mkdir folder
"""
_EXPECTED = ({b"new.html"}, frozenset({"folder/old.html"}))


def attempt(asked: Asked) -> Support:
    """The whole trial; what it finds out is in the answer, whatever happens."""
    support = blank(asked)
    if not sys.platform.startswith("linux"):
        return support._replace(reason="session exec needs Linux", remedy="")
    if asked.backend not in (None, "overlay", "copy"):
        return support._replace(reason=f"no back end is named {asked.backend!r}", remedy="")
    if support.uid == 0:
        return support._replace(reason="the sandbox's user may not be root", remedy="")
    until_s = time.monotonic() + ALL_S
    support = _with_bwrap(support, until_s)
    if support.bwrap is None:
        return support
    support = _with_node(support, until_s)._replace(cgroup=cgroup.find())
    both: tuple[Literal["overlay", "copy"], ...] = ("overlay", "copy")
    for backend in both:
        if asked.backend not in (None, backend):
            continue
        finding = _try_patiently(support, backend, until_s)
        if finding is None:
            return support._replace(backend=backend)
        support = support._replace(reason=finding.reason, remedy=finding.remedy)
        if not finding.overlay_only:
            break
    return support


def _with_bwrap(support: Support, until_s: float) -> Support:
    """The first candidate that is new enough.

    One that `MEMHTML_BWRAP` names is the only candidate, so that a wrong name is told and not
    passed over; where the variable is not set, spec `sandbox` §2.1 holds as it stands.
    """
    seen, what = "", ""
    for path in bwrap_candidates(support.asked):
        version = _version_of(path, until_s)
        if version is not None and version >= OLDEST_BWRAP:
            return support._replace(bwrap=path, bwrap_version=version)
        what = ".".join(map(str, version)) if version else "no bwrap that runs"
        seen = f"; {path} is {what}"
    asked = support.asked.bwrap
    if asked is None:
        return support._replace(reason=f"no bwrap 0.11 or newer{seen}", remedy=INSTALL_BWRAP)
    reason = f"MEMHTML_BWRAP is {asked!r}, and that is {what or _no_program(asked)}"
    return support._replace(reason=f"{reason}; it takes bwrap 0.11 or newer", remedy=NAME_ANOTHER)


def _no_program(path: str) -> str:
    """What a file is that was not even tried."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"not there ({os.strerror(error.errno or errno.ENOENT)})"
    if not stat.S_ISREG(mode):
        return "no regular file"
    return "setuid, which rules the overlay out" if mode & stat.S_ISUID else "not executable"


def _with_node(support: Support, until_s: float) -> Support:
    seen = "there is no node"
    for path in node_candidates(support.asked):
        version = _version_of(path, until_s)
        if version is not None and version >= OLDEST_NODE:
            return support._replace(node=path, node_version=version)
        seen = f"{path} is {'.'.join(map(str, version)) if version else 'no node that runs'}"
    return support._replace(node_reason=seen, node_remedy=INSTALL_NODE)


def _version_of(path: str, until_s: float) -> Version | None:
    left_s = min(STEP_S, until_s - time.monotonic())
    if left_s <= 0:
        return None
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=left_s,
            env={},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stdout.decode("utf-8", "replace"))


def parse_version(text: str) -> Version | None:
    """The version in `bubblewrap 0.11.0` or `v20.1.2`; a missing part counts 0."""
    word = text.split()[-1] if text.split() else ""
    parts = word.removeprefix("v").split(".")[:3]
    if not all(part.isdecimal() for part in parts):
        return None
    numbers = [*map(int, parts), 0, 0]
    return numbers[0], numbers[1], numbers[2]


def _try_patiently(
    support: Support, backend: Literal["overlay", "copy"], until_s: float
) -> Finding | None:
    """A trial that only took too long is made again, a busy host being no reason to give up."""
    finding: Finding | None = TOO_LONG
    while finding is TOO_LONG and time.monotonic() < until_s:
        finding = _try_backend(support, backend)
    return finding


def _try_backend(support: Support, backend: Literal["overlay", "copy"]) -> Finding | None:
    """Run a script that makes a file, and a folder anew; None when both are read back."""
    home = support.cache_dir
    try:
        if home is not None:
            os.makedirs(home, 0o755, exist_ok=True)
        # Where the real trees will be, since not every file system can be under an overlay.
        with tempfile.TemporaryDirectory(prefix="tmp-probe-", dir=home) as scratch:
            os.chmod(scratch, 0o755)
            lower = _corpus(scratch, support)
            return _run(support._replace(backend=backend, cache_dir=home or scratch), lower)
    except SetupFailed as failed:
        return diagnose(failed)
    except SandboxUnavailable as error:
        return Finding(error.reason, error.remedy)
    except PermissionError as error:
        return Finding(f"the sandbox cannot be set up ({error})", NAME_A_CACHE)
    except (SandboxFailed, OSError) as error:
        unwritable = isinstance(error, OSError) and error.errno == errno.EROFS
        return Finding(f"the sandbox cannot be set up ({error})", NAME_A_CACHE * unwritable)


def _corpus(scratch: str, support: Support) -> Lower:
    """A lower tree with one file, owned as the cache's trees are."""
    top = f"{scratch}/lower"
    os.makedirs(f"{top}/folder", 0o755)
    with open(f"{top}/folder/old.html", "x", encoding="utf-8") as file:
        file.write("old\n")
    for path in (top, f"{top}/folder", f"{top}/folder/old.html"):
        os.chown(path, support.uid, support.gid)
    return Lower("0" * 40, (top,))


def _run(candidate: Support, lower: Lower) -> Finding | None:
    limits = Limits(timeout_ms=400, grace_ms=100)
    with (
        Runner(candidate) as runner,
        runner.run(lower, NO_LAYER, script=_SCRIPT, limits=limits) as run,
    ):
        if run.timed_out:
            return TOO_LONG
        found = run.changes()
        if run.exit_code == 0 and (set(found.changed), found.vanished) == _EXPECTED:
            return None
    words = run.stderr.decode("utf-8", "replace").strip()
    return Finding(
        f"changes do not come back as they were made ({words or 'other files'})",
        "",
        overlay_only=True,
    )
