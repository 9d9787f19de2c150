"""The embedder port, the models behind it (local, hashed, remote), and the vector cache."""
