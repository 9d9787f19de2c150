"""The search index: `index.db` and `state.db`, and how they follow git (spec `retrieval` §2–§4)."""
