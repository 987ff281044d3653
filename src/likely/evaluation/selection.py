"""Model selection: candidates ranked by leave-one-out loss, evidence, BIC or AIC, from one pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from likely.choice.fitting import with_covariances
from likely.choice.row_sample import held_out_copies
from likely.data.batches import Batch, Batches
from likely.data.row_blocks import many
from likely.data.source_rows import RowSample
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError, LikelyError, NoEvidenceError, check_choice
from likely.estimators.algebra import plain_text
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.generative import GenerativeModel
from likely.estimators.protocols import FittableFromStatistics
from likely.evaluation.cross_validation import Folds
from likely.evaluation.folds import refuse_unlabeled, stratified_splits, sum_statistics
from likely.evaluation.points import mean_and_error
from likely.evaluation.ranking import CRITERIA, HELD_OUT, CandidateScore, Selection
from likely.evaluation.scoring import (
    leave_one_out_baseline,
    mean_and_standard_error,
    row_losses,
)
from likely.evaluation.source_folds import check_number_of_folds
from likely.families import Gaussian, LogNormal, Poisson
from likely.families.estimation import Estimation
from likely.families.gaussian.shrinkage import Regularized
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.rendering import frame_library, short_title
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification, block_task
from likely.numerics.progress import progress
from likely.statistics.joint import JointStatistics
from likely.typing import Array, FoldsLike, LabelsLike, RandomStateLike, TableLike, WeightsLike


def select(
    X: TableLike,
    y: LabelsLike,
    candidates: Iterable[GenerativeModel] | Mapping[str, GenerativeModel] | None = None,
    by: str = "log_loss",
    folds: FoldsLike | None = None,
    sample_weight: WeightsLike | None = None,
    random_state: RandomStateLike | None = 0,
) -> Selection:
    """Rank generative models by a criterion, and fit the best one.

    One pass over the rows collects the sufficient statistics of all candidates. Evidence, BIC and AIC follow from the
    statistics alone; held-out scores take one prediction of all rows per candidate.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or source of shape (n_samples, n_features)
        Rows: in memory, or an object with a method `chunks()`. Of a source with more than 20,000 rows, candidates are
        ranked by a sample of 20,000 rows, drawn at random in one pass; the best one is then fitted to all rows.
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
    sample_weight : array-like of shape (n_samples,) or str, default=None
        Number of times that each row counts, or the name of the column of X that has it. Leave-one-out holds out one
        of the copies of a row.
    random_state : int or RandomState, default=0
        Seed of the shuffle, where `folds` is a number. None draws other folds at every call.

    Returns
    -------
    Selection
        `ranking`, the scores of all candidates, the best first; `best`, the best candidate, fitted to all rows;
        `baseline`, the log-loss of the class proportions. `str()` states which candidate was chosen and why.

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
    given = None if candidates is None else _named(candidates)
    rows = RowSample.of(X, y, sample_weight)
    if rows.is_part and folds is not None:
        check_number_of_folds(folds)
    whole = Batches(rows.X, rows.y, rows.sample_weight, read_table, "select").first
    refuse_unlabeled(whole, given or {}, "select")
    splits = None if folds is None else stratified_splits(folds, whole, random_state)
    folding = None if splits is None else Folds(whole, splits)
    models = given or _named(default_candidates(Batches.of([whole])))
    specified = {name: _specified(model, whole) for name, model in models.items()}
    if not any(isinstance(each, Specification) for each in specified.values()):
        raise InputError(f"No candidate can be fitted. {_problems(specified)}.")
    candidate_set = _CandidateSet(whole, models, specified, folding, by)
    ranking = sorted(candidate_set.scores(), key=lambda each: each._rank(by))
    if ranking[0]._rank(by)[0]:
        problems = {each.name: each.problem or f"no {by}" for each in ranking}
        raise InputError(f"No candidate has a {by}. {_problems(problems)}.")
    best = ranking[0].name
    return Selection(
        tuple(candidate_set.with_difference(each, best) for each in ranking),
        clone(models[best]).fit(X, y, sample_weight) if rows.is_part else candidate_set.fitted(best),
        by,
        "leave-one-out" if splits is None else f"{len(splits)} folds",
        *candidate_set.baseline(),
        frame_library(whole.X),
        rows.notes("; the best candidate is fitted to all rows"),
    )


