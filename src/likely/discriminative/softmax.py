"""Softmax regression, logistic for two classes: the discriminative twin of the linear discriminant.

It models p(class | x) alone, by weights of features that maximise it, and knows nothing of how rows come about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.special
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import is_source
from likely.data.frames import check_columns, remember_columns, split_target, whole_frame
from likely.data.table import Table
from likely.data.validation import read_table
from likely.discriminative.design import LARGEST, DesignProfile
from likely.discriminative.log_odds import LinearAnswers, odds_of
from likely.discriminative.newton import DIRECT, Descent, Problem, half_bound, inverse, minimise
from likely.discriminative.separation import separation
from likely.errors import (
    DependentColumnsWarning,
    InputError,
    NotConvergedWarning,
    NotEstimableError,
    SeparationError,
    check_choice,
    check_number,
    listed,
    warn,
)
from likely.model.persistence import register
from likely.numerics.special import EPS, TINY
from likely.typing import AnyArray, Array

FLAT = 1e-7  # the share of its bound below which a curvature is suspicious
BENT = 1e-2  # and above which it is not
REACH = 3.0  # how far scores are moved to see whether the objective falls
SHOWN = 40  # coefficients that a rendering lists


@register
@dataclass(frozen=True, slots=True)
class Coefficient:
    """The weight of a column for a class against the reference, and how well it is known, if that was asked."""

    label: Any
    column: str
    estimate: float
    error: float | None = None
    z: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None


@register
@dataclass(frozen=True, slots=True)
class SoftmaxSummary:
    """What was fitted. `str()` renders it."""

    estimator: str
    classes: tuple[Any, ...]
    reference: Any
    penalty: float
    rows: int
    weight: float
    parameters: float | None  # effective ones where there is a penalty; None where they are not known
    log_likelihood: float
    null_log_likelihood: float
    level: float
    iterations: int
    converged: bool
    coefficients: tuple[Coefficient, ...]

    @property
    def deviance(self) -> float:
        """−2 · log-likelihood."""
        return -2.0 * self.log_likelihood

    @property
    def null_deviance(self) -> float:
        """The deviance of a model that knows the shares of the classes alone."""
        return -2.0 * self.null_log_likelihood

    @property
    def aic(self) -> float | None:
        """Akaike's information criterion."""
        return None if self.parameters is None else self.deviance + 2.0 * self.parameters

    def __str__(self) -> str:
        kind = "errors are those of maximum likelihood" if not self.penalty else "errors are posterior deviations"
        lines = [
            f"{self.estimator}, penalty={self.penalty:g}: log-odds against {self.reference!r}",
            "",
            f"{self.rows} rows, {self.iterations} iterations{'' if self.converged else ', not converged'}",
            f"deviance {self.deviance:.6g}, of the shares alone {self.null_deviance:.6g}"
            + ("" if self.aic is None else f", AIC {self.aic:.6g}"),
            "",
        ]
        told = self.coefficients[:SHOWN]
        if told and told[0].error is None:
            lines.append("class        column                     estimate")
            lines += [f"{c.label!s:<12.12} {c.column:<22.22} {c.estimate:>12.6g}" for c in told]
            lines.append("note: inference=True has standard errors")
        else:
            lines.append(
                f"class        column                     estimate        error        z        p    "
                f"{100 * self.level:g}% interval"
            )
            lines += [
                f"{c.label!s:<12.12} {c.column:<22.22} {c.estimate:>12.6g} {c.error:>12.6g} {c.z:>8.3f} {c.p:>8.2g}  "
                f"{c.low:>10.5g} to {c.high:.5g}"
                for c in told
            ]
            lines.append(f"note: {kind}")
        if len(self.coefficients) > SHOWN:
            lines.append(f"and {len(self.coefficients) - SHOWN} more")
        return "\n".join(lines)


