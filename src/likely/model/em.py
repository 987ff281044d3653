"""Expectation maximisation (EM): fitting with unlabeled rows, missing values, or components that are not observed.

The E step (`model.expectations`) replaces the statistics of such rows by their expectations under the current model;
the M step estimates a model from them as from any others. The log-likelihood of the observed values, under "map" plus
the log-density of the priors, never decreases. Priors that are derived from the data are held fixed meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.data.batches import Batches
from likely.errors import NoEvidenceError, NotConvergedWarning, NotEstimableError, trying, warn
from likely.families.estimation import Estimation
from likely.families.priors import Dirichlet
from likely.model.class_prior import dirichlet_of
from likely.model.expectations import TrainingRows, class_log_likelihoods, expect
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.seeding import SeedingSample
from likely.model.specification import Specification
from likely.numerics.progress import progress
from likely.numerics.threads import single_threaded_blas_for
from likely.numerics.ties import exceeds, tie_ranks
from likely.statistics.joint import JointStatistics
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array

STARTS = 10  # of the components of classes
SHORT_RUN = 50  # iterations from each start
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


register(EMHistory)


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
    rows = TrainingRows.of(specification, batches, classes, options.unlabeled_weight)
    if initial is None and any(plan.family._components > 1 for plan in specification.plans):
        starts = ComponentStarts.of(specification, _labeled_model(specification, batches, classes), batches)
        return _from_best_start(rows, starts, options)
    model = initial_model(specification, batches, classes) if initial is None else None
    return iterate(rows, model, options, initial)


def initial_model(specification: Specification, batches: Batches, classes: AnyArray) -> JointModel:
    """The model that EM starts from, with the first seeds of components."""
    model = _labeled_model(specification, batches, classes)
    starts = ComponentStarts.of(specification, model, batches)
    return starts.at(starts.draw(np.random.default_rng(0)))


def _labeled_model(specification: Specification, batches: Batches, classes: AnyArray) -> JointModel:
    """The MAP model of the labeled rows, with columns that have missing values independent."""
    plans = tuple(replace(plan, family=plan.family._initial_family(), others=()) for plan in specification.plans)
    simple = replace(specification, plans=plans, estimation=Estimation.MAP)
    total = batches.total(simple.summarise, draw=False)
    assert total is not None
    prior = specification.class_prior
    usable = prior is not None and not (isinstance(prior, Dirichlet) and specification.estimation != Estimation.MAP)
    simple = simple if usable else replace(simple, class_prior=None)
    with trying():
        return simple.estimate(total.align(classes))[0]


@dataclass(frozen=True, slots=True, eq=False)
class ComponentStarts:
    """Starts of EM for classes that have several components, drawn by the content of the rows alone."""

    specification: Specification
    model: JointModel  # of the labeled rows, without components
    samples: dict[int, SeedingSample]  # of the blocks that have components

    @classmethod
    def of(cls, specification: Specification, model: JointModel, batches: Batches) -> ComponentStarts:
        places = [i for i, plan in enumerate(specification.plans) if plan.family._components > 1]
        rows = batches.sample
        return cls(specification, model, {i: SeedingSample.of(model.blocks[i], rows, model.classes) for i in places})

    def draw(self, rng: np.random.Generator) -> dict[int, Array]:
        """Centres of components in the classes, (classes, components, columns), of each block."""
        centres = {}
        for i, sample in self.samples.items():
            conditionals: Any = self.model.blocks[i].conditionals
            centres[i] = sample.centres(conditionals.class_means(), self.specification.plans[i].family._components, rng)
        return centres

    def at(self, centres: dict[int, Array]) -> JointModel:
        """The model that assigns rows to the nearest centre of their class."""
        blocks = list(self.model.blocks)
        for i, sample in self.samples.items():
            family = self.specification.plans[i].family
            seeded = family._seeded(blocks[i].conditionals, centres[i], sample.scale())
            blocks[i] = replace(blocks[i], conditionals=seeded)
        return replace(self.model, blocks=tuple(blocks))


def _from_best_start(
    rows: TrainingRows, starts: ComponentStarts, options: EMOptions
) -> tuple[JointStatistics, EMHistory]:
    """EM from the best of several starts after a few iterations; starts from which EM collapses are skipped.

    The last start has for each class the centres under which the rows of the class had the largest likelihood: without
    pooled covariances classes do not influence each other.
    """
    short = replace(options, max_iter=min(options.max_iter, SHORT_RUN))
    plug_in = rows.specification.plugged_in
    found: list[tuple[float, JointStatistics]] = []
    problem: NotEstimableError | None = None
    rng, best = np.random.default_rng(0), np.full(len(starts.model.classes), -np.inf)
    drawn = [starts.draw(rng) for _ in range(STARTS)]
    combined = {i: centres.copy() for i, centres in drawn[0].items()}
    with progress("starts of components", STARTS + 1) as step:
        for centres in (*drawn, combined):
            try:
                with trying():
                    statistics, history = iterate(rows, starts.at(centres), short)
                    likelihoods = class_log_likelihoods(plug_in.estimate(statistics)[0], rows)
            except NotEstimableError as error:
                problem = error
                continue
            finally:
                step()
            found.append((history.objective[-1], statistics))
            better = exceeds(likelihoods, best)
            for i in combined:
                combined[i][better] = centres[i][better]
            best = np.where(better, likelihoods, best)
        for i in np.argsort(tie_ranks([objective for objective, _ in found]), kind="stable").tolist():
            try:
                return iterate(rows, None, options, found[i][1])
            except NotEstimableError as error:
                problem = error
    assert problem is not None
    raise problem


def iterate(
    rows: TrainingRows, model: JointModel | None, options: EMOptions, initial: JointStatistics | None = None
) -> tuple[JointStatistics, EMHistory]:
    """E and M steps in turn until the objective converges, from a model or from initial statistics.

    Default priors are derived from the statistics once at the start of each round. "mle" has none, and one round.
    """
    plug_in = rows.specification.plugged_in
    objective: list[float] = []
    statistics, likelihood = initial, -np.inf
    converged, rounds, iterations = False, 0, 0
    with single_threaded_blas_for(len(plug_in.names)), progress("EM iterations") as step:
        while not converged and iterations < options.max_iter:
            if statistics is None:
                assert model is not None
                statistics, _ = expect(model, rows)
            working, reference = with_fixed_priors(plug_in, statistics), statistics
            round_converged, objective = False, []
            while not round_converged and iterations < options.max_iter:
                with trying():
                    model = working.estimate(with_reference(statistics, reference))[0]
                statistics, likelihood = expect(model, rows)
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
    change = "no change is known after one iteration with these priors"
    if len(objective) > 1:
        change = f"last change {abs(objective[-1] - objective[-2]) / max(weight, 1e-300):.1e} per row"
    warn(
        f"EM did not converge in {iterations} iteration{'' if iterations == 1 else 's'} ({change}, tol={tol:g}). "
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
    dirichlet = dirichlet_of(specification.class_prior, specification.estimation)
    if specification.estimation != Estimation.MLE and dirichlet is not None:
        alpha = dirichlet.weights(statistics.counts.classes)
        with np.errstate(invalid="ignore"):
            total += float(np.where(alpha == 1.0, 0.0, (alpha - 1.0) * model.log_prior).sum())
    whole = with_reference(statistics, reference)
    for plan, part, block in zip(specification.plans, whole.blocks, model.blocks, strict=True):
        if specification.estimation == Estimation.MLE and not plan.family._smooths(Estimation.MLE):
            continue
        try:
            total += plan.family._log_prior(part, block.conditionals)
        except NoEvidenceError:
            continue
    return total
