"""What the writing commands answer (spec `cli` §10)."""

from __future__ import annotations

from pydantic import BaseModel

PAYLOADS: dict[str, type[BaseModel]] = {}
"""Response type → the model of its `data`."""
