"""The command line: one table of commands, and the one edge that prints and sets exit statuses."""
