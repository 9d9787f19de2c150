"""Rows of sessions, scripts and the sandbox."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable

from bench_rows.measure import (
    HERE,
    MIB,
    ROOTS,
    VOCABULARY,
    Bench,
    Done,
    corpus,
    fast_import,
    git_out,
    grow,
    interleaved,
    run,
)


def bwrap_path() -> str:
    """The bwrap the product would use."""
    code = "from memhtml_sandbox.probe import probe; print(probe().bwrap or '')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    if not found.stdout.strip():
        raise SystemExit("this host has no usable bwrap: " + found.stderr)
    return found.stdout.strip()


def bare(bwrap: str) -> Callable[[], object]:
    """The yardstick: bwrap alone, running `bash -c true`."""
    command = [bwrap, "--ro-bind", "/", "/", "bash", "-c", "true"]
    return lambda: subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def start_up(bench: Bench, root: str) -> None:
    """`manifest`, `session status` and a usage error against an empty Python."""
    status = bench.command("session", "status", "--repo", root, "--id", "bench")
    times = interleaved(
        bench.rounds,
        lambda: subprocess.run([bench.python, "-I", "-c", "pass"], check=True),
        lambda: run(bench, bench.command("manifest")),
        lambda: run(bench, status),
        lambda: run(bench, bench.command("session", "stat")),
    )
    for name, ms in zip(("manifest", "session status", "usage error"), times[1:], strict=True):
        detail = f"{ms:.1f} ms / {times[0]:.1f} ms"
        bench.add(f"start-up: {name} / python -I -c pass", ms / times[0], 6, "x", detail)


def sandbox_part(bench: Bench, stores: dict[int, str], bwrap: str) -> None:
    """A trivial bash run, sandbox part alone, against bare bwrap, and its growth."""
    medians: dict[int, float] = {}
    for count, root in stores.items():
        script = os.path.join(HERE, "scripts", "bench-sandbox")
        command = [bench.python, script, root, bwrap, str(bench.rounds)]
        data = json.loads(
            subprocess.run(command, check=True, env=bench.env, capture_output=True).stdout
        )
        medians[count] = data["run_ms"]
        bound = 2.5 if count == 10_000 else None
        detail = f"{data['run_ms']:.2f} ms / {data['bare_ms']:.2f} ms"
        bench.add(
            f"sandbox part / bare bwrap, {count:,}",
            data["run_ms"] / data["bare_ms"],
            bound,
            "x",
            detail,
        )
    grow(bench, "sandbox part", medians, 1.25)


def whole_exec(bench: Bench, stores: dict[int, str], bwrap: str) -> None:
    """`memhtml session exec` of a no-op, warm cache, no server."""
    acts = [
        lambda root=root: run(
            bench, bench.command("session", "exec", "--repo", root, "--id", "bench"), "true\n"
        )
        for root in stores.values()
    ]
    times = interleaved(bench.rounds, bare(bwrap), *acts)
    medians = dict(zip(stores, times[1:], strict=True))
    for count, ms in medians.items():
        bound = 20 if count == 10_000 else None
        detail = f"{ms:.1f} ms / {times[0]:.1f} ms"
        bench.add(f"session exec / bare bwrap, {count:,}", ms / times[0], bound, "x", detail)
    grow(bench, "session exec", medians, 1.3)


def put_line(bench: Bench) -> str:
    """One write line nobody has put yet, of rare words."""
    bench.counter += 1
    w = random.Random(bench.counter).sample(VOCABULARY, 6)
    body = f"The {w[0]} {w[1]} of {w[2]} is {w[3]} {bench.counter}."
    return json.dumps(
        {"op": "write", "title": f"{w[4]} {w[5]} {bench.counter}", "type": "semantic", "body": body}
    )


def one_put(bench: Bench, stores: dict[int, str]) -> None:
    """`session put` of one record into a fresh session."""

    def act(root: str) -> None:
        words = bench.command("session", "put", "--repo", root, "--id", "bench-put")
        run(bench, words, put_line(bench) + "\n")

    for root in stores.values():
        run(bench, bench.command("session", "start", "--repo", root, "--id", "bench-put"))
    acts = [lambda root=root: act(root) for root in stores.values()]
    rounds = min(bench.rounds, 40)
    grow(bench, "session put of one", dict(zip(stores, interleaved(rounds, *acts), strict=True)), 2)


def commit_of_200(bench: Bench, stores: dict[int, str], rounds: int = 5) -> None:
    """`session commit` of 200 puts, against 1k and against fast-import of the same files."""
    medians: dict[int, float] = {}
    for count, root in stores.items():
        taken = []
        for turn in range(rounds):
            name = f"bench-c{turn}"
            run(bench, bench.command("session", "start", "--repo", root, "--id", name))
            lines = "\n".join(put_line(bench) for _ in range(200))
            run(bench, bench.command("session", "put", "--repo", root, "--id", name), lines)
            words = ("session", "commit", "--repo", root, "--id", name, "--message", "bench")
            done = run(bench, bench.command(*words))
            if done.data.get("kind") != "committed":
                raise SystemExit(f"the commit answered {done.data}")
            taken.append(done.seconds * 1000)
        medians[count] = statistics.median(taken)
    grow(bench, "session commit of 200", medians, 1.5)
    small = min(stores)
    other = os.path.join(bench.folder, "fast-import")
    git_out(bench.folder, "init", "-q", "-b", "main", other)
    fast_import(other, corpus(small), None)
    tip = git_out(other, "rev-parse", "main")
    imports = [fast_import(other, corpus(200, 900_000 + 200 * n), tip) * 1000 for n in range(5)]
    start = interleaved(5, lambda: run(bench, bench.command("manifest")))[0]
    bound_ms = 3 * (statistics.median(imports) + start)
    detail = f"{medians[small]:.1f} ms / 3 x ({statistics.median(imports):.1f} + {start:.1f}) ms"
    bench.add(
        "session commit of 200, 1,000 / (3 x fast-import + start-up)",
        medians[small] / bound_ms,
        1,
        "x",
        detail,
    )


def memory(bench: Bench, stores: dict[int, str]) -> None:
    """Peak resident memory, the first build of the head database included."""
    peaks: dict[str, dict[int, int]] = {}
    for count, root in stores.items():
        build = build_memory(bench, root)
        peaks.setdefault("first build (session start)", {})[count] = build.peak_kib
        bench.add(f"first build of the head, {count:,}", build.seconds, None, "s", "")
        words = ("--repo", root, "--id", "bench-m")
        first = run(bench, bench.command("session", "exec", *words), "true\n")
        peaks.setdefault("first exec", {})[count] = first.peak_kib
        bench.add(f"first exec (builds the lower tree), {count:,}", first.seconds, None, "s", "")
        acts = {
            "exec": (("session", "exec", *words), "true\n"),
            "put": (("session", "put", *words), put_line(bench)),
            "rebase": (("session", "rebase", *words), ""),
            "commit": (("session", "commit", *words, "--message", "m"), ""),
        }
        for name, (line, text) in acts.items():
            done = run(bench, bench.command(*line), text)
            peaks.setdefault(name, {})[count] = done.peak_kib
    for name, by_count in peaks.items():
        large, small = max(by_count), min(by_count)
        detail = f"{by_count[small] / MIB:.1f} MiB at {small:,}"
        bench.add(f"peak memory, {name}, {large:,}", by_count[large] / MIB, 120, "MiB", detail)
        if name in ("exec", "put") and large != small:
            ratio = by_count[large] / by_count[small]
            bench.add(f"peak memory, {name}, {large:,} / {small:,}", ratio, 1.2, "x", "")


def build_memory(bench: Bench, root: str) -> Done:
    """Throw the head database away and start a session, which builds it."""
    shutil.rmtree(os.path.join(root, ".memhtml", "snapshots"), ignore_errors=True)
    words = ("session", "start", "--repo", root, "--id", "bench-m", "--force")
    return run(bench, bench.command(*words))


def warm_up(bench: Bench, stores: dict[int, str]) -> None:
    """A session to measure with, its lower tree ready."""
    for root in stores.values():
        run(bench, bench.command("session", "start", "--repo", root, "--id", "bench", "--force"))
        words = ("session", "exec", "--repo", root, "--id", "bench")
        run(bench, bench.command(*words), "true\n")


def rows(bench: Bench, stores: dict[int, str]) -> None:
    """All of this module's rows."""
    memory(bench, stores)
    warm_up(bench, stores)
    bwrap = bwrap_path()
    start_up(bench, stores[1_000])
    sandbox_part(bench, stores, bwrap)
    whole_exec(bench, stores, bwrap)
    ends = {count: stores[count] for count in (min(stores), max(stores))}
    one_put(bench, ends)
    commit_of_200(bench, ends)
