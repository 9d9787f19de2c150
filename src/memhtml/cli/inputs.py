"""The input a call names: a script (spec `harvest` §1) or a stream of lines (spec `sessions` §6).

Read before the root is resolved and before anything opens (spec `cli` §3.3, step 8).
"""

from __future__ import annotations

import errno
import json
import os

from memhtml.cli import registry, suggest
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from memhtml.cli.call import Call
    from memhtml.execute.script import Script
    from memhtml_format.jsonl import Line

STDIN = 0
CHUNK_BYTES = 1 << 16
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PUT_OPS = frozenset({"write", "label", "unlabel"})
STANDARD_INPUT = "-"


def read_script(call: Call) -> Script:
    """The script of `session exec`, exactly as written, with its language and bound.

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
            raise _too_large(size_bytes, MAX_REQUEST_BYTES, "the script alone is")
        text = _utf8(data, "the script")
    if not text.strip():
        raise MemhtmlError(
            "ERR_MISSING_ARGUMENT",
            "the script is blank: pipe one in, or name it with --file or --script",
            suggestions=(suggest.call(registry.BY_NAME[call.name], "<<'SH'"),),
        )
    size_bytes = _request_bytes(call, text)
    if size_bytes > MAX_REQUEST_BYTES:
        raise _too_large(size_bytes, MAX_REQUEST_BYTES, "this request is")
    lang: Literal["bash", "js"] = "js" if call.text("lang") == "js" else "bash"
    return Script(text, lang, call.number("timeout-ms"))


def read_lines(call: Call) -> Sequence[Line]:
    """The operations of `session put`, all of them decoded.

    From `--file`, or from standard input when the flag is absent or `-`. A leading byte-order mark
    is dropped. Raises `MemhtmlError`: `ERR_PATH_NOT_FOUND` with status 2 for an unreadable file,
    `ERR_INVALID_FLAG` or `ERR_MISSING_ARGUMENT` for the first bad line, naming it.
    """
    from memhtml_format.jsonl import BadLine, decode_lines

    data, _ = _read(call.text("file"), None)
    data = data.removeprefix(BYTE_ORDER_MARK)
    text = _utf8(data, f"memhtml {call.name}")
    try:
        return decode_lines(text, ops=PUT_OPS, command=call.name)
    except BadLine as bad:
        raise MemhtmlError(bad.code, str(bad)) from None


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


def _request_bytes(call: Call, text: str) -> int:
    """The size of the request as compact JSON; the key order is the seed's."""
    session = call.session()
    request: dict[str, object] = {"id": session.id, "script": text, "lang": call.text("lang")}
    if "timeout-ms" in call.given:
        request["timeoutMs"] = call.number("timeout-ms")
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


def _too_large(size_bytes: int, limit_bytes: int, subject: str) -> MemhtmlError:
    return MemhtmlError(
        "ERR_INVALID_FLAG",
        f"a script and its request hold at most {limit_bytes} bytes, and {subject} "
        f"{size_bytes}; make several calls, or add records with `session put`",
    )


def _unreadable(name: str, failure: OSError | ValueError) -> MemhtmlError:
    reason = getattr(failure, "strerror", None) or "not a usable name"
    return MemhtmlError("ERR_PATH_NOT_FOUND", f"cannot read {name}: {reason}", exit_status=2)
