"""The entries of the command table, one module a group; `memhtml.cli.registry` joins them."""