@register
class SoftmaxRegression(LinearAnswers):
    """Softmax regression (logistic regression for two classes) on features of a row, by Newton's method.

    Parameters
    ----------
    penalty : λ, which adds λ/2·‖w‖² to the negative log-likelihood, summed over the rows: a Gaussian prior of the
        weights with variance 1/λ, scikit-learn's C = 1/λ. 0 is maximum likelihood. The intercept has none.
    basis : None, or a scikit-learn transformer that makes features of the columns: polynomials, splines, one-hot
        columns.
    fit_intercept : whether there is an intercept.
    reference : None, or a class whose weights are 0. The penalty is then on the others; where it is None, the weights
        of all classes have it, and add up to 0 (with two classes, those of the second have it).
    estimation : "map", which plugs in the best weights, or "bayes", which integrates them over their posterior, by
        Laplace's approximation.
    inference : whether standard errors are computed, which takes another pass; None for where that is quick.
    tol : a descent ends where a step promises less than so much of the objective for each unit of the rows' weight.
    max_iter : the largest number of steps.
    """

    def __init__(
        self,
        penalty: float = 1.0,
        basis: Any = None,
        fit_intercept: bool = True,
        reference: Any = None,
        estimation: str = "map",
        inference: bool | None = None,
        tol: float = 1e-12,
        max_iter: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.reference = reference
        self.estimation = estimation
        self.inference = inference
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags

    def _check_options(self) -> None:
        if self.estimation == "mle":
            raise InputError("estimation='mle' is written penalty=0 here.")
        check_choice("estimation", self.estimation, ("map", "bayes"))
        check_number("max_iter", self.max_iter, 1, whole=True)
        for name in ("penalty", "tol"):
            check_number(name, getattr(self, name), 0.0)
        for name, known in (("fit_intercept", (True, False)), ("inference", (True, False, None))):
            if not any(getattr(self, name) is word for word in known):
                raise InputError(f"{name}={getattr(self, name)!r} must be one of {listed(known)}.")
        made = not isinstance(self.basis, type) and hasattr(self.basis, "fit") and hasattr(self.basis, "transform")
        if self.basis is not None and not made:
            raise InputError(f"basis={self.basis!r} is no transformer: it needs fit and transform.")

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn weights from rows X with labels y, or with shares of the classes, (rows, classes), that add up to 1.

        X is an array, sparse rows or a frame; where it is a frame, y may be the name of its target column. Rows that
        memory cannot hold are an object with a method `chunks`. Weights count rows.
        """
        self._check_options()
        X, y = (X, y) if is_source(X) else split_target(whole_frame(X), y)
        phi, basis = self._features(X, y)
        look = DesignProfile.at(
            phi, y, sample_weight, lambda rows, start: _table(rows, basis, start), type(self).__name__
        )
        precision = class_precision(look.classes, self.reference)
        design, sums = look.design(bool(self.fit_intercept), only_independent=not self.penalty)
        if not design.size:
            raise InputError("No column varies, and there is no intercept: nothing is left to learn a weight of.")
        penalty = np.zeros(design.size)
        if self.penalty:
            with np.errstate(over="ignore"):
                weights = self.penalty / design.coordinates.unit / design.coordinates.unit
            penalty[: design.width] = np.minimum(weights, 1e300)
        problem = Problem(design, sums, precision, penalty)
        found = minimise(problem, look.total, self.tol, self.max_iter)
        hessian = self._hessian(problem, found)
        if not self.penalty:
            refuse_separation(problem, found, hessian, look.names, look.classes.tolist(), look.total)
        spread = None
        if hessian is not None and self._wants_errors(problem):
            try:
                spread = inverse(hessian)
            except NotEstimableError:
                if self.inference or self.estimation == "bayes":
                    raise  # else nobody has asked for errors
        remember_columns(self, look.first if is_source(X) else X)
        self.classes_, self.basis_ = look.classes, basis
        self.odds_ = odds_of(design, len(look.names), found.B, spread)
        self.fit_ = _fitted(problem, found, look, spread)
        self.n_iter_, self.converged_ = found.steps, found.converged
        if not found.converged:
            warn(
                f"Softmax regression has not come to rest after {found.steps} steps. Hint: a larger max_iter, or a "
                "penalty where there is none.",
                NotConvergedWarning,
            )
        if design.columns is not None:
            lost = [name for j, name in enumerate(look.names) if j not in design.columns.tolist()]
            warn(
                f"Column {listed(lost)}: constant, or a linear combination of earlier columns. Without a penalty such "
                "columns have weights of 0.",
                DependentColumnsWarning,
            )
        return self

    def _features(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Features, and the transformer that has made them, if any."""
        if self.basis is None:
            return X, None
        if is_source(X):
            raise InputError("X comes in chunks, and basis needs all rows at once. Hint: transform the chunks.")
        basis = clone(self.basis)
        return basis.fit_transform(X, y), basis

    def _wants_errors(self, problem: Problem) -> bool:
        quick = problem.design.rows * float(problem.parameters) ** 2 <= DIRECT
        return self.estimation == "bayes" or (quick if self.inference is None else bool(self.inference))

    def _hessian(self, problem: Problem, found: Descent) -> Array | None:
        """The Hessian at the end of a descent, where somebody wants it."""
        wanted = self._wants_errors(problem)
        if problem.parameters > LARGEST:
            if wanted:
                raise InputError(
                    f"There are {problem.parameters} weights, and standard errors are computed for at most {LARGEST}. "
                    "Hint: inference=False, estimation='map'."
                )
            return None
        return problem.hessian(found.B) if wanted or not self.penalty else None

    # -- answers

    def _read(self, X: Any, start: int = 0) -> Table:
        if self.basis_ is not None:
            check_columns(self, X)
            return _table(self.basis_.transform(X), self.basis_, start)
        table = _table(X, None, start)
        check_columns(self, X)
        return table

    def _log_odds(self, rows: Any) -> Array:
        return self.odds_.predictive(rows) if self.estimation == "bayes" else self.odds_.scores(rows)

    def _common(self, values: Array) -> Array:
        if self.reference is None:
            return super()._common(values)
        return np.asarray(values[self.classes_.tolist().index(self.reference)])

    def summary(self, level: float = 0.95) -> SoftmaxSummary:
        """What was fitted, as plain data; ``print(model.summary())`` shows it.

        Coefficients are log-odds against the reference class, the first where none was named, with standard errors from
        the Hessian, z, two-sided p-values and intervals of this level. Where there is a penalty, errors are deviations
        of the posterior, and the number of parameters is the effective one.
        """
        check_is_fitted(self)
        if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
            raise InputError(f"level={level!r} must lie between 0 and 1.")
        names = self._feature_names()
        labels = self.classes_.tolist()
        place = 0 if self.reference is None else labels.index(self.reference)
        linear, constant = self.odds_.in_user_units()
        linear, constant = linear - linear[place], constant - constant[place]
        errors = self.odds_.errors(place)
        reach = float(scipy.special.ndtri(0.5 + 0.5 * level))
        told = []
        for k in (k for k in range(len(labels)) if k != place):
            columns = [*zip(names, linear[k].tolist(), strict=True)]
            if self.fit_intercept:
                columns.insert(0, ("(intercept)", float(constant[k])))
            for j, (name, estimate) in enumerate(columns):
                error = None if errors is None else float(errors[k, j - 1 if self.fit_intercept else j])
                told.append(_coefficient(labels[k], name, estimate, error, reach))
        return SoftmaxSummary(
            type(self).__name__,
            tuple(labels),
            labels[place],
            float(self.penalty),
            self.fit_.rows,
            self.fit_.weight,
            self.fit_.parameters,
            self.fit_.log_likelihood,
            self.fit_.null_log_likelihood,
            level,
            self.n_iter_,
            self.converged_,
            tuple(told),
        )

    def _feature_names(self) -> list[str]:
        if self.basis_ is not None and hasattr(self.basis_, "get_feature_names_out"):
            return [str(name) for name in self.basis_.get_feature_names_out()]
        if self.basis_ is None and hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.odds_.linear.shape[1])]

    def _content(self) -> dict[str, Any]:
        if self.basis_ is not None:
            raise InputError(
                f"basis={self.basis!r} is a transformer, which a model file cannot hold. Hint: transform the rows "
                "first, and save a model of the features."
            )
        return super()._content() | {"fit_": self.fit_}

    def _restore(self, content: dict[str, Any]) -> Self:
        if not isinstance(content["fit_"], Fitted):
            raise TypeError("a record of the fit is needed")
        self.fit_, self.basis_ = content["fit_"], None
        return super()._restore(content)


