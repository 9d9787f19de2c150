"""Runs escape attempts and holds what happened against their `must` items (spec `sandbox` §13.1).

Two sets of cases: the files of `sandbox/escapes`, and the shared ones where they are at hand. Two
levels: the sandbox package with the harvester over its change set, and a whole command line, which
a caller gives as a `Runner`. Each case runs in a process of its own, as root or as a user.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "sandbox/escapes"
READ_ONLY = OWN / "read-only"
SHARED = ROOT.parent / "shared/cases/escapes.json"
TIMEOUT_MS = 20_000
SECRET_NAME = "MEMHTML_TEST_SECRET"

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="memhtml-type" content="semantic">
<meta name="memhtml-status" content="active">
<meta name="memhtml-created" content="2026-05-04T09:00:00Z">
<meta name="memhtml-updated" content="2026-05-04T09:00:00Z">
<meta name="memhtml-entity" content="system:{title}">
</head>
<body>
<article>
<p><mark>The {title} is checked every night.</mark></p>
</article>
</body>
</html>
"""

SEED: dict[str, str] = {
    path: _HEAD.format(title=title)
    for path, title in (
        ("areas/inbox/a.html", "gateway"),
        ("areas/inbox/b.html", "ledger"),
        ("projects/checkout/c.html", "basket"),
        ("resources/runbook/d.html", "runbook"),
    )
}


class Case(NamedTuple):
    """One attack: its script, what must hold, and where it can run at all."""

    name: str
    lang: str
    script: str
    must: tuple[str, ...]
    why: str = ""
    timeout_ms: int = TIMEOUT_MS
    both: bool = False
    arch: str | None = None
    needs: tuple[str, ...] = ()
    setup: str | None = None
    then: str | None = None


class Report(NamedTuple):
    """What a call gave. None where the level cannot say; `error` when there was no report."""

    exit_code: int | None
    timed_out: bool | None
    stdout: str
    stderr: str
    ops: list[tuple[str, str]] | None
    rejected: list[tuple[str, str]] | None
    appended: int | None
    left: list[str]
    mounts: list[str]
    wall_ms: float
    peak_mib: float
    error: str | None = None


class Runner(Protocol):
    """One way to run a script; `watched` are folders whose content no run may change."""

    watched: tuple[str, ...]

    def run(self, case: Case, *, secret: str) -> Report:
        """Run the case's script once, in the set-up that it asks for."""
        ...


# The cases.


def shared_cases() -> list[Case]:
    """The cases that come with the specification; none where they are not at hand."""
    if not SHARED.exists():
        return []
    return [_shared(raw) for raw in json.loads(SHARED.read_text(encoding="utf-8"))]


_CORRECTED = {
    # The file limit refuses the terabyte and leaves the file empty, and an empty file is a put
    # that fails `format` (spec `harvest` §3.3): the case's `ops:0` cannot hold beside that.
    ("sparse-giant", "ops:0"): "op:put areas/inbox/huge.html",
}


def _shared(raw: Mapping[str, Any]) -> Case:
    # A shared script says which interpreter it needs only by calling it.
    needs = tuple(name for name in ("perl", "python3") if f"{name} -" in raw["script"])
    falls_back = "python3" in needs and "|| for" in raw["script"]
    return Case(
        name=raw["name"],
        lang=raw["lang"],
        script=raw["script"],
        must=tuple(_CORRECTED.get((raw["name"], item), item) for item in raw["must"]),
        why=raw.get("why", ""),
        timeout_ms=raw.get("timeout_ms", TIMEOUT_MS),
        both=raw.get("run_as") == "both",
        arch=raw.get("arch"),
        needs=() if falls_back else needs,
        setup=raw.get("setup"),
    )


def own_cases(folder: Path = OWN) -> list[Case]:
    """The cases of a folder, from the comment lines that each file starts with."""
    return [_own(path) for path in sorted(folder.iterdir()) if path.suffix in (".sh", ".js")]


def _own(path: Path) -> Case:
    text = path.read_text(encoding="utf-8")
    mark = "#" if path.suffix == ".sh" else "//"
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith(f"{mark} "):
            break
        key, _, value = line.removeprefix(f"{mark} ").partition(": ")
        fields[key] = value
    return Case(
        name=path.name,
        lang="bash" if path.suffix == ".sh" else "js",
        script=text,
        must=tuple(fields["expect"].split("; ")),
        why=fields["why"],
        timeout_ms=int(fields.get("timeout_ms", TIMEOUT_MS)),
        both=fields.get("run_as") == "both",
        arch=fields.get("arch"),
        needs=tuple(fields.get("needs", "").split()),
        then=fields.get("then"),
    )


def cannot_run(case: Case) -> str | None:
    """Why a case is skipped on this host, or None."""
    if case.arch is not None and case.arch != platform.machine():
        return f"the system call numbers are those of {case.arch}"
    for command in (*case.needs, "node") if case.lang == "js" else case.needs:
        if shutil.which(command, path="/usr/bin:/bin:/usr/local/bin") is None:
            return f"the command folder has no {command}"
    return None


# Checking.


