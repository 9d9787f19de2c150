"""`doctor`, which looks a store over, and `publish`, which makes its pages."""

from __future__ import annotations

from memhtml.cli.call import Answer, Call


def doctor(call: Call) -> Answer:
    """`doctor`: exit status 0 whatever it finds."""
    from memhtml.doctor.examine import examine

    return Answer("doctor.report", examine(call.store(), fix=call.switch("fix")))


def publish(call: Call) -> Answer:
    """`publish`: one commit, or none when every page stands."""
    from memhtml.publish.run import publish as run

    return Answer("publish.report", run(call.store()))
