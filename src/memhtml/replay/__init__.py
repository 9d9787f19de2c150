"""Recorded runs: write one down with everything it needs, and run it again (spec `cli` §10)."""
