"""The `session` commands: read a call's inputs, call `memhtml.session`, wrap the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml.cli.call import Answer, Call
from memhtml.errors import MemhtmlError

if TYPE_CHECKING:
    from memhtml.execute.script import Script
    from memhtml.session.bound import Identity
    from memhtml.session.evidence import Recorder


def _identity(call: Call) -> Identity:
    from memhtml.session.bound import Identity

    named = call.session()
    return Identity(named.id, named.run_bound, implicit=named.from_variable)


def server_field(call: Call) -> dict[str, Any]:
    """The `server` object of a call that no head server answered (spec `sessions` §4.2)."""
    if not call.switch("server"):
        return {"used": False, "base": None, "reason": "disabled", "detail": None}
    return {"used": False, "base": None, "reason": "no-server", "detail": "ENOENT"}


def start(call: Call) -> Answer:
    """`session start`."""
    from memhtml.session.start import start as run

    data = run(call.store(), _identity(call), ref=call.text("ref"), force=call.switch("force"))
    return Answer("session.started", data)


def put(call: Call) -> Answer:
    """`session put`: the whole stream is decoded before the store opens."""
    from memhtml.cli.inputs import read_lines
    from memhtml.session.put import put as run

    lines = read_lines(call)
    return Answer("session.appended", run(call.store(), _identity(call), lines))


def exec_(call: Call) -> Answer:
    """`session exec`, with `--record` the fixture as well."""
    from memhtml.execute.early import spawning

    with spawning() as spawner:
        # Here and not above: all of this loads while that process gets ready.
        from memhtml.cli.inputs import read_script
        from memhtml.session.exec import execute

        script, folder = read_script(call), call.text("record")
        if folder is not None:
            from memhtml.replay.record import check_folder

            check_folder(folder)
        root, identity = call.store(), _identity(call)
        recorder = None if folder is None else _recorder(folder)
        done = execute(root, identity, script, recorder=recorder, spawner=spawner)
        if recorder is not None:
            _save(call, script, recorder, run_bound=identity.run_bound)
    data = {**done.payload, "server": server_field(call)}
    return Answer("session.exec.report", data, afterwards=done.tidy)


def _recorder(folder: str) -> Recorder:
    """What watches the run; the folder it will be written to is there."""
    from memhtml.replay.record import make_folder
    from memhtml.session.evidence import Recorder

    make_folder(folder)
    return Recorder()


def _save(call: Call, script: Script, recorder: Recorder, *, run_bound: bool) -> None:
    """Write the fixture. Too late to fail: what the script changed is in the session."""
    from memhtml import log
    from memhtml.errors import StorageError
    from memhtml.replay.record import save

    folder, evidence = call.text("record"), recorder.evidence
    if folder is None or evidence is None:
        return
    try:
        save(folder, script, evidence, run_bound=run_bound, prefixes=call.texts("record-path"))
    except StorageError as error:
        log.warn(f"the run was not recorded: {error}")


def status(call: Call) -> Answer:
    """`session status`."""
    from memhtml.session.status import status as run

    return Answer("session.status", run(call.store(), _identity(call)))


def commit(call: Call) -> Answer:
    """`session commit`."""
    from memhtml.session.commit import commit as run

    data = run(
        call.store(),
        _identity(call),
        message=call.text("message") or "",
        drop=call.switch("drop-refused"),
    )
    return Answer("session.committed", {**data, "server": server_field(call)})


def rebase(call: Call) -> Answer:
    """`session rebase`."""
    from memhtml.session.rebase import rebase as run

    return Answer("session.rebased", run(call.store(), _identity(call)))


def prune(call: Call) -> Answer:
    """`session prune`."""
    from memhtml.session.duration import duration_ms, too_long
    from memhtml.session.prune import prune as run

    given = call.text("older-than") or ""
    length_ms = duration_ms(given)
    if length_ms is None:
        from memhtml.cli.show import word as shown

        text = f"--older-than takes a number and a unit (7d, 48h, 90m, 2 weeks), not {shown(given)}"
        if too_long(given):
            text = f"--older-than is too large: {shown(given)}"
        way = "memhtml session prune --older-than 7d"
        raise MemhtmlError("ERR_INVALID_FLAG", text, suggestions=(way,))
    data = run(
        call.store(), older_than=given, older_than_ms=length_ms, dry_run=call.switch("dry-run")
    )
    return Answer("session.pruned", data)
