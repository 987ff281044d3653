"""Features of a linear model: the sufficient statistics of families with linear log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.data.table import Table
from likely.data.validation import read_table
from likely.discriminative.design import check_values, missing_value_error
from likely.errors import InputError, listed
from likely.families.count_vectors import MultinomialConditionals
from likely.model.block import Block
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.typing import Array

LINEAR = (
    "Gaussian(shared=True), Bernoulli, Categorical, Poisson, Geometric, NegativeBinomial, Exponential and Multinomial"
)


@register
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Features of a table: numeric columns, and indicators of all categories but the first of categorical columns.

    `columns` and `words` have an entry for each column of the table in use; the words of a categorical column are its
    categories, those of a numeric column are ().
    """

    columns: Annotated[tuple[int, ...], Shape("columns", ">=0")]
    words: Annotated[tuple[tuple[Any, ...], ...], Shape("columns")]
    names: Annotated[tuple[str, ...], Shape("d")]

    def _sizes(self) -> dict[str, Any]:
        return {"d": sum(max(len(words) - 1, 0) if words else 1 for words in self.words)}

    def _valid(self) -> bool:
        return all(len(set(words)) == len(words) for words in self.words)

    @classmethod
    def of(cls, model: JointModel) -> Features:
        """The features of a model, block after block; an error where its log-odds are not linear."""
        columns: list[int] = []
        words: list[tuple[Any, ...]] = []
        for block in model.blocks:
            known = block.conditionals.vocabularies
            curved = known is None and block_line(block) is None
            if block.extra is not None or curved or (known and not _has_tables(block)):
                names = [model.names[j] for j in block.index]
                raise InputError(
                    f"{'Column' if len(names) == 1 else 'Columns'} {listed(names)}: the family has no linear log-odds. "
                    f"HybridClassifier supports {LINEAR}. Transform the column, or use GenerativeClassifier."
                )
            columns += block.index.tolist()
            words += list(known) if known is not None else [()] * len(block.index)
        names = []
        for j, mine in zip(columns, words, strict=True):
            names += [f"{model.names[j]}={word}" for word in mine[1:]] if mine else [model.names[j]]
        return cls(tuple(columns), tuple(words), tuple(names))

    def table(self, table: Table, means: Array | None = None) -> Table:
        """The features of a table.

        Where the means of the features in the training rows are given, a categorical column has them for categories
        that were not seen in training: the column then contributes nothing. Elsewhere such categories are an error.
        """
        if self.columns == tuple(range(table.width)) and not any(self.words):  # they are its columns, unchanged
            check_values(table)
            return table
        out, place = np.empty((table.rows, len(self.names))), 0
        for j, words in zip(self.columns, self.words, strict=True):
            if not words:
                read = table.numbers(np.array([j]), sparse=False)
                out[:, place] = read(0, table.rows)[:, 0]
                place += 1
                continue
            (mine,) = table.categories([j])
            missing = mine.part(0, table.rows) < 0
            if missing.any():
                raise missing_value_error(table.number(int(np.argmax(missing))), j, None, table.names[j])
            codes = table.codes([j], [words])(0, table.rows)[:, 0]
            features = slice(place, place + len(words) - 1)
            out[:, features] = codes[:, None] == np.arange(1, len(words))
            if means is None:
                unseen = table.unseen(j, words)
                if unseen is not None:
                    raise InputError(
                        f"Column {table.names[j]!r}, row {unseen[0]}: {unseen[1]!r} was not seen in training. Known "
                        f"categories: {listed(words)}."
                    )
            else:
                out[codes < 0, features] = means[features]
            place = features.stop
        made = read_table(out, table.start)
        made.names = list(self.names)
        check_values(made)
        return made


def _has_tables(block: Block) -> bool:
    """Whether a block of categorical columns has a table of probabilities for each column."""
    return hasattr(block.conditionals, "tables") and hasattr(block.conditionals, "words")


def block_line(block: Block) -> tuple[Array, Array, Array] | None:
    """Linear log-densities of a block: coefficients (classes, d), constants (classes,) and centre (d,); or None."""
    parts = block.conditionals
    if isinstance(parts, MultinomialConditionals):
        weights = parts.natural_parameters()
        return (weights, np.zeros(len(weights)), np.zeros(parts.dimension)) if np.all(np.isfinite(weights)) else None
    form = parts.quadratic()
    return None if form is None or form.square is not None else (form.linear, form.constant, form.centre)
