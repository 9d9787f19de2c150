"""The embedder port, its implementations, and the head path's vector cache (`retrieval` §21)."""
