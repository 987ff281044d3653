"""A block of columns of a joint model: how its rows are read, and what they contribute to each class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from likely.data.table import Reader, Table
from likely.errors import CellError
from likely.families.base import Conditionals
from likely.model.samples import draw_observed
from likely.typing import AnyArray, Array


@dataclass(frozen=True, eq=False)
class Block:
    """Columns with their class-conditional densities; `columns` is None for all columns in order.

    `extra` columns are read after them. Categorical columns are read as codes in the vocabularies of the densities.
    """

    columns: AnyArray | None
    conditionals: Conditionals
    extra: AnyArray | None = None
    sparse: bool = False
    observed: tuple[str, ...] = ()  # which numbers samples of each column have

    def sample(self, label: int, n: int, rng: np.random.Generator) -> AnyArray:
        """Rows of a class with such numbers as the columns were observed to have."""
        if self.conditionals.reads_text:
            return self.conditionals.sample(label, n, rng)
        return draw_observed(lambda size: self.conditionals.sample(label, size, rng), n, self.observed)

    @property
    def index(self) -> AnyArray:
        return np.arange(self.conditionals.dimension) if self.columns is None else self.columns

    def reader(self, table: Table) -> Reader:
        """A reader of row blocks of the columns."""
        if self.conditionals.reads_text:
            return table.documents(int(self.index[0]))
        words = self.conditionals.vocabularies
        if words is not None:
            return table.codes(self.index.tolist(), words)
        columns = self.columns if self.extra is None else np.concatenate([self.index, self.extra])
        read = table.numbers(columns, self.sparse)
        return (lambda start, stop: self.inside_support(read(start, stop))) if self.observed else read

    def inside_support(self, rows: AnyArray) -> AnyArray:
        """Rows with values that the family excludes as missing, where the family is not declared.

        Training rows have no such value. Like a category that did not occur in them, it contributes no evidence.
        """
        outside = self.conditionals.outside_support(rows)
        return rows if outside is None or not outside.any() else np.where(outside, np.nan, rows)

    def first_outside(self, table: Table) -> tuple[int, int, float] | None:
        """Row, column and value of the first number that a family excludes that was not declared; None without any."""
        if not self.observed:
            return None
        rows = table.numbers(self.columns, self.sparse)(0, table.rows)
        outside = self.conditionals.outside_support(rows)
        if outside is None or not outside.any():
            return None
        row, place = np.argwhere(outside)[0].tolist()
        return row, int(self.index[place]), float(rows[row, place])

    @contextmanager
    def in_table(self) -> Iterator[None]:
        """Errors about cells of the block, with the column's place in the table."""
        try:
            yield
        except CellError as error:
            raise self._in_table(error) from None

    def _in_table(self, error: CellError) -> CellError:
        """The error about a cell of the block, with the column's place in the table."""
        if error.name is not None:  # it is complete
            return error
        places = self.index if self.extra is None else np.concatenate([self.index, self.extra])
        return error.at(error.row, int(places[error.column]))

    def evidence(self, rows: Any) -> Array:
        """Log-densities (classes, n), or the evidence of a block that has an exponent of its own."""
        return self.evaluate(rows, exact=not self.conditionals.tempered)

    def evaluate(self, rows: Any, exact: bool) -> Array:
        """Log-densities (classes, n); where not exact, up to a term common to all classes."""
        try:
            return self.conditionals.log_density(rows) if exact else self.conditionals.scores(rows)
        except CellError as error:
            raise self._in_table(error) from None

    def unobserved(self, rows: Any) -> AnyArray:
        """Whether each row has no value in the columns of the block that contribute to the density."""
        if self.conditionals.reads_text:
            return self.conditionals.without_evidence(rows)
        if scipy.sparse.issparse(rows):
            return np.zeros(rows.shape[0], dtype=bool)
        used = np.setdiff1d(np.arange(len(self.index)), self.conditionals.ignored_columns())
        values = np.asarray(rows)[:, used]
        missing = values < 0 if self.conditionals.vocabularies is not None else np.isnan(values)
        return np.asarray(missing.all(axis=1))
