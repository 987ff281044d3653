"""Objective of the hybrid classifier: generative and discriminative parameters, coupled by a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.discriminative.design import MAX_FACTORED, Design, GivenRows, Part
from likely.discriminative.features import Features, block_line
from likely.discriminative.log_odds import LogOdds, log_odds_of
from likely.discriminative.newton import CentredProblem, Problem, descend, minimise
from likely.discriminative.separation import check_separation
from likely.discriminative.softmax import class_precision
from likely.errors import InputError, NotEstimableError, trying
from likely.estimators.base import Learner
from likely.estimators.classifiers import GenerativeClassifier
from likely.families.gamma import Gamma
from likely.families.gaussian.family import Gaussian
from likely.families.log_normal import LogNormal
from likely.families.point_mass import PointMass
from likely.model.em import EMHistory, log_prior, with_fixed_priors, with_reference
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.specification import Specification
from likely.numerics.acceleration import AndersonAcceleration
from likely.numerics.coordinates import Coordinates
from likely.numerics.special import EPS
from likely.statistics.category_counts import CategoryCounts
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.statistics.sums import Sums
from likely.typing import Array

HALVINGS = 30
NEWTON_TOL = 1e-4  # of Newton's method within an iteration, relative to the tolerance of the iteration
LEAST_BLEND = 1e-20  # smaller blends are 0 to all digits


def with_linear_families(specification: Specification) -> Specification:
    """The same specification with a pooled covariance for continuous columns, without choosing between families.

    Families that are not declared and whose log-odds are not linear in x become Gaussian.
    """
    plans = []
    for plan in specification.plans:
        family = plan.family
        if plan.others and isinstance(family, Gaussian):
            family = Gaussian(family.covariance, shared=True)
        elif plan.observed and isinstance(family, LogNormal | Gamma | PointMass):
            joint = isinstance(family, LogNormal) and family.covariance == "full"
            family = Gaussian("full" if joint else "diagonal", shared=True)
        plans.append(replace(plan, family=family, others=(), choices=()))
    return replace(specification, plans=tuple(plans))


@dataclass(frozen=True, slots=True, eq=False)
class HybridSolution:
    """Discriminative coefficients B, and the statistics from which the generative parameters θ are estimated."""

    B: Array
    statistics: JointStatistics
    path: tuple[float, ...]
    converged: bool
    state: HybridState | None = None  # the last iterate, where there are iterates

    @property
    def iterations(self) -> int:
        """Number of iterations; 1 for the generative model, which needs none."""
        return max(len(self.path) - 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class HybridState:
    """An iterate: sums of the features in each class, and everything that follows from them."""

    sums: Array  # (classes, size)
    statistics: JointStatistics
    posterior: tuple[Array, ...]  # responsibilities of all rows, by the generative model
    generative: Array  # B(θ)
    difference: Array  # B − B(θ)
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class _Coupling:
    """The discriminative problem of the labeled rows, and the strength κ of its coupling to the generative model."""

    problem: Problem
    strength: float
    labeled_weight: float


@dataclass(frozen=True, slots=True, eq=False)
class TiedObjective:
    """The rows, the generative model fitted to them, and what the coupled objective needs."""

    fit: Fit  # of the generative model
    working: Specification  # with data-dependent priors held fixed
    statistics: JointStatistics  # those of the fit, in which expectations replace missing values
    model: JointModel  # estimated from them
    features: Features
    tables: tuple[Table, ...]  # input of the generative model
    parts: tuple[Part, ...]  # input of the discriminative model; labeled rows come first
    design: Design  # of all rows
    gram: Array
    precision: Array
    penalty: float
    max_iter: int
    tol: float

    @classmethod
    def of(
        cls, batch: Batch, generative: GenerativeClassifier, penalty: float, whole: TiedObjective | None = None
    ) -> TiedObjective:
        """Fit the generative model to these rows and compute their features; those of `whole` if it is given."""
        batches = Batches.of((batch,))
        wanted = with_linear_families(generative._specify(batches)) if whole is None else whole.fit.specification
        fit = generative._fit_rows(wanted, batches)
        statistics = fit.specification.completed(fit.statistics)
        if whole is not None:
            pairs = zip(statistics.blocks, whole.statistics.blocks, strict=True)
            statistics = replace(statistics, blocks=tuple(_with_categories(*pair) for pair in pairs))
        with trying():
            model = fit.specification.estimate(statistics)[0]
        features = Features.of(model)
        size, classes = len(features.names), statistics.counts.classes
        _check_supported(size, len(classes), len(batch.counts.classes))
        tables = [batch.table]
        parts = [Part(features.table(batch.table), batch.codes, batch.weights)]
        if batch.unlabeled is not None and fit.unlabeled is not None and fit.unlabeled.weight > 0.0:
            table, weights = batch.unlabeled.table, fit.unlabeled.weight * batch.unlabeled.row_weights
            tables.append(table)
            parts.append(Part(features.table(table), np.full((table.rows, len(classes)), 1.0 / len(classes)), weights))
        rows = sum(part.table.rows for part in parts)
        plain = Coordinates.plain(size)
        design = Design(GivenRows(tuple(parts)), rows, len(classes), size, True, None, plain, None)
        sparse, totals = parts[0].table.is_sparse, design.sums().sum(axis=0)  # sparse rows are not centred
        design = replace(design, origin=np.zeros(size) if sparse else totals[:-1] / totals[-1])
        return cls(
            fit,
            with_fixed_priors(fit.specification, statistics),
            statistics,
            model,
            features,
            tuple(tables),
            tuple(parts),
            design,
            design.gram(),
            class_precision(classes, None),
            float(penalty),
            generative.max_iter,
            generative.tol,
        )

    def design_of(self, *parts: Part) -> Design:
        """The design of some parts."""
        return replace(self.design, source=GivenRows(parts), rows=sum(part.table.rows for part in parts))

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.gram[-1, -1])

    def at(self, blend: float, start: HybridState | None = None) -> HybridSolution:
        """The parameters at a blend. The iteration starts from the iterate of another blend, if it is given."""
        if blend < LEAST_BLEND:
            return self._generative_solution()
        labeled = self.design_of(self.parts[0])
        freedom = blend**4 / (blend**4 + (1.0 - blend) ** 4)  # σ² / (1 + σ²)
        ridge = freedom * self.penalty * np.append(np.ones(self.design.width), 0.0)
        problem = Problem(labeled, labeled.sums()[1:], self.precision, ridge)
        weights = self.parts[0].weights
        labeled_weight = float(labeled.rows) if weights is None else float(weights.sum())
        if blend == 1.0:
            found = minimise(problem, labeled_weight, 1e-12, 1000)
            if not self.penalty:
                hessian = problem.hessian(found.B)
                labels = self.statistics.counts.classes.tolist()
                check_separation(problem, found, hessian, self.features.names, labels, labeled_weight)
            return HybridSolution(found.B, self.statistics, found.path, found.converged)
        factor = 0.5 if len(self.precision) == 1 else 1.0  # scores of two classes are ± half their difference
        coupling = factor * labeled_weight / self.total * (1.0 - freedom) / freedom
        return self._maximise(_Coupling(problem, coupling, labeled_weight), start)

    def _generative_solution(self) -> HybridSolution:
        """The parameters of the generative model."""
        history = self.fit.history
        path = (0.0,) if history is None else history.objective
        converged = history is None or history.converged
        return HybridSolution(self.coefficients(self.model), self.statistics, path, converged)

    def _maximise(self, coupling: _Coupling, start: HybridState | None) -> HybridSolution:
        """Generalised EM with Anderson acceleration, from the given iterate or from the generative model."""
        if start is None:
            state = self._state(self._initial_sums(), coupling, None)
        else:
            state = self._state(start.sums, coupling, start.difference)
        converged = False
        path, least, fraction = [state.value], self.tol * self.total, 1.0
        acceleration = AndersonAcceleration(_whitening(self.gram))
        while len(path) <= self.max_iter and not converged:
            pull = coupling.strength * self.precision @ state.difference @ self.gram
            step = self._expected_sums(state.posterior) + np.vstack([-pull.sum(axis=0), pull]) - state.sums
            ahead = acceleration.ahead(state.sums, state.sums + fraction * step)
            new = None if ahead is None else self._feasible_state(ahead, coupling, state.difference)
            if new is None or new.value <= state.value + least:
                acceleration.forget()
                new, fraction = self._line_search(state, step, fraction, coupling)
                converged = new is None or new.value <= state.value + fraction * least  # a whole step gains more
            if new is not None:
                state = new
                path.append(state.value)
        return HybridSolution(state.generative + state.difference, state.statistics, tuple(path), converged, state)

    def _line_search(
        self, state: HybridState, step: Array, fraction: float, coupling: _Coupling
    ) -> tuple[HybridState | None, float]:
        """A state along a step whose objective is not lower, by halving, and the fraction of the step that was taken.

        It starts with twice the given fraction. The state is None if no fraction succeeds.
        """
        fraction = min(2.0 * fraction, 1.0)
        for _ in range(HALVINGS):
            new = self._feasible_state(state.sums + fraction * step, coupling, state.difference)
            if new is not None and new.value >= state.value:
                return new, fraction
            fraction *= 0.5
        return None, fraction

    def _feasible_state(self, sums: Array, coupling: _Coupling, difference: Array) -> HybridState | None:
        """The state of these sums; None if no rows can have such sums."""
        try:
            return self._state(sums, coupling, difference)
        except (NotEstimableError, np.linalg.LinAlgError):
            return None

    def _initial_sums(self) -> Array:
        """The sums of the generative model: labeled rows in their classes, unlabeled rows by responsibility."""
        parts = [self.parts[0]]
        for table, part in zip(self.tables[1:], self.parts[1:], strict=True):
            parts.append(replace(part, targets=self.model.joint_and_posterior(table)[1]))
        return self.design_of(*parts).sums()

    def _expected_sums(self, posterior: Sequence[Array]) -> Array:
        """Expected sums of the features in each class, by responsibility."""
        parts = zip(self.parts, posterior, strict=True)
        return self.design_of(*(replace(part, targets=targets) for part, targets in parts)).sums()

    def _state(self, sums: Array, coupling: _Coupling, difference: Array | None) -> HybridState:
        """The state of given sums of the features in each class, with B at its optimum; `difference` is its start."""
        statistics = self.assembled(sums)
        with trying(), np.errstate(all="ignore"):
            model = self.working.estimate(with_reference(statistics, self.statistics))[0]
            generative = self.coefficients(model)
            if not np.all(np.isfinite(generative)):
                raise NotEstimableError("no finite log-odds")
            value = log_prior(self.working, statistics, self.statistics, model)
            posterior = []
            for table, part in zip(self.tables, self.parts, strict=True):
                joint, responsibilities = model.joint_and_posterior(table)
                weights = np.ones(len(joint)) if part.weights is None else part.weights
                value += float(weights @ logsumexp(joint, axis=1))
                posterior.append(responsibilities)
        start = np.zeros_like(generative) if difference is None else difference
        centred = CentredProblem(coupling.problem, generative, coupling.strength * self.gram)
        tol = max(NEWTON_TOL * self.tol, 1e-12)
        found = descend(centred, start, None, coupling.labeled_weight, tol, 100)
        value -= found.value
        if not np.isfinite(value):
            raise NotEstimableError("no finite objective")
        return HybridState(sums, statistics, tuple(posterior), generative, found.B, value)

    def coefficients(self, model: JointModel) -> Array:
        """B(θ): log-odds of a generative model in the features, about their origin, (classes − 1, size)."""
        size, place = self.design.width, 0
        origin = self.design.origin
        assert origin is not None
        out = np.zeros((len(model.classes), size + 1))
        out[:, -1] = model.log_prior
        for block in model.blocks:
            if block.conditionals.vocabularies is None:
                line = block_line(block)
                if line is None:
                    raise NotEstimableError("no finite log-odds")
                mine = slice(place, place + block.conditionals.dimension)
                out[:, mine] = line[0]
                out[:, -1] += line[1] + line[0] @ (origin[mine] - line[2])
                place = mine.stop
                continue
            tables: Any = block.conditionals
            for table in tables.tables:
                mine = slice(place, place + table.shape[1] - 1)
                out[:, mine] = table[:, 1:] - table[:, :1]
                out[:, -1] += table[:, 0] + out[:, mine] @ origin[mine]
                place = mine.stop
        return out[1:] - out[:1]

    def assembled(self, sums: Array) -> JointStatistics:
        """The statistics of rows with these sums of the features in each class, (classes, size)."""
        weight, place = sums[:, -1], 0
        blocks: list[Any] = []
        if not np.all(weight > 0.0):
            raise NotEstimableError("a class without rows")
        origin = self.design.origin
        assert origin is not None
        mean = sums[:, :-1] / weight[:, None] + origin
        for part in self.statistics.blocks:
            if isinstance(part, CategoryCounts):
                tables = []
                for table in part.weight:
                    others = mean[:, place : place + table.shape[1] - 1] * weight[:, None]
                    tables.append(np.column_stack([weight - others.sum(axis=1), others]))
                    place += table.shape[1] - 1
                if any(np.any(table < -1e-9 * weight.max()) for table in tables):
                    raise NotEstimableError("a negative count")
                blocks.append(replace(part, weight=tuple(np.maximum(table, 0.0) for table in tables)))
                continue
            mine = mean[:, place : place + part.dimension]
            place += part.dimension
            blocks.append(_moments(part, mine, weight) if isinstance(part, Moments) else _sums(part, mine, weight))
        return JointStatistics(replace(self.statistics.counts, weight=weight), tuple(blocks))

    def log_odds(self, B: Array) -> LogOdds:
        """Log-odds with coefficients B."""
        return log_odds_of(self.design, self.design.width, B, None)

    def set_generative(self, generative: Learner, found: HybridSolution, batch: Batch) -> None:
        """Set the fitted attributes of an estimator to the generative parameters."""
        fit = Fit(self.fit.specification, self.fit.statistics, history=self.fit.history, unlabeled=self.fit.unlabeled)
        if found.statistics is not self.statistics:
            history = EMHistory(found.path, found.path[-1], found.iterations, found.converged)
            fit = replace(fit, statistics=found.statistics, history=history)
        generative._set_fit(batch, fit.with_statistics(fit.statistics))


def _check_supported(features: int, classes: int, in_labels: int) -> None:
    """Raise for numbers of features and classes that a hybrid does not support."""
    if not features:
        raise InputError(
            "All columns are constant, so there are no features. Use GenerativeClassifier for class proportions."
        )
    if features > MAX_FACTORED:
        raise InputError(f"There are {features} features, and HybridClassifier supports at most {MAX_FACTORED}.")
    if classes > in_labels:
        raise InputError("class_prior names classes that are not in y, which HybridClassifier does not support.")


def _whitening(gram: Array) -> Array:
    """W with W·Wᵀ the pseudo-inverse of a Gram matrix, so that the acceleration does not depend on units or origins."""
    size = np.sqrt(np.diagonal(gram))
    size = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(gram / size / size[:, None])
    kept = values > len(values) * EPS * 1e3
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) / size[:, None])


def _with_categories(part: Any, like: Any) -> Any:
    """Category counts with the categories of others."""
    return part.align(part.classes, like.vocabularies) if isinstance(part, CategoryCounts) else part


def _moments(part: Moments, mean: Array, weight: Array) -> Moments:
    """Moments of the same rows, with other class means and weights: the total scatter is unchanged."""
    local = (mean - part.coordinates.origin) / part.coordinates.unit
    middle = weight @ local / weight.sum()
    before, after = part.mean - middle, local - middle
    if part.full:
        between = (before * part.weight[:, None]).T @ before - (after * weight[:, None]).T @ after
    else:
        between = part.weight @ before**2 - weight @ after**2
    scatter = part.scatter[0] + between
    if np.any((np.diagonal(scatter) if part.full else scatter) < 0.0):
        raise NotEstimableError("a negative variance")
    return replace(part, weight=weight, mean=local, scatter=scatter[None])


def _sums(part: Sums, mean: Array, weight: Array) -> Sums:
    """Sums of the same values, with other class means and weights; the first function is the value itself."""
    if np.any(mean < 0.0):
        raise NotEstimableError("a negative sum")
    totals = part.totals.sum(axis=1, keepdims=True) * (weight / weight.sum())[:, None]
    totals[0] = mean * weight[:, None]
    return replace(part, weight=weight, totals=totals)
