"""The input a call names: a script (spec `harvest` §1) or a stream of lines (spec `sessions` §6).

Read before the root is resolved and before anything opens (spec `cli` §3.3, step 8).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat

from memhtml.cli import registry, suggest
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from memhtml.cli.call import Call
    from memhtml.execute.script import Script
    from memhtml_format.jsonl import Line
    from memhtml_format.render import Draft

STDIN = 0
CHUNK_BYTES = 1 << 16
STREAM_BYTES = 16 << 20
"""The most that is read of a script or of the lines of `session put`."""
BATCH_BYTES = 256 << 20
"""The most that `apply` takes: half a million lines."""
PIPE_WAIT_MS = 2000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PUT_OPS = frozenset({"write", "label", "unlabel"})
STANDARD_INPUT = "-"
_HEREDOCS = {"bash": "<<'SH'", "js": "<<'JS'"}


def read_script(call: Call) -> Script:
    """The script of `session exec` or `exec`, exactly as written, with its language and bound.

    From standard input, `--file`, `--script` or the positional `-`; the parser has refused two of
    them. Raises `MemhtmlError`: `ERR_INVALID_FLAG` for text that is not UTF-8 and for a request
    over 1,048,576 bytes, `ERR_PATH_NOT_FOUND` with status 2 for an unreadable file,
    `ERR_MISSING_ARGUMENT` for a blank script or a terminal on standard input.
    """
    from memhtml.execute.script import MAX_REQUEST_BYTES, Script

    text = call.text("script")
    if text is None:
        data, size_bytes = _read(call.text("file"), MAX_REQUEST_BYTES)
        if size_bytes > MAX_REQUEST_BYTES:
            unread = "at least " if size_bytes == STREAM_BYTES + 1 else ""
            raise _too_large(call, size_bytes, f"the script alone is {unread}")
        text = _utf8(data, "the script")
    if not text.strip():
        raise MemhtmlError(
            "ERR_MISSING_ARGUMENT",
            "the script is blank: pipe one in, or name it with --file or --script",
            suggestions=(suggest.call(registry.BY_NAME[call.name], _HEREDOCS[_lang(call)]),),
        )
    size_bytes = _request_bytes(call, text)
    if size_bytes > MAX_REQUEST_BYTES:
        raise _too_large(call, size_bytes, "this request is ")
    return Script(text, _lang(call), call.number("timeout-ms"))


def _lang(call: Call) -> Literal["bash", "js"]:
    return "js" if call.text("lang") == "js" else "bash"


def read_lines(call: Call) -> Sequence[Line]:
    """The operations of `session put`, all of them decoded.

    From `--file`, or from standard input when the flag is absent or `-`. A leading byte-order mark
    is dropped. Raises `MemhtmlError`: `ERR_PATH_NOT_FOUND` with status 2 for an unreadable file,
    `ERR_INVALID_FLAG` for more than 16 MiB, and that or `ERR_MISSING_ARGUMENT` for the first bad
    line, naming it.
    """
    from memhtml_format.jsonl import BadLine, decode_lines

    data, size_bytes = _read(call.text("file"), STREAM_BYTES)
    if size_bytes > STREAM_BYTES:
        raise _too_many_bytes(call, STREAM_BYTES)
    data = data.removeprefix(BYTE_ORDER_MARK)
    text = _utf8(data, f"memhtml {call.name}")
    try:
        return decode_lines(text, ops=PUT_OPS, command=call.name)
    except BadLine as bad:
        raise MemhtmlError(bad.code, str(bad)) from None


def read_batch(call: Call) -> list[Draft]:
    """The drafts of `apply`, all of them decoded, in order.

    From `--file`, or from standard input when that is absent or `-`. Raises `MemhtmlError`:
    `ERR_PATH_NOT_FOUND` with status 2 for an unreadable file, `ERR_INVALID_FLAG` for more than
    256 MiB, and that or `ERR_MISSING_ARGUMENT` for the first bad line, naming it.
    """
    from memhtml_format.jsonl import BadLine, WriteLine, decode_lines

    data, size_bytes = _read(call.text("file"), BATCH_BYTES, BATCH_BYTES)
    if size_bytes > BATCH_BYTES:
        raise _too_many_bytes(call, BATCH_BYTES)
    try:
        lines = decode_lines(data, command=call.name, judge_values=False)
    except BadLine as bad:
        raise MemhtmlError(bad.code, str(bad)) from None
    return [line.draft for line in lines if isinstance(line, WriteLine)]


def _too_many_bytes(call: Call, limit_bytes: int) -> MemhtmlError:
    return MemhtmlError(
        "ERR_INVALID_FLAG",
        f"memhtml {call.name}: one call takes at most {limit_bytes} bytes of lines, "
        "and these are more; make several calls",
    )


def _read(file: str | None, limit_bytes: int, most_bytes: int = STREAM_BYTES) -> tuple[bytes, int]:
    """The bytes, hardly more than `limit_bytes` of them, and how many there are in all.

    A stream that is longer than `most_bytes` is read no further: its size is one more than that.
    """
    if file is None or file == STANDARD_INPUT:
        try:
            return (b"", 0) if os.isatty(STDIN) else _drain(STDIN, limit_bytes, most_bytes)
        except OSError as failure:
            if failure.errno == errno.EBADF:
                return b"", 0
            raise _unreadable("standard input", failure) from None
    try:
        # Not blocking: a pipe that nobody writes to would hold the call for ever.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            first = _await_writer(descriptor)
            rest, size_bytes = _drain(descriptor, limit_bytes, most_bytes)
            return first + rest, len(first) + size_bytes
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as failure:
        raise _unreadable(file, failure) from None


def _await_writer(descriptor: int) -> bytes:
    """Make reading wait for data again, once a pipe has somebody who writes to it.

    The answer is what was read to find that out. Raises `OSError` when nobody came.
    """
    first = b""
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        import select  # 1 ms, and hardly any call names a pipe.

        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        if not waiting.poll(PIPE_WAIT_MS):
            # A pipe with a writer says "try again", one without is at its end.
            with contextlib.suppress(BlockingIOError):
                first = os.read(descriptor, 1)
                if not first:
                    raise OSError(errno.EPIPE, "nothing writes to this pipe")
    os.set_blocking(descriptor, True)
    return first


def _drain(descriptor: int, limit_bytes: int, most_bytes: int) -> tuple[bytes, int]:
    """Read to the end; past the limit bytes are dropped, and counted as far as that is cheap."""
    state = os.fstat(descriptor)
    known_bytes = 0
    if stat.S_ISREG(state.st_mode):
        known_bytes = state.st_size - os.lseek(descriptor, 0, os.SEEK_CUR)
    parts: list[bytes] = []
    size_bytes = 0
    while chunk := os.read(descriptor, CHUNK_BYTES):
        if size_bytes <= limit_bytes:
            parts.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > limit_bytes and known_bytes >= size_bytes:
            return b"".join(parts), known_bytes
        if size_bytes > most_bytes:
            return b"".join(parts), most_bytes + 1
    return b"".join(parts), size_bytes


def _request_bytes(call: Call, text: str) -> int:
    """The size of the request as compact JSON; the key order is the seed's.

    An `exec` has no session, and its commit in its place when the line names one.
    """
    request: dict[str, object] = {"script": text, "lang": call.text("lang")}
    if "timeout-ms" in call.given:
        request["timeoutMs"] = call.number("timeout-ms")
    if call.name == "exec":
        request = {**({"sha": call.text("sha")} if "sha" in call.given else {}), **request}
    else:
        session = call.session()
        request = {"id": session.id, **request}
        if session.run_bound:
            request["runBound"] = True
    compact = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    return len(compact.encode("utf-8"))


def _utf8(data: bytes, subject: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        number = data.count(b"\n", 0, failure.start) + 1
        raise MemhtmlError("ERR_INVALID_FLAG", f"{subject}: line {number}: is not UTF-8") from None


def _too_large(call: Call, size_bytes: int, subject: str) -> MemhtmlError:
    from memhtml.execute.script import MAX_REQUEST_BYTES

    other = "" if call.name == "exec" else ", or add records with `session put`"
    return MemhtmlError(
        "ERR_INVALID_FLAG",
        f"a script and its request hold at most {MAX_REQUEST_BYTES} bytes, and {subject}"
        f"{size_bytes}; make several calls{other}",
    )


def _unreadable(name: str, failure: OSError | ValueError) -> MemhtmlError:
    reason = getattr(failure, "strerror", None) or "not a usable name"
    return MemhtmlError("ERR_PATH_NOT_FOUND", f"cannot read {name}: {reason}", exit_status=2)
