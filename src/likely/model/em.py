"""Expectation maximisation (EM): fitting with unlabeled rows, missing values, or components that are not observed.

The E step (`model.expectations`) replaces the statistics of such rows by their expectations under the current model;
the M step estimates a model from them as from any others. The log-likelihood of the observed values, under "map" plus
the log-density of the priors, never decreases. Priors that are derived from the data are held fixed meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likely.data.batches import Batches
from likely.errors import NoEvidenceError, NotConvergedWarning, trying, warn
from likely.families.estimation import Estimation
from likely.families.priors import Dirichlet
from likely.model.expectations import TrainingRows, expect
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.specification import Specification
from likely.numerics.progress import progress
from likely.numerics.threads import single_threaded_blas_for
from likely.statistics.counts import positions
from likely.statistics.joint import JointStatistics
from likely.statistics.sums import Sums
from likely.typing import AnyArray

SEEDING_ROWS = 10_000  # rows that the components of a class are seeded from, at most
ROUNDS = 2  # how often EM runs, each time with the default priors of the statistics found before


@dataclass(frozen=True, slots=True, eq=False)
class EMHistory:
    """The course of expectation maximisation: the objective after each iteration, and whether it converged.

    The objective is the log-likelihood of the observed values, under "map" and "bayes" plus the log-density of the
    priors up to a constant, of the last round of iterations; `log_likelihood` is the last one without the priors.
    """

    objective: tuple[float, ...]
    log_likelihood: float
    iterations: int
    converged: bool


register(EMHistory, name="Course")  # the name that files of version 0.1 have


@dataclass(frozen=True, slots=True)
class EMOptions:
    """When expectation maximisation stops, and the weight of an unlabeled row (None: chosen by cross-validation)."""

    max_iter: int = 200
    tol: float = 1e-6
    unlabeled_weight: float | None = None


def has_converged(objective: Sequence[float], weight: float, tol: float) -> bool:
    """The stopping rule: the last iteration changed the objective by at most `tol` per unit of the rows' weight."""
    return len(objective) > 1 and abs(objective[-1] - objective[-2]) <= tol * weight


def fit_by_em(
    specification: Specification,
    batches: Batches,
    classes: AnyArray,
    options: EMOptions,
    initial: JointStatistics | None = None,
) -> tuple[JointStatistics, EMHistory]:
    """Expected statistics of all rows at the fixed point of EM, and its history; from initial statistics if given."""
    assert options.unlabeled_weight is not None
    rows = TrainingRows(specification, batches, classes, options.unlabeled_weight)
    complete: JointStatistics | None = None
    for batch in rows.complete():
        part = specification.collect(batch).align(classes)
        complete = part if complete is None else complete + part
    model = initial_model(specification, batches, classes) if initial is None else None
    return iterate(specification, rows, complete, model, options, initial)


def initial_model(specification: Specification, batches: Batches, classes: AnyArray) -> JointModel:
    """The MAP model of the labeled rows, with columns that have missing values independent."""
    plans = tuple(replace(plan, family=plan.family._initial_family(), others=()) for plan in specification.plans)
    simple = replace(specification, plans=plans, estimation=Estimation.MAP)
    total: JointStatistics | None = None
    for batch in batches:
        if batch.table.rows and len(batch.counts.classes):
            part = simple.collect(replace(batch, unlabeled=None))
            total = part if total is None else total + part
    assert total is not None
    prior = specification.class_prior
    usable = prior is not None and not (isinstance(prior, Dirichlet) and specification.estimation != Estimation.MAP)
    simple = simple if usable else replace(simple, class_prior=None)
    with trying():
        model = simple.estimate(total.align(classes))[0]
    return with_seeded_components(specification, model, batches)


def with_seeded_components(specification: Specification, model: JointModel, batches: Batches) -> JointModel:
    """The same model with initial centres for classes that have several components, from the first rows."""
    batch = next(batch for batch in batches if batch.table.rows)
    some = slice(0, min(batch.table.rows, SEEDING_ROWS))
    codes = positions(model.classes, batch.counts.classes)[batch.codes[some]]
    weights = batch.row_weights[some]
    blocks = []
    for plan, block in zip(specification.plans, model.blocks, strict=True):
        conditionals = block.conditionals
        if plan.family._needs_em:
            rows = np.array(block.reader(batch.table)(0, len(codes)))
            used = weights > 0.0
            conditionals = plan.family._seeded(conditionals, rows[used], codes[used], weights[used])
        blocks.append(replace(block, conditionals=conditionals))
    return replace(model, blocks=tuple(blocks))


