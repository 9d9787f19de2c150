"""Write a run down as a fixture that needs no store (spec `cli` §10, `replay`).

Beside the folders of that section a fixture has `base/`, because the view alone does not tell what
the bar judged against. The folder is made before the run, so that what cannot be recorded does not
run; once the run was appended, a recording that fails must not take the answer along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError, StorageError
from memhtml.replay.expect import expect_of
from memhtml.session.view import touched_by
from memhtml.store.atomic import temporary_name
from memhtml_harvest import fixture

if TYPE_CHECKING:
    from memhtml.execute.script import Script
    from memhtml.session.evidence import Evidence

WHOLE_RECORDS = 2_000
WHOLE_BYTES = 16 << 20
STAND_IN = "memhtml-stand-in"
"""The file that makes a folder of `base/` where the base has one."""


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


def make_folder(folder: str) -> None:
    """Make the folder and see that it takes a file. Errors raised: `StorageError` `replay.write`.

    Asked when the run is sure to begin.
    """
    probe = os.path.join(folder, temporary_name("probe"))
    try:
        os.makedirs(folder, exist_ok=True)
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        os.unlink(probe)
    except OSError as error:
        raise StorageError("replay.write", f"{folder}: {error.strerror}") from error


def save(
    folder: str, script: Script, evidence: Evidence, *, run_bound: bool, prefixes: Sequence[str]
) -> None:
    """Write the fixture into its folder. Errors raised: `StorageError` `replay.write`."""
    name = os.path.basename(os.path.abspath(folder))
    try:
        fixture.save(folder, fixture_of(name, script, evidence, run_bound, prefixes))
    except fixture.FixtureError as error:
        raise StorageError("replay.write", str(error)) from error
    except OSError as error:
        raise StorageError("replay.write", f"the view cannot be read: {error}") from error


def fixture_of(
    name: str, script: Script, evidence: Evidence, run_bound: bool, prefixes: Sequence[str]
) -> fixture.Fixture:
    """The run with all it needs. Raises OSError when the view cannot be read any more."""
    from memhtml.policy import DEFAULT, encode

    return fixture.Fixture(
        name=name,
        lang=script.lang,
        timeout_ms=script.timeout_ms,
        run_bound=run_bound,
        scope=evidence.log.scope,
        policy=None if evidence.policy == DEFAULT else encode(evidence.policy),
        ops=evidence.log.ops,
        limits={},
        vanished=evidence.vanished,
        expect=expect_of(evidence.run, evidence.judged),
        script=script.text.encode(),
        seed=seed_of(evidence, prefixes),
        base=base_of(evidence),
        after=evidence.after,
    )


def base_of(evidence: Evidence) -> dict[str, bytes | None]:
    """The base's records at the paths the log touches, and the other files the bar came upon."""
    base: dict[str, bytes | None] = {}
    for path, kind in evidence.seen.others.items():
        if kind == "folder":
            base[f"{path}/{STAND_IN}"] = b""
        else:
            base[path] = b"" if kind == "file" else None
    base.update(present(evidence.mount.read, touched_by(evidence.log.ops)))
    return base


def seed_of(evidence: Evidence, prefixes: Sequence[str]) -> dict[str, bytes]:
    """The whole view when it is small, else what the harvest and the bar asked for."""
    layers = evidence.mount.layers
    records = evidence.mount.loaded["records"]
    if records <= WHOLE_RECORDS:
        whole = bounded(layers.files())
        if whole is not None:
            return whole
    wanted = {*evidence.seen.records, *touched_by(evidence.log.ops), *evidence.vanished}
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
