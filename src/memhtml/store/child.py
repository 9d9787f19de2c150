"""The only place of the store that starts processes: short git children, one question each.

Children get no inherited `GIT_*` variable, run no hook and never look further up than the root. A
child that moves something shared holds the locks of this process as long as it lives, and is let
come to its end before a signal arrives here. One that takes too long is asked to end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import config, log
from memhtml.errors import MemhtmlError

if TYPE_CHECKING:
    import subprocess

_END_WAIT_S = 2.0
_SIGNALS_WAIT_S = 2.0
"""How long a child that moves something shared is left alone by signals; most need 5 ms."""
_LOGGED_CHARS = 2000


class GitRun(NamedTuple):
    """What one git child answered; `stderr` is decoded for messages only."""

    status: int
    stdout: bytes
    stderr: str


def git_env(root: str) -> dict[str, str]:
    """The environment for git children on `root`: no inherited `GIT_*`, nothing that could ask.

    The ceiling keeps git from taking a repository further up when `root` has none.
    """
    env = config.git_environment()
    env["GIT_TERMINAL_PROMPT"] = "0"
    env["GIT_LITERAL_PATHSPECS"] = "1"
    env["GIT_NO_REPLACE_OBJECTS"] = "1"  # libgit2 knows no replacements; both must see the same.
    env["GIT_NO_LAZY_FETCH"] = "1"
    env["GIT_OPTIONAL_LOCKS"] = "0"
    env["GIT_CEILING_DIRECTORIES"] = os.path.dirname(os.path.abspath(root))
    return env


def git_command(root: str) -> list[str]:
    """The words every git child on `root` begins with; hooks and the fsmonitor are off."""
    return ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", root]


def run_git(
    root: str,
    *arguments: str,
    stdin: bytes = b"",
    changes: bool = False,
    index_file: str | None = None,
) -> GitRun:
    """Run `git` on the repository whose work tree is `root`, and wait for its end.

    `index_file` is the index it works on instead of the work tree's own.

    With `changes` the child is one that moves a ref or the index: it keeps the locks this process
    holds even when this process is killed, and a lost lock is the `StorageError` that the lock
    names. SIGINT and SIGTERM wait for its end, but not for long. An exception that arrives
    meanwhile ends the child first. Raises `MemhtmlError` `ERR_GIT` when git cannot be started; a
    failing git is the caller's to judge.
    """
    if not changes:
        with _start(root, arguments, (), index_file) as child:
            return _answer(child, stdin)
    from memhtml.store.lock import kept_by_child

    # Signals wait while such a child works. One that is on its way when an exception comes would
    # move the ref after everything was put back, and one that is ended may leave git's lock behind.
    with _SignalsWait() as signals:
        with kept_by_child() as locks:
            child = _start(root, arguments, locks, index_file, apart=True)
        with child:
            return _answer(child, stdin, signals)


@contextmanager
def asking(root: str, *arguments: str) -> Iterator[Callable[[], GitRun]]:
    """Start a `git` that changes nothing and go on; what is given waits for its answer.

    Two children, or a child and this process, take the time of one. Leaving ends a child whose
    answer nobody wanted. Raises what `run_git` raises.
    """
    child = _start(root, arguments, ())
    with child:
        try:
            yield lambda: _answer(child, b"")
        finally:
            if child.returncode is None:
                child.kill()


def _start(
    root: str,
    arguments: Sequence[str],
    locks: tuple[int, ...],
    index_file: str | None = None,
    *,
    apart: bool = False,
) -> subprocess.Popen[bytes]:
    """The child; `apart` from this process, so that Ctrl-C on the terminal does not reach it."""
    import subprocess  # 9 ms: most calls need no child.

    env = git_env(root)
    if index_file is not None:
        env["GIT_INDEX_FILE"] = index_file
    try:
        return subprocess.Popen(
            [*git_command(root), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            pass_fds=locks,
            start_new_session=apart,
        )
    except OSError as error:
        raise not_started(error) from error


class _SignalsWait:
    """Keeps SIGINT and SIGTERM back until `come` or the end of the block; then they arrive.

    Outside of the main thread nothing arrives anyhow.
    """

    def __init__(self) -> None:
        self._usual: dict[int, Any] = {}
        self._waiting: list[int] = []

    def __enter__(self) -> _SignalsWait:
        import signal

        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):
                self._usual[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_about: object) -> None:
        self.come()

    def come(self) -> None:
        """Let them through, those that waited first. Raises what their handlers raise."""
        import signal

        usual, self._usual = self._usual, {}
        for number, handler in usual.items():
            signal.signal(number, handler)
        waiting, self._waiting = self._waiting, []
        for number in waiting:
            signal.raise_signal(number)

    def _note(self, number: int, _frame: object) -> None:
        self._waiting.append(number)


def _answer(
    child: subprocess.Popen[bytes], stdin: bytes, signals: _SignalsWait | None = None
) -> GitRun:
    try:
        stdout, stderr = _communicate(child, stdin, signals)
    except BaseException as error:
        _end(child)
        if isinstance(error, OSError):
            raise not_started(error) from error
        raise
    return GitRun(child.returncode, stdout, stderr.decode("utf-8", "replace").strip())


def _communicate(
    child: subprocess.Popen[bytes], stdin: bytes, signals: _SignalsWait | None
) -> tuple[bytes, bytes]:
    if signals is None:
        return child.communicate(stdin)
    import subprocess

    try:
        return child.communicate(stdin, timeout=_SIGNALS_WAIT_S)
    except subprocess.TimeoutExpired:
        signals.come()
        return child.communicate()


def not_started(error: OSError) -> MemhtmlError:
    """The failure to start git or to talk to it."""
    if isinstance(error, FileNotFoundError):
        return MemhtmlError("ERR_GIT", "git is not installed or not on the path")
    return MemhtmlError("ERR_GIT", f"git could not be started: {error.strerror}")


def git_failed(subcommand: str, run: GitRun) -> MemhtmlError:
    """The failure of a git child, in the words of spec `cli` §6.1; its own go to the log."""
    return failed_with(subcommand, run.status, run.stderr)


def failed_with(subcommand: str, status: int, said: str) -> MemhtmlError:
    """`git_failed` for a child that was asked otherwise; `said` is what it left on its stderr."""
    if said:
        log.error(f"git {subcommand}: {said[:_LOGGED_CHARS]}")
    return MemhtmlError("ERR_GIT", f"git {subcommand} failed (exit {status})")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask the child to end, which makes git remove its lock files; kill it after 2 s."""
    child.terminate()
    try:
        child.wait(timeout=_END_WAIT_S)
    except BaseException:  # Out of time, or interrupted a second time.
        child.kill()
        child.wait()
