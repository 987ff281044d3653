"""Model selection: candidates ranked by leave-one-out loss, evidence, BIC or AIC, from one pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from likely.data.batches import Batch, Batches, is_source
from likely.data.row_blocks import many
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError, LikelyError, NoEvidenceError, check_choice
from likely.estimators.algebra import plain_text
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.generative import GenerativeModel
from likely.estimators.protocols import FittableFromStatistics
from likely.evaluation.cross_validation import Folds, sum_statistics
from likely.evaluation.folds import read_splits
from likely.evaluation.scoring import error_rate, log_loss, mean_over_folds, weighted_mean
from likely.families import Gaussian, Poisson
from likely.families.estimation import Estimation
from likely.families.gaussian.shrinkage import Regularized
from likely.model.family_choice import Choice, choose_families, held_out_copies
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification
from likely.numerics.progress import progress
from likely.statistics.joint import JointStatistics
from likely.typing import FoldsLike, LabelsLike, TableLike, WeightsLike

HELD_OUT = ("log_loss", "error", "log_likelihood")
LARGER_IS_BETTER = ("log_likelihood", "log_evidence")
CRITERIA = ("log_loss", "error", "bic", "aic", *LARGER_IS_BETTER)


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """Scores of a candidate model. A score is None where it is not defined for the candidate.

    Attributes
    ----------
    name : str
        Name of the candidate.
    log_loss, error, log_likelihood : float or None
        Log-loss, error rate and mean log p(x, y) of held-out rows.
    log_evidence : float or None
        Log marginal likelihood of the training rows, under estimation='bayes'.
    bic : float or None
        Bayesian information criterion, p·log n − 2·log L, for point estimates.
    aic : float or None
        Akaike information criterion, 2·p − 2·log L, for point estimates.
    problem : str or None
        Why the candidate could not be fitted.

    See Also
    --------
    Selection : The ranking of all candidates.
    """

    name: str
    log_loss: float | None = None
    error: float | None = None
    log_likelihood: float | None = None
    log_evidence: float | None = None
    bic: float | None = None
    aic: float | None = None
    problem: str | None = None

    def _rank(self, by: str) -> tuple[bool, float]:
        """Sort key for a criterion: better candidates first, those without a score last."""
        value = getattr(self, by)
        if self.problem is not None or value is None or np.isnan(value):
            return True, 0.0
        return False, -value if by in LARGER_IS_BETTER else value


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Candidate models ranked by a criterion. `str()` renders the ranking as a table.

    Attributes
    ----------
    ranking : tuple of CandidateScore
        All candidates, the best first. Candidates that could not be fitted come last.
    best : estimator
        The best candidate, fitted to all rows.
    by : str
        The criterion.

    See Also
    --------
    select : Returns this object.
    """

    ranking: tuple[CandidateScore, ...]
    best: Any
    by: str

    def __str__(self) -> str:
        wide = max(len(scored.name) for scored in self.ranking)
        columns = ("log_loss", "error", "log_likelihood", "log_evidence", "bic", "aic")
        lines = [f"by {self.by:<{max(wide - 3, 1)}}" + "".join(f"{column:>16}" for column in columns)]
        for scored in self.ranking:
            values = (getattr(scored, column) for column in columns)
            cells = "".join(f"{'' if value is None else f'{value:.4f}':>16}" for value in values)
            lines.append(f"{scored.name:<{wide}}" + (cells if scored.problem is None else f"  {scored.problem}"))
        return "\n".join(lines)


