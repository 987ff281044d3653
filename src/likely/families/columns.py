"""What a family of independent columns is written with; `docs/families.md` shows how."""

from likely.families.column_family import ColumnFamily, constant_value, varies
from likely.families.independent import IndependentColumns, NaturalColumns
from likely.families.supports import ANGLES, COUNTS, FRACTIONS, NON_NEGATIVE, POSITIVE, ZERO_ONE, Support

level = constant_value  # its name in version 0.1

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
    "level",
    "varies",
]
