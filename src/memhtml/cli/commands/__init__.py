"""One module per command group, imported only when one of its commands is called."""
