"""Sessions: a log of operations over one version, and the commands that fill, land and clear it."""
