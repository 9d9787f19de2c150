"""Write a run down as a fixture that needs no store (spec `cli` §10, `replay`).

Beside the folders of that section a fixture has `base/`: the base's bytes of every record that the
session's earlier operations touched. The view alone does not tell what the bar judged against.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError, StorageError
from memhtml.session.evidence import Evidence
from memhtml.session.view import touched_by
from memhtml_format import violations as bar_findings

if TYPE_CHECKING:
    from memhtml.execute.script import Script

WHOLE_RECORDS = 2_000
WHOLE_BYTES = 16 << 20


def check_folder(folder: str) -> None:
    """`ERR_INVALID_FLAG` unless the folder does not exist or is empty; asked before the run."""
    try:
        if not os.listdir(folder):
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise MemhtmlError(
            "ERR_INVALID_FLAG", f"--record {folder} cannot be used: {error.strerror}"
        ) from error
    raise MemhtmlError("ERR_INVALID_FLAG", f"--record {folder} is not empty")


def save(
    folder: str,
    script: Script,
    evidence: Evidence,
    *,
    run_bound: bool,
    prefixes: Sequence[str],
) -> None:
    """Write the fixture. Errors raised: `StorageError` `replay.write`."""
    from memhtml.policy import DEFAULT, encode
    from memhtml_harvest import fixture

    judged, run = evidence.judged, evidence.run
    expect = fixture.Expect(
        exit_code=run.exit_code,
        timed_out=run.timed_out,
        stdout=run.stdout.decode("utf-8", "replace"),
        stderr=run.stderr.decode("utf-8", "replace"),
        harvested=fixture.harvested_json(judged.ops),
        rejected=tuple({"path": r.path, "reason": r.reason} for r in judged.rejected),
        violations=tuple(bar_findings.encode(v) for v in judged.violations),
        blocking=tuple(judged.blocking),
        appended=evidence.appended,
    )
    written = fixture.Fixture(
        name=os.path.basename(os.path.abspath(folder)),
        lang=script.lang,
        timeout_ms=script.timeout_ms,
        run_bound=run_bound,
        scope=evidence.log.scope,
        policy=None if evidence.policy == DEFAULT else encode(evidence.policy),
        ops=evidence.log.ops,
        limits={},
        vanished=evidence.vanished,
        expect=expect,
        script=script.text.encode(),
        seed=seed_of(evidence, prefixes),
        base=base_of(evidence),
        after=evidence.after,
    )
    try:
        fixture.save(folder, written)
    except fixture.FixtureError as error:
        raise StorageError("replay.write", str(error)) from error


def base_of(evidence: Evidence) -> dict[str, bytes]:
    """The base's records at the paths the log touches."""
    read = evidence.mount.read
    found = ((path, read(path)) for path in touched_by(evidence.log.ops))
    return {path: data for path, data in found if data is not None}


def seed_of(evidence: Evidence, prefixes: Sequence[str]) -> dict[str, bytes]:
    """The whole view when it is small, else what the harvest and the bar asked for."""
    layers = evidence.mount.layers
    records = evidence.mount.loaded["records"]
    if records <= WHOLE_RECORDS:
        whole = bounded(layers.files())
        if whole is not None:
            return whole
    wanted = {*evidence.seen, *touched_by(evidence.log.ops), *evidence.vanished}
    wanted.update(name.decode(errors="replace") for name in evidence.after)
    for prefix in prefixes:
        folder = prefix.strip("/")
        wanted.add(folder)
        wanted.update(layers.under(folder))
    return dict(present(layers.read, wanted))


def present(
    read: Callable[[str], bytes | None], paths: Iterable[str]
) -> Iterator[tuple[str, bytes]]:
    """The paths that hold a record, with its bytes."""
    for path in sorted(paths):
        data = read(path)
        if data is not None:
            yield path, data


def bounded(files: Iterable[tuple[str, bytes]]) -> dict[str, bytes] | None:
    """The files, or None when they are more than a fixture should hold."""
    kept: dict[str, bytes] = {}
    size_bytes = 0
    for path, data in files:
        size_bytes += len(data)
        if size_bytes > WHOLE_BYTES:
            return None
        kept[path] = data
    return kept
