"""The commands that write outside a session: read a call's inputs, call `memhtml.doors`, wrap."""

from __future__ import annotations

from memhtml.cli.call import Answer, Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memhtml_format.render import Draft


def write(call: Call) -> Answer:
    """`write`."""
    from memhtml.cli.prose import draft_of
    from memhtml.doors.write import write as run

    draft = draft_of(call, call.text("type") or "")
    return Answer("memory.written", run(call.store(), draft))


def apply(call: Call) -> Answer:
    """`apply`: the whole stream is decoded before the store opens."""
    from memhtml.cli.inputs import read_batch
    from memhtml.cli.prose import stated
    from memhtml.doors.apply import Wishes
    from memhtml.doors.apply import apply as run
    from memhtml.doors.provenance import Provenance

    drafts = read_batch(call)
    wishes = Wishes(
        atomic=not call.switch("continue-on-error"),
        conflicts=call.switch("detect-conflicts"),
        near_duplicates=call.switch("detect-near-duplicates"),
    )
    ids = Provenance(*(stated(call, name) for name in ("session-id", "prompt-id", "turn-uuid")))
    return Answer("batch.applied", run(call.store(), _taken(drafts), wishes, ids))


def _taken(drafts: list[Draft]) -> Iterator[Draft]:
    """Each draft in order, let go once it is used: of a large batch that is a fifth of memory."""
    drafts.reverse()
    while drafts:
        yield drafts.pop()


def correct(call: Call) -> Answer:
    """`correct`."""
    from memhtml.cli.prose import draft_of
    from memhtml.doors.correct import correct as run

    draft = draft_of(call, call.text("type") or "")
    data = run(call.store(), call.args[0], draft, call.text("reason"))
    return Answer("memory.corrected", data)


def link(call: Call) -> Answer:
    """`link`."""
    from memhtml.doors.link import link as run

    src, rel, dst = call.args
    return Answer("memory.linked", run(call.store(), src, rel, dst))


def archive(call: Call) -> Answer:
    """`archive`."""
    from memhtml.doors.archive import archive as run

    return Answer("memory.archived", run(call.store(), call.args[0], call.text("reason") or ""))


def task_add(call: Call) -> Answer:
    """`task add`."""
    from memhtml.cli.prose import draft_of
    from memhtml.doors.task import add

    return Answer("task.written", add(call.store(), draft_of(call, "task")))


def task_status(call: Call) -> Answer:
    """`task status`."""
    from memhtml.doors.task import set_status

    path, status = call.args
    return Answer("task.updated", set_status(call.store(), path, status, call.text("reason")))