def check(case: Case, runner: Runner) -> list[str]:
    """Run a case and say which of its items do not hold; empty when all do."""
    secret = f"s3cr3t-{os.urandom(8).hex()}"
    before, sysctls = _snapshot(runner.watched), _sysctls()
    report = runner.run(case, secret=secret)
    failures = list(_base(report))
    if _snapshot(runner.watched) != before:
        failures.append("base: a file outside the run changed")
    for item in (*case.must, *(["then"] if case.then else [])):
        why = _item(item, case, report, runner, secret, sysctls)
        if why is not None:
            failures.append(f"{item}: {why}")
    if failures:
        failures.append(f"(stdout {report.stdout[:600]!r}, stderr {report.stderr[:600]!r})")
    return failures


def _base(report: Report) -> Iterator[str]:
    if report.error is not None:
        yield f"base: no report: {report.error}"
    if "ESCAPED" in report.stdout:
        yield "base: the attack worked"
    if report.left:
        yield f"base: still running: {report.left}"
    if report.mounts:
        yield f"base: new mounts: {report.mounts}"


def _item(
    item: str,
    case: Case,
    report: Report,
    runner: Runner,
    secret: str,
    sysctls: dict[str, str],
) -> str | None:
    """Why one item does not hold, or None."""
    kind, _, value = item.partition(":")
    number = int(value) if value.isdigit() else 0
    if kind in ("next-run-clean", "host-alive", "then"):
        return _again(kind, case, runner)
    plain: dict[str, bool] = {
        "exit": report.exit_code == number,
        "timed-out": report.timed_out is True,
        "not-timed-out": report.timed_out is False,
        "max-ms": report.wall_ms <= number,
        "stdout-has": value in report.stdout,
        "stdout-lacks": value not in report.stdout,
        "stdout-max": len(report.stdout.encode()) <= number,
        "secret": secret not in report.stdout + report.stderr,
        "sysctl-same": sysctls == _sysctls(),
        "peak-mib": report.peak_mib <= number,
        "ops": report.ops is None or len(report.ops) == number,
        "op": report.ops is None or tuple(value.split(" ", 1)) in report.ops,
        "rejected": report.rejected is None or _is_rejected(value, report.rejected),
        "no-rejected": report.rejected in (None, []),
        "appended": report.appended in (None, number),
    }
    return None if plain[kind] else f"got {_short(report)}"


def _is_rejected(value: str, rejected: list[tuple[str, str]]) -> bool:
    code, _, path = value.partition(" ")
    return any(
        reason.split(":", 1)[0] == code and path in ("", found) for reason, found in rejected
    )


def _again(kind: str, case: Case, runner: Runner) -> str | None:
    """A second run, which must find everything as it was."""
    if kind == "host-alive":
        report = runner.run(Case(case.name, "bash", "true", ()), secret="")
        return None if report.exit_code == 0 and report.wall_ms < 2_000 else _short(report)
    if kind == "then":
        report = runner.run(Case(case.name, "bash", f"{case.then}\ntrue\n", ()), secret="")
        clean = report.exit_code == 0 and "ESCAPED" not in report.stdout
        return None if clean else report.stdout
    script = "cd /mnt/memhtml && find . -type f | sort && cat " + " ".join(sorted(SEED))
    report = runner.run(Case(case.name, "bash", script, ()), secret="")
    listing = "".join(f"./{path}\n" for path in sorted(SEED))
    clean = report.stdout == listing + "".join(SEED[path] for path in sorted(SEED))
    return None if clean else f"the next run saw {report.stdout!r}"


def _short(report: Report) -> str:
    fields = report._asdict()
    return str({key: str(value)[:300] for key, value in fields.items() if key[:3] != "std"})


def _sysctls() -> dict[str, str]:
    names = ("core_pattern", "panic", "hostname")
    return {name: Path("/proc/sys/kernel", name).read_text() for name in names}


def _snapshot(folders: tuple[str, ...]) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, owner, time and content of everything below, use markers apart."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for folder in folders:
        for here, folders_here, names in os.walk(folder):
            for name in (*folders_here, *names):
                path = os.path.join(here, name)
                status = os.lstat(path)
                # A marker's time is its last use, and the lock is opened by everybody.
                used = path.endswith((".ok", ".json", "cache.lock"))
                content = b""
                if os.path.isfile(path) and not os.path.islink(path):
                    content = Path(path).read_bytes()
                time_ns = 0 if used else status.st_mtime_ns
                found[path] = (status.st_mode, status.st_uid, time_ns, content)
    return found


# Memory.


class PeakMemory:
    """Samples what a call costs the host, every 50 ms: private memory and shared pages."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._shared_kib = _shmem_kib()
        self.peak_mib = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            own_kib = sum(_anonymous_kib(pid) for pid in _family(self._pid))
            shared_kib = max(0, _shmem_kib() - self._shared_kib)
            self.peak_mib = max(self.peak_mib, (own_kib + shared_kib) / 1_024)

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self.peak_mib


def _family(pid: int) -> list[int]:
    found, todo = [], [pid]
    while todo:
        here = todo.pop()
        found.append(here)
        try:
            with open(f"/proc/{here}/task/{here}/children", encoding="ascii") as file:
                todo.extend(int(child) for child in file.read().split())
        except OSError:
            continue
    return found


def _anonymous_kib(pid: int) -> int:
    return _field(f"/proc/{pid}/status", "RssAnon:")


def _shmem_kib() -> int:
    return _field("/proc/meminfo", "Shmem:")


def _field(path: str, name: str) -> int:
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
    except OSError:
        return 0


def wall_ms_since(begun_s: float) -> float:
    """Milliseconds since a `time.monotonic()` reading."""
    return (time.monotonic() - begun_s) * 1_000
