"""The interface of views: generative models of some columns of a row, each with one or more evidence terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from likely.errors import InputError
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.statistics.rounding import subtract_counts
from likely.typing import Array

ROUNDING = 1e-9  # of counts and weights, relative


def remaining(counts: Array, removed: Array) -> Array:
    """Counts without some rows; an error where there are fewer than these."""
    if np.any(removed - counts > ROUNDING * np.maximum(counts, removed)):
        raise InputError(
            "Some of these rows are not among the training rows. Pass rows as they were in the fit, with the same "
            "weights."
        )
    return np.maximum(subtract_counts(counts, removed), 0.0)


class View(ABC):
    """Options of a view. `fit` returns the view of training rows."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the view in weights and explanations."""

    @abstractmethod
    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedView | None:
        """The view of these rows; None if it has nothing to look at, such as no numeric column.

        Every choice follows the content of rows (`rows.drawn_by`, scrambled with `seed`), never their order.
        """


class AdditiveTerms(ABC):
    """Evidence terms of rows: a structure, which is fixed, and additive statistics of all rows that were counted.

    Terms are log p(x | class), or log p(x | class) − log p(x), up to a term that all classes share. They are finite for
    all rows, and 0 where a row has no observed value in the columns of the term.
    """

    @property
    @abstractmethod
    def term_columns(self) -> tuple[int | None, ...]:
        """The column of each term; None if it belongs to several columns."""

    @abstractmethod
    def terms(self, rows: EncodedRows) -> Array:
        """Evidence of rows that are not among the training rows, (terms, classes, n)."""

    @abstractmethod
    def left_out(self, rows: TrainingRows) -> Array:
        """Leave-one-out evidence of training rows, (terms, classes, n), without `rows.held_out` of their weights."""

    @abstractmethod
    def counted(self, rows: TrainingRows) -> Self:
        """The same structure, with the statistics of these rows alone."""

    @abstractmethod
    def removed(self, rows: TrainingRows) -> Self:
        """The same structure, with the statistics of all rows but these."""

    @abstractmethod
    def __add__(self, other: Self) -> Self:
        """The same structure, with the statistics of both."""


class FittedView(AdditiveTerms):
    """A view of training rows."""

    attributes_columns: ClassVar[bool] = True  # whether `contributions` belong to columns

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of the terms, where these are not the names of `term_columns`."""
        return ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the view."""

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedView:
        """The view fitted to `remaining` alone: all training rows but `held_out`, which closed forms subtract."""
        if np.isin(held_out.keys, remaining.keys).any():  # statistics count rows, and do not remove parts of them
            return self.counted(remaining)
        return self.removed(held_out)

    def renumbered(self, first: int) -> Self:
        """The view with `first` added to the positions of the training rows that it keeps."""
        return self

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        """Contributions of the columns to Σ_j weights_j · terms_j, (n, classes, columns of the table).

        Their sum over the columns equals the weighted sum of the terms up to a number that all classes of a row share.
        Where `attributes_columns` is false, the last axis has length 1.
        """
        terms = self.terms(rows) * weights[:, None, None]
        found = np.zeros((len(rows), terms.shape[1], rows.cells.shape[1]))
        found[:, :, np.array(self.term_columns)] = terms.transpose(2, 1, 0)
        return found


class PartsView(FittedView):
    """A view in parts, with one term for each column."""

    parts: tuple[Any, ...]  # each with `AdditiveTerms`

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return tuple(j for part in self.parts for j in part.term_columns)

    def terms(self, rows: EncodedRows) -> Array:
        return np.concatenate([part.terms(rows) for part in self.parts])

    def left_out(self, rows: TrainingRows) -> Array:
        return np.concatenate([part.left_out(rows) for part in self.parts])

    def counted(self, rows: TrainingRows) -> Self:
        return self._with(part.counted(rows) for part in self.parts)

    def removed(self, rows: TrainingRows) -> Self:
        return self._with(part.removed(rows) for part in self.parts)

    def __add__(self, other: Self) -> Self:
        return self._with(a + b for a, b in zip(self.parts, other.parts, strict=True))

    def _with(self, parts: Iterable[AdditiveTerms]) -> Self:
        return replace(cast(Any, self), parts=tuple(parts))

    def _valid(self) -> bool:
        return 0 < len(self.term_columns) == len(set(self.term_columns))


class CountsView(FittedView):
    """A view whose statistics are one array of counts."""

    counts: Array

    @abstractmethod
    def _count(self, rows: TrainingRows) -> Array:
        """The counts of rows."""

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedView:
        return self.removed(held_out)

    def counted(self, rows: TrainingRows) -> Self:
        return self._with(self._count(rows))

    def removed(self, rows: TrainingRows) -> Self:
        return self._with(remaining(self.counts, self._count(rows)))

    def __add__(self, other: Self) -> Self:
        return self._with(self.counts + other.counts)

    def _with(self, counts: Array) -> Self:
        return cast(Self, replace(cast(Any, self), counts=counts))
