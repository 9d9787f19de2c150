"""`status`, and the access state out and in."""

from __future__ import annotations

from memhtml.cli.call import Answer, Call


def status(call: Call) -> Answer:
    """`status`."""
    from memhtml.doctor.health import status as run

    return Answer("status.health", run(call.store()))


def export(call: Call) -> Answer:
    """`state export`."""
    from memhtml.doors.state import export_state

    return Answer("state.export", export_state(call.store()))


def import_(call: Call) -> Answer:
    """`state import`."""
    from memhtml.doors.state import import_state

    return Answer("state.import", import_state(call.store()))
