"""Mount one version of the corpus in the sandbox and run a script over it."""
