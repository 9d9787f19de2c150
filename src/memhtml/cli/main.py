"""The edge: it turns exceptions into codes and exit statuses, and is the only part that prints."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module

from memhtml.cli import parse, registry, suggest
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from memhtml.cli.call import Answer, Call

STDOUT, STDERR = 1, 2
STATUS_BROKEN_OUTPUT = 1
STATUS_INTERRUPTED = 130
STATUS_TERMINATED = 143


class Terminated(BaseException):
    """SIGTERM arrived; unwinds like Ctrl-C so that locks and children are let go."""


class Outcome:
    """What a call prints, how it exits, and what is left to do once it has printed."""

    __slots__ = ("afterwards", "status", "stderr", "stdout")

    def __init__(
        self,
        status: int,
        stdout: bytes,
        stderr: str = "",
        afterwards: Callable[[], None] | None = None,
    ) -> None:
        self.afterwards = afterwards
        self.status = status
        self.stdout = stdout
        self.stderr = stderr


def main(argv: Sequence[str] | None = None) -> int:
    """Run one call, print its envelope, return the exit status (spec `cli` §2)."""
    try:
        _unwind_on_sigterm()
        outcome = invoke(sys.argv[1:] if argv is None else argv, terminal=_on_terminal())
        if outcome.stderr:
            _print_error(outcome.stderr)
        printed = _print(outcome.stdout)
        if outcome.afterwards is not None:
            _do_afterwards(outcome.afterwards)
        return outcome.status if printed else STATUS_BROKEN_OUTPUT
    except KeyboardInterrupt:
        return STATUS_INTERRUPTED
    except Terminated:
        return STATUS_TERMINATED


def invoke(argv: Sequence[str], *, terminal: bool = False) -> Outcome:
    """Run one call and render it; prints nothing itself but log lines of the parts below."""
    scanned = parse.scan(argv)
    dense = scanned.switch("dense")
    command: registry.Command | None = None
    try:
        command, args = parse.command_of(scanned)
        call = parse.call_of(scanned, command, args, terminal)
        answer = handler(command)(call)
        from memhtml.cli import envelope  # With `json`; by now most handlers have that.

        if answer.markdown is not None:
            return Outcome(answer.exit_status, envelope.utf8(answer.markdown), answer.stderr)
        text = envelope.success(answer.type, answer.data, dense=dense)
        return Outcome(answer.exit_status, text, answer.stderr, answer.afterwards)
    except MemhtmlError as error:
        from memhtml.cli import envelope

        suggestions = _suggestions(error, command, scanned.text("repo"))
        text = envelope.failure(error.code, str(error), suggestions, dense=dense)
        return Outcome(error.exit_status, text)
    except Exception as error:
        return _unexpected(error, dense)


def handler(command: registry.Command) -> Handler:
    """The function behind a command; its module is imported now."""
    module, _, function = command.handler.partition(":")
    found: Handler = getattr(import_module(f"memhtml.cli.commands.{module}"), function)
    return found


if TYPE_CHECKING:
    Handler = Callable[[Call], Answer]


def _suggestions(error: MemhtmlError, command: registry.Command | None, repo: str) -> list[str]:
    """The error's own, ending for a wrong call with the help of the command it called.

    A call that named its store gets calls back that name the same one.
    """
    suggestions = list(error.suggestions)
    wrong_call = error.exit_status == 2 and error.code != "ERR_UNKNOWN_COMMAND"
    if command is not None and wrong_call:
        way = f"memhtml help {command.name}"
        suggestions = [each for each in suggestions if each != way] + [way]
    if repo and not repo.isspace():
        return [suggest.on_store(each, repo) for each in suggestions]
    return suggestions


def _unexpected(error: Exception, dense: bool) -> Outcome:
    """A bug: the class name for the caller, the traceback for whoever mends it."""
    import traceback  # 5 ms, only here.

    from memhtml.cli import envelope

    name = type(error).__name__
    text = envelope.failure("ERR_UNKNOWN", f"unexpected failure: {name}", dense=dense)
    return Outcome(1, text, "".join(traceback.format_exception(error)))


def _unwind_on_sigterm() -> None:
    """Make SIGTERM raise, unless the parent had it ignored."""
    import signal

    def unwind(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # A second one ends the clean-up.
        raise Terminated

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, unwind)


def _on_terminal() -> bool:
    try:
        return os.isatty(STDOUT)
    except OSError:
        return False


def _do_afterwards(act: Callable[[], None]) -> None:
    """Let the readers go first: they have the whole answer and wait for the end of the streams.

    Whatever ends the upkeep early, a signal too, the answer is out and its status stands; nobody is
    left to tell.
    """
    # A signal is no other exception here.
    with contextlib.suppress(BaseException):
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (STDOUT, STDERR):
            # Not merely closed: the next file that is opened would be standard output.
            os.dup2(nothing, stream)
        act()


def _print(data: bytes) -> bool:
    """Write everything to standard output; False when nobody reads it any more.

    Past `sys.stdout`, whose own flush at exit would complain about a closed pipe.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(STDOUT, view) :]
    except OSError:
        return False
    return True


def _print_error(text: str) -> None:
    try:
        sys.stderr.write(text if text.endswith("\n") else f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # A closed standard error must never change an answer.
