"""One `git cat-file --batch` child that hands out objects for as long as it is kept.

It starts with the first question (2 ms) and ends with its parent, whose end of the pipe closes
then. git itself looks through packs, alternates and what arrives later.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from memhtml.errors import MemhtmlError
from memhtml.store.atomic import write_all
from memhtml.store.child import git_command, git_env, not_started

if TYPE_CHECKING:
    import subprocess

_SHOWN_BYTES = 4096


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
        said = ""
        for _attempt in range(2):
            # Twice: Ctrl-C reaches a child in the foreground too, and then a roll-back reads.
            child = self._running()
            try:
                return _ask(child, oid)
            except (BrokenPipeError, EOFError):
                said = self._last_words()
            except BaseException as error:
                self.close()  # Interrupted half way, the next answer would be another's.
                if isinstance(error, OSError):
                    raise not_started(error) from error
                raise
            self.close()
        raise self._refused(said)

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

    def _last_words(self) -> str:
        text = os.pread(self._errors, _SHOWN_BYTES, 0).decode("utf-8", "replace").strip()
        return text.splitlines()[0] if text else "git cat-file ended"

    def _refused(self, said: str) -> MemhtmlError:
        if "dubious ownership" in said:
            from memhtml.store.refs import refused_owner

            return refused_owner(self.root)
        if "not a git repository" in said:
            return MemhtmlError("ERR_GIT", f"git cannot open the repository: {said}")
        return MemhtmlError("ERR_GIT", f"git cat-file failed: {said}")


def _ask(child: subprocess.Popen[bytes], oid: bytes) -> tuple[str, bytes] | None:
    """Put one question. Raises EOFError or BrokenPipeError when the child is gone."""
    assert child.stdin is not None
    assert child.stdout is not None
    write_all(child.stdin.fileno(), oid.hex().encode() + b"\n")
    header = child.stdout.readline()
    if header.endswith(b" missing\n"):
        return None
    if not header.endswith(b"\n"):
        raise EOFError
    _oid, kind, size = header.split()
    data = child.stdout.read(int(size))
    if len(data) != int(size) or child.stdout.read(1) != b"\n":
        raise EOFError
    return kind.decode("ascii"), data