def select(
    X: TableLike,
    y: LabelsLike,
    candidates: Iterable[GenerativeModel] | Mapping[str, GenerativeModel] | None = None,
    by: str = "log_loss",
    folds: FoldsLike | None = None,
    sample_weight: WeightsLike | None = None,
) -> Selection:
    """Rank generative models by a criterion, and fit the best one.

    One pass over the rows collects the sufficient statistics of all candidates. Evidence, BIC and AIC follow from the
    statistics alone; held-out scores take one prediction of all rows per candidate.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows, in memory.
    y : array-like of shape (n_samples,) or str
        Class labels, or the name of the column of X that has them.
    candidates : iterable of estimators or dict of str to estimator, default=None
        Generative classifiers of this library. None is a default set: full, diagonal and spherical Gaussians, with
        pooled and per-class covariances, and with shrinkage.
    by : {'log_loss', 'error', 'log_likelihood', 'log_evidence', 'bic', 'aic'}, default='log_loss'
        The criterion. The first three are scores of held-out rows. 'log_evidence' needs estimation='bayes', 'bic' and
        'aic' need 'mle' or 'map'.
    folds : int, splitter, iterable of (train, test) or array-like of shape (n_samples,), default=None
        Which rows are held out. None is leave-one-out; the other values are those of `cross_validate`.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of times that each row counts. Leave-one-out holds out one of the copies of a row.

    Returns
    -------
    Selection
        `ranking`, the scores of all candidates, the best first; `best`, the best candidate, fitted to all rows.

    See Also
    --------
    cross_validate : Held-out scores of one model, for each fold.
    compare : Learning curves, also of models of other libraries.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant, QuadraticDiscriminant, select
    >>> X, y = load_iris(return_X_y=True)
    >>> result = select(X, y, {"linear": LinearDiscriminant(), "quadratic": QuadraticDiscriminant()})
    >>> [scored.name for scored in result.ranking]
    ['linear', 'quadratic']
    >>> result.best.predict(X[:2])
    array([0, 0])
    """
    check_choice("by", by, CRITERIA)
    if is_source(X):
        raise InputError("select needs the rows in memory, but X comes in chunks.")
    whole = Batches(X, y, sample_weight, read_table, "select").first
    folding = None if folds is None else Folds(whole, read_splits(folds, whole))
    models = _named(default_candidates(Batches.of([whole])) if candidates is None else candidates)
    specified = {name: _specified(model, whole) for name, model in models.items()}
    if not any(isinstance(each, Specification) for each in specified.values()):
        raise InputError(f"No candidate can be fitted. {_problems(specified)}.")
    candidate_set = _CandidateSet(whole, models, specified, folding)
    ranking = sorted(candidate_set.scores(), key=lambda each: each._rank(by))
    if ranking[0]._rank(by)[0]:
        problems = {each.name: each.problem or f"no {by}" for each in ranking}
        raise InputError(f"No candidate has a {by}. {_problems(problems)}.")
    return Selection(tuple(ranking), candidate_set.fitted(ranking[0].name), by)


class _CandidateSet:
    """Candidates whose statistics are collected in one pass."""

    def __init__(
        self,
        whole: Batch,
        models: dict[str, FittableFromStatistics],
        specified: dict[str, Specification | str],
        folding: Folds | None,
    ) -> None:
        self._whole, self._models, self._specified, self._folding = whole, models, specified, folding
        self._collection = SharedCollection([each for each in specified.values() if isinstance(each, Specification)])
        self._parts = [] if folding is None else folding.collect(self._collection)
        self._sums = sum_statistics(self._parts) if self._parts else self._collection.collect(whole)
        self._chosen: dict[str, tuple[Specification, JointStatistics, tuple[Choice, ...]]] = {}

    def scores(self) -> list[CandidateScore]:
        """The scores of all candidates."""
        with progress("candidates", len(self._models)) as step:

            def scored(task: tuple[str, Specification | str]) -> CandidateScore:
                try:
                    return self._scored(*task)
                except LikelyError as error:
                    return CandidateScore(task[0], problem=str(error))
                finally:
                    step()

            return many(list(self._specified.items()), scored)

    def _scored(self, name: str, specification: Specification | str) -> CandidateScore:
        if isinstance(specification, str):
            return CandidateScore(name, problem=specification)
        model, whole = self._models[name], self._whole
        chosen = choose_families(specification, Batches.of([whole]), self._collection, self._sums)
        self._chosen[name] = chosen
        mine, statistics, _ = chosen
        fitted, _ = mine.estimate(statistics)
        model._check_model(fitted)
        if self._folding is None:
            held_out = _leave_one_out(mine, fitted, statistics, whole)
        else:
            found = self._folding.evaluate(model, specification, self._collection, self._parts)
            held_out = {each: mean_over_folds(getattr(found, each)) for each in HELD_OUT}
        values: dict[str, Any] = held_out | _from_statistics(mine, fitted, statistics)
        return CandidateScore(name, **values)

    def fitted(self, name: str) -> Any:
        """A candidate, fitted to all rows."""
        model, fit = clone(self._models[name]), Fit(*self._chosen[name])
        model._set_fit(self._whole, fit, fit.estimate())
        return model


