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
from likely.data.frames import whole_frame
from likely.data.row_blocks import many
from likely.data.source_rows import RowSample
from likely.data.target_checks import warn_target
from likely.data.validation import read_table
from likely.errors import InputError, LikelyError, NoEvidenceError, check_choice
from likely.estimators.base import Learner
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.generative import JointDensity, is_generative_classifier
from likely.estimators.model_options import plain_text
from likely.evaluation.copies import EqualRows, equal_rows
from likely.evaluation.cross_validation import Folds
from likely.evaluation.folds import FoldOptions, counted_copies, groups_apart, refuse_unlabeled, stratified_splits
from likely.evaluation.ranking import CRITERIA, HELD_OUT, CandidateScore, Selection
from likely.evaluation.scoring import leave_one_out_baseline, mean_and_error, mean_and_standard_error, row_losses
from likely.evaluation.source_folds import check_number_of_folds
from likely.families import Gaussian
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.families.gaussian.shrinkage import Regularized
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.rendering import frame_library, short_title
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification, block_task
from likely.numerics.options import known_options
from likely.numerics.progress import progress
from likely.numerics.ties import tie_ranks
from likely.numerics.tree_sum import group_sum
from likely.statistics.joint import JointStatistics
from likely.typing import Array, FoldsLike, GroupsLike, LabelsLike, RandomStateLike, TableLike, WeightsLike


