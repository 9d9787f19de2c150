"""The discrimination gate (spec `retrieval` §19)."""