@register
@dataclass(frozen=True, slots=True)
class Fitted:
    """How well a model fits the rows it was learnt from."""

    rows: int
    weight: float
    parameters: float | None
    log_likelihood: float
    null_log_likelihood: float


def class_precision(classes: AnyArray, reference: Any) -> Array:
    """C of the penalty: what it is in terms of differences from the first class."""
    known, few = classes.tolist(), len(classes) - 1
    if reference is None and few > 1:
        return 2.0 * half_bound(few)  # weights that add up to 0 have the least squares
    if reference is not None and reference not in known:
        raise InputError(f"reference={reference!r} is not among the classes {listed(known)}.")
    free = np.delete(np.eye(few + 1), 0 if reference is None else known.index(reference), axis=1)
    turn = free[1:] - free[:1]
    return np.asarray(np.linalg.inv(turn @ turn.T))


def _table(rows: Any, basis: Any, start: int) -> Table:
    """Features as a table, under the names that a transformer gives them."""
    table = read_table(rows, start)
    if hasattr(basis, "get_feature_names_out"):
        names = [str(name) for name in basis.get_feature_names_out()]
        table.names = names if len(names) == table.width else table.names
    return table


def refuse_separation(
    problem: Problem, found: Descent, hessian: Array | None, names: Sequence[str], labels: list[Any], weight: float
) -> None:
    """Raise where a direction separates classes. The linear programme is asked only where the Hessian is suspicious."""
    design = problem.design
    if hessian is None:
        return
    gram = design.gram()
    if found.converged and not _is_flat(problem, found, hessian, gram):
        return
    line = np.sqrt(np.diagonal(gram))
    lost = separation(design, problem.sums, line / np.sqrt(weight))
    if lost is None:
        return
    kept = [*names] if design.columns is None else [names[j] for j in design.columns.tolist()]
    scaled = np.abs(lost[:, : design.width]) * line[: design.width]
    used = scaled > 1e-6 * scaled.max(initial=0.0)
    direction = {
        label: {kept[j]: float(lost[k, j]) for j in np.flatnonzero(used[k])}
        for k, label in enumerate(labels[1:])
        if used[k].any()
    }
    columns = [name for name, on in zip(kept, used.any(axis=0), strict=True) if on]
    where = f"Column {listed(columns)}" if columns else "The intercept"
    raise SeparationError(
        f"{where}: separates classes, but for rows on the boundary between them if there are any, so that the "
        "likelihood rises for ever with the weights, and has no maximum. Hint: a penalty above 0, or fewer columns; "
        "the error's `direction` has the weights.",
        direction,
    )


