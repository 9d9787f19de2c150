"""Run one script over a copy-on-write tree in a kernel sandbox. Standard library only; reads no environment."""
