"""The input a call names: a script (spec `harvest` §1) or a stream of lines (spec `sessions` §6).

Read before the root is resolved and before anything opens (spec `cli` §3.3, step 8).
"""

from __future__ import annotations

import errno
import json
import os

from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memhtml.cli.call import Call

STDIN = 0
CHUNK_BYTES = 1 << 16
REQUEST_LIMIT_BYTES = 1_048_576
STANDARD_INPUT = "-"


def script(call: Call, *, session: str | None = None, run_bound: bool = False) -> str:
    """The script of `session exec`, exactly as written.

    From standard input, `--file`, `--script` or the positional `-`. `session` is the id that goes
    into the request whose size is bounded. Raises `MemhtmlError`: `ERR_INVALID_FLAG` for two
    sources, for text that is not UTF-8 and for a request over 1,048,576 bytes,
    `ERR_PATH_NOT_FOUND` with status 2 for an unreadable file, `ERR_MISSING_ARGUMENT` for a blank
    script or a terminal on standard input.
    """
    inline, file = call.text("script"), call.text("file")
    sources = [
        *(["--script"] if inline is not None else []),
        *(["--file"] if file is not None else []),
        *(["the positional -"] if STANDARD_INPUT in call.args else []),
    ]
    if len(sources) > 1:
        raise MemhtmlError(
            "ERR_INVALID_FLAG", f"a script comes from one place, not from {' and '.join(sources)}"
        )
    if inline is not None:
        text = inline
    else:
        data, size_bytes = _read(file, REQUEST_LIMIT_BYTES)
        if size_bytes > REQUEST_LIMIT_BYTES:
            raise _too_large(size_bytes, "the script alone is")
        text = _utf8(data, "the script is not UTF-8")
    if not text.strip():
        raise MemhtmlError(
            "ERR_MISSING_ARGUMENT",
            "the script is blank: pipe one in, or name it with --file or --script",
        )
    _check_size(call, text, session, run_bound)
    return text


def lines(call: Call) -> str:
    """The JSONL text of `--file`, or of standard input when the flag is absent or `-`.

    A leading byte-order mark is dropped. Raises `MemhtmlError`: `ERR_PATH_NOT_FOUND` with status 2
    for an unreadable file, `ERR_INVALID_FLAG` naming the first line that is not UTF-8.
    """
    data, _ = _read(call.text("file"), None)
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        number = data.count(b"\n", 0, failure.start) + 1
        raise MemhtmlError(
            "ERR_INVALID_FLAG", f"memhtml {call.name}: line {number}: is not UTF-8"
        ) from None


def _read(file: str | None, limit_bytes: int | None) -> tuple[bytes, int]:
    """The bytes, at most `limit_bytes` of them, and how many there were in all."""
    if file is None or file == STANDARD_INPUT:
        try:
            return (b"", 0) if os.isatty(STDIN) else _drain(STDIN, limit_bytes)
        except OSError as failure:
            if failure.errno == errno.EBADF:
                return b"", 0
            raise _unreadable("standard input", failure) from None
    try:
        with open(file, "rb") as stream:
            return _drain(stream.fileno(), limit_bytes)
    except (OSError, ValueError) as failure:
        raise _unreadable(file, failure) from None


def _drain(descriptor: int, limit_bytes: int | None) -> tuple[bytes, int]:
    """Read to the end; past the limit bytes are counted and dropped."""
    parts: list[bytes] = []
    size_bytes = 0
    while chunk := os.read(descriptor, CHUNK_BYTES):
        if limit_bytes is None or size_bytes <= limit_bytes:
            parts.append(chunk)
        size_bytes += len(chunk)
    return b"".join(parts), size_bytes


def _check_size(call: Call, text: str, session: str | None, run_bound: bool) -> None:
    """Refuse a request whose compact JSON is over the limit; the key order is the seed's."""
    request: dict[str, object] = {} if session is None else {"id": session}
    request["script"] = text
    request["lang"] = call.text("lang")
    if "timeout-ms" in call.given:
        request["timeoutMs"] = call.number("timeout-ms")
    if run_bound:
        request["runBound"] = True
    compact = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    size_bytes = len(_encoded(compact, "the script is not UTF-8"))
    if size_bytes > REQUEST_LIMIT_BYTES:
        raise _too_large(size_bytes, "this request is")


def _encoded(text: str, complaint: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise MemhtmlError("ERR_INVALID_FLAG", complaint) from None


def _utf8(data: bytes, complaint: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        number = data.count(b"\n", 0, failure.start) + 1
        raise MemhtmlError("ERR_INVALID_FLAG", f"{complaint}: line {number}") from None


def _too_large(size_bytes: int, subject: str) -> MemhtmlError:
    return MemhtmlError(
        "ERR_INVALID_FLAG",
        f"a script and its request hold at most {REQUEST_LIMIT_BYTES:,} bytes and {subject} "
        f"{size_bytes:,}; make several calls, or add records with `session put`",
    )


def _unreadable(name: str, failure: OSError | ValueError) -> MemhtmlError:
    reason = getattr(failure, "strerror", None) or "not a usable name"
    return MemhtmlError("ERR_PATH_NOT_FOUND", f"cannot read {name}: {reason}", exit_status=2)
