"""The interface for families of independent columns; `docs/families.md` shows how to write one."""

from likely.families.column_family import ColumnFamily, constant_value, varies
from likely.families.independent import IndependentColumns
from likely.families.natural import NaturalColumns
from likely.families.supports import ANGLES, COUNTS, FRACTIONS, NON_NEGATIVE, POSITIVE, ZERO_ONE, Support

__all__ = [
    "ANGLES",
    "COUNTS",
    "FRACTIONS",
    "NON_NEGATIVE",
    "POSITIVE",
    "ZERO_ONE",
    "ColumnFamily",
    "IndependentColumns",
    "NaturalColumns",
    "Support",
    "constant_value",
    "varies",
]
