"""What `search` and `recall` answer (spec `cli` §11)."""

from __future__ import annotations

from pydantic import BaseModel

PAYLOADS: dict[str, type[BaseModel]] = {}
"""Response type → the model of its `data`."""
