"""What every row needs: the corpora, running a command and timing it, and the table."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOTS = [os.path.join(HERE, part) for part in ("src", "sandbox", "harvest")]
CONSONANTS, VOWELS = "bcdfghjklmnprstvz", "aeiou"
MIB = 1024


class Row(NamedTuple):
    """One line of the table: what was measured, the figure, its bound, and what it is made of."""

    what: str
    value: float
    bound: float | None
    unit: str
    detail: str

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        return "ok" if self.value <= self.bound else "OVER"


class Bench:
    """The corpora, the command and the rows so far."""

    def __init__(self, folder: str, rounds: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.rows: list[Row] = []
        self.python = sys.executable
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MEMHTML_", "PYTHONDONTWRITE"))
        }
        self.env["PYTHONPATH"] = os.pathsep.join(ROOTS)
        self.counter = 0

    def command(self, *words: str) -> list[str]:
        return [self.python, "-m", "memhtml", *words]

    def add(self, what: str, value: float, bound: float | None, unit: str, detail: str) -> None:
        row = Row(what, round(value, 3), bound, unit, detail)
        self.rows.append(row)
        shown = "" if bound is None else f"  (at most {bound:g})"
        print(f"  {what}: {row.value:g} {unit}{shown}  {row.verdict}  {detail}", flush=True)


# Corpora


def words(count: int, seed: int) -> list[str]:
    """Made-up words that no stemmer folds together."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        parts = [chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(4)]
        found["".join(parts) + chance.choice("bdgkp")] = None
    return list(found)


VOCABULARY = words(6000, 1)


def record(number: int, chance: random.Random) -> str:
    """One valid record of about 700 bytes whose every word is rare."""
    w = chance.sample(VOCABULARY, 24)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{w[0]} {w[1]} {number}</title>\n"
        '<meta name="memhtml-type" content="semantic">\n'
        '<meta name="memhtml-status" content="active">\n'
        '<meta name="memhtml-created" content="2026-05-04T09:00:00Z">\n'
        '<meta name="memhtml-updated" content="2026-05-04T09:00:00Z">\n'
        f'<meta name="memhtml-entity" content="system:{w[2]}">\n</head>\n<body>\n<article>\n'
        f"<p><mark>The {w[3]} {w[4]} of {w[5]} is {w[6]} {number}.</mark> "
        f"{' '.join(w[7:20])}.</p>\n</article>\n</body>\n</html>\n"
    )


def corpus(count: int, first: int = 0) -> Iterator[tuple[str, str]]:
    """Paths and bytes of `count` records, 500 a folder."""
    chance = random.Random(count + first)
    for n in range(first, first + count):
        yield f"resources/topic-{n // 500:04d}/record-{n:06d}.html", record(n, chance)


def fast_import(root: str, files: Iterator[tuple[str, str]], parent: str | None) -> float:
    """Commit the files on main with `git fast-import`; seconds it took."""
    started = time.perf_counter()
    git = subprocess.Popen(
        ["git", "-C", root, "fast-import", "--quiet", "--force"], stdin=subprocess.PIPE
    )
    assert git.stdin is not None
    head = "commit refs/heads/main\ncommitter bench <bench@localhost> 1767225600 +0000\n"
    git.stdin.write(f"{head}data 5\nfill\n\n".encode())
    if parent is not None:
        git.stdin.write(f"from {parent}\n".encode())
    for path, html in files:
        data = html.encode()
        git.stdin.write(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
    git.stdin.close()
    if git.wait() != 0:
        raise SystemExit("git fast-import failed")
    return time.perf_counter() - started


def make_store(bench: Bench, count: int) -> str:
    """A store with `count` records, main checked out."""
    root = os.path.join(bench.folder, f"store-{count}")
    run(bench, bench.command("init", "--repo", root))
    tip = git_out(root, "rev-parse", "HEAD")
    fast_import(root, corpus(count), tip)
    git_out(root, "reset", "--hard", "-q", "main")
    return root


def git_out(root: str, *words: str) -> str:
    """Standard output of a git command, trimmed."""
    return subprocess.run(
        ["git", "-C", root, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


# Measuring


class Done(NamedTuple):
    """One finished child: seconds, peak resident KiB, its envelope's data."""

    seconds: float
    peak_kib: int
    data: dict[str, Any]


def run(bench: Bench, command: list[str], text: str = "") -> Done:
    """Run one command to its end; a failure ends the bench with what it said."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(text.encode())
        given.seek(0)
        started = time.perf_counter()
        child = subprocess.Popen(command, stdin=given, stdout=out, env=bench.env)
        _pid, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read()
    if child.returncode not in (0, 2):
        raise SystemExit(f"{' '.join(command)} failed: {printed.decode(errors='replace')}")
    value = json.loads(printed) if printed.startswith(b"{") else {}
    return Done(seconds, usage.ru_maxrss, value.get("data", {}))


def interleaved(rounds: int, *acts: Callable[[], object]) -> list[float]:
    """Median milliseconds of each act, the acts taking turns; two warm-up rounds do not count."""
    taken: list[list[float]] = [[] for _ in acts]
    for turn in range(rounds + 2):
        for slot, act in enumerate(acts):
            started = time.perf_counter()
            act()
            if turn >= 2:
                taken[slot].append((time.perf_counter() - started) * 1000)
    return [statistics.median(times) for times in taken]


def grow(bench: Bench, what: str, medians: dict[int, float], bound: float) -> None:
    """The ratio of the largest corpus to the smallest."""
    small, large = min(medians), max(medians)
    if small != large:
        detail = f"{medians[large]:.1f} ms / {medians[small]:.1f} ms"
        bench.add(
            f"{what}, {large:,} / {small:,}", medians[large] / medians[small], bound, "x", detail
        )


def print_table(rows: list[Row]) -> None:
    """The figures as a Markdown table."""
    print("\n| what | measured | budget | | made of |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        bound = "" if row.bound is None else f"≤ {row.bound:g}"
        print(f"| {row.what} | {row.value:g} {row.unit} | {bound} | {row.verdict} | {row.detail} |")