class _CandidateSet:
    """Candidates whose statistics are collected in one pass."""

    def __init__(
        self,
        whole: Batch,
        models: dict[str, FittableFromStatistics],
        specified: dict[str, Specification | str],
        folding: Folds | None,
        by: str,
    ) -> None:
        self._whole, self._models, self._specified, self._folding = whole, models, specified, folding
        self._by, self._values = by, dict[str, Array]()  # the criterion of each candidate, by row or by fold
        self._collection = SharedCollection([each for each in specified.values() if isinstance(each, Specification)])
        self._parts = [] if folding is None else folding.collect(self._collection)
        self._sums = sum_statistics(self._parts) if self._parts else self._collection.summarise(whole)
        self._chosen: dict[str, Fit] = {}

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
        rows = Batches.of([whole])
        fit = Fit.of_collection(specification, self._collection, self._sums)
        self._chosen[name] = fit = with_covariances(fit, rows, model._calibrates)
        mine, statistics = fit.specification, fit.statistics
        fitted, _ = fit.estimate()
        model._check_model(fitted)
        if self._folding is None:
            found = mine.leave_one_out_scores(fitted, statistics, held_out_copies(whole))
            held = {
                "log_loss": row_losses(found.probability),
                "error": 1.0 - found.right,
                "log_likelihood": found.log_joint,
            }
        else:
            folds = self._folding.evaluate(model, specification, self._collection, self._parts)
            held = {each: getattr(folds, each) for each in HELD_OUT}
        scores: dict[str, Any] = {each: self._mean_and_error(values)[0] for each, values in held.items()}
        if self._by in HELD_OUT:
            self._values[name] = held[self._by]
            scores["standard_error"] = _known(self._mean_and_error(held[self._by])[1])
        scores |= _from_statistics(mine, fitted, statistics)
        return CandidateScore(name, **scores)

    def _mean_and_error(self, values: Array) -> tuple[float, float]:
        """Mean and standard error over the rows, or over the folds whose rows have any weight."""
        if self._folding is None:
            return mean_and_standard_error(values, self._whole.weights)
        return mean_and_error(values)

    def with_difference(self, scored: CandidateScore, best: str) -> CandidateScore:
        """The same scores with the difference to the best candidate."""
        if scored.name not in self._values:
            return scored
        with np.errstate(invalid="ignore"):
            gaps = self._values[scored.name] - self._values[best]
        difference, error = self._mean_and_error(gaps)
        return replace(scored, difference=_known(difference), difference_error=_known(error))

    def baseline(self) -> tuple[float, float]:
        """Log-loss of the class proportions on the same held-out rows, and its standard error."""
        whole = self._whole
        if self._folding is not None:
            size = len(whole.counts.classes)
            return mean_and_error(self._folding.baseline(np.arange(size), size)[0])
        return self._mean_and_error(leave_one_out_baseline(whole.counts, whole.codes, whole.weights))

    def fitted(self, name: str) -> Any:
        """A candidate, fitted to all rows."""
        model, fit = clone(self._models[name]), self._chosen[name]
        model._set_fit(self._whole, fit, fit.estimate())
        return model


def default_candidates(batches: Batches) -> dict[str, Any]:
    """Covariance structure × pooled or per class for the continuous columns, with the other columns as detected.

    Count columns are Poisson or Gaussian.
    """
    plans = GenerativeClassifier()._specify(batches).plans
    names = batches.first.table.names
    places = {j: plan.family for plan in plans for j in (range(len(names)) if plan.columns is None else plan.columns)}
    joint = [
        plan for plan in plans if isinstance(plan.family, Gaussian | LogNormal) and plan.family.covariance == "full"
    ]
    complete = tuple(names[j] for plan in joint for j in (range(len(names)) if plan.columns is None else plan.columns))
    logs = tuple(name for plan in joint if isinstance(plan.family, LogNormal) for name in plan.family.log or complete)
    apart = {names[j]: family for j, family in places.items() if names[j] not in complete}
    incomplete = tuple(name for name, family in apart.items() if isinstance(family, Gaussian))
    counts = tuple(name for name, family in apart.items() if isinstance(family, Poisson))
    others = {name: family for name, family in apart.items() if not isinstance(family, Gaussian | Poisson)}
    found: dict[str, Any] = {}
    for covariance, shared in itertools.product(("full", "diagonal", "spherical"), (True, False)):
        if not complete and (covariance != "diagonal" or not incomplete) and (covariance, shared) != ("diagonal", True):
            continue
        for as_counts in (True, False) if counts else (True,):
            families: dict[Any, Any] = dict(others)
            if complete:
                plain = not logs or covariance == "spherical"
                families[complete] = (
                    Gaussian(covariance, shared) if plain else LogNormal(shared, covariance=covariance, log=logs)
                )
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
            raise InputError(
                f"candidates: {short_title(name)} is not a generative classifier of likely. Use cross_validate or "
                "compare, which accept any estimator."
            )
    if not models:
        raise InputError("candidates is empty.")
    return models


def _specified(model: FittableFromStatistics, whole: Batch) -> Specification | str:
    """The specification of a candidate for these rows, or why it cannot be fitted."""
    try:
        model._check_options()
        specification = model._specify(Batches.of([whole]))
        for plan in specification.plans:
            block_task(whole.table, whole.counts.classes, plan)  # raises where columns cannot be read
    except LikelyError as error:
        return str(error)
    for plan in specification.plans:
        if plan.family._needs_em:
            return f"{plan.family.describe()} is fitted by EM, and has no sufficient statistics to select from"
        complete = plan.family._needs_complete_rows and not plan.family._sums_missing_values
        if complete and _has_missing(whole.table, plan.columns):
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


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


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