def iterate(
    specification: Specification,
    rows: TrainingRows,
    complete: JointStatistics | None,
    model: JointModel | None,
    options: EMOptions,
    initial: JointStatistics | None = None,
) -> tuple[JointStatistics, EMHistory]:
    """E and M steps in turn until the objective converges, from a model or from initial statistics.

    Default priors are derived from the statistics once at the start of each round. "mle" has none, and one round.
    """
    plug_in = replace(specification, estimation=specification.estimation.plug_in)
    objective: list[float] = []
    statistics, likelihood = initial, -np.inf
    converged, rounds, iterations = False, 0, 0
    with single_threaded_blas_for(len(specification.names)), progress("EM iterations") as step:
        while not converged and iterations < options.max_iter:
            if statistics is None:
                assert model is not None
                statistics, _ = expect(specification, model, rows, complete)
            working, reference = with_fixed_priors(plug_in, statistics), statistics
            round_converged, objective = False, []
            while not round_converged and iterations < options.max_iter:
                with trying():
                    model = working.estimate(with_reference(statistics, reference))[0]
                statistics, likelihood = expect(specification, model, rows, complete)
                objective.append(likelihood + log_prior(working, statistics, reference, model))
                round_converged = has_converged(objective, float(statistics.counts.weight.sum()), options.tol)
                iterations += 1
                step()
            rounds += 1
            converged = round_converged and (plug_in.estimation == Estimation.MLE or rounds == ROUNDS)
    assert statistics is not None
    if not converged:
        _warn_not_converged(objective, float(statistics.counts.weight.sum()), iterations, options.tol)
    return statistics, EMHistory(tuple(objective), likelihood, iterations, converged)


def _warn_not_converged(objective: Sequence[float], weight: float, iterations: int, tol: float) -> None:
    change = abs(objective[-1] - objective[-2]) / max(weight, 1e-300) if len(objective) > 1 else np.inf
    warn(
        f"EM did not converge in {iterations} iterations (last change {change:.1e} per row, tol={tol:g}). "
        "Increase max_iter or tol, where the estimator has them.",
        NotConvergedWarning,
    )


def with_fixed_priors(specification: Specification, statistics: JointStatistics) -> Specification:
    """The same specification with the default priors that families derive from these statistics."""
    if specification.estimation == Estimation.MLE:
        return specification
    parts = zip(specification.plans, statistics.blocks, strict=True)
    plans = tuple(
        replace(plan, family=plan.family._with_fixed_prior(part, specification.estimation), others=())
        for plan, part in parts
    )
    return replace(specification, plans=plans)


def with_reference(statistics: JointStatistics, reference: JointStatistics) -> JointStatistics:
    """The same statistics; sums take what is derived from all rows from the reference."""
    blocks = tuple(
        replace(part, reference=whole) if isinstance(part, Sums) else part
        for part, whole in zip(statistics.blocks, reference.blocks, strict=True)
    )
    return JointStatistics(statistics.counts, blocks)


def log_prior(
    specification: Specification, statistics: JointStatistics, reference: JointStatistics, model: JointModel
) -> float:
    """The log-density of all priors at the parameters of a model; families without a closed form contribute 0."""
    total = 0.0
    prior = specification.class_prior
    if specification.estimation != Estimation.MLE and (prior is None or isinstance(prior, Dirichlet)):
        alpha = (prior or Dirichlet(2.0)).weights(statistics.counts.classes)
        with np.errstate(invalid="ignore"):
            total += float(np.where(alpha == 1.0, 0.0, (alpha - 1.0) * model.log_prior).sum())
    whole = with_reference(statistics, reference)
    for plan, part, block in zip(specification.plans, whole.blocks, model.blocks, strict=True):
        if not plan.family._smooths(specification.estimation):
            continue
        try:
            total += plan.family._log_prior(part, block.conditionals)
        except NoEvidenceError:
            continue
    return total
