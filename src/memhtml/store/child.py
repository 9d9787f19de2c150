"""The only place of the store that starts processes: short git children, one question each.

Children get no inherited `GIT_*` variable, run no hook and never look further up than the root. A
child that moves something shared holds the locks of this process as long as it lives, and when
this process is interrupted its child is asked to end, so that git removes its own locks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from memhtml import config, log
from memhtml.errors import MemhtmlError

if TYPE_CHECKING:
    import subprocess

_END_WAIT_S = 2.0
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
    names. An exception that arrives meanwhile ends the child first. Raises `MemhtmlError`
    `ERR_GIT` when git cannot be started; a failing git is the caller's to judge.
    """
    with ExitStack() as stack:
        locks: tuple[int, ...] = ()
        if changes:
            from memhtml.store.lock import kept_by_child

            locks = stack.enter_context(kept_by_child())
        child = _start(root, arguments, locks, index_file)
    with child:
        return _answer(child, stdin)


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
    root: str, arguments: Sequence[str], locks: tuple[int, ...], index_file: str | None = None
) -> subprocess.Popen[bytes]:
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
        )
    except OSError as error:
        raise not_started(error) from error


def _answer(child: subprocess.Popen[bytes], stdin: bytes) -> GitRun:
    try:
        stdout, stderr = child.communicate(stdin)
    except BaseException as error:
        _end(child)
        if isinstance(error, OSError):
            raise not_started(error) from error
        raise
    return GitRun(child.returncode, stdout, stderr.decode("utf-8", "replace").strip())


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
