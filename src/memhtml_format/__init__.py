"""Bytes and vocabulary of memory files: HTML, records, paths, operations, violations. Pure."""