def default_candidates(batches: Batches) -> dict[str, Any]:
    """Covariance structure × pooled or per class for the continuous columns, with the other columns as detected.

    Columns with missing values have diagonal covariances. Count columns are Poisson or Gaussian.
    """
    plans = GenerativeClassifier()._plans(batches)
    names = batches.first.table.names
    places = {j: plan.family for plan in plans for j in (range(len(names)) if plan.columns is None else plan.columns)}
    gaussian = {names[j]: family.covariance == "full" for j, family in places.items() if isinstance(family, Gaussian)}
    complete = tuple(name for name, full in gaussian.items() if full)
    incomplete = tuple(name for name, full in gaussian.items() if not full)
    counts = tuple(names[j] for j, family in places.items() if isinstance(family, Poisson))
    others = {names[j]: family for j, family in places.items() if not isinstance(family, Gaussian | Poisson)}
    found: dict[str, Any] = {}
    for covariance, shared in itertools.product(("full", "diagonal", "spherical"), (True, False)):
        if not complete and (covariance != "diagonal" or not incomplete) and (covariance, shared) != ("diagonal", True):
            continue
        for as_counts in (True, False) if counts else (True,):
            families: dict[Any, Any] = dict(others)
            if complete:
                families[complete] = Gaussian(covariance, shared)
            families |= {name: Gaussian("diagonal", shared) for name in incomplete}
            families |= {name: Poisson() if as_counts else Gaussian("diagonal", shared) for name in counts}
            sharing = "pooled" if shared else "per class"
            name = f"{covariance}, {sharing}{'' if as_counts else ', counts as Gaussian'}, bayes"
            found[name] = GenerativeClassifier(families)
    if counts or incomplete:
        found["families chosen by leave-one-out, bayes"] = GenerativeClassifier()
    if complete and len(complete) == len(names):
        found |= _shrunken_candidates(complete)
    return found


def _shrunken_candidates(columns: tuple[str, ...]) -> dict[str, Any]:
    """Maximum likelihood with several amounts of shrinkage."""
    shrunken = {
        f"full, pooled, shrinkage {amount:g}, mle": Gaussian(shared=True, shrinkage=amount or None)
        for amount in (0.0, 0.1, 0.3)
    } | {f"full, pooling {pooling:g}, mle": Gaussian(shrinkage=Regularized(pooling, 0.0)) for pooling in (0.1, 0.5)}
    return {name: GenerativeClassifier({columns: family}, estimation="mle") for name, family in shrunken.items()}


def _named(candidates: Any) -> dict[str, FittableFromStatistics]:
    """Candidates by name."""
    if isinstance(candidates, Mapping):
        models = {str(name): model for name, model in candidates.items()}
    elif isinstance(candidates, Iterable) and not isinstance(candidates, str):
        models = {}
        for model in candidates:
            text = plain_text(model) if not isinstance(model, BaseEstimator) else repr(model).replace("\n", " ")
            models[text if text not in models else f"{text} #{len(models)}"] = model
    else:
        raise InputError("candidates must be models in a sequence or in a mapping from names to models.")
    for name, model in models.items():
        if not isinstance(model, GenerativeModel):
            raise InputError(f"candidates: {name} is not a generative model of likely.")
    if not models:
        raise InputError("candidates is empty.")
    return models


def _specified(model: FittableFromStatistics, whole: Batch) -> Specification | str:
    """The specification of a candidate for these rows, or why it cannot be fitted."""
    try:
        model._check_options()
        specification = model._specify(Batches.of([whole]))
    except LikelyError as error:
        return str(error)
    for plan in specification.plans:
        if plan.family._needs_em:
            return f"{plan.family.describe()} is fitted by EM, and has no sufficient statistics to select from"
        if plan.family._needs_complete_rows and _has_missing(whole.table, plan.columns):
            return f"X has missing values, and {plan.family.describe()} needs complete rows"
    return specification


def _has_missing(table: Table, columns: tuple[int, ...] | None) -> bool:
    """Whether these columns have missing values."""
    if "missing" not in table.cache:
        table.cache["missing"] = table.columns_with_missing()
    incomplete: set[int] = table.cache["missing"]
    return bool(incomplete if columns is None else incomplete.intersection(columns))


def _problems(problems: Mapping[str, Any]) -> str:
    """The first few problems as text."""
    return "; ".join(f"{name}: {problem}" for name, problem in itertools.islice(problems.items(), 3))


def _leave_one_out(
    specification: Specification, fitted: JointModel, statistics: JointStatistics, whole: Batch
) -> dict[str, float]:
    """Leave-one-out scores of a candidate."""
    found = specification.leave_one_out_scores(fitted, statistics, held_out_copies(whole))
    return {
        "log_loss": log_loss(found.probability, whole.weights),
        "error": error_rate(found.right, whole.weights),
        "log_likelihood": weighted_mean(found.log_joint, whole.weights),
    }


def _from_statistics(specification: Specification, fitted: JointModel, statistics: JointStatistics) -> dict[str, float]:
    """Criteria that follow from the statistics of a candidate, where they are defined."""
    found: dict[str, float] = {}
    with suppress(NoEvidenceError):
        found["log_evidence"] = specification.log_evidence(statistics)
    if specification.estimation != Estimation.BAYES:
        with suppress(NoEvidenceError):
            size, total = specification.n_parameters(statistics), specification.log_likelihood(fitted, statistics)
            found["bic"] = float(size * np.log(statistics.counts.weight.sum()) - 2.0 * total)
            found["aic"] = float(2.0 * size - 2.0 * total)
    return found
