"""The entry point of `memhtml` and of `python -m memhtml`: nothing but the call."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns the exit status."""
    try:
        from memhtml.cli.main import main as run
    except KeyboardInterrupt:  # Ctrl-C while the modules load.
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
