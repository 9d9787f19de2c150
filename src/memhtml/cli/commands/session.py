"""The `session` commands: read a call's inputs, call `memhtml.session`, wrap the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml.cli.call import Answer, Call
from memhtml.errors import MemhtmlError
from memhtml.store import refs

if TYPE_CHECKING:
    from memhtml.session.bound import Identity


def _store(call: Call) -> str:
    root = call.root()
    refs.require_worktree(root)
    return root


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

    data = run(_store(call), _identity(call), ref=call.text("ref"), force=call.switch("force"))
    return Answer("session.started", data)


def put(call: Call) -> Answer:
    """`session put`: the whole stream is decoded before the store opens."""
    from memhtml.cli.inputs import read_lines
    from memhtml.session.put import put as run

    lines = read_lines(call)
    return Answer("session.appended", run(_store(call), _identity(call), lines))


def exec_(call: Call) -> Answer:
    """`session exec`, with `--record` the fixture as well."""
    from memhtml.cli.inputs import read_script
    from memhtml.execute.early import spawning

    script = read_script(call)
    record = call.text("record")
    if record is not None:
        from memhtml.replay.record import check_folder

        check_folder(record)
    with spawning() as spawner:
        from memhtml.session.exec import execute

        root, identity = _store(call), _identity(call)
        done = execute(root, identity, script, keep=record is not None, spawner=spawner)
        if record is not None and done.evidence is not None:
            from memhtml.replay.record import save

            prefixes = call.texts("record-path")
            save(record, script, done.evidence, run_bound=identity.run_bound, prefixes=prefixes)
    data = {**done.payload, "server": server_field(call)}
    return Answer("session.exec.report", data, afterwards=done.tidy)


def status(call: Call) -> Answer:
    """`session status`."""
    from memhtml.session.status import status as run

    return Answer("session.status", run(_store(call), _identity(call)))


def commit(call: Call) -> Answer:
    """`session commit`."""
    from memhtml.session.commit import commit as run

    data = run(
        _store(call),
        _identity(call),
        message=call.text("message") or "",
        drop=call.switch("drop-refused"),
    )
    return Answer("session.committed", {**data, "server": server_field(call)})


def rebase(call: Call) -> Answer:
    """`session rebase`."""
    from memhtml.session.rebase import rebase as run

    return Answer("session.rebased", run(_store(call), _identity(call)))


def prune(call: Call) -> Answer:
    """`session prune`."""
    from memhtml.session.duration import duration_ms
    from memhtml.session.prune import prune as run

    given = call.text("older-than") or ""
    length_ms = duration_ms(given)
    if length_ms is None:
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"--older-than takes a number and a unit (7d, 48h, 90m, 2 weeks), not {given!r}",
        )
    data = run(
        _store(call), older_than=given, older_than_ms=length_ms, dry_run=call.switch("dry-run")
    )
    return Answer("session.pruned", data)
