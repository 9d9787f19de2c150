"""Two trees in, operations and rejections out. A pure function over plain values."""
