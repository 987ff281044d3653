"""Typicality, the p-value of a row: the probability that a class draws a row of at most its density."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.special

from likely.data.table import Table
from likely.errors import NoDensityError, listed
from likely.families.base import patterns
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.student import StudentConditionals
from likely.model.joint import JointModel
from likely.numerics.arrays import all_finite
from likely.typing import AnyArray, Array


class Typicality:
    """Typicality of rows: the maximum over the classes of P(a row drawn from the class has at most this density)."""

    def __init__(self, model: JointModel, n_samples: int, rng: np.random.Generator) -> None:
        self._model, self._draws = model, n_samples
        self._only: GaussianConditionals | StudentConditionals | None = None
        if len(model.blocks) == 1:
            parts = model.blocks[0].conditionals
            if isinstance(parts, GaussianConditionals | StudentConditionals):
                self._only = parts
        for block in model.blocks:
            if block.conditionals.given is not None:
                columns = listed([model.names[j] for j in block.index])
                raise NoDensityError(
                    f"Columns {columns}: {block.conditionals.given} has no density, so rows have no novelty score. "
                    "Use a model without these columns, or Poisson() without exposure."
                )
        self._samples = [] if self._only is not None else self._drawn(rng)
        self._known: dict[bytes, list[Array]] = {}

    def _drawn(self, rng: np.random.Generator) -> list[list[AnyArray]]:
        """Rows drawn from every class, one array for each block."""
        return [
            [block.conditionals.sample(k, self._draws, rng) for block in self._model.blocks]
            for k in range(len(self._model.classes))
        ]

    def of(self, table: Table) -> Array:
        """Probabilities, (rows,)."""
        parts = []
        for block in self._model.blocks:
            rows = block.reader(table)(0, table.rows)
            parts.append(rows.toarray() if scipy.sparse.issparse(rows) else rows)
        if self._only is not None:
            self._model.blocks[0].evaluate(parts[0], exact=True)  # for its errors
            return self._gaussian(self._only, np.asarray(parts[0], dtype=np.float64))
        return self._sampled(parts)

    @staticmethod
    def _gaussian(fitted: GaussianConditionals | StudentConditionals, rows: Array) -> Array:
        """By squared Mahalanobis distances in the observed columns: χ², or F for the Student t of a predictive."""
        parts = fitted.observed(rows)
        if parts is not None and all_finite(parts[0]):
            squared, count = parts[0], parts[2]
        else:  # singular covariances, or overflow: one pattern of missing values after another
            squared, count = np.zeros((fitted.n_classes, len(rows))), np.zeros(len(rows))
            for index, observed in patterns(rows):
                part = fitted.marginal(observed)
                count[index] = part.covariance.rank
                with np.errstate(over="ignore", divide="ignore"):
                    squared[:, index] = np.exp(part.log_squared(rows[np.ix_(index, observed)]))
        d = np.maximum(count, 1.0)
        if isinstance(fitted, StudentConditionals):
            probability = scipy.special.fdtrc(d, fitted.degrees[:, None], squared / d)
        else:
            probability = scipy.special.chdtrc(d, squared)
        return np.where(count > 0.0, probability.max(axis=0), 1.0)

    def _sampled(self, parts: list[AnyArray]) -> Array:
        """By draws from every class, for each pattern of missing values."""
        masks = [rows < 0 if self._words(i) else np.isnan(rows) for i, rows in enumerate(parts)]
        whole = np.hstack([np.asarray(mask) for mask in masks])
        found = np.zeros(len(whole))
        for index, observed in patterns(np.where(whole, np.nan, 0.0)):
            present = np.zeros(whole.shape[1], dtype=bool)
            present[observed] = True
            best = np.zeros(len(index))
            for k in range(len(self._model.classes)):
                mine = self._density([rows[index] for rows in parts], k)
                drawn = self._drawn_densities(k, present)
                # The row counts as one of the draws: the p-value is never 0, and uniform for rows of the class.
                best = np.maximum(best, (np.searchsorted(drawn, mine, side="right") + 1.0) / (len(drawn) + 1.0))
            found[index] = best if len(observed) else 1.0
        return found

    def _words(self, place: int) -> bool:
        return self._model.blocks[place].conditionals.vocabularies is not None

    def _density(self, parts: list[AnyArray], k: int) -> Array:
        total = np.zeros(len(parts[0]))
        for block, rows in zip(self._model.blocks, parts, strict=True):
            total = total + block.evaluate(rows, exact=True)[k]
        return total

    def _drawn_densities(self, k: int, present: AnyArray) -> Array:
        """Sorted log-densities of draws from a class, in the columns that are present."""
        key = present.tobytes()
        if key not in self._known:
            self._known[key] = [self._sorted(label, present) for label in range(len(self._model.classes))]
        return self._known[key][k]

    def _sorted(self, k: int, present: AnyArray) -> Array:
        parts, start = [], 0
        for i, rows in enumerate(self._samples[k]):
            mask = present[start : start + rows.shape[1]]
            start += rows.shape[1]
            parts.append(np.where(mask, rows, -1).astype(np.intp) if self._words(i) else np.where(mask, rows, np.nan))
        return np.sort(self._density(parts, k))
