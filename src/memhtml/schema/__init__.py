"""Pydantic models of everything that crosses a process boundary, and their JSON Schema.

For tests, for the generated reference and for callers that want to check what they read. pydantic
costs 37 ms to import, so no command that agents call often imports this package.
"""
