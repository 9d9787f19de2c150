"""One `git cat-file --batch` child that hands out objects for as long as it is kept.

It starts with the first question (2 ms) and ends with its parent, whose end of the pipe closes
then. git itself looks through packs, alternates and what arrives later.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError
from memhtml.store.atomic import write_all
from memhtml.store.child import failed_with, git_command, git_env, not_started

if TYPE_CHECKING:
    import subprocess

_SHOWN_BYTES = 4096
_CHUNK_BYTES = 1 << 16
_SILENCE_MS = 60_000
_END_WAIT_S = 2.0


class CatFile:
    """The child of one repository whose work tree is `root`. Close it when it is not needed."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._child: subprocess.Popen[bytes] | None = None
        self._errors = -1
        self._pid = 0

    def read(self, oid: bytes) -> tuple[str, bytes] | None:
        """An object's type and bytes, or None when the repository does not have it.

        Raises `MemhtmlError` `ERR_GIT` when git refuses the repository or the object is damaged.
        """
        status, said = 0, ""
        for _attempt in range(2):
            # Twice: Ctrl-C reaches a child in the foreground too, and then a roll-back reads.
            child = self._running()
            try:
                return _ask(child, oid)
            except (BrokenPipeError, EOFError):
                status, said = self._end_of(child)
            except TimeoutError:
                self.close()
                raise MemhtmlError("ERR_GIT", f"git object {oid.hex()} is damaged") from None
            except BaseException as error:
                self.close()  # Interrupted half way, the next answer would be another's.
                if isinstance(error, OSError):
                    raise not_started(error) from error
                raise
            self.close()
        raise self._refused(status, said)

    def close(self) -> None:
        """End the child. Twice is fine, and so is a question afterwards."""
        child, self._child = self._child, None
        if child is None:
            return
        if self._pid != os.getpid():
            child.returncode = 0  # A fork brought it here; it is its own parent's to wait for.
        else:
            child.kill()  # It only reads.
            child.wait()
        for stream in (child.stdin, child.stdout):
            assert stream is not None
            stream.close()
        os.close(self._errors)

    def __del__(self) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._pid != os.getpid():
            self.close()
        if self._child is not None:
            return self._child
        import subprocess  # 9 ms: a call that asks for nothing must not pay it.

        # A file, because nobody reads it while git answers, and a full pipe would stop git.
        self._errors = os.memfd_create("git-errors", os.MFD_CLOEXEC)
        try:
            child = subprocess.Popen(
                [*git_command(self.root), "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=git_env(self.root),
            )
        except BaseException as error:
            os.close(self._errors)
            if isinstance(error, OSError):
                raise not_started(error) from error
            raise
        self._child, self._pid = child, os.getpid()
        return child

    def _end_of(self, child: subprocess.Popen[bytes]) -> tuple[int, str]:
        """The exit status of a child that stopped answering, and what it said last."""
        import subprocess

        try:
            status = child.wait(_END_WAIT_S)
        except subprocess.TimeoutExpired:
            status = -1
        said = os.pread(self._errors, _SHOWN_BYTES, 0).decode("utf-8", "replace").strip()
        return status, said

    def _refused(self, status: int, said: str) -> MemhtmlError:
        if "dubious ownership" in said:
            from memhtml.store.refs import refused_owner

            return refused_owner(self.root)
        if "not a git repository" in said:
            from memhtml.store.refs import no_worktree

            return no_worktree(self.root)
        return failed_with("cat-file", status, said)


def _ask(child: subprocess.Popen[bytes], oid: bytes) -> tuple[str, bytes] | None:
    """Put one question. Raises EOFError or BrokenPipeError when the child is gone."""
    assert child.stdin is not None
    assert child.stdout is not None
    write_all(child.stdin.fileno(), oid.hex().encode() + b"\n")
    output = child.stdout.fileno()
    header, newline, rest = b"", b"", b""
    while not newline:
        header, newline, rest = (header + _more(output)).partition(b"\n")
    if header.endswith(b" missing"):
        return None
    _oid, kind, size_text = header.decode("ascii").split(" ")
    size_bytes = int(size_text)
    parts, got_bytes = [rest], len(rest)
    while got_bytes <= size_bytes:  # One newline follows.
        parts.append(_more(output))
        got_bytes += len(parts[-1])
    return kind, b"".join(parts)[:size_bytes]


def _more(output: int) -> bytes:
    """What the child says next. Raises EOFError, or TimeoutError for a child that says nothing.

    git waits for the next question in the middle of an answer when an object is cut short.
    """
    import select

    waiting = select.poll()
    waiting.register(output, select.POLLIN)
    if not waiting.poll(_SILENCE_MS):
        raise TimeoutError(errno.ETIMEDOUT, "git gives no whole object")
    found = os.read(output, _CHUNK_BYTES)
    if not found:
        raise EOFError
    return found
