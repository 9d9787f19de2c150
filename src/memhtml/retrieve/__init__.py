"""Search over the records of one view. Imports nothing at package level."""
