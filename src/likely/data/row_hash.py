"""Hashes of rows by content: subsamples that do not depend on the order of rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.typing import AnyArray, Array

MOST_BUCKETS = 2**20  # of hashes, a power of two
ROUNDING = 1e-9  # of sums of weights
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # steps of SplitMix64: 2^64 divided by the golden ratio


def copies(table: Table, codes: AnyArray, weights: Array, fraction: float) -> Array:
    """How often each row is drawn into a sample of about a fraction of all rows: a whole number.

    A row of weight w counts as w equal rows. Of equal rows with total weight W, ⌊fraction·W + u⌋ are drawn, where u is
    a pseudo-random number in [0, 1) that depends on their values and class alone: the sample does not depend on the
    order of rows, and a weight draws as many as repeated rows do.
    """
    return drawn_copies(row_hashes(table, codes), weights, fraction)


def drawn_copies(hashes: AnyArray, weights: Array, fraction: float) -> Array:
    """`copies` of rows with these hashes."""
    out = np.zeros(len(hashes))
    buckets = min(MOST_BUCKETS, 4 << len(hashes).bit_length())
    bucket = (hashes & np.uint64(buckets - 1)).astype(np.intp)  # equal rows are in one bucket
    most = fraction * np.bincount(bucket, weights, minlength=buckets)[bucket]
    some = np.flatnonzero(hashes * 2.0**-64 >= 1.0 - most - ROUNDING)
    order = some[np.argsort(hashes[some], kind="stable")]
    if not len(order):
        return out
    hashes, reach = hashes[order], fraction * np.cumsum(weights[order])
    begins = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
    before = np.concatenate([np.zeros(1), reach])[begins]  # of rows that are not equal to these
    reach = reach - np.repeat(before, np.diff(begins, append=len(order))) + hashes * 2.0**-64
    drawn = np.floor(reach + ROUNDING)
    drawn[1:] -= np.where(np.diff(hashes) == 0, drawn[:-1], 0.0)
    out[order] = drawn
    return out


def row_hashes(table: Table, codes: AnyArray, columns: AnyArray | None = None) -> AnyArray:
    """A pseudo-random number for each row that depends on its class and its values, of all or some columns, alone."""
    contents = content_hashes(table) if columns is None else _content_hashes(table, columns)
    return scrambled(contents + scrambled(codes.astype(np.uint64)))


def content_hashes(table: Table) -> AnyArray:
    """A pseudo-random number for each row that depends on its values alone: the same for equal rows."""
    if "content hashes" not in table.cache:
        whole, every = table.whole.cache.get("content hashes"), np.arange(table.width)
        found = _content_hashes(table, every) if whole is None else whole[table.numbers_of_rows - table.start]
        table.cache["content hashes"] = found
    return table.cache["content hashes"]


def _content_hashes(table: Table, columns: AnyArray) -> AnyArray:
    total = np.zeros(table.rows, dtype=np.uint64)
    numbers = np.array([j for j in columns.tolist() if table.kinds[j] != "category"], dtype=np.intp)
    read = table.numbers(numbers, sparse=True, checked=False)
    names = _name_marks(table.names)

    def add(start: int, stop: int) -> None:
        rows = read(start, stop)
        if table.is_sparse:
            rows = scipy.sparse.csr_array(rows)
            mixed = value_bits(rows.data) * names[numbers[rows.indices]]
            ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])[rows.indptr]
            total[start:stop] += np.diff(ends)
            return
        total[start:stop] += (value_bits(rows) * names[numbers]).sum(axis=1)

    if len(numbers):
        evaluate(table, add, 2 * table.cells(len(numbers), sparse=True))
    for j in np.setdiff1d(columns, numbers).tolist():
        total += category_marks(table, j) * names[j]
    return scrambled(total)


def rank_hashes(tables: Sequence[Table]) -> tuple[AnyArray, AnyArray]:
    """Hashes of the rows of all tables by content, and the place of each row in a pseudo-random order.

    The order depends on the ranks of the values in their columns: no order of rows or dense columns, and no name or
    unit of a column changes it. A column is identified by the ranks of all its values together. Ranks count from both
    ends, so that a change of sign changes nothing; rows that are equal by these ranks are ordered by ranks from below.
    The order of sparse rows depends on their content.
    """
    contents = np.concatenate([content_hashes(table) for table in tables])
    if tables[0].is_sparse:
        return contents, np.argsort(np.argsort(scrambled(contents), kind="stable"))
    _, first, place = np.unique(contents, return_index=True, return_inverse=True)
    keys = []
    for both_ends in (False, True):
        cells = np.stack([_rank_marks(tables, j, both_ends)[first] for j in range(tables[0].width)], axis=1)
        rows = scrambled(cells.sum(axis=1, dtype=np.uint64))
        columns = scrambled(cells + rows[:, None]).sum(axis=0, dtype=np.uint64) | np.uint64(1)
        keys.append(scrambled(cells * columns).sum(axis=1, dtype=np.uint64)[place])
    return contents, np.argsort(np.lexsort((contents, *keys)))


def _rank_marks(tables: Sequence[Table], j: int, both_ends: bool) -> AnyArray:
    """A pseudo-random number for each value of a column by its rank, from below or both ends; 0 for missing values."""
    if any(table.kinds[j] == "category" for table in tables):
        return np.concatenate([category_marks(table, j) for table in tables])
    readers = [table.numbers(np.array([j]), sparse=False, checked=False) for table in tables]
    values = np.concatenate([read(0, table.rows) for read, table in zip(readers, tables, strict=True)])[:, 0]
    values = values.astype(np.float64)
    marks, present = np.zeros(len(values), dtype=np.uint64), ~np.isnan(values)
    distinct, rank = np.unique(values[present], return_inverse=True)
    mixed = scrambled(rank.astype(np.uint64))
    if both_ends:
        mixed = mixed + scrambled((len(distinct) - 1 - rank).astype(np.uint64))
    marks[present] = scrambled(mixed + np.uint64(1))
    return marks


def category_marks(table: Table, j: int) -> AnyArray:
    """A pseudo-random number for the category of each row; 0 for missing values."""
    (labels,) = table.categories([j])
    marks = [zlib.crc32(repr(word).encode()) for word in labels.vocabulary]
    return scrambled(np.array([*marks, 0], dtype=np.uint64))[labels.part(0, table.rows)]


def checksums(texts: Sequence[str]) -> AnyArray:
    """A number of 32 bits for each text, which depends on the text alone."""
    sums = (zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts)
    return np.fromiter(sums, np.uint64, len(texts))


def text_hashes(texts: Sequence[str], codes: AnyArray) -> AnyArray:
    """A number for each text that depends on the text, by its high bits, and its class, by its low bits."""
    sums, low = checksums(texts), np.uint64(2**32 - 1)
    return ((sums ^ low) << np.uint64(32)) | (scrambled(sums + scrambled(codes.astype(np.uint64))) & low)


def array_keys(values: Array, codes: AnyArray, names: Sequence[str]) -> AnyArray:
    """A pseudo-random number for each row of an array with named columns; equal rows have equal numbers."""
    return scrambled(scrambled(codes.astype(np.uint64)) + (value_bits(values) * _name_marks(names)).sum(axis=1))


def _name_marks(names: Sequence[str]) -> AnyArray:
    """An odd pseudo-random number for each column name."""
    return scrambled(checksums(names)) | np.uint64(1)


def value_bits(values: AnyArray) -> AnyArray:
    """Numbers as mixed bit patterns: 0 for 0, and one pattern for all missing values."""
    values = np.asarray(values, dtype=np.float64) + 0.0  # -0.0 is 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint64)
    bits ^= bits >> np.uint64(32)
    return bits


def number_hashes(numbers: AnyArray, seed: int, part: int = 0) -> AnyArray:
    """A pseudo-random number for each row that depends on the seed, its part and its number alone (SplitMix64)."""
    start = scrambled(scrambled(np.array([seed], dtype=np.uint64)) + np.array([part], dtype=np.uint64))
    return scrambled(start + numbers.astype(np.uint64) * GOLDEN)


def scrambled(bits: AnyArray) -> AnyArray:
    """Integers mixed so that close ones end up far apart (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
