"""Mixtures: the same joint model where no label was ever seen. The classes are components, and have no names."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import DensityMixin
from sklearn.utils import ClassifierTags, check_random_state

from likely.data.batches import NO_WEIGHT, Batch, Batches
from likely.data.labels import label_values
from likely.data.table import Table
from likely.errors import (
    DeadComponentWarning,
    InputError,
    NotEstimableError,
    check_choice,
    trying,
    warn,
)
from likely.estimators.generative import JointDensityEstimator
from likely.families.base import Family
from likely.families.gaussian.family import Gaussian
from likely.model.em import EMHistory, EMOptions, Rows, expect, first_model, iterate
from likely.model.fit import Fit, needs_em
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.plans import Plan, declared, everything, undeclared
from likely.model.specification import Specification
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

SEEDED = 10_000  # rows that seeds are sought among
MOST = 10  # components that "bic" tries
PATIENCE = 3  # numbers of components that "bic" tries beyond the best so far
DEAD = 1e-3  # expected rows below which a component is dead


@register
class MixtureModel(DensityMixin, JointDensityEstimator):
    """A mixture of components, each with a density of the row: clustering and density estimation.

    Parameters
    ----------
    n_components : how many, or "bic" for the number from 1 to 10 with the least Bayesian information criterion.
    families : None, one family for all columns, or a mapping from a column, or a tuple of columns that vary together,
        to its family, as in `GenerativeClassifier`. Continuous columns of which nothing is said vary together, in a
        full Gaussian for each component.
    class_prior : of the components' shares: None (from the data), "uniform", probabilities, or a `Dirichlet`.
    estimation : "map" (the prior keeps components from collapsing on single rows), "mle" or "bayes".
    n_init : how many starts, of which the best counts.
    start : None for seeds in the manner of k-means++, or the component of every row to start from.
    max_iter, tol : expectation maximisation stops after so many iterations, or when an iteration changes its objective
        by less than so much for each row.
    unseen : what a category is that was not seen in training: "missing", or an "error".
    random_state : of the seeds.
    """

    def __init__(
        self,
        n_components: int | str = 1,
        families: Any = None,
        class_prior: Any = None,
        estimation: str = "map",
        n_init: int = 3,
        start: Any = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        unseen: str = "missing",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.families = families
        self.class_prior = class_prior
        self.estimation = estimation
        self.n_init = n_init
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.unseen = unseen
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags = ClassifierTags(
            multi_class=False
        )  # scikit-learn's checks look here wherever there is predict_proba
        return tags

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("unseen", self.unseen, ("missing", "error"))
        for name in ("n_components", "n_init"):
            value: Any = getattr(self, name)
            if name == "n_components" and isinstance(value, str) and value == "bic":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
                raise InputError(f"{name}={value!r} is not a positive whole number.")

    def _plans(self, batches: Batches) -> list[Plan]:
        names = batches.first.table.names
        if isinstance(self.families, Family):
            return [everything(self.families, names)]
        plans = [] if self.families is None else declared(self.families, names)
        rest = undeclared(batches, plans, together=True)
        if batches.first.table.is_sparse:
            return plans + [_own(plan, "diagonal") for plan in rest]
        return plans + [_own(plan, "full") for plan in _merged(rest)]

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X; y is not looked at."""
        self._check_options()
        batches = Batches(X, None, sample_weight, self._table, type(self).__name__, blind=True)
        rng = check_random_state(self.random_state)
        if not any(
            batch.free.weights is None or batch.free.weights.any() for batch in batches if batch.free is not None
        ):
            raise InputError(NO_WEIGHT)
        specification, first = self._specify(batches), batches.first
        self.__dict__.pop("bic_path_", None)
        if self.n_components == "bic":
            fit, scores = self._lowest_bic(specification, batches, rng)
            self.bic_path_ = np.array(scores)
        else:
            fit = self._best(specification, batches, int(self.n_components), rng)
        return self._set_fit(first, fit, fit.estimate())

    @property
    def partial_fit(self) -> Any:
        """There is none: what was expected of earlier rows would have to be expected anew."""
        raise AttributeError("MixtureModel has no partial_fit: its statistics are expectations. Hint: fit on all rows.")

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyArray:
        """Learn from rows X, and tell the most probable component of each."""
        return self.fit(X, y, sample_weight).predict(X)

    def _most(self, batches: Batches) -> int:
        rows = sum(batch.free.table.rows for batch in batches if batch.free is not None)
        return min(MOST, rows)

    def _lowest_bic(self, specification: Specification, batches: Batches, rng: Any) -> tuple[Fit, list[float]]:
        """The fit with the number of components of least BIC, and the BIC of every number tried."""
        fits: list[Fit] = []
        scores: list[float] = []
        for size in range(1, self._most(batches) + 1):
            fits.append(self._best(specification, batches, size, rng))
            scores.append(_bic(fits[-1]))
            if len(scores) > PATIENCE + int(np.argmin(scores)):
                break
        return fits[int(np.argmin(scores))], scores

    def _best(self, specification: Specification, batches: Batches, size: int, rng: Any) -> Fit:
        return learn_components(specification, batches, size, rng, int(self.n_init), self._em_options(), self.start)

    # -- answers

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of rows."""
        return float(np.mean(self.log_density(X)))

    @property
    def n_components_(self) -> int:
        """How many components there are."""
        return len(self.classes_)

    @property
    def lower_bound_(self) -> float:
        """The objective that expectation maximisation ended with."""
        history = self._history
        assert history is not None
        return history.objective[-1]

    @property
    def weights_(self) -> Array:
        """The components' shares."""
        return self.class_prior_

    def bic(self, X: Any) -> float:
        """p·log n − 2·log L of rows, with p free parameters: the smaller the better."""
        density = self.log_density(X)
        return float(self._parameters() * np.log(len(density)) - 2.0 * density.sum())

    def aic(self, X: Any) -> float:
        """2·p − 2·log L of rows, with p free parameters: the smaller the better."""
        return float(2.0 * self._parameters() - 2.0 * self.log_density(X).sum())

    def _parameters(self) -> int:
        return self._specification.n_parameters(self.statistics_)


