"""What an href names (spec `format` §3.3): its target, and whether it is root-relative."""

from __future__ import annotations


def target(href: str) -> str:
    """The path an href points at: what stands before `?` or `#`, without the leading slash."""
    bare = href.partition("#")[0].partition("?")[0]
    return bare.removeprefix("/")


def is_root_relative(href: str) -> bool:
    """Whether the href starts with exactly one slash and has no empty, `.` or `..` segment."""
    return href.startswith("/") and not {"", ".", ".."}.intersection(target(href).split("/"))
