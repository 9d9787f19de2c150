"""What is wrong with a store, and the repairs that need no judgement (spec `cli` §11)."""
