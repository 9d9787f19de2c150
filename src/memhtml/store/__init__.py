"""The git side of a store: objects, refs, trees, commits, checkout, locks and the head index."""