def _is_flat(problem: Problem, found: Descent, hessian: Array, gram: Array) -> bool:
    """Whether the objective may fall for ever along the direction in which it bends least, beside its bound."""
    few, size = found.B.shape
    bound = np.kron(half_bound(few), gram)
    try:
        matrix = hessian.reshape(few * size, few * size)
        least, way = scipy.linalg.eigh(matrix, bound, subset_by_index=[0, 0])
    except np.linalg.LinAlgError:
        return True
    if least[0] > BENT:
        return False
    if least[0] <= FLAT:
        return True
    step = way[:, 0].reshape(few, size)
    step *= REACH / max(float(np.abs(_scores(problem, step)).max()), TINY)
    value, slack = found.value, 64.0 * EPS * abs(found.value)
    return any(problem.slope(found.B + sign * step)[0] <= value + slack for sign in (1.0, -1.0))


def _scores(problem: Problem, B: Array) -> Array:
    """The largest score of each block of rows."""
    design = problem.design
    tops = design.over_blocks(lambda rows, _, __: np.abs(design.scores(rows, B)).max(initial=0.0), design.size)
    return np.array(tops)


def _fitted(problem: Problem, found: Descent, look: DesignProfile, spread: Array | None) -> Fitted:
    """How well the model fits."""
    pull = problem.precision @ (found.B * problem.penalty)
    shares = look.weight / look.total
    null = float(scipy.special.xlogy(look.weight, shares).sum())
    if not problem.design.intercept:
        null = -look.total * float(np.log(len(look.classes)))
    parameters: float | None = float(problem.parameters)
    if problem.penalty.any():
        parameters = None
        if spread is not None:
            prior = problem.precision[:, None, :, None] * np.diag(problem.penalty)[None, :, None, :]
            parameters = problem.parameters - float((spread * prior).sum())
    value = found.value - 0.5 * float((found.B * pull).sum())
    return Fitted(look.rows, look.total, parameters, -value, null)


def _coefficient(label: Any, column: str, estimate: float, error: float | None, reach: float) -> Coefficient:
    if error is None:
        return Coefficient(label, column, estimate)
    z = estimate / error if error > 0.0 else 0.0
    p = 2.0 * float(scipy.special.ndtr(-abs(z)))
    return Coefficient(label, column, estimate, error, z, p, estimate - reach * error, estimate + reach * error)
