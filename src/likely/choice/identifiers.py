"""Identifiers: numbers and codes that name the rows of a table, found by the distinct values of a column alone.

Whole numbers identify rows if they are all distinct and spread evenly over their range: row numbers, any random or
contiguous part of them, random codes. The order of rows plays no part, so that parts of a table agree with the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from likely.data.row_hash import scrambled
from likely.typing import AnyArray, Array

IDENTIFIER_ROWS = 50  # rows from which columns of a frame may be identifiers or free text
IDENTIFIER_DISTINCT = 0.9  # proportion of distinct text values above which a column identifies rows
PERHAPS_DISTINCT = 0.75  # proportion above which it may do so
SAMPLE = 2**14  # distinct values that are kept of more than can be collected
MOST_COUNTED = 2000  # values that the test of evenness counts at most: small departures do not count
UNEVEN = 20.0  # Neyman's smooth statistic of uniform values, which is chi-squared: exceeded once in 20,000 times
EVIDENCE = 5.0  # log-odds from which numbers identify rows
DENSE = 12.0  # expected number of equal pairs from which distinct numbers were drawn without replacement
WIDE = 10**8  # range from which whole numbers have more digits than measurements
LONG = -6.0  # log-odds from which such numbers identify rows
DIGITS = 10  # digits of codes of one length
EXACT = 2.0**53  # beyond it all doubles are whole
TIME = (5e8, 2.5e9)  # seconds since 1970, from 1985 to 2049
TIME_UNITS = (1.0, 1e3, 1e6, 1e9)  # per second

ROW_NUMBERS = "row numbers: distinct whole numbers, evenly spread"
CODES = "codes: distinct whole numbers, evenly spread"
LONG_CODES = f"codes: distinct whole numbers of one length, at least {DIGITS} digits"


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a column is an identifier, or may be one; "" where there is no reason."""

    reason: str = ""
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """How distinct whole numbers are spread over their range."""

    even: bool  # whether uniform numbers may be spread like these
    equal_pairs: float  # number of equal pairs that is expected among as many uniform numbers
    evidence: float  # log-odds of distinct uniform numbers against independent ones of another distribution

    @classmethod
    def of(cls, values: AnyArray, low: int, high: int, size: int) -> Spread:
        """The spread of `size` distinct numbers, of which `values` are all or a random sample.

        u = (x - low) / (high - low) is uniform on [0, 1] between the extremes; Neyman's statistic of its first two
        Legendre polynomials has the distribution chi-squared(2). With s the standard deviation of u, uniform numbers
        have the log-likelihood 0 and normal ones -n log(s sqrt(2 pi e)); skewed ones gain about half the statistic over
        uniform ones. Independent uniform numbers on N places have n(n - 1)/2N equal pairs on average, and none with
        probability exp(-n(n - 1)/2N).
        """
        offsets = _offsets(values, low, high)
        step = 1 if offsets.dtype.kind == "f" else max(int(np.gcd.reduce(offsets)), 1)
        u = offsets.astype(np.float64) / float(high - low)
        shape = size * math.log(max(float(u.std()), 1e-12) * math.sqrt(2.0 * math.pi * math.e))
        u = u[(u > 0.0) & (u < 1.0)]
        counted = min(len(u), MOST_COUNTED)
        first, second = math.sqrt(3.0) * (2.0 * u - 1.0), math.sqrt(5.0) * (6.0 * u * (u - 1.0) + 1.0)
        statistic = counted * (float(first.mean()) ** 2 + float(second.mean()) ** 2)
        pairs = size * (size - 1) / 2.0 / ((high - low) // step + 1)
        with_gaps = pairs >= DENSE and abs(float(u.mean()) - 0.5) <= 0.1 and 0.7 <= 12.0 * float(u.var()) <= 1.4
        return cls(statistic <= UNEVEN or with_gaps, pairs, pairs + shape - min(statistic, UNEVEN) / 2.0)


def _offsets(values: AnyArray, low: int, high: int) -> AnyArray:
    """The differences to the least value; exact where they are integers of 64 bits."""
    if high - low >= 2**62 or max(abs(low), abs(high)) >= 2**62:
        return values.astype(np.float64) - float(low)
    return values.astype(np.int64) - low


def of_numbers(values: AnyArray | None, low: float, high: float, size: int) -> Finding:
    """Whether distinct whole numbers identify rows, by all of them or a random sample."""
    beyond = isinstance(high, float | np.floating) and max(-low, high) >= EXACT
    if values is None or len(values) < IDENTIFIER_ROWS or beyond:
        return Finding()
    least, most = int(low), int(high)
    spread = Spread.of(values, least, most, size)
    dense = spread.even and spread.equal_pairs >= DENSE
    if not dense and any(unit * TIME[0] <= least and most <= unit * TIME[1] for unit in TIME_UNITS):
        return Finding("distinct whole numbers, perhaps times or codes") if spread.evidence >= 0.0 else Finding()
    if least > 0 and len(str(least)) == len(str(most)) >= DIGITS:
        return Finding(LONG_CODES, certain=spread.evidence >= LONG)
    if dense:
        return Finding(ROW_NUMBERS, certain=True)
    if spread.even and spread.evidence >= (LONG if most - least >= WIDE else EVIDENCE):
        return Finding(CODES, certain=True)
    if not spread.even or spread.evidence < 0.0:
        return Finding()
    return Finding("distinct whole numbers, perhaps row numbers or codes")


def of_text(different: int, size: float, coded: int, text: bool) -> Finding:
    """Whether strings identify rows: nearly all are distinct. `coded` of the distinct ones have a digit."""
    if different <= PERHAPS_DISTINCT * size:
        return Finding()
    what = "free text" if text else "codes" if 2 * coded > different else "names"
    many = "all distinct" if different >= size else f"{math.floor(100.0 * different / size)}% distinct"
    return Finding(f"{what}, {many}", certain=different > IDENTIFIER_DISTINCT * size)


def sampled(values: AnyArray) -> AnyArray | None:
    """The values with the least hashes, up to SAMPLE; None if some of these are equal.

    It is a random sample of the distinct values that depends on them alone: samples of parts add up.
    """
    if len(values) > SAMPLE:
        with np.errstate(invalid="ignore"):  # doubles beyond all integers, which do not identify rows
            hashes = scrambled(values.astype(np.int64).view(np.uint64))
        values = values[np.argpartition(hashes, SAMPLE)[:SAMPLE]]
    distinct: Array = np.unique(values)
    return distinct if len(distinct) == len(values) else None
