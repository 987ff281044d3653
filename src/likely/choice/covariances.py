"""Choices that need class probabilities: pooled or per-class covariances, the strength of their prior, calibration.

All of them are judged by the leave-one-out log-loss of a sample of the rows. Covariances and the strength of the prior
are chosen jointly for each Gaussian block: every candidate is calibrated before it is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.choice.row_sample import SampledRows, sampled_rows
from likely.data.batches import Batches
from likely.errors import NoDensityError, NoEvidenceError, NotEstimableError, trying
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.log_normal import LogNormal
from likely.model.calibration import CalibratedLosses, Calibration, learn_calibration, without_calibration
from likely.model.choices import Choice, clear_best, difference_error, needed_gains
from likely.model.class_prior import leave_one_out_log_prior
from likely.model.joint import JointModel
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.numerics.ties import tie_ranks
from likely.statistics.counts import Counts, across
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

CELLS_EACH = 2  # values for each free parameter that an uncalibrated candidate needs
CELLS = 2**21  # log-densities of one candidate, at most
SWEEPS = 4  # passes over the blocks, each of which may change its choice given the others
WIDEST = 1000  # columns of a full covariance up to which several strengths are tried: each is factored again
STRENGTHS = (0.0, 1.0, 3.0, 10.0)  # of the prior of a covariance


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRows:
    """Sampled training rows, their leave-one-out class prior, and whether they have any observed value."""

    parts: tuple[SampledRows, ...]
    log_prior: Array  # (classes, n)
    codes: AnyArray
    weights: Array
    unobserved: AnyArray

    @classmethod
    def of(
        cls, specification: Specification, classes: AnyArray, batches: Batches, model: JointModel | None
    ) -> HeldOutRows | None:
        """A sample of the rows that can be held out; None if there are none.

        Calibration needs a model, which determines the columns that contribute to the evidence, the observed class
        proportions, and rows that are not the only one of their class.
        """
        counts = labeled_counts(batches, classes)
        if model is None:
            log_prior = leave_one_out_log_prior(specification.class_prior, counts, specification.estimation)
        else:
            log_prior = leave_one_out_log_prior(None, counts, Estimation.MLE)
        found: list[tuple[SampledRows, Array, AnyArray]] = []
        for some in sampled_rows(batches, counts, CELLS // len(classes)):
            prior = log_prior(some.codes, some.held_out)
            usable = (prior[some.codes, np.arange(len(some.codes))] > -np.inf) | (model is None)
            kept = np.flatnonzero(usable)
            if len(kept):
                part = some if len(kept) == len(some.codes) else some.take(kept)
                every = np.arange(len(kept))
                unobserved = np.zeros(len(kept), bool) if model is None else model.unobserved(part.table, every)
                found.append((part, prior[:, kept], unobserved))
        if not found:
            return None
        parts, priors, blanks = zip(*found, strict=True)
        codes, weights = (np.concatenate(each) for each in zip(*((p.codes, p.weights) for p in parts), strict=True))
        return cls(parts, np.concatenate(priors, axis=1), codes, weights, np.concatenate(blanks))

    def evidence(self, specification: Specification, plan: Plan, part: Any) -> Array:
        """Leave-one-out log p(x | class) of one block, (classes, n)."""
        log_density = specification.leave_one_out(plan, part)
        return np.concatenate([log_density(some.table, some.codes, some.held_out) for some in self.parts], axis=1)


def labeled_counts(batches: Batches, classes: AnyArray) -> Counts:
    """Counts of the labeled rows, with these classes."""
    total = Counts.empty(classes)
    for batch in batches:
        total = total + batch.counts.align(classes)
    return total


def choose_covariances(
    specification: Specification, statistics: JointStatistics, batches: Batches, calibrate: bool = False
) -> tuple[Specification, tuple[Choice, ...], Calibration | None]:
    """The same specification with one covariance for each Gaussian block, the choices made, and the calibration.

    Candidates are the families of a block that have the same statistics, such as pooled and per-class covariances. If
    `calibrate`, they are compared after calibration, and under "bayes" with several strengths of the prior of those
    that have none, and the one with the least log-loss is chosen if it is better than the first by more than one nat in
    total. Uncalibrated, a candidate needs enough values for its parameters, and must be better than the first by more
    than one standard error. Without rows to compare by, every block keeps its first family.
    """
    strengths = STRENGTHS if calibrate and specification.estimation == Estimation.BAYES else ()
    plans = specification.plans
    candidates = {i: _candidates(plan, strengths, len(specification.columns(plan))) for i, plan in enumerate(plans)}
    first = replace(specification, plans=tuple(replace(plans[i], family=each[0]) for i, each in candidates.items()))
    undecided = [i for i, families in candidates.items() if len(families) > 1]
    classes = statistics.counts.classes
    if not undecided and not calibrate:
        return specification, (), None
    rows: HeldOutRows | None = None
    if np.count_nonzero(statistics.counts.rows) > 1:
        model = first.estimate(statistics)[0] if calibrate else None
        rows = HeldOutRows.of(first, classes, batches, model)
    if rows is None:
        return specification, (), Calibration.identity(classes) if calibrate else None
    try:
        judge = _Judge(first, statistics, rows, candidates, calibrate)
        choices = judge.choose(undecided)
        calibration = judge.calibration() if calibrate else None
    except NoDensityError:  # a family of the user without leave-one-out
        return specification, (), None
    return replace(specification, plans=tuple(judge.plans)), choices, calibration


def calibrate(specification: Specification, statistics: JointStatistics, batches: Batches) -> Calibration:
    """The calibration of a model, from leave-one-out evidence of its rows."""
    classes = statistics.counts.classes
    rows = HeldOutRows.of(specification, classes, batches, specification.estimate(statistics)[0])
    if rows is None:
        return Calibration.identity(classes)
    return _Judge(specification, statistics, rows, {}, True).calibration()


def _candidates(plan: Plan, strengths: Sequence[float], columns: int) -> tuple[Family, ...]:
    """Candidates of a block: its family, others with the same statistics, and both with several strengths of priors.

    A chosen strength of 0 is a given prior, too, so that the family is the same wherever it is fitted again.
    """
    families = [plan.family, *(f for f in plan.others if f._statistics_key() == plan.family._statistics_key())]
    found: list[Family] = []
    for family in families:
        tried = strengths if _has_strength(family, columns) else ()
        found += [clone(family).set_params(prior=NormalInverseWishart(strength=each)) for each in tried] or [family]
    return tuple(found)


def _has_strength(family: Family, columns: int) -> bool:
    """Whether the strength of the prior of a family is chosen."""
    if not isinstance(family, Gaussian | LogNormal) or family.prior is not None:
        return False
    if isinstance(family, LogNormal):
        return True
    structure = family._structure
    return structure.estimated and family.components == 1 and not (structure.full and columns > WIDEST)


class _Judge:
    """Chooses the covariances of each block, given those of the others."""

    def __init__(
        self,
        specification: Specification,
        statistics: JointStatistics,
        rows: HeldOutRows,
        candidates: Mapping[int, tuple[Family, ...]],
        calibrate: bool,
    ) -> None:
        self.plans = list(specification.plans)
        self.specification_, self._statistics, self._rows = specification, statistics, rows
        self._candidates, self._calibrate = candidates, calibrate
        self._last: Calibration | None = None
        self._evidence: dict[int, Array] = {}  # of the current family of each block

    def choose(self, undecided: Sequence[int]) -> tuple[Choice, ...]:
        """Choose for each of these blocks given the others, until none changes; the largest gain goes first."""
        order = list(undecided)
        if len(order) > 1:
            gains = []
            for i in order:
                means = _compared(self._candidates_judged(i), self._rows.weights)[0]
                gains.append(means[0] - min(means))
            order = [order[j] for j in np.argsort(tie_ranks(gains), kind="stable")]
        choices: dict[int, Choice] = {}
        for _ in range(SWEEPS if len(order) > 1 else 1):
            before = [self.plans[i].family for i in order]
            choices |= {i: self._choose(i) for i in order}
            if all(self.plans[i].family is family for i, family in zip(order, before, strict=True)):
                break
        return tuple(choices[i] for i in undecided)

    def calibration(self) -> Calibration:
        """The calibration of the chosen families."""
        return self._judged(self._others(-1)).calibration

    def _choose(self, i: int) -> Choice:
        families = self._candidates[i]
        found = self._candidates_judged(i)
        means, errors = _compared(found, self._rows.weights)
        margin = 0.0 if self._calibrate else 1.0
        best = clear_best(means, needed_gains(errors, margin, float(self._rows.weights.sum())))
        rest = tuple(family for j, family in enumerate(families) if j != best)
        if (judged := found[best]) is not None:
            self._evidence[i], self._last = judged[0], judged[1].calibration
        self.plans[i] = replace(self.plans[i], family=families[best], others=rest)
        names = [family.describe() for family in families]
        scores = {name: None if np.isinf(mean) else mean for name, mean in zip(names, means, strict=True)}
        weight = float(self._statistics.counts.weight.sum())
        columns = self.specification_.columns(self.plans[i])
        return Choice(
            columns, names[best], scores, dict(zip(names, errors, strict=True)), weight, standard_errors=margin
        )

    def _candidates_judged(self, i: int) -> list[tuple[Array, CalibratedLosses] | None]:
        """The evidence of each candidate of a block, and the losses with it; None if it has no estimate."""
        others = self._others(i)
        found: list[tuple[Array, CalibratedLosses] | None] = []
        problem: NotEstimableError | None = None
        for j, family in enumerate(self._candidates[i]):
            found.append(None)
            if j and not self._calibrate and not self._enough(i, family):
                continue
            try:
                with trying():
                    evidence = self._evidence_of(i, family)
            except NotEstimableError as error:
                if family is self.plans[i].family:
                    raise
                problem = problem or error
                continue
            found[j] = evidence, self._judged(others + evidence)
        if problem is not None and not any(found):
            raise problem
        return found

    def _judged(self, evidence: Array) -> CalibratedLosses:
        """The losses of rows under evidence of all blocks, and the calibration that begins the next one."""
        rows = self._rows
        given = (self._statistics.counts.classes, evidence, rows.log_prior, rows.codes, rows.weights, rows.unobserved)
        if not self._calibrate:
            return without_calibration(*given)
        found = learn_calibration(*given, self._last)
        self._last = found.calibration
        return found

    def _enough(self, i: int, family: Family) -> bool:
        """Whether there are enough values for each free parameter of a candidate."""
        plan, part = self._candidate(i, family)
        try:
            size = family._n_parameters(part, self.specification_.columns(plan))
        except NoEvidenceError:
            return True
        counted = np.maximum(across(np.asarray(part.rows)), across(np.asarray(part.weight)))  # a weight counts as rows
        cells = np.broadcast_to(counted, (len(part.classes), part.dimension)).sum()
        return bool(cells >= CELLS_EACH * size)

    def _candidate(self, i: int, family: Family) -> tuple[Plan, Any]:
        """A block with one of its candidates, and the statistics of it."""
        part = family._project_statistics(self._statistics.blocks[i])
        return replace(self.plans[i], family=family, others=()), part

    def _others(self, i: int) -> Array:
        """The evidence of all blocks but one."""
        total = np.zeros_like(self._rows.log_prior)
        for j, plan in enumerate(self.plans):
            if j != i:
                total += self._evidence_of(j, plan.family)
        return total

    def _evidence_of(self, i: int, family: Family) -> Array:
        """The evidence of a candidate of a block; that of its current family is computed once."""
        if family is not self.plans[i].family:
            return self._rows.evidence(self.specification_, *self._candidate(i, family))
        if i not in self._evidence:
            self._evidence[i] = self._rows.evidence(self.specification_, *self._candidate(i, family))
        return self._evidence[i]


def _compared(
    candidates: Sequence[tuple[Array, CalibratedLosses] | None], weights: Array
) -> tuple[list[float], list[float]]:
    """Mean log-losses, infinite where a family has none; and standard errors of their differences from the first."""
    losses = [None if judged is None else judged[1].losses for judged in candidates]
    means = [np.inf if loss is None else float(np.average(loss, weights=weights)) for loss in losses]
    first = losses[0]
    errors = [0.0 if loss is None or first is None else difference_error(first, loss, weights) for loss in losses]
    return [np.inf if np.isnan(mean) else mean for mean in means], errors
