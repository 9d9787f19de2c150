"""The records of one commit, with a session's operations laid over. Never the checkout."""
