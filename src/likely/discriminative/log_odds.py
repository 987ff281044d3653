"""Log-odds that are linear in the features of a row, and their standard errors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse

from likely.discriminative.design import Design, missing_value_error
from likely.errors import MissingCellError
from likely.functions import moderated
from likely.model.persistence import register
from likely.numerics.arrays import all_finite, check_finite, float_rows
from likely.numerics.coordinates import Coordinates
from likely.numerics.expressions import (
    Cell,
    Expression,
    bounded_cells,
    constant,
    exp,
    linear,
    log1p,
    log_sum_exp,
    square,
    total,
)
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array


def log_odds_of(design: Design, width: int, B: Array, inverse: Array | None) -> LogOdds:
    """Log-odds as a function of all columns; columns that the design does not use have coefficients of 0.

    `inverse` is the inverse Hessian, which is the covariance matrix of the coefficients, if it is known.
    """
    few, kept = len(B), np.arange(design.width) if design.columns is None else design.columns
    linear, origin = np.zeros((few, width)), np.zeros(width)
    linear[:, kept] = B[:, : design.width]
    if design.origin is not None:
        origin[kept] = design.origin
    units = Coordinates.plain(width)
    if not design.coordinates.trivial:
        units.origin[kept], units.unit[kept] = design.coordinates.origin, design.coordinates.unit
        units = Coordinates.make(units.origin, units.unit)
    covariance = None
    if inverse is not None:
        place = np.append(kept, width) if design.intercept else kept
        covariance = np.zeros((few, width + 1, few, width + 1))
        covariance[:, place[:, None, None], np.arange(few)[:, None], place] = inverse
    return LogOdds(linear, B[:, -1].copy() if design.intercept else np.zeros(few), origin, units, covariance)


@register
@dataclass(frozen=True, slots=True, eq=False)
class LogOdds:
    """log p(class | x) − log p(first class | x) = linear·z + constant, z = x in local coordinates minus the origin.

    `linear` is (classes − 1, d) and `constant` (classes − 1,). `covariance` is the covariance matrix of the
    coefficients, if known, with the constant of a class after its linear coefficients: (classes − 1, d + 1,
    classes − 1, d + 1).
    """

    linear: Annotated[Array, Shape("classes-1 d")]
    constant: Annotated[Array, Shape("classes-1")]
    origin: Annotated[Array, Shape("d")]
    coordinates: Annotated[Coordinates, Shape("d")]
    covariance: Annotated[Array | None, Shape("classes-1 d+1 classes-1 d+1")] = None

    def local(self, rows: Any) -> Any:
        """z, dense."""
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        return float_rows(self.coordinates.to_limited(rows), self.origin if self.origin.any() else None)

    def scores(self, rows: Any) -> Array:
        """Log-odds of all classes against the first, (classes, n)."""
        out = np.zeros((len(self.linear) + 1, rows.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):
            if scipy.sparse.issparse(rows):
                linear, constant = self.in_user_units()
                out[...] = (rows @ linear.T).T + constant[:, None]
            else:
                np.matmul(self.linear, self.local(rows).T, out=out[1:])
                out[1:] += self.constant[:, None]
        if not all_finite(out):
            try:
                check_finite(rows.toarray() if scipy.sparse.issparse(rows) else rows)
            except MissingCellError as error:
                raise missing_value_error(error.row, error.column, error.value) from None
        return out

    def informative(self, averaged: bool) -> AnyArray:
        """Which columns change the log-odds, (d,), or their means over the posterior of the coefficients."""
        found = self.linear.any(axis=0)
        if averaged and self.covariance is not None:
            found |= self.covariance[:, :-1].any(axis=(0, 2, 3))
        return np.asarray(found)

    def expressions(self, values: Sequence[Expression]) -> list[Expression]:
        """The same as expressions of the values of a row."""
        odds = zip(self.linear.tolist(), self.constant.tolist(), strict=True)
        return [constant(0.0), *(linear(weights, self._centred(values), offset) for weights, offset in odds)]

    def _centred(self, values: Sequence[Expression]) -> list[Expression]:
        """z, as expressions."""
        unit = self.coordinates.unit
        centre = self.coordinates.origin + self.origin * unit
        cells = bounded_cells([Cell(x, None) for x in values], centre, unit)
        return [(cell.value - c) / u for cell, c, u in zip(cells, centre.tolist(), unit.tolist(), strict=True)]

    def predictive_expressions(self, values: Sequence[Expression]) -> list[Expression]:
        """`predictive` as expressions: variances zᵀ·C·z are sums of squares along the eigenvectors of C.

        The eigenvectors are those of the correlations: columns may have very different units.
        """
        few = len(self.linear)
        scores, full = self.expressions(values), self._centred(values)
        odds: dict[tuple[int, int], Expression] = {}
        for k in range(1, few + 1):
            for j in range(k):
                matrix = self._contrast(k, j)
                scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
                inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
                lengths, ways = np.linalg.eigh(inverse[:, None] * (matrix + matrix.T) / 2.0 * inverse)
                roots = (ways * np.sqrt(np.maximum(lengths, 0.0))).T * scale
                variance = total([square(linear(root[:-1], full, root[-1])) for root in roots.tolist() if any(root)])
                odds[k, j] = (scores[k] - scores[j]) * exp(-0.5 * log1p((np.pi / 8.0) * variance))
        found = []
        for k in range(few + 1):
            against = [-odds[k, j] if j < k else odds[j, k] for j in range(few + 1) if j != k]
            found.append(-log_sum_exp([constant(0.0), *against]))
        return found

    def predictive(self, rows: Any) -> Array:
        """log p(class | x), (classes, n), up to a constant, with coefficients integrated over their posterior.

        By Laplace's approximation the log-odds of two classes are normal, and the sigmoid of the moderated log-odds
        approximates their mean. For several classes, with m the means and v the variances of their differences,
        p_k ∝ 1 / (1 + Σ_j≠k exp(−moderated(m_kj, v_kj))).
        """
        scores, z = self.scores(rows), self.local(rows)
        full = np.concatenate([z, np.ones((len(z), 1))], axis=1)
        odds = moderated(scores[:, None] - scores[None], self._difference_variances(full))
        # the sum over all classes includes exp(0) = 1 of the class itself
        return -np.asarray(np.logaddexp.reduce(-odds, axis=1))

    def _difference_variances(self, full: Array) -> Array:
        """Variances of the differences between the log-odds of all pairs of classes, (classes, classes, n)."""
        classes = len(self.linear) + 1
        found = np.zeros((classes, classes, len(full)))
        for k, j in itertools.combinations(range(classes), 2):
            found[k, j] = found[j, k] = np.einsum("nd,nd->n", full @ self._contrast(k, j), full)
        return np.maximum(found, 0.0)

    def _contrast(self, k: int, j: int) -> Array:
        """The covariance matrix of the coefficients of class k minus those of class j, (d + 1, d + 1)."""
        assert self.covariance is not None
        found = np.zeros((self.covariance.shape[1], self.covariance.shape[3]))
        signed = [(i - 1, sign) for i, sign in ((k, 1.0), (j, -1.0)) if i]  # those of the first class are 0
        for (row, left), (column, right) in itertools.product(signed, repeat=2):
            found += left * right * self.covariance[row, :, column, :]
        return found

    def standard_errors(self, reference: int) -> Array | None:
        """Standard errors of coefficients and intercepts against a class, (classes, d + 1), if known."""
        if self.covariance is None:
            return None
        classes, size = len(self.linear) + 1, self.covariance.shape[1]
        centre = self.coordinates.origin / self.coordinates.unit + self.origin
        to_zero = np.eye(size)  # moves the intercept from the origin of z to x = 0
        to_zero[-1, :-1] = -centre
        out = np.zeros((classes, size))
        for k in range(classes):
            variances = np.einsum("id,de,ie->i", to_zero, self._contrast(k, reference), to_zero)
            out[k] = np.sqrt(np.maximum(variances, 0.0))
        out[:, :-1] /= self.coordinates.unit
        return out

    def explain(self, rows: Any) -> tuple[Array, Array]:
        """Contributions of the columns to the log-odds, (n, classes, d), and the offset (classes,)."""
        z = self.local(rows)
        linear = np.concatenate([np.zeros((1, self.linear.shape[1])), self.linear])
        return z[:, None, :] * linear, np.append(0.0, self.constant)

    def in_user_units(self) -> tuple[Array, Array]:
        """Coefficients (classes, d) and intercepts (classes,) of all classes against the first, in the units of X."""
        unit = self.coordinates.unit
        centre = self.coordinates.origin / unit + self.origin
        with np.errstate(over="ignore", invalid="ignore"):
            constant = self.constant - self.linear @ centre
            linear = self.linear / unit
        return np.concatenate([np.zeros((1, linear.shape[1])), linear]), np.append(0.0, constant)
