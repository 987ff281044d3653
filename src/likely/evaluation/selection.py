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
from likely.evaluation.cross_validation import Folds, read_splits, sum_statistics, weighted_losses
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
from likely.typing import Array

# ------------------------------------------------------------------------------------------------------ selection
LARGER_IS_BETTER = ("log_likelihood", "log_evidence")
CRITERIA = ("log_loss", "error", "bic", "aic", *LARGER_IS_BETTER)


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """A candidate and how it did; None where it has no such score, and `problem` where it has none at all.

    `log_loss`, `error` and `log_likelihood` (the mean of log p(x, y)) are of rows left out. `log_evidence` is the
    marginal likelihood under "bayes". BIC = p·log n − 2·log L and AIC = 2·p − 2·log L belong to plugged-in parameters.
    """

    name: str
    log_loss: float | None = None
    error: float | None = None
    log_likelihood: float | None = None
    log_evidence: float | None = None
    bic: float | None = None
    aic: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Candidates, the best first, and the best one fitted."""

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
    X: Any, y: Any, candidates: Any = None, by: str = "log_loss", folds: Any = None, sample_weight: Any = None
) -> Selection:
    """Rank models by how they do on rows left out, or by evidence, BIC or AIC; and fit the best.

    `candidates` are models, in a sequence or in a mapping from names; None stands for the structures of
    `default_candidates`. `folds` says which rows are left out: None is one at a time, anything else as in
    `cross_validate`. One pass over the rows collects the statistics of all candidates: none is fitted from rows.
    Evidence, BIC and AIC follow from the statistics, what is left out from one evaluation of the rows each.
    `sample_weight` counts rows: of a row that stands for several, one is left out.
    """
    check_choice("by", by, CRITERIA)
    if is_source(X):
        raise InputError("select needs the rows in memory, and X comes in chunks.")
    whole = Batches(X, y, sample_weight, read_table, "select").first
    folding = None if folds is None else Folds(whole, read_splits(folds, whole))
    models = _named(default_candidates(Batches.of([whole])) if candidates is None else candidates)
    specified = {name: _specified(model, whole) for name, model in models.items()}
    wanted = [each for each in specified.values() if isinstance(each, Specification)]
    if not wanted:
        raise InputError(f"No candidate can be learnt. {_problems(specified)}.")
    together = SharedCollection(wanted)
    parts = [] if folding is None else folding.collect(together)
    sums = sum_statistics(parts) if parts else together.collect(whole)

    def scored(name: str, specification: Specification) -> CandidateScore:
        ready[name] = learnt = choose_families(specification, Batches.of([whole]), together, sums)
        mine, statistics, _ = learnt
        fitted, _ = mine.estimate(statistics)
        models[name]._check_model(fitted)
        if folding is None:
            found = _leave_one_out(mine, fitted, statistics, whole)
        else:
            judged = folding.judge(models[name], specification, together, parts)
            found = {each: _mean(getattr(judged, each)) for each in ("log_loss", "error", "log_likelihood")}
        values: dict[str, Any] = found | _from_statistics(mine, fitted, statistics)
        return CandidateScore(name, **values)

    def tried(task: tuple[str, Specification | str]) -> CandidateScore:
        name, specification = task
        try:
            return (
                CandidateScore(name, problem=specification)
                if isinstance(specification, str)
                else scored(name, specification)
            )
        except LikelyError as error:
            return CandidateScore(name, problem=str(error))
        finally:
            step()

    ready: dict[str, tuple[Specification, JointStatistics, tuple[Choice, ...]]] = {}
    with progress("candidates", len(models)) as step:
        ranking = many(list(specified.items()), tried)
    ranking.sort(key=lambda each: _place(getattr(each, by), by))
    first = ranking[0]
    if _place(getattr(first, by), by)[0] or first.problem is not None:
        told = {each.name: each.problem or f"no {by}" for each in ranking}
        raise InputError(f"No candidate has a {by}. {_problems(told)}.")
    best, fit = clone(models[first.name]), Fit(*ready[first.name])
    best._set_fit(whole, fit, fit.estimate())
    return Selection(tuple(ranking), best, by)


def default_candidates(batches: Batches) -> dict[str, Any]:
    """Covariance × sharing × estimation for the continuous columns of a table, with its other columns as they are.

    Columns with missing cells take part in diagonal covariances. Columns of counts are Poisson or Gaussian.
    """
    plans = GenerativeClassifier()._plans(batches)
    names = batches.first.table.names
    places = {j: plan.family for plan in plans for j in (range(len(names)) if plan.columns is None else plan.columns)}
    reals = tuple(
        names[j] for j, family in places.items() if isinstance(family, Gaussian) and family.covariance == "full"
    )
    holed = tuple(names[j] for j, f in places.items() if isinstance(f, Gaussian) and f.covariance != "full")
    counts = tuple(names[j] for j, family in places.items() if isinstance(family, Poisson))
    others = {names[j]: family for j, family in places.items() if not isinstance(family, Gaussian | Poisson)}
    found: dict[str, Any] = {}
    for covariance, shared in itertools.product(("full", "diagonal", "spherical"), (True, False)):
        if not reals and (covariance != "diagonal" or not holed) and (covariance, shared) != ("diagonal", True):
            continue
        told = f"{covariance}, {'one for all' if shared else 'one per class'}"
        for as_counts in (True, False) if counts else (True,):
            families: dict[Any, Any] = dict(others)
            if reals:
                families[reals] = Gaussian(covariance, shared)
            families |= {name: Gaussian("diagonal", shared) for name in holed}
            families |= {name: Poisson() if as_counts else Gaussian("diagonal", shared) for name in counts}
            name = f"{told}{'' if as_counts else ', counts as Gaussian'}, bayes"
            found[name] = GenerativeClassifier(families)
    if counts or holed:
        found["families that rows left out choose, bayes"] = GenerativeClassifier()
    if reals and len(reals) == len(names):
        for share in (0.0, 0.1, 0.3):
            family = Gaussian(shared=True, shrinkage=share or None)
            found[f"full, one for all, shrinkage {share:g}, mle"] = GenerativeClassifier(
                {reals: family}, estimation="mle"
            )
        for pooling in (0.1, 0.5):
            family = Gaussian(shrinkage=Regularized(pooling, 0.0))
            found[f"full, pooling {pooling:g}, mle"] = GenerativeClassifier({reals: family}, estimation="mle")
    return found


def _named(candidates: Any) -> dict[str, FittableFromStatistics]:
    """Models by their names."""
    if isinstance(candidates, Mapping):
        models = {str(name): model for name, model in candidates.items()}
    elif isinstance(candidates, Iterable) and not isinstance(candidates, str):
        models = {}
        for model in candidates:
            told = plain_text(model) if not isinstance(model, BaseEstimator) else repr(model).replace("\n", " ")
            models[told if told not in models else f"{told} #{len(models)}"] = model
    else:
        raise InputError("candidates must be models, in a sequence or in a mapping from names.")
    for name, model in models.items():
        if not isinstance(model, GenerativeModel):
            raise InputError(f"candidates: {name} is no generative model of likely.")
    if not models:
        raise InputError("candidates has no model.")
    return models


def _specified(model: FittableFromStatistics, whole: Batch) -> Specification | str:
    """What a candidate would learn from the rows, or what is wrong with it."""
    try:
        model._check_options()
        specification = model._specify(Batches.of([whole]))
    except LikelyError as error:
        return str(error)
    for plan in specification.plans:
        if plan.family._needs_em:
            return f"{plan.family.describe()}: learnt by expectation maximisation, of which there are no sums"
        if plan.family._needs_complete_rows and _holes(whole.table, plan.columns):
            return f"missing cells, and {plan.family.describe()} needs complete rows"
    return specification


def _holes(table: Table, columns: tuple[int, ...] | None) -> bool:
    """Whether these columns have missing cells."""
    if "holes" not in table.cache:
        table.cache["holes"] = table.columns_with_missing()
    holed: set[int] = table.cache["holes"]
    return bool(holed if columns is None else holed.intersection(columns))


def _mean(scores: Array) -> float:
    """Over the folds that have any weight."""
    known = scores[~np.isnan(scores)]
    return float(known.mean()) if len(known) else np.nan


def _problems(told: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}: {problem}" for name, problem in itertools.islice(told.items(), 3))


def _leave_one_out(
    specification: Specification, fitted: JointModel, statistics: JointStatistics, whole: Batch
) -> dict[str, float]:
    """How a candidate does on rows that are each left out of it."""
    found = specification.leave_one_out_scores(fitted, statistics, held_out_copies(whole))
    loss, error, likelihood = weighted_losses(found, whole.weights)
    return {"log_loss": loss, "error": error, "log_likelihood": likelihood}


def _from_statistics(specification: Specification, fitted: JointModel, statistics: JointStatistics) -> dict[str, float]:
    """What is told of a candidate by its statistics alone, where there is such a thing."""
    found: dict[str, float] = {}
    with suppress(NoEvidenceError):
        found["log_evidence"] = specification.log_evidence(statistics)
    if specification.estimation != Estimation.BAYES:
        with suppress(NoEvidenceError):
            size, total = specification.n_parameters(statistics), specification.log_likelihood(fitted, statistics)
            found["bic"] = float(size * np.log(statistics.counts.weight.sum()) - 2.0 * total)
            found["aic"] = float(2.0 * size - 2.0 * total)
    return found


def _place(value: float | None, by: str) -> tuple[bool, float]:
    """What candidates are sorted by: those without a score come last."""
    if value is None or np.isnan(value):
        return True, 0.0
    return False, -value if by in LARGER_IS_BETTER else value
