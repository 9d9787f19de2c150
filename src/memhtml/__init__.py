"""The memhtml application: store, sessions, index, command line. Imports nothing at import time."""

__version__ = "0.1.0"