def learn_components(
    specification: Specification,
    batches: Batches,
    size: int,
    rng: Any,
    n_init: int,
    options: EMOptions,
    start: Any = None,
) -> Fit:
    """The best of several starts with so many components; with one less where some die in every start."""
    rows = sum(batch.free.table.rows for batch in batches if batch.free is not None)
    if rows < size:
        samples = f"{rows} sample{'' if rows == 1 else 's'}"
        raise InputError(f"{size} components are more than X has rows: {samples}. Hint: fewer components.")
    best: tuple[JointStatistics, EMHistory] | None = None
    problem: NotEstimableError | None = None
    for _ in range(1 if start is not None or size == 1 else n_init):
        try:
            found = _from_start(specification, batches, size, rng, options, start)
        except NotEstimableError as error:
            problem = error
            continue
        if best is None or found[1].objective[-1] > best[1].objective[-1]:
            best = found
    if best is None:
        if size == 1:
            assert problem is not None
            raise problem
        warn(
            f"With {size} components one dies in every start ({problem}). Fitted with {size - 1}. "
            "Hint: estimation='map' keeps components alive.",
            DeadComponentWarning,
        )
        return learn_components(specification, batches, size - 1, rng, n_init, options, start)
    dead = int(np.count_nonzero(best[0].counts.weight < DEAD))
    if dead:
        warn(
            f"{dead} of {size} components have next to no rows: only the prior tells what they are like.",
            DeadComponentWarning,
        )
    return Fit(specification, best[0], history=best[1])


def _from_start(
    specification: Specification, batches: Batches, size: int, rng: Any, options: EMOptions, start: Any
) -> tuple[JointStatistics, EMHistory]:
    """Expectation maximisation from rows that are given to components."""
    classes = np.arange(size)
    rows = Rows(specification, batches, classes, 1.0)
    begun = _given(batches, size, start) if start is not None else _seeded(batches, size, rng)
    begin = None if needs_em(specification, begun) else specification.collect(begun).align(classes)
    model = None if begin is None else _plugged_in(specification, begin)
    if model is None:
        return iterate(specification, rows, None, first_model(specification, Batches.of([begun]), classes), options)
    if start is None:  # the statistics are those of some rows only
        begin = expect(specification, model, rows, None)[0]
    return iterate(specification, rows, None, model, options, begin)


def _plugged_in(specification: Specification, statistics: JointStatistics) -> JointModel | None:
    """The model with plugged-in parameters, or None where the statistics do not determine it."""
    try:
        with trying():
            return replace(specification, estimation=specification.estimation.plug_in).estimate(statistics)[0]
    except NotEstimableError:
        return None


def _given(batches: Batches, size: int, start: Any) -> Batch:
    """All rows with the components that they are said to start in."""
    batch = next(iter(batches))
    assert batch.free is not None
    codes = label_values(start)
    if codes.dtype.kind not in "iu" or len(codes) != batch.free.table.rows or not set(codes) <= set(range(size)):
        raise InputError(f"start must be a number from 0 to {size - 1} for every row.")
    weights = batch.free.weights
    return Batch(batch.X, batch.free.table, Counts.of(np.arange(size), codes, weights), codes, weights)


def _bic(fit: Fit) -> float:
    """The BIC at the log-likelihood that expectation maximisation ended with."""
    assert fit.history is not None
    size = fit.specification.n_parameters(fit.statistics)
    return float(size * np.log(fit.statistics.counts.weight.sum()) - 2.0 * fit.history.log_likelihood)


