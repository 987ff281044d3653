"""Mixture models: the joint model of unlabeled rows, whose classes are components."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import ClassifierTags, check_random_state

from likely.data.batches import Batches
from likely.errors import InputError, check_choice
from likely.estimators.generative import JointDensityEstimator
from likely.families.base import Family
from likely.families.gaussian.family import Gaussian
from likely.model.components import learn_components
from likely.model.fit import Fit
from likely.model.persistence import register
from likely.model.plans import Plan, declared_plans, default_plans, plan_of_all_columns
from likely.model.specification import Specification
from likely.typing import AnyArray, Array

MOST = 10  # components that "bic" tries, at most
PATIENCE = 3  # numbers of components that "bic" tries beyond the best one


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
            return [plan_of_all_columns(self.families, names)]
        plans = [] if self.families is None else declared_plans(self.families, names)
        rest = default_plans(batches, plans, together=True)
        if batches.first.table.is_sparse:
            return plans + [_with_covariance(plan, "diagonal") for plan in rest]
        return plans + [_with_covariance(plan, "full") for plan in _merged(rest)]

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X; y is not looked at."""
        self._check_options()
        batches = Batches(X, None, sample_weight, self._table, type(self).__name__, ignore_labels=True)
        rng = check_random_state(self.random_state)
        batches.check_unlabeled_weight()
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
        raise AttributeError("MixtureModel has no partial_fit: its statistics are expectations. Use fit with all rows.")

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyArray:
        """Learn from rows X, and tell the most probable component of each."""
        return self.fit(X, y, sample_weight).predict(X)

    def _most(self, batches: Batches) -> int:
        rows = sum(batch.unlabeled.table.rows for batch in batches if batch.unlabeled is not None)
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

    # -- predictions

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


def _bic(fit: Fit) -> float:
    """The BIC at the log-likelihood that expectation maximisation ended with."""
    assert fit.history is not None
    size = fit.specification.n_parameters(fit.statistics)
    return float(size * np.log(fit.statistics.counts.weight.sum()) - 2.0 * fit.history.log_likelihood)


def _merged(plans: list[Plan]) -> list[Plan]:
    """Continuous columns with and without missing values in one block: EM uses incomplete rows."""
    full = [p for p in plans if isinstance(p.family, Gaussian)]
    if len(full) < 2:
        return plans
    columns = tuple(sorted(j for plan in full for j in plan.columns or ()))
    return [Plan(columns, Gaussian()), *(plan for plan in plans if plan not in full)]


def _with_covariance(plan: Plan, covariance: str) -> Plan:
    """The same plan with per-component covariances, and no other candidates."""
    if isinstance(plan.family, Gaussian):
        return replace(plan, family=Gaussian(covariance), others=())
    return replace(plan, others=())
