"""The interface of views: generative models of some columns of a row, each with one or more evidence terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from likely.errors import InputError
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.statistics.rounding import subtract_counts
from likely.typing import Array

ROUNDING = 1e-9  # of counts, relative


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

        Every choice follows the content of rows (`rows.keys`, scrambled with `seed`), never their order.
        """


class FittedView(ABC):
    """A view of training rows: its structure, which is fixed, and additive statistics of all rows that were counted.

    Terms are log p(x | class), or log p(x | class) − log p(x), up to a term that all classes share. They are finite for
    all rows, and 0 where a row has no observed value in the columns of the term.
    """

    attributes_columns: ClassVar[bool] = True  # whether `contributions` belong to columns

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the view."""

    @property
    @abstractmethod
    def term_names(self) -> tuple[str, ...]:
        """The names of the terms."""

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

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedView:
        """The view fitted to `remaining` alone: all training rows but `held_out`, which closed forms subtract."""
        if np.isin(held_out.keys, remaining.keys).any():  # statistics count rows, and do not remove parts of them
            return self.counted(remaining)
        return self.updated(held_out, -1.0)

    @abstractmethod
    def updated(self, rows: TrainingRows, sign: float) -> Self:
        """The view with these rows added (sign 1) or removed (sign −1); its structure stays the same."""

    @abstractmethod
    def counted(self, rows: TrainingRows) -> Self:
        """The view with the same structure and the statistics of these rows alone."""

    @abstractmethod
    def __add__(self, other: Self) -> Self:
        """The view with the statistics of both; the structure of both is the same."""

    def renumbered(self, first: int) -> Self:
        """The view with `first` added to the positions of the training rows that it keeps."""
        return self

    @abstractmethod
    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        """Contributions of the columns to Σ_j weights_j · terms_j, (n, classes, columns of the table).

        Their sum over the columns equals the weighted sum of the terms up to a number that all classes of a row share.
        Where `attributes_columns` is false, the last axis has length 1.
        """


class CountsView(FittedView):
    """A view whose statistics are one array of counts."""

    counts: Array

    @abstractmethod
    def _count(self, rows: TrainingRows) -> Array:
        """The counts of rows."""

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedView:
        return self.updated(held_out, -1.0)

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        more = self._count(rows)
        return self._with(self.counts + more if sign > 0.0 else remaining(self.counts, more))

    def counted(self, rows: TrainingRows) -> Self:
        return self._with(self._count(rows))

    def __add__(self, other: Self) -> Self:
        return self._with(self.counts + other.counts)

    def _with(self, counts: Array) -> Self:
        return cast(Self, replace(cast(Any, self), counts=counts))
