"""The objective of hybrids: generative and discriminative parameters, tied to one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.discriminative.design import LARGEST, Design, Part
from likely.discriminative.features import Features, block_line
from likely.discriminative.log_odds import LogOdds, odds_of
from likely.discriminative.newton import Around, Problem, descend, minimise
from likely.discriminative.softmax import class_precision, refuse_separation
from likely.errors import InputError, NotEstimableError, trying
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.protocols import FittableFromStatistics
from likely.families.gaussian.family import Gaussian
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
LEAST = 1e-20  # blends below are 0: nothing tells them apart


def with_linear_families(specification: Specification) -> Specification:
    """The same specification with a pooled covariance for continuous columns, whatever the rows would choose."""
    plans = []
    for plan in specification.plans:
        family = plan.family
        if plan.others and isinstance(family, Gaussian):
            family = Gaussian(family.covariance, shared=True)
        plans.append(replace(plan, family=family, others=()))
    return replace(specification, plans=tuple(plans))


# ------------------------------------------------------------------------------------------------------ both sets
@dataclass(frozen=True, slots=True, eq=False)
class HybridSolution:
    """Both sets of parameters: the discriminative one, and the statistics that the generative one is estimated from."""

    B: Array
    statistics: JointStatistics
    path: tuple[float, ...]
    converged: bool

    @property
    def iterations(self) -> int:
        return len(self.path) - 1


@dataclass(frozen=True, slots=True, eq=False)
class HybridState:
    """Parameters on the way: sums of the features in each class, and everything that follows from them."""

    sums: Array  # (classes, size)
    statistics: JointStatistics
    posterior: tuple[Array, ...]  # of all rows, by the generative set
    form: Array  # B(θ)
    apart: Array  # B − B(θ)
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class TiedObjective:
    """Rows, the generative model that they have by themselves, and all that the tie between the two sets needs."""

    specification: Specification
    working: Specification  # with what is derived from the data held fixed
    statistics: JointStatistics
    history: EMHistory | None
    labels: list[Any]
    features: Features
    tables: tuple[Table, ...]  # as the generative model reads them
    parts: tuple[Part, ...]  # their features; labelled rows come first
    design: Design  # of all rows
    gram: Array
    precision: Array
    penalty: float
    max_iter: int
    tol: float

    @classmethod
    def learnt(
        cls, batch: Batch, generative: GenerativeClassifier, penalty: float, whole: TiedObjective | None = None
    ) -> TiedObjective:
        """The generative model of these rows, and their features; where these are some rows, those of the whole."""
        batches = Batches.of((batch,))
        wanted = with_linear_families(generative._specify(batches)) if whole is None else whole.specification
        fit = generative._fit_rows(wanted, batches)
        specification, statistics = fit.specification, fit.statistics
        if whole is not None:
            pairs = zip(statistics.blocks, whole.statistics.blocks, strict=True)
            statistics = replace(statistics, blocks=tuple(_with_words(*pair) for pair in pairs))
        with trying():
            features = Features.of(specification.estimate(statistics)[0])
        size, classes = len(features.names), statistics.counts.classes
        if not size:
            raise InputError(
                "No column varies, so that there is nothing to learn. Hint: GenerativeClassifier has shares."
            )
        if size > LARGEST:
            raise InputError(f"There are {size} features, and a hybrid takes at most {LARGEST}.")
        if len(classes) > len(batch.counts.classes):
            raise InputError("A hybrid knows the classes in y alone, and class_prior declares more.")
        tables = [batch.table]
        parts = [Part(features.table(batch.table), batch.codes, batch.weights)]
        if batch.unlabeled is not None and generative.unlabeled_weight > 0.0:
            table, weights = batch.unlabeled.table, generative.unlabeled_weight * batch.unlabeled.row_weights
            tables.append(table)
            parts.append(Part(features.table(table), np.zeros((table.rows, len(classes))), weights))
        rows = sum(part.table.rows for part in parts)
        plain = Coordinates.plain(size)
        design = Design(lambda: iter(parts), rows, len(classes), size, True, None, plain, None)
        everyone, weight = design.totals()
        sparse = parts[0].table.is_sparse  # such rows have no origin but 0
        design = replace(design, origin=np.zeros(size) if sparse else everyone / weight)
        working = with_fixed_priors(specification, statistics)
        precision = class_precision(classes, None)
        return cls(
            specification,
            working,
            statistics,
            fit.history,
            classes.tolist(),
            features,
            tuple(tables),
            tuple(parts),
            design,
            design.gram(),
            precision,
            float(penalty),
            generative.max_iter,
            generative.tol,
        )

    def of(self, *parts: Part) -> Design:
        """The design of some rows."""
        return replace(self.design, parts=lambda: iter(parts), rows=sum(part.table.rows for part in parts))

    @property
    def total(self) -> float:
        return float(self.gram[-1, -1])

    def at(self, blend: float) -> HybridSolution:
        """Both sets of parameters at a blend."""
        if blend < LEAST:
            return self._generative()
        labelled = self.of(self.parts[0])
        free = blend**4 / (blend**4 + (1.0 - blend) ** 4)  # σ² / (1 + σ²)
        ridge = free * self.penalty * np.append(np.ones(self.design.width), 0.0)
        problem = Problem(labelled, labelled.sums(), self.precision, ridge)
        weights = self.parts[0].weights
        known = float(labelled.rows) if weights is None else float(weights.sum())
        if blend == 1.0:
            found = minimise(problem, known, 1e-12, 1000)
            if not self.penalty:
                refuse_separation(problem, found, problem.hessian(found.B), self.features.names, self.labels, known)
            return HybridSolution(found.B, self.statistics, found.path, found.converged)
        both = 0.5 if len(self.precision) == 1 else 1.0  # scores of two classes are ± half their difference
        return self._tied(problem, both * known / self.total * (1.0 - free) / free, known)

    def _generative(self) -> HybridSolution:
        with trying():
            model = self.specification.estimate(self.statistics)[0]
        path = (0.0,) if self.history is None else self.history.objective
        return HybridSolution(self.form(model), self.statistics, path, self.history is None or self.history.converged)

    def _tied(self, problem: Problem, tie: float, known: float) -> HybridSolution:
        """Rise along both sets of parameters, from those of the generative model on."""
        state, rested = self._state(self._started(), problem, tie, known, None), False
        path, least, share = [state.value], self.tol * self.total, 1.0
        heading = AndersonAcceleration(_whitening(self.gram))
        while len(path) <= self.max_iter and not rested:
            pull = tie * self.precision @ state.apart @ self.gram
            step = self._responsible(state.posterior) + np.vstack([-pull.sum(axis=0), pull]) - state.sums
            ahead = heading.ahead(state.sums, state.sums + share * step)
            new = None if ahead is None else self._tried(ahead, problem, tie, known, state.apart)
            if new is None or new.value <= state.value + least:
                heading.forget()
                new, share = self._risen(state, step, share, problem, tie, known)
                rested = new is None or new.value <= state.value + least
            if new is not None:
                state = new
                path.append(state.value)
        return HybridSolution(state.form + state.apart, state.statistics, tuple(path), rested)

    def _risen(
        self, state: HybridState, step: Array, share: float, problem: Problem, tie: float, known: float
    ) -> tuple[HybridState | None, float]:
        """A state in the direction of a step whose objective is not lower, and what share of a step to try next.

        It begins with twice the share that is given; None where there is no such state but this one.
        """
        share = min(2.0 * share, 1.0)
        for _ in range(HALVINGS):
            new = self._tried(state.sums + share * step, problem, tie, known, state.apart)
            if new is not None and new.value >= state.value:
                return new, share
            share *= 0.5
        return None, share

    def _tried(self, sums: Array, problem: Problem, tie: float, known: float, apart: Array) -> HybridState | None:
        """The state of these sums; None where no rows have such sums: nearer ones may."""
        try:
            return self._state(sums, problem, tie, known, apart)
        except (NotEstimableError, np.linalg.LinAlgError):
            return None

    def _started(self) -> Array:
        """The sums behind the generative model: labelled rows in their classes, others by responsibility."""
        with trying():
            model = self.specification.estimate(self.statistics)[0]
        parts = [self.parts[0]]
        for table, part in zip(self.tables[1:], self.parts[1:], strict=True):
            parts.append(replace(part, targets=model.joint_and_posterior(table)[1]))
        return self._all_classes(parts)

    def _responsible(self, posterior: Sequence[Array]) -> Array:
        """The sums of the features in each class, by responsibility."""
        return self._all_classes([replace(p, targets=r) for p, r in zip(self.parts, posterior, strict=True)])

    def _all_classes(self, parts: Sequence[Part]) -> Array:
        others = self.of(*parts).sums()
        return np.vstack([self.gram[-1] - others.sum(axis=0), others])

    def _state(self, sums: Array, problem: Problem, tie: float, known: float, apart: Array | None) -> HybridState:
        """Everything that follows from sums of the features in each class, and the objective."""
        statistics = self.assembled(sums)
        with trying(), np.errstate(all="ignore"):
            model = self.working.estimate(with_reference(statistics, self.statistics))[0]
            form = self.form(model)
            if not np.all(np.isfinite(form)):
                raise NotEstimableError("no finite log-odds")
            value = log_prior(self.working, statistics, self.statistics, model)
            posterior = []
            for table, part in zip(self.tables, self.parts, strict=True):
                joint, shares = model.joint_and_posterior(table)
                weights = np.ones(len(joint)) if part.weights is None else part.weights
                value += float(weights @ logsumexp(joint, axis=1))
                posterior.append(shares)
        start = np.zeros_like(form) if apart is None else apart
        found = descend(Around(problem, form, tie * self.gram), start, None, known, 1e-12, 100)
        value -= found.value
        if not np.isfinite(value):
            raise NotEstimableError("no finite objective")
        return HybridState(sums, statistics, tuple(posterior), form, found.B, value)

    def form(self, model: JointModel) -> Array:
        """The log-odds of a generative model in the features, about their origin: (classes − 1, size)."""
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
        """The statistics of rows that have these sums of the features in each class, (classes, size)."""
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
            blocks.append(_moved(part, mine, weight) if isinstance(part, Moments) else _summed(part, mine, weight))
        return JointStatistics(replace(self.statistics.counts, weight=weight), tuple(blocks))

    def odds(self, B: Array) -> LogOdds:
        return odds_of(self.design, self.design.width, B, None)

    def settle(self, generative: FittableFromStatistics, found: HybridSolution, batch: Batch) -> None:
        """Let the generative set be the model of an estimator."""
        history = self.history
        if found.statistics is not self.statistics:
            history = EMHistory(found.path, found.path[-1], found.iterations, found.converged)
        fit = Fit(self.specification, found.statistics, history=history)
        generative._set_fit(batch, fit.with_statistics(found.statistics))


def _whitening(gram: Array) -> Array:
    """A factor of the inverse of a Gram matrix, of the directions that it has: neither units nor origins matter."""
    size = np.sqrt(np.diagonal(gram))
    size = np.where(size > 0.0, size, 1.0)
    value, turn = np.linalg.eigh(gram / size / size[:, None])
    there = value > len(value) * EPS * 1e3
    return np.asarray((turn[:, there] / np.sqrt(value[there])) / size[:, None])


def _with_words(part: Any, like: Any) -> Any:
    """Counts with all categories that others have."""
    return part.align(part.classes, like.vocabularies) if isinstance(part, CategoryCounts) else part


def _moved(part: Moments, mean: Array, weight: Array) -> Moments:
    """Moments of the same rows, shared out among the classes in another way."""
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


def _summed(part: Sums, mean: Array, weight: Array) -> Sums:
    """Sums of the same cells, shared out among the classes in another way; only the first function is looked at."""
    if np.any(mean < 0.0):
        raise NotEstimableError("a negative sum")
    totals = part.totals.sum(axis=1, keepdims=True) * (weight / weight.sum())[:, None]
    totals[0] = mean * weight[:, None]
    return replace(part, weight=weight, totals=totals)
