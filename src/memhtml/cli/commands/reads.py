"""The commands that read one record or list many: parse, call `memhtml.retrieve`, wrap."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from memhtml.cli.call import Answer, Call
from memhtml_format.paths import normalise
from memhtml_format.text import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memhtml.index.database import Index
    from memhtml.index.state import Signal


def _path(given: str) -> str:
    """A path as the index spells it; bytes that were no UTF-8 name nothing there."""
    return normalise(scrub(given))


@contextmanager
def _current(root: str) -> Iterator[Index]:
    """The index to read without the access state, with a warning when it is behind the store."""
    from memhtml.index.database import open_index
    from memhtml.retrieve.freshness import warn_unless_current

    with open_index(root, state=False) as index:
        warn_unless_current(index.conn, root)
        yield index


def read(call: Call) -> Answer:
    """`read`."""
    from memhtml.retrieve.read import Reader
    from memhtml.retrieve.read import read as run

    names = ("session-id", "prompt-id", "turn-uuid")
    reader = Reader(*(call.text(name) for name in names))
    return Answer("memory.detail", run(call.store(), _path(call.args[0]), reader))


def neighbors(call: Call) -> Answer:
    """`neighbors`."""
    from memhtml.retrieve.graph import neighbors as run

    with _current(call.store()) as index:
        data = run(
            index.conn,
            _path(call.args[0]),
            call.number("depth"),
            call.number("limit"),
            call.texts("rel"),
        )
    return Answer("memory.neighbors", data)


def resolve(call: Call) -> Answer:
    """`resolve`."""
    from memhtml.index.state import read_state
    from memhtml.retrieve.resolve import resolve as run

    with _current(call.store()) as index:
        state = read_state(index.conn)
        commit = None if state is None else state.head_sha
        data = run(index.conn, _path(call.args[0]), commit)
    return Answer("memory.resolved", data)


def reinforce(call: Call) -> Answer:
    """`reinforce`."""
    from memhtml.index.database import open_index
    from memhtml.retrieve.reinforce import reinforce as run

    signals: dict[str, Signal] = {"positive": "positive", "negative": "negative"}
    signal = signals.get(call.text("signal") or "", "neutral")
    with open_index(call.store()) as index:
        data = run(index, map(scrub, call.args), signal)
    return Answer("memory.reinforced", data)


def list_(call: Call) -> Answer:
    """`list`."""
    from memhtml.retrieve.listing import Wanted, list_files

    wanted = Wanted(
        memory_type=call.text("type"),
        workspace=call.text("workspace"),
        tag=call.text("tag"),
        entity=call.text("entity"),
        facets=tuple(call.texts("facet")),
        para=call.text("para"),
        include_archived=call.switch("include-archived"),
        cursor=call.text("cursor"),
    )
    with _current(call.store()) as index:
        return Answer("memory.list", list_files(index.conn, wanted, call.number("limit")))


def activity(call: Call) -> Answer:
    """`entity activity`."""
    from memhtml.retrieve.activity import entity_activity

    archived = call.switch("include-archived")
    with _current(call.store()) as index:
        data = entity_activity(
            index.conn, call.text("type"), call.number("limit"), archived=archived
        )
    return Answer("entity.activity", data)


def task_list(call: Call) -> Answer:
    """`task list`."""
    from memhtml.retrieve.tasks import WantedTasks, check_due_before, list_tasks

    wanted = WantedTasks(
        status=call.text("status"),
        workspace=call.text("workspace"),
        due_before=call.text("due-before"),
        include_archived=call.switch("include-archived"),
        detected=call.switch("detected"),
        cursor=call.text("cursor"),
    )
    root = call.store()
    check_due_before(wanted.due_before)
    with _current(root) as index:
        return Answer("task.list", list_tasks(index.conn, wanted, call.number("limit")))