@known_options
def select(
    X: TableLike,
    y: LabelsLike,
    candidates: Iterable[JointDensity] | Mapping[str, JointDensity] | None = None,
    by: str = "log_loss",
    folds: FoldsLike | None = None,
    sample_weight: WeightsLike | None = None,
    random_state: RandomStateLike | None = 0,
    groups: GroupsLike | None = None,
    copies: str = "auto",
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
    groups : array-like of shape (n_samples,) or str, default=None
        Group of each row, or the name of the column of X that has it, as in `cross_validate`; only with `folds`.
    copies : {'auto', 'together', 'apart'}, default='auto'
        Whether equal rows are in the same fold, as in `cross_validate`.

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
    if groups is not None and (rows.is_part or folds is None):
        raise InputError(
            "groups divides the rows in memory into folds. Pass folds=10, and some of the rows as a frame."
        )
    table, groups = groups_apart(whole_frame(rows.X), groups)
    options = FoldOptions(folds, random_state, groups, copies)
    options.check()
    whole = Batches(table, rows.y, rows.sample_weight, read_table, "select").first
    refuse_unlabeled(whole, given or {}, "select")
    if not rows.is_part:  # else the fit to all rows warns
        warn_target(whole.counts)
    splits = None if folds is None else stratified_splits(options, whole)
    folding = None if splits is None else Folds(whole, splits)
    models = given or _named(default_candidates(Batches.of([whole])))
    incomplete = whole.table.columns_with_missing()
    specified = {name: _specified(model, whole, incomplete) for name, model in models.items()}
    if not any(isinstance(each, Specification) for each in specified.values()):
        raise InputError(f"No candidate can be fitted. {_problems(specified)}.")
    candidate_set = _CandidateSet(whole, models, specified, folding, by)
    scores = candidate_set.scores()
    failed, values = zip(*(each._rank(by) for each in scores), strict=True)
    ranking = [scores[i] for i in np.lexsort((tie_ranks(np.negative(values)), failed)).tolist()]
    if ranking[0]._rank(by)[0]:
        problems = {
            each.name: each.problem or f"has no {CRITERIA[by]} of its family and estimation" for each in ranking
        }
        raise InputError(f"No candidate has by={by!r}. {_problems(problems)}. by='log_loss' compares all candidates.")
    best = ranking[0].name
    return Selection(
        tuple(candidate_set.with_difference(each, best) for each in ranking),
        clone(models[best]).fit(X, y, sample_weight) if rows.is_part else candidate_set.fitted(best),
        by,
        "leave-one-out" if splits is None else f"{len(splits.pairs)} folds",
        *candidate_set.baseline(),
        frame_library(whole.X),
        rows.notes("; the best candidate is fitted to all rows")
        + (_note_on_copies(whole) if splits is None else splits.notes),
    )


class _CandidateSet:
    """Candidates whose statistics are collected in one pass."""

    def __init__(
        self,
        whole: Batch,
        models: dict[str, Learner],
        specified: dict[str, Specification | str],
        folding: Folds | None,
        by: str,
    ) -> None:
        self._whole, self._models, self._specified, self._folding = whole, models, specified, folding
        self._by, self._values = by, dict[str, Array]()  # the criterion of each candidate, by row or by fold
        self._collection = SharedCollection([each for each in specified.values() if isinstance(each, Specification)])
        self._parts = [] if folding is None else folding.collect(self._collection)
        self._sums = group_sum(self._parts) if self._parts else self._collection.summarise(whole)
        self._chosen: dict[str, Fit] = {}

    def scores(self) -> list[CandidateScore]:
        """The scores of all candidates."""
        with progress("candidates", len(self._models)) as step:

            def scored(task: tuple[str, Specification | str]) -> CandidateScore:
                name, specification = task
                try:
                    if isinstance(specification, str):
                        return CandidateScore(name, problem=specification)
                    return CandidateScore(name, **self._scored(name, specification))
                except LikelyError as error:
                    return CandidateScore(name, problem=str(error))
                finally:
                    step()

            return many(list(self._specified.items()), scored)

    def _scored(self, name: str, specification: Specification) -> dict[str, Any]:
        """The scores of a candidate."""
        model, whole = self._models[name], self._whole
        fit = Fit.of_collection(specification, self._collection, self._sums)
        self._chosen[name] = fit = with_covariances(fit, Batches.of([whole]), model._calibrates)
        fitted, _ = fit.estimate()
        model._check_model(fitted)
        if self._folding is None:
            found = fit.specification.leave_one_out_scores(fitted, fit.statistics, held_out_copies(whole))
            held = dict(zip(HELD_OUT, (row_losses(found.probability), 1.0 - found.right, found.log_joint), strict=True))
        else:
            folds = self._folding.evaluate(model, specification, self._collection, self._parts, ranks=False)
            held = {each: getattr(folds, each) for each in HELD_OUT}
        scores: dict[str, Any] = {each: self._mean_and_error(values)[0] for each, values in held.items()}
        if self._by in HELD_OUT:
            self._values[name] = held[self._by]
            scores["standard_error"] = _known(self._mean_and_error(held[self._by])[1])
        return scores | _from_statistics(fit.specification, fitted, fit.statistics)

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
            return mean_and_error(self._folding.baseline(whole.counts.classes)[0])
        return self._mean_and_error(leave_one_out_baseline(whole.counts, whole.codes, whole.weights))

    def fitted(self, name: str) -> Any:
        """A candidate, fitted to all rows."""
        model, fit = clone(self._models[name]), self._chosen[name]
        model._set_fit(self._whole, fit, fit.estimate())
        return model


def _note_on_copies(whole: Batch) -> tuple[str, ...]:
    """A remark on copies, one of which leave-one-out holds out while the others are training rows."""
    equal = EqualRows.of(equal_rows(whole.X), np.asarray(whole.codes))
    if not equal.copies or equal.cells:
        return ()
    return (
        counted_copies(equal.copies, len(equal.same)),
        "leave-one-out holds out one of them, so its scores may be too good: folds=10 keeps them together",
    )


def default_candidates(batches: Batches) -> dict[str, Any]:
    """Covariance structure × pooled or per class for the continuous columns, with the other columns as detected.

    Count columns are Poisson or Gaussian.
    """
    names, found = batches.first.table.names, dict[str, Any]()
    detected: dict[Any, Family] = {}  # by column, or by the columns of a joint block
    for plan in GenerativeClassifier()._specify(batches).plans:
        columns = tuple(names if plan.columns is None else (names[j] for j in plan.columns))
        detected |= dict.fromkeys(columns, plan.family) if plan.family._independent else {columns: plan.family}
    variances = [key for key, family in detected.items() if family._with_covariance("diagonal", True) is not None]
    joint = [key for key in variances if isinstance(key, tuple)]
    counts = any(family._is_nearly_gaussian for family in detected.values())
    for covariance, shared, as_counts in itertools.product(
        ("full", "diagonal", "spherical") if joint else ("diagonal",),
        (True, False) if variances else (True,),
        (True, False) if counts else (True,),
    ):
        families = {
            key: family._with_covariance(covariance, shared) or family
            if as_counts or not family._is_nearly_gaussian
            else Gaussian("diagonal", shared)
            for key, family in detected.items()
        }
        sharing = "pooled" if shared else "per class"
        name = f"{covariance}, {sharing}{'' if as_counts else ', counts as Gaussian'}, bayes"
        found[name] = GenerativeClassifier(families)
    if counts or len(variances) > len(joint):
        found["families chosen by leave-one-out, bayes"] = GenerativeClassifier()
    if joint and len(joint[0]) == len(names):
        found |= _shrunken_candidates(joint[0])
    return found


def _shrunken_candidates(columns: tuple[str, ...]) -> dict[str, Any]:
    """Maximum likelihood with several amounts of shrinkage."""
    shrunken = {
        f"full, pooled, shrinkage {amount:g}, mle": Gaussian(shared=True, shrinkage=amount or None)
        for amount in (0.0, 0.1, 0.3)
    } | {f"full, pooling {pooling:g}, mle": Gaussian(shrinkage=Regularized(pooling, 0.0)) for pooling in (0.1, 0.5)}
    return {name: GenerativeClassifier({columns: family}, estimation="mle") for name, family in shrunken.items()}


def _named(candidates: Any) -> dict[str, Learner]:
    """Candidates by name."""
    if isinstance(candidates, Mapping):
        models = {str(name): model for name, model in candidates.items()}
    elif isinstance(candidates, Iterable) and not isinstance(candidates, str):
        models = {}
        for model in candidates:
            text = plain_text(model) if not isinstance(model, BaseEstimator) else repr(model).replace("\n", " ")
            models[text if text not in models else f"{text} #{len(models)}"] = model
    else:
        raise InputError(
            "candidates must be models in a sequence, [NaiveBayes()], or in a mapping from names to models."
        )
    for name, model in models.items():
        if isinstance(model, type):
            raise InputError(f"candidates: {model.__name__} is a class. Use an instance: {model.__name__}().")
        if not is_generative_classifier(model):
            raise InputError(
                f"candidates: {short_title(name)} is not a generative classifier of likely. Use cross_validate or "
                "compare, which accept any estimator."
            )
    if not models:
        raise InputError("candidates is empty.")
    return models


def _specified(model: Learner, whole: Batch, incomplete: set[int]) -> Specification | str:
    """The specification of a candidate for these rows, or why it cannot be fitted; which columns are incomplete."""
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
        used = incomplete if plan.columns is None else incomplete.intersection(plan.columns)
        if complete and used:
            return f"X has missing values, and {plan.family.describe()} needs complete rows"
    return specification


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
