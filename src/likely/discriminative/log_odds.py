"""Log-odds that are linear in features of a row, and what follows from them: posteriors, reasons, decisions."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Tables, targets_apart
from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.discriminative.design import Design, missing_cell
from likely.errors import CellError, MissingCellError
from likely.functions import moderated
from likely.model import persistence
from likely.model.decision import Decisions, decide
from likely.model.joint import Explanation
from likely.model.persistence import register
from likely.numerics.arrays import all_finite, check_finite, float_rows
from likely.numerics.coordinates import Coordinates
from likely.numerics.special import log_softmax_into, softmax_into
from likely.typing import AnyArray, Array

KEPT = ("classes_", "odds_", "n_iter_", "converged_", "n_features_in_", "feature_names_in_")


def odds_of(design: Design, width: int, B: Array, inverse: Array | None) -> LogOdds:
    """Log-odds of all columns by weights of those that a design reads; the others have weights of 0."""
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

    `linear` is (classes − 1, d) and `constant` (classes − 1,). `covariance`, where it is known, is that of all these
    numbers, those of a class one after another with the constant last: (classes − 1, d + 1, classes − 1, d + 1).
    """

    linear: Array
    constant: Array
    origin: Array
    coordinates: Coordinates
    covariance: Array | None = None

    def local(self, rows: Any) -> Any:
        """z, written out."""
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        with np.errstate(over="ignore", invalid="ignore"):
            return float_rows(self.coordinates.to_local(rows), self.origin if self.origin.any() else None)

    def scores(self, rows: Any) -> Array:
        """Log-odds of all classes, (classes, n), 0 for the first."""
        out = np.zeros((len(self.linear) + 1, rows.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):
            if scipy.sparse.issparse(rows):
                linear, constant = self.in_user_units()
                out[...] = (rows @ linear.T).T + constant[:, None]
            else:
                np.matmul(self.linear, self.local(rows).T, out=out[1:])
                out[1:] += self.constant[:, None]
        if not all_finite(out):
            _refuse(rows)
        return out

    def predictive(self, rows: Any) -> Array:
        """log p(class | x), (classes, n), up to a common term, the weights integrated over their posterior.

        The log-odds of two classes are normal, and the sigmoid of the moderated ones is nearly the mean. Of several
        classes, with m the means and v the variances of their differences, p_k ∝ 1 / (1 + Σ_j≠k exp(−moderated(m_kj,
        v_kj))).
        """
        assert self.covariance is not None
        scores, z = self.scores(rows), self.local(rows)
        full = np.concatenate([z, np.ones((len(z), 1))], axis=1)
        size = np.maximum(np.abs(full).max(axis=1, initial=1.0), 1.0)  # squares of far rows overflow
        far = size > 1e100
        size = np.where(far, size, 1.0)
        full /= size[:, None]
        few = len(self.linear)
        spread = np.zeros((few + 1, few + 1, len(z)))
        for j in range(few):
            for i in range(j + 1):
                both = np.einsum("nd,nd->n", full @ self.covariance[j, :, i, :], full)
                spread[j + 1, i + 1] = spread[i + 1, j + 1] = both
        own = np.einsum("kkn->kn", spread)
        variance = np.maximum(own[:, None] + own[None] - 2.0 * spread, 0.0)
        apart = scores[:, None] - scores[None]
        odds = moderated(apart, variance)
        if far.any():  # where variances are without end, only their ratio to the squared scores is left
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = apart[:, :, far] / size[far] / np.sqrt(np.pi / 8.0 * variance[:, :, far])
            odds[:, :, far] = np.where(variance[:, :, far] > 0.0, limit, apart[:, :, far])
        # 1 + Σ over the others: the class itself has exp(0)
        return -np.asarray(np.logaddexp.reduce(-odds, axis=1))

    def errors(self, reference: int) -> Array | None:
        """Standard errors of weights and intercepts against a class, (classes, d + 1), where they are known."""
        if self.covariance is None:
            return None
        few, size = self.covariance.shape[:2]
        centre = self.coordinates.origin / self.coordinates.unit + self.origin
        turn = np.eye(size)  # the intercept is where x is 0, not at the origin
        turn[-1, :-1] = -centre
        out = np.zeros((few + 1, size))
        for k in range(few + 1):
            signs = np.zeros(few)
            if k:
                signs[k - 1] += 1.0
            if reference:
                signs[reference - 1] -= 1.0
            both = np.einsum("j,jdle,l->de", signs, self.covariance, signs)
            out[k] = np.sqrt(np.maximum(np.einsum("id,de,ie->i", turn, both, turn), 0.0))
        out[:, :-1] /= self.coordinates.unit
        return out

    def explain(self, rows: Any) -> tuple[Array, Array]:
        """Terms (n, classes, d) of the log-odds, and the offset (classes,)."""
        z = self.local(rows)
        linear = np.concatenate([np.zeros((1, self.linear.shape[1])), self.linear])
        return z[:, None, :] * linear, np.append(0.0, self.constant)

    def in_user_units(self) -> tuple[Array, Array]:
        """Weights and intercepts of all classes, relative to the first: (classes, d) and (classes,)."""
        unit = self.coordinates.unit
        centre = self.coordinates.origin / unit + self.origin
        with np.errstate(over="ignore", invalid="ignore"):
            constant = self.constant - self.linear @ centre
            linear = self.linear / unit
        return np.concatenate([np.zeros((1, linear.shape[1])), linear]), np.append(0.0, constant)


def _refuse(rows: Any) -> None:
    """Raise for the cell that has made scores infinite or NaN."""
    try:
        check_finite(rows.toarray() if scipy.sparse.issparse(rows) else rows)
    except MissingCellError as error:
        raise missing_cell(error.row, error.column, error.value) from None
    row = int(np.argmax(np.abs(rows).max(axis=1)))
    column = int(np.argmax(np.abs(rows[row])))
    raise CellError(row, column, rows[row, column], "is too far from the rows that were learnt", "cap such values")


class LinearAnswers(ClassifierMixin, BaseEstimator):
    """Everything that follows from p(class | x) alone, where log-odds are linear in features."""

    classes_: AnyArray
    odds_: LogOdds

    @abstractmethod
    def _read(self, X: Any, start: int = 0) -> Table:
        """The features of rows that are asked about."""

    def _log_odds(self, rows: Any) -> Array:
        return self.odds_.scores(rows)

    def _ask(self, X: Any, write: Callable[[Array, Array], None], width: int | None = None) -> Array:
        """Answers that `write` writes for each row block, from its scores (classes, n): (rows, classes), or as wide."""
        check_is_fitted(self)
        wide = len(self.classes_) if width is None else width
        return np.concatenate([self._ask_table(table, wide, write) for table in Tables(X, self._read)])

    def _ask_table(self, table: Table, width: int, write: Callable[[Array, Array], None]) -> Array:
        out = np.empty((table.rows, width))
        read = table.numbers(None, sparse=True)

        def work(start: int, stop: int) -> None:
            write(self._log_odds(read(start, stop)), out[start:stop])

        evaluate(table, work, table.width + 3 * len(self.classes_) if not table.is_sparse else 4 * table.stored_per_row)
        return out

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (rows, classes)."""
        return self._ask(X, softmax_into)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (rows, classes)."""
        return self._ask(X, log_softmax_into)

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""

        def write(scores: Array, out: Array) -> None:
            out[:, 0] = scores.argmax(axis=0)

        codes = self._ask(X, write, 1)[:, 0].astype(np.intp)
        return np.asarray(self.classes_[codes])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted; y is the labels, or the name of the column of X that has them."""
        return float(super().score(*targets_apart(X, y), sample_weight))

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class where there are two, (rows,); else scores of all classes.

        They are ``X @ coef_.T + intercept_``, but where weights are integrated over their posterior.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self._ask(X, lambda scores, out: np.copyto(out[:, 0], scores[1] - scores[0]), 1)[:, 0]

        def write(scores: Array, out: Array) -> None:
            out[...] = (scores - self._common(scores)).T

        return self._ask(X, write)

    def _common(self, values: Array) -> Array:
        """What is taken from the weights, or scores, of all classes, which only their differences determine."""
        return np.asarray(values.mean(axis=0))

    @property
    def coef_(self) -> Array:
        """Weights of the columns, (classes, columns), or (1, columns) of the second class where there are two."""
        return self._described()[0]

    @property
    def intercept_(self) -> Array:
        """Intercepts, (classes,), or (1,) of the second class where there are two."""
        return self._described()[1]

    def _described(self) -> tuple[Array, Array]:
        check_is_fitted(self)
        linear, constant = self.odds_.in_user_units()
        if len(linear) == 2:
            return linear[1:], constant[1:]
        return linear - self._common(linear), constant - self._common(constant)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a file, which `likely.load` reads."""
        check_is_fitted(self)
        persistence.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        """What a file holds of the model."""
        content = {"version": version("likely"), "estimator": self}
        return content | {name: getattr(self, name) for name in KEPT if hasattr(self, name)}

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        if not isinstance(content["odds_"], LogOdds):
            raise TypeError("log-odds are needed")
        for name in KEPT:
            if name in content:
                setattr(self, name, content[name])
        return self

    def decide(self, X: Any, loss: Any = None, reject: float | None = None) -> Decisions:
        """The action of least expected loss for each row, or rejection: see `GenerativeClassifier.decide`."""
        return decide(self.predict_proba(X), self.classes_, loss, reject)

    def explain(self, X: Any) -> Explanation:
        """What each column adds to the log-odds of each class, about the middle of the rows that were learnt.

        offset + evidence summed over the columns are log p(class | x), up to a term that all classes share. The terms
        of a column are relative to the mean of the classes.
        """
        check_is_fitted(self)
        parts, offsets = [], []
        names: tuple[str, ...] = ()
        for table in Tables(X, self._read):
            read = table.numbers(None, sparse=True)
            rows = read(0, table.rows)
            self.odds_.scores(rows)  # refuses what is not finite
            terms, offset = self.odds_.explain(rows)
            parts.append(terms - terms.mean(axis=1, keepdims=True))
            offsets.append(np.tile(offset - offset.mean(), (table.rows, 1)))
            names = tuple(table.names)
        return Explanation(np.concatenate(parts), np.concatenate(offsets), names)
