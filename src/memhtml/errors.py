"""The one exception that reaches the command line: a code, a sentence, and ways to move on.

Codes, exit statuses and the `ERR_STORAGE` reasons are spec `cli` §6. Deeper packages raise their
own exceptions; the part of `memhtml` that calls them turns them into this one.
"""

from __future__ import annotations

USAGE_CODES = frozenset(
    {
        "ERR_UNKNOWN_COMMAND",
        "ERR_MISSING_ARGUMENT",
        "ERR_INVALID_FLAG",
        "ERR_UNEXPECTED_ARGUMENT",
        "ERR_REPO_REQUIRED",
        "ERR_UNKNOWN_HOST",
        "ERR_UNKNOWN_HOOK_EVENT",
        "ERR_SESSION_BOUND",
    }
)


class MemhtmlError(Exception):
    """A failure that a caller branches on by `code`; `str()` is the sentence for people.

    `exit_status` is 2 for usage codes and 1 otherwise (spec `cli` §2), unless given: a host file
    that cannot be read is `ERR_PATH_NOT_FOUND` with status 2.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        suggestions: tuple[str, ...] = (),
        exit_status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.suggestions = suggestions
        default = 2 if code in USAGE_CODES else 1
        self.exit_status = default if exit_status is None else exit_status


class StorageError(MemhtmlError):
    """`ERR_STORAGE`; `reason` is the stable dotted token of spec `cli` §6.3."""

    def __init__(
        self, reason: str, detail: str | None = None, *, suggestions: tuple[str, ...] = ()
    ) -> None:
        text = f"storage operation failed: {reason}"
        super().__init__(
            "ERR_STORAGE", f"{text}: {detail}" if detail else text, suggestions=suggestions
        )
        self.reason = reason
        self.detail = detail