def _merged(plans: list[Plan]) -> list[Plan]:
    """Continuous columns with holes among those without: expectations make up for what is missing."""
    full = [p for p in plans if isinstance(p.family, Gaussian)]
    if len(full) < 2:
        return plans
    columns = tuple(sorted(j for plan in full for j in plan.columns or ()))
    return [Plan(columns, Gaussian()), *(plan for plan in plans if plan not in full)]


def _own(plan: Plan, covariance: str) -> Plan:
    """Covariances of the components' own."""
    if isinstance(plan.family, Gaussian):
        return replace(plan, family=Gaussian(covariance), others=())
    return replace(plan, others=())


def _seeded(batches: Batches, size: int, rng: Any) -> Batch:
    """Some rows, each with the nearest of as many seeds, which are sought far from one another (k-means++).

    The order of rows does not matter, and a weight of 2 is the row twice.
    """
    batch = next(iter(batches))
    assert batch.free is not None
    table, weights = batch.free.table, batch.free.weights
    usable = np.arange(table.rows) if batch.free.used is None else batch.free.used
    some = usable if len(usable) <= SEEDED else np.sort(rng.choice(usable, SEEDED, replace=False))
    share = np.ones(len(some)) if weights is None else weights[some]
    part = table.take(some)
    distance = _Distance(part, share)
    order = distance.order()
    codes, nearest = np.zeros(len(some), dtype=np.int64), np.full(len(some), np.inf)
    chance = share
    for k in range(size):
        steps = np.cumsum(chance[order])
        seed = int(order[min(int(np.searchsorted(steps, rng.uniform() * steps[-1])), len(order) - 1)])
        away = distance.of(seed)
        codes, nearest = np.where(away < nearest, k, codes), np.minimum(away, nearest)
        chance = share * nearest if np.any(nearest > 0.0) else share
    given = None if weights is None else share
    return Batch(batch.X, part, Counts.of(np.arange(size), codes, given), codes, given)


class _Distance:
    """Squared distances of rows from one of them, by what both have: columns in deviations, labels equal or not."""

    def __init__(self, table: Table, weights: Array) -> None:
        self._sparse: Any = None
        if table.is_sparse:
            rows = table.numbers(None, sparse=True)(0, table.rows)
            length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            self._sparse = scipy.sparse.csr_array(rows.multiply(1.0 / np.maximum(length, 1e-300)[:, None]))
            return
        numbers = [j for j in range(table.width) if table.kinds[j] != "label"]
        labels = [j for j in range(table.width) if table.kinds[j] == "label"]
        self._numbers = np.zeros((table.rows, 0))
        if numbers:
            values = np.array(table.numbers(np.array(numbers), sparse=False)(0, table.rows), dtype=np.float64)
            self._numbers = _in_deviations(values, weights)
        self._labels = table.codes(labels)(0, table.rows) if labels else np.zeros((table.rows, 0), dtype=np.intp)

    def order(self) -> AnyArray:
        """Rows in an order that follows from what they hold."""
        if self._sparse is not None:
            return np.argsort(np.asarray(self._sparse @ np.sqrt(1.0 + np.arange(self._sparse.shape[1]))), kind="stable")
        keys = [*self._labels.T, *self._numbers.T]
        return np.lexsort(keys) if keys else np.arange(len(self._numbers))

    def of(self, row: int) -> Array:
        if self._sparse is not None:
            return np.maximum(1.0 - np.asarray((self._sparse @ self._sparse[[row]].T).toarray()).ravel(), 0.0)
        gap = (self._numbers - self._numbers[row]) ** 2
        both = ~np.isnan(gap)
        there = (self._labels >= 0) & (self._labels[row] >= 0)
        total = np.where(both, gap, 0.0).sum(axis=1) + 2.0 * (there & (self._labels != self._labels[row])).sum(axis=1)
        return np.asarray(total / np.maximum(both.sum(axis=1) + there.sum(axis=1), 1))


def _in_deviations(values: Array, weights: Array) -> Array:
    """Columns about their means in deviations, 0 where they do not vary; missing cells stay missing."""
    there = np.isfinite(values)
    share = np.where(there, weights[:, None], 0.0)
    mass = np.maximum(share.sum(axis=0), 1e-300)
    size = np.abs(np.where(there, values, 0.0)).max(axis=0, initial=0.0)
    scaled = np.where(there, values, 0.0) / np.where(size > 0.0, size, 1.0)
    away = scaled - (share * scaled).sum(axis=0) / mass
    spread = np.sqrt((share * away * away).sum(axis=0) / mass)
    away = np.where(spread > 1e-12, away / np.where(spread > 0.0, spread, 1.0), 0.0)
    return np.where(np.isnan(values), np.nan, away)
