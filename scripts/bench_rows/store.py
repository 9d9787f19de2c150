"""Rows of the store's own doors, the index and search."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import tempfile
from collections.abc import Iterator

from bench_rows.measure import (
    MIB,
    VOCABULARY,
    Bench,
    Done,
    git_out,
    grow,
    interleaved,
    run,
)

OFF = {"MEMHTML_EMBED": "off"}
HASH = {"MEMHTML_EMBED": "hash"}
TYPES = ("semantic", "procedural", "episodic", "agent_insight", "error_pattern", "task")
REFERENCE_APPLY_S = 12.5
"""What release 0.15.1 needs for 5,000 on two cores, when it is not there to be timed."""


def rows(bench: Bench, stores: dict[int, str], peer: str | None) -> None:
    """All of this module's rows."""
    bench.env |= OFF
    index_rows(bench, stores)
    ends = {count: stores[count] for count in (min(stores), max(stores))}
    read_rows(bench, ends)
    update_rows(bench, ends)
    vector_rows(bench, ends)
    apply_rows(bench, peer)


def stream(bench: Bench, count: int) -> str:
    """A file of `count` varied operations; not held here, for a child's peak begins with ours."""
    path = os.path.join(bench.folder, f"stream-{count}.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines(count))
    return path


def lines(count: int) -> Iterator[str]:
    """`count` varied operations: types, tags, entities, workspaces, bodies of several shapes."""
    chance = random.Random(count)
    for n in range(count):
        w = chance.sample(VOCABULARY, 40)
        kind = TYPES[n % len(TYPES)]
        body = f"The {w[0]} {w[1]} of {w[2]} is {w[3]} {n}. {' '.join(w[4:14])}."
        if n % 3 == 0:
            body += f"\n\n{' '.join(w[14:34])}.\n\n```python\nprint({n})\n```"
        line: dict[str, object] = {"op": "write", "title": f"{w[34]} {w[35]}", "type": kind}
        line |= {"body": body, "entity": f"system:{w[36]}", "importance": n % 10 + 1}
        if n % 4 == 0:
            line["workspace"] = f"team {n % 40}"
        elif n % 4 == 1:
            line["tags"] = [f"topic {n % 60}", w[37]]
        yield json.dumps(line)


def apply_to_new(bench: Bench, command: list[str], path: str) -> Done:
    """One `apply` of the whole stream into a new store, start-up and index pass included.

    The store is left where it is: a disk is slow to make files where many were just removed.
    """
    root = os.path.join(tempfile.mkdtemp(prefix="apply-", dir=bench.folder), "store")
    run(bench, [*command, "init", "--repo", root])
    done = run(bench, [*command, "apply", "--repo", root, "--file", path])
    summary = done.data.get("summary", {})
    if summary.get("failed") or not summary.get("written"):
        raise SystemExit(f"apply answered {summary}")
    return done._replace(data={})


def apply_rows(bench: Bench, peer: str | None) -> None:
    """`apply` of 5,000 against the reference, and how 50,000 grow from it."""
    few, many = stream(bench, 5_000), stream(bench, 50_000)
    ours = [apply_to_new(bench, bench.command(), few) for _ in range(3)]
    median = statistics.median(done.seconds for done in ours)
    theirs, whose = REFERENCE_APPLY_S, "as stated"
    if peer is not None:
        theirs, whose = apply_to_new(bench, peer.split(), few).seconds, "measured"
    detail = f"{median:.2f} s / ({theirs:.1f} s {whose} / 3)"
    bench.add("apply of 5,000 / (reference / 3)", median / (theirs / 3), 1, "x", detail)
    large = apply_to_new(bench, bench.command(), many)
    detail = f"{large.seconds:.1f} s / {median:.2f} s"
    bench.add("apply, 50,000 / 5,000", large.seconds / median, 11, "x", detail)
    small_peak = max(done.peak_kib for done in ours) / MIB
    bench.add("peak memory, apply of 5,000", small_peak, 120, "MiB", "")
    bench.add("peak memory, apply of 50,000", large.peak_kib / MIB, None, "MiB", "a whole stream")


def index_rows(bench: Bench, stores: dict[int, str]) -> None:
    """Building the index of each corpus."""
    for count, root in stores.items():
        done = run(bench, bench.command("index", "rebuild", "--repo", root))
        if done.data.get("filesIndexed", 0) < count:
            raise SystemExit(f"the rebuild answered {done.data}")
        bench.add(f"index rebuild, {count:,}", done.seconds, None, "s", "")
        bound = 120 if count == max(stores) else None
        bench.add(f"peak memory, index rebuild, {count:,}", done.peak_kib / MIB, bound, "MiB", "")


def query(bench: Bench) -> str:
    """Three rare words that some records have."""
    bench.counter += 1
    return " ".join(random.Random(bench.counter).sample(VOCABULARY, 3))


def some_path(root: str) -> str:
    """A record that is there."""
    return git_out(root, "ls-files", "resources/topic-0000").splitlines()[0]


def read_rows(bench: Bench, ends: dict[int, str]) -> None:
    """`search`, `recall`, `read` and `list`, each cold, from the smallest to the largest corpus."""
    calls = {
        "search": lambda root: ["search", query(bench)],
        "recall": lambda root: ["recall", query(bench)],
        "read": lambda root: ["read", some_path(root)],
        "list": lambda root: ["list", "--limit", "50"],
        "write of one": lambda root: [
            *("write", "--title", query(bench), "--type", "semantic"),
            *("--claim", f"The {query(bench)} holds {bench.counter}."),
        ],
        "status": lambda root: ["status"],
    }
    for name, call in calls.items():
        acts = [
            lambda root=root, call=call: run(bench, bench.command(*call(root), "--repo", root))
            for root in ends.values()
        ]
        medians = dict(zip(ends, interleaved(min(bench.rounds, 15), *acts), strict=True))
        bound = 2 if name in ("search", "recall", "read", "list") else None
        grow_or_tell(bench, name, medians, bound)
        large = run(bench, bench.command(*call(ends[max(ends)]), "--repo", ends[max(ends)]))
        bench.add(f"peak memory, {name}, {max(ends):,}", large.peak_kib / MIB, 150, "MiB", "")


def grow_or_tell(bench: Bench, name: str, medians: dict[int, float], bound: float | None) -> None:
    """A growth row with a bound, or one that is only told."""
    if bound is not None:
        grow(bench, name, medians, bound)
        return
    small, large = min(medians), max(medians)
    detail = f"{medians[large]:.1f} ms / {medians[small]:.1f} ms"
    bench.add(f"{name}, {large:,} / {small:,}", medians[large] / medians[small], None, "x", detail)


def update_rows(bench: Bench, ends: dict[int, str]) -> None:
    """`index update` after one hand edit, less the one `git status` that it needs."""
    taken: dict[int, list[float]] = {count: [] for count in ends}
    status: dict[int, list[float]] = {count: [] for count in ends}
    for turn in range(9):
        for count, root in ends.items():
            path = os.path.join(root, some_path(root))
            with open(path, "r+", encoding="utf-8") as file:
                text = file.read().replace("</mark>", f" {turn}</mark>", 1)
                file.seek(0)
                file.write(text)
            asked = ["git", "-C", root, "--no-optional-locks", "status", "--porcelain"]
            status[count] += interleaved(
                1, lambda asked=asked: subprocess.run(asked, capture_output=True)
            )
            done = run(bench, bench.command("index", "update", "--repo", root))
            if done.data.get("dirty") != 1:
                raise SystemExit(f"the update answered {done.data}")
            taken[count].append(done.seconds * 1000)
    for count in ends:
        whole, part = statistics.median(taken[count]), statistics.median(status[count])
        detail = f"{whole:.1f} ms, of which git status {part:.1f} ms"
        bench.add(f"index update after one change, {count:,}", whole - part, None, "ms", detail)


def vector_rows(bench: Bench, ends: dict[int, str]) -> None:
    """`search` with a vector for every record, by the hashed embedder."""
    kept, bench.env = bench.env, bench.env | HASH
    for root in ends.values():
        run(bench, bench.command("index", "rebuild", "--embed", "--repo", root))
    acts = [
        lambda root=root: run(bench, bench.command("search", query(bench), "--repo", root))
        for root in ends.values()
    ]
    medians = dict(zip(ends, interleaved(min(bench.rounds, 15), *acts), strict=True))
    grow(bench, "search with vectors", medians, 4)
    large = run(bench, bench.command("search", query(bench), "--repo", ends[max(ends)]))
    if large.data.get("degraded") is not False:
        raise SystemExit("the search with vectors ran without them")
    label = f"peak memory, search with vectors, {max(ends):,}"
    bench.add(label, large.peak_kib / MIB, 150, "MiB", "")
    bench.env = kept
