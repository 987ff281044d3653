"""How many numbers are processed at a time, by purpose; `data/row_blocks.py` has the rows of a pass."""

CACHED = 2**17  # used several times each, in the cache of a core
COPIED = 2**18  # read once, and copied or widened for it
REDUCED = 2**19  # of a matrix, such as distances of rows, that is computed to be reduced
TOGETHER = 2**20  # sorted, grouped or inverted in one call
KEPT = 2**21  # results that a later step needs: 16 MiB
