"""Writes outside a session: one call is one commit (spec `cli` §8, §10)."""
