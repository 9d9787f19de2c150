"""Run one script over a copy-on-write tree in a kernel sandbox; standard library only."""
