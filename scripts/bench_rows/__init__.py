"""The rows of `scripts/bench`, by subject."""
