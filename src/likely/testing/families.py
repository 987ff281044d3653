"""The laws of families of independent columns, run on one family: densities, statistics, updates, samples, exports."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from likely.errors import ExportError, FamilyLawError, InputError
from likely.estimators.base import load
from likely.estimators.classifiers import NaiveBayes
from likely.families.base import Columns, ExponentialConditionals
from likely.families.column_family import ColumnFamily
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, check_parts
from likely.families.natural import NaturalColumns
from likely.families.supports import Support
from likely.typing import AnyArray, Array

NAMES = ("x0", "x1")
CLASSES = np.array(["a", "b", "c"])
ROWS = 60
DRAWS = 20_000
MANY_VALUES = 20_000  # whole numbers that a density is summed over


def check_family(
    family: ColumnFamily,
    X: Any = None,
    y: Any = None,
    estimations: Sequence[str] = ("mle", "map", "bayes"),
) -> list[str]:
    """Check the laws that a family of independent columns must keep.

    These are: forms of `collected`, `estimate`, `natural` and `statistics`; densities that sum or integrate to one;
    statistics of parts that add up to those of all rows; whole weights as repeated rows; missing values that contribute
    nothing; leave-one-out densities as those of a second estimate; explanations that add up; the natural form; samples
    with the expectations of the density; files; and exported statements.

    Parameters
    ----------
    family : ColumnFamily
        The family with its options.
    X : array-like of shape (n_samples, n_columns), default=None
        Rows with values of the support. None draws values from the support.
    y : array-like of shape (n_samples,), default=None
        Class labels of the rows of X.
    estimations : sequence of str, default=('mle', 'map', 'bayes')
        The estimations that the family supports.

    Returns
    -------
    list of str
        The laws that were not checked, with the reason, such as a family without expressions.

    Raises
    ------
    FamilyLawError
        For the first law that the family breaks.

    Examples
    --------
    >>> from likely import Poisson
    >>> from likely.testing import check_family
    >>> check_family(Poisson())
    []
    """
    if not isinstance(family, ColumnFamily):
        raise InputError(f"family={family!r} is not a ColumnFamily: its columns are not independent single values.")
    if not isinstance(getattr(family, "support", None), Support):
        raise FamilyLawError(f"{type(family).__name__}.support is not a Support.")
    rows, labels = _drawn(family.support) if X is None else (np.asarray(X, dtype=np.float64), np.asarray(y))
    skipped: dict[str, None] = {}
    for estimation in estimations:
        skipped |= dict.fromkeys(_Laws(family, rows, labels, Estimation.of(estimation)).check())
    return list(skipped)


def _drawn(support: Support) -> tuple[Array, AnyArray]:
    """Rows of three classes with values of a support."""
    rng = np.random.default_rng(0)
    codes = np.arange(ROWS) % 3
    shape = (ROWS, len(NAMES))
    scale = (1.0 + codes)[:, None]
    pools = (
        rng.poisson(2.0 * scale, shape).astype(np.float64),
        scale * rng.gamma(2.0, 1.0, shape),
        rng.normal(scale, 1.0, shape),
        rng.beta(scale, 3.0, shape),
        (rng.random(shape) < 0.2 * scale).astype(np.float64),
    )
    order = pools if support.whole else (pools[2], pools[1], pools[3], pools[0], pools[4])
    for pool in order:
        if support.inside(pool).all():
            return pool, CLASSES[codes]
    raise InputError(f"No values of the support ({support.words}) are known. Pass X and y.")


class _Laws:
    """The laws of a family under one estimation."""

    def __init__(self, family: ColumnFamily, X: Array, y: AnyArray, estimation: Estimation) -> None:
        self.family, self.X, self.estimation = family, X, estimation
        self.classes, self.codes = np.unique(y, return_inverse=True)
        self.names = tuple(f"x{j}" for j in range(X.shape[1]))
        self.title = f"{type(family).__name__}, estimation={str(estimation)!r}"

    def check(self) -> list[str]:
        self.family.check(self.estimation)
        self._forms()
        self.statistics = self._sum(self.X, self.codes)
        self.fitted = self._estimate(self.statistics)
        self._density_forms()
        found: list[str] = []
        laws: tuple[Callable[[], str | None], ...] = (
            *(self._natural_form, self._total, self._additive, self._repeats, self._missing),
            *(self._explained, self._left_out, self._sampled, self._saved, self._exported),
        )
        for law in laws:
            note = law()
            found += [note] if note else []
        return found

    # -- helpers

    def _sum(self, X: Array, codes: AnyArray, weights: Array | None = None) -> Any:
        builder = self.family._accumulator(self.classes, Columns(self.names))
        builder.add(X, codes, weights)
        return builder.finish()

    def _estimate(self, statistics: Any) -> Any:
        return self.family.estimate(statistics, self.estimation, self.names)

    def _fail(self, law: str, detail: str) -> FamilyLawError:
        return FamilyLawError(f"{self.title}: {law}: {detail}")

    def _same(self, law: str, actual: Any, expected: Any, tolerance: float = 1e-8) -> None:
        actual, expected = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        if actual.shape != expected.shape:
            raise self._fail(law, f"the shape is {actual.shape} instead of {expected.shape}.")
        with np.errstate(invalid="ignore"):
            error = np.where(actual == expected, 0.0, np.abs(actual - expected) / (1.0 + np.abs(expected)))
        if not np.all(error <= tolerance):
            place = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
            raise self._fail(
                law,
                f"{actual[place]!r} instead of {expected[place]!r}, a relative difference of {error[place]:.2g}, at "
                f"index {tuple(map(int, place))}.",
            )

    # -- laws

    def _forms(self) -> None:
        """`collected` returns a tuple of arrays of the shape of x."""
        _check_tuple(self.title, "collected(x)", self.family.collected(self.X), self.X.shape)

    def _density_forms(self) -> None:
        """`estimate` returns densities of all classes and columns, whose methods have the right shapes."""
        fitted, shape = self.fitted, (len(self.classes), len(self.names))
        if not isinstance(fitted, IndependentColumns):
            raise self._fail("estimate", f"returns {type(fitted).__name__}, which is not an IndependentColumns.")
        for name in ("informative", "constant_value"):
            value = np.asarray(getattr(fitted, name))
            if value.shape != shape[1:]:
                raise self._fail("estimate", f"{name} has the shape {value.shape} instead of {shape[1:]}.")
        if np.asarray(fitted.informative).dtype != bool:
            raise self._fail("estimate", "informative has no truth values: use varies(statistics).")
        if isinstance(fitted, NaturalColumns):
            natural = fitted.natural()
            if not isinstance(natural, tuple) or len(natural) != 2:
                raise self._fail(
                    "natural()", "must return a tuple: natural parameters, and the log-partition function."
                )
            theta, partition = natural
            _check_tuple(self.title, "natural()[0]", theta, shape)
            _check_tuple(self.title, "natural()[1]", (partition,), shape)
            parts = fitted.statistics(self.X)
            _check_tuple(self.title, "statistics(x)", parts, self.X.shape)
            if len(parts) != len(theta):
                raise self._fail(
                    "statistics(x)", f"returns {len(parts)} arrays, and natural() {len(theta)} parameters."
                )
        density = fitted.log_density(self.X)
        if density.shape != (shape[0], len(self.X)) or np.isnan(density).any():
            raise self._fail("log_density", f"has the shape {density.shape}, or is NaN for values of the support.")
        drawn = np.asarray(fitted.draw(0, 3, np.random.default_rng(0)))
        if drawn.shape != (3, shape[1]):
            raise self._fail("draw(label, 3, rng)", f"has the shape {drawn.shape} instead of {(3, shape[1])}.")

    def _natural_form(self) -> None:
        """θ·u(x) − A + log h is the log-density."""
        if isinstance(self.fitted, ExponentialConditionals):
            natural = self.fitted.natural_log_density(self.X)
            self._same("the natural form is the log-density", natural, self.fitted.log_density(self.X))

    def _integrals(self, function: Callable[[Array], Array]) -> Array | None:
        """Σ or ∫ of function(x, (n, 1)), (…, n), over the support; None if it is not known."""
        support = self.family.support
        if support.whole:
            values = np.arange(-MANY_VALUES if support.bounds[0] == -np.inf else 0, MANY_VALUES + 1, dtype=np.float64)
            return np.asarray(function(values[support.inside(values)][:, None]).sum(axis=-1))
        period = getattr(self.family, "period", None)
        if period is not None:
            x = np.linspace(0.0, float(period), 20_001)
            return np.asarray(trapezoid(function(x[:, None]), x, axis=-1))
        low, inside, high = support.inside(np.array([-1.0, 0.5, 2.0])).tolist()
        if not inside:
            return None
        z = np.linspace(-34.0, 34.0, 40_001)
        if low and high:
            x, slope = np.sinh(z), np.cosh(z)
        elif high:
            x, slope = np.exp(z), np.exp(z)
        elif not low:
            x, slope = 1.0 / (1.0 + np.exp(-z)), 0.25 / np.cosh(z / 2.0) ** 2
        else:
            return None
        fine = support.inside(x)
        with np.errstate(all="ignore"):
            values = np.nan_to_num(function(np.where(fine, x, support.filler)[:, None]) * slope, nan=0.0) * fine
        return np.asarray(trapezoid(values, z, axis=-1))

    def _total(self) -> str | None:
        for j in range(len(self.names)):
            part = self.fitted.marginal(np.array([j]))
            total = self._integrals(lambda x, part=part: np.exp(part.log_density(x)))  # type: ignore[misc]
            if total is None:
                return "densities integrate to one: the support is neither a line, a half-line nor the unit interval"
            self._same(f"densities of column {j} sum to one", total, np.ones(len(total)), 1e-5)
        return None

    def _additive(self) -> None:
        some = np.arange(len(self.X)) % 5 < 2
        parts = [self._sum(self.X[each], self.codes[each]) for each in (some, ~some)]
        expected = self.fitted.log_density(self.X)
        law = "statistics of two parts add up to those of all rows"
        self._same(law, self._estimate(parts[0] + parts[1]).log_density(self.X), expected)
        rest = self.statistics - parts[0]
        again = self._estimate(rest).log_density(self.X)
        law = "all rows without a part are the other part"
        self._same(law, again, self._estimate(parts[1]).log_density(self.X), 1e-6)

    def _repeats(self) -> None:
        times = 1 + np.arange(len(self.X)) % 3
        weighted = self._estimate(self._sum(self.X, self.codes, times.astype(np.float64)))
        repeated = self._estimate(self._sum(np.repeat(self.X, times, axis=0), np.repeat(self.codes, times)))
        law = "a whole weight is that many rows"
        self._same(law, weighted.log_density(self.X), repeated.log_density(self.X))

    def _missing(self) -> None:
        incomplete = self.X.copy()
        incomplete[::4, 0] = np.nan
        alone = self.fitted.marginal(np.arange(1, len(self.names))) if len(self.names) > 1 else None
        found = self.fitted.log_density(incomplete)[:, ::4]
        expected = np.zeros_like(found) if alone is None else alone.log_density(self.X[::4, 1:])
        self._same("a missing value contributes nothing to the density", found, expected, 1e-10)
        self._estimate(self._sum(incomplete, self.codes))

    def _explained(self) -> None:
        terms = self.fitted.explain(self.X).sum(axis=2).T
        self._same("contributions of columns add up to the log-density", terms, self.fitted.log_density(self.X))

    def _left_out(self) -> None:
        held_out = self.family._leave_one_out(self.statistics, self.fitted, self.estimation, self.names)
        found = held_out(self.X, self.codes, np.ones(len(self.X)))
        for i in range(0, len(self.X), 7):
            rest = self.statistics - self._sum(self.X[i : i + 1], self.codes[i : i + 1])
            again = self._estimate(replace(rest, reference=self.statistics, noise=None))
            own = int(self.codes[i])
            expected = again.log_density(self.X[i : i + 1])[own]
            law = "leave-one-out is an estimate without the row (averages over all classes come from statistics.whole)"
            self._same(law, found[own, i : i + 1], expected, 1e-6)

    def _sampled(self) -> None:
        for k in range(len(self.classes)):
            drawn = self.fitted.sample(k, DRAWS, np.random.default_rng(k))
            if not self.family.support.inside(drawn).all():
                raise self._fail("samples are values of the support", f"{drawn[~self.family.support.inside(drawn)][0]}")
            for j in range(len(self.names)):
                part, unit = self.fitted.marginal(np.array([j])), float(np.abs(drawn[:, j]).mean()) + 0.1
                expected = self._integrals(
                    lambda x, part=part, unit=unit: np.exp(part.log_density(x)) * np.tanh(x[:, 0] / unit)  # type: ignore[misc]
                )
                if expected is None:
                    continue
                values = np.tanh(drawn[:, j] / unit)
                error = abs(float(values.mean()) - float(expected[k])) / (float(values.std()) / np.sqrt(DRAWS) + 1e-4)
                if error > 5.0:
                    raise self._fail(
                        "samples have the expectations of the density",
                        f"the mean of tanh(x/{unit:.3g}) of class {k} and column {j} differs by {error:.1f} standard "
                        "errors.",
                    )

    def _model(self) -> NaiveBayes:
        model = NaiveBayes(self.family, estimation=str(self.estimation), calibration=None)
        return model.fit(self.X, self.classes[self.codes])

    def _saved(self) -> str | None:
        model = self._model()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.likely"
            try:
                model.save(path)
            except InputError as error:
                return f"files: {error}"
            self._same(
                "a loaded model has the same probabilities",
                load(path).predict_proba(self.X),
                model.predict_proba(self.X),
            )
        return None

    def _exported(self) -> str | None:
        model = self._model()
        try:
            statement = model.to_sql("rows", dialect="sqlite")
        except ExportError as error:
            return f"exports: {error}"
        with sqlite3.connect(":memory:") as connection:
            connection.execute(f"CREATE TABLE rows ({', '.join(f'{name} REAL' for name in self.names)})")
            marks = ", ".join("?" * len(self.names))
            connection.executemany(f"INSERT INTO rows VALUES ({marks})", self.X.tolist())
            found = connection.execute(statement).fetchall()
        connection.close()
        size = len(self.classes)
        self._same(
            "the exported statement has the same probabilities",
            [row[1 : 1 + size] for row in found],
            model.predict_proba(self.X),
        )
        return None


def _check_tuple(title: str, method: str, parts: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a method returned a tuple of arrays of a shape."""
    try:
        check_parts(method, parts, shape)
    except InputError as error:
        raise FamilyLawError(f"{title}: {error}") from None
