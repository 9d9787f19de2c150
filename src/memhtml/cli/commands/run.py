"""`exec`, a run that changes nothing, and `agents-doc`, the table as a file."""

from __future__ import annotations

from memhtml.cli.call import Answer, Call


def exec_(call: Call) -> Answer:
    """`exec`: exit status 0 however the script ended."""
    from memhtml.execute.early import spawning

    with spawning() as spawner:
        # Here and not above: all of this loads while that process gets ready.
        from memhtml.cli.inputs import read_script
        from memhtml.execute.readonly import execute

        script = read_script(call)
        done = execute(call.store(), script, commit=call.text("sha") or "", spawner=spawner)
    return Answer("exec.report", done.payload, afterwards=done.tidy)


def agents_doc(call: Call) -> Answer:
    """`agents-doc`: the same bytes every time; an equal file is not written again."""
    from memhtml.cli import agents, markdown

    text = markdown.document().encode()
    data = agents.settle(call.text("out") or "", text, check=call.switch("check"))
    return Answer("agents.doc", data)
