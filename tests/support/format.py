"""Memory files for tests, and the shared golden cases."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

AT = "2026-12-01T10:00:00Z"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CLAIM = "<p><mark>The cache ttl is five minutes.</mark> It was ten.</p>"


def page(
    article: str = CLAIM,
    *,
    title: str = "Cache ttl",
    head: str = "",
    memory_type: str = "semantic",
    status: str = "active",
    created: str = AT,
    updated: str = AT,
) -> str:
    """A valid memory file in the canonical shape; `head` is put behind the required metas."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n"
        f'<meta name="memhtml-type" content="{memory_type}">\n'
        f'<meta name="memhtml-status" content="{status}">\n'
        f'<meta name="memhtml-created" content="{created}">\n'
        f'<meta name="memhtml-updated" content="{updated}">\n'
        f"{head}</head>\n<body>\n<article>\n{article}\n</article>\n</body>\n</html>\n"
    )


def shared_cases(name: str) -> list[dict[str, Any]]:
    """The cases of `../shared/cases/<name>`; skips the test when they are not there."""
    path = os.path.join(os.path.dirname(ROOT), "shared", "cases", name)
    if not os.path.exists(path):
        pytest.skip("shared cases are not here")
    with open(path, encoding="utf-8") as file:
        cases: list[dict[str, Any]] = json.load(file)
    return cases
