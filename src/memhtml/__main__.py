"""The entry point of `memhtml` and of `python -m memhtml`: nothing but the call."""

from __future__ import annotations

import gc
import os
from typing import NoReturn

STATUS_INTERRUPTED = 130
OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""More than a call makes by loading: twenty passes over modules that stay would cost it 3 ms."""


def main() -> NoReturn:
    """Run one call and end the process with its exit status.

    Ends without the interpreter's own clean-up: everything is written and closed by then, and
    taking down a hundred modules would cost every call 5 ms.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        from memhtml.cli.main import main as run

        status = run()
    except KeyboardInterrupt:  # Ctrl-C while the modules load.
        status = STATUS_INTERRUPTED
    os._exit(status)


if __name__ == "__main__":
    main()
