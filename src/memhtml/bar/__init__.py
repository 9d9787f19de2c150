"""The write bar: operations, a corpus and a policy in, violations out (spec `write-bar`).

Pure: nothing here writes, reads a disk or asks git but through the corpus it is given. Each rule
has the file of its name; `judge` walks the log, `batch` is what the walk has done so far.
"""
