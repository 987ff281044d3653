"""Calibration of class probabilities: one exponent of the evidence, and one intercept for each class.

A generative model weighs evidence as if its densities were true: columns that repeat each other count twice. The
calibrated probabilities of the classes are the softmax of

    a_k = t·log p(x | k) + log π_k + c_k.

The exponent t and the intercepts c are learnt from leave-one-out evidence, with the observed class proportions as π:

    minimise   Σ w·(log Σ_k exp a_k − a_y) + ½·(log t)² + ½·Σ_k (c_k / 0.25)²   over t in [0.01, 3].

The objective is convex in (t, c) for t < e, so its minimum does not depend on where the iteration starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from likely.numerics.shapes import Shape
from likely.numerics.special import EPS, log_sum_exp
from likely.statistics.counts import unite_classes
from likely.typing import AnyArray, Array

SMALLEST, LARGEST = 0.01, 3.0  # exponents
PRECISION = 16.0  # of the intercepts' prior: their standard deviation is 0.25
FARTHEST = 1e8  # log-odds beyond which evidence is cut off, so that a sum of losses keeps its digits
FEW_CLASSES = 64  # up to which the Hessian of the intercepts is computed
MOST_STEPS = 100
HALVINGS = 40
CONVERGED = 1e-10  # the largest change of log t and c in the last step
CG_TOL = 1e-4  # of conjugate gradients: Newton's method corrects the rest


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Calibration of class probabilities: softmax of exponent · log p(x | class) + log class prior + intercept.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    exponent : float
        Exponent of the class-conditional densities, from 0.01 to 3. Below 1 the uncalibrated probabilities are too
        extreme, above 1 too moderate.
    intercepts : ndarray of shape (n_classes,)
        Intercept of each class. Rows without any observed value have none: their probabilities are the class prior.
    log_loss_before : float
        Mean leave-one-out log-loss without calibration, under the observed class proportions.
    log_loss_after : float
        The same with calibration.
    weight : float
        Total weight of the rows that both are means of.

    See Also
    --------
    GenerativeClassifier.calibrate : Learns it again.
    """

    classes: Annotated[AnyArray, Shape("=classes")]
    exponent: Annotated[float, Shape(f">={SMALLEST}", f"<={LARGEST}")]
    intercepts: Annotated[Array, Shape("classes")]
    log_loss_before: float
    log_loss_after: float
    weight: Annotated[float, Shape(">=0")]

    @classmethod
    def identity(cls, classes: AnyArray) -> Self:
        """No calibration, by no rows."""
        return cls(classes, 1.0, np.zeros(len(classes)), np.nan, np.nan, 0.0)

    def align(self, classes: AnyArray) -> Self:
        """The same for these classes; a class that it does not know has intercept 0."""
        if classes is self.classes:
            return self
        known = dict(zip(self.classes.tolist(), self.intercepts.tolist(), strict=True))
        intercepts = np.array([known.get(label, 0.0) for label in classes.tolist()])
        return replace(self, classes=classes, intercepts=intercepts)

    def merged(self, other: Calibration, weights: tuple[float, float]) -> Self:
        """The mean of log t and c of two models with these weights of rows."""
        mine = weights[0] / sum(weights) if sum(weights) > 0.0 else 0.5
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        exponent = float(np.exp(mine * np.log(self.exponent) + (1.0 - mine) * np.log(other.exponent)))
        parts = (self, other)
        return replace(
            left,
            exponent=min(max(exponent, SMALLEST), LARGEST),
            intercepts=mine * left.intercepts + (1.0 - mine) * right.intercepts,
            log_loss_before=_mean_of_known(*((each.log_loss_before, each.weight) for each in parts)),
            log_loss_after=_mean_of_known(*((each.log_loss_after, each.weight) for each in parts)),
            weight=self.weight + other.weight,
        )

    def scores(self, evidence: Array, log_prior: Array, unobserved: AnyArray | None = None) -> Array:
        """t·evidence + log-prior + c, (classes, n), written into `evidence`; without c for rows without any value."""
        with np.errstate(over="ignore"):
            evidence *= self.exponent
        evidence += log_prior
        if unobserved is None:
            evidence += self.intercepts[:, None]
        else:
            evidence += np.where(unobserved, 0.0, self.intercepts[:, None])
        return evidence

    def __str__(self) -> str:
        """One line: t, and the leave-one-out log-loss before and after."""
        losses = f"leave-one-out log-loss {self.log_loss_before:.4f} before, {self.log_loss_after:.4f} after"
        return f"calibrated: exponent {self.exponent:.3g}, {losses if self.weight > 0.0 else 'no rows to learn from'}"


def _mean_of_known(*parts: tuple[float, float]) -> float:
    """The weighted mean of values that are not NaN; NaN where all are."""
    known = [(value, weight) for value, weight in parts if not np.isnan(value)]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total > 0.0 else np.nan


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedLosses:
    """A calibration, and the log-loss of each row with it, at most −log ε."""

    calibration: Calibration
    losses: Array


def learn_calibration(
    classes: AnyArray,
    evidence: Array,
    log_prior: Array,
    codes: AnyArray,
    weights: Array,
    unobserved: AnyArray,
    start: Calibration | None = None,
) -> CalibratedLosses:
    """The calibration of rows of the classes `codes`, from their log p(x | class) and log p(class), (classes, n).

    Rows without any observed value, and rows impossible under their class whatever t is, have a constant loss. The
    iteration begins at `start`, which saves steps where it is that of a similar model.
    """
    relative, offset = _relative(evidence, log_prior)
    unobserved = unobserved | np.isneginf(evidence).all(axis=0)  # impossible rows have the class prior
    usable = ~unobserved & np.isfinite(offset[codes, np.arange(len(codes))])
    t, c = 1.0, np.zeros(len(classes))
    if usable.any() and len(classes) > 1:
        if start is not None:
            t, c = start.exponent, start.intercepts
        given = (relative, offset, codes, weights)
        if not usable.all():
            given = (relative[:, usable], offset[:, usable], codes[usable], weights[usable])
        t, c = _Problem(*given).minimise(t, c)
    before = float(np.average(_losses(relative + offset, codes), weights=weights))
    with np.errstate(over="ignore"):
        after = _losses(t * relative + offset + np.where(unobserved, 0.0, c[:, None]), codes)
    mean = float(np.average(after, weights=weights))
    return CalibratedLosses(Calibration(classes, t, c, before, mean, float(weights.sum())), after)


def without_calibration(
    classes: AnyArray, evidence: Array, log_prior: Array, codes: AnyArray, weights: Array, unobserved: AnyArray
) -> CalibratedLosses:
    """The same with t = 1 and c = 0."""
    relative, offset = _relative(evidence, log_prior)
    losses = _losses(relative + offset, codes)
    mean = float(np.average(losses, weights=weights))
    return CalibratedLosses(Calibration(classes, 1.0, np.zeros(len(classes)), mean, mean, float(weights.sum())), losses)


def _relative(evidence: Array, log_prior: Array) -> tuple[Array, Array]:
    """Evidence relative to the largest of each row, and offsets; an impossible class has evidence 0, and offset −∞.

    A row that is impossible under every class has no evidence: its probabilities are the class prior.
    """
    possible = evidence > -np.inf
    nowhere = ~possible.any(axis=0)
    top = np.where(nowhere, 0.0, np.where(possible, evidence, -np.inf).max(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        relative = np.where(possible, np.maximum(evidence - top, -FARTHEST), 0.0)
    return relative, np.where(possible | nowhere, log_prior, -np.inf)


def _losses(scores: Array, codes: AnyArray) -> Array:
    """−log softmax of the class of each row, from 0 to −log ε."""
    with np.errstate(invalid="ignore"):
        losses = log_sum_exp(scores) - scores[codes, np.arange(len(codes))]
    return np.clip(np.nan_to_num(losses, nan=np.inf, posinf=np.inf), 0.0, -np.log(EPS))


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """The penalised log-loss of rows as a function of t and c, minimised by Newton's method."""

    evidence: Array  # (classes, n), at most 0
    offset: Array  # (classes, n)
    codes: AnyArray
    weights: Array

    def minimise(self, t: float, c: Array) -> tuple[float, Array]:
        """Newton steps from t and c, halved where the value would rise, until a full step is negligible.

        A step that predicts less decrease than the rounding of the value is taken without a comparison of values. Such
        steps end where the predicted decrease no longer falls: then the gradient is rounding.
        """
        total, least = float(self.weights.sum()), np.inf
        value, p = self._evaluate(t, c)
        for _ in range(MOST_STEPS):
            end_t, step, decrease = self._step(t, c, p)
            rounding = 64.0 * EPS * (abs(value) + total)
            small = decrease <= rounding
            if small and decrease >= least:
                break
            least = decrease if small else np.inf
            for halved in range(HALVINGS):
                size = 0.5**halved
                new_t, new_c = (1.0 - size) * t + size * end_t, c + size * step
                new_value, p = self._evaluate(new_t, new_c)
                if small or new_value <= value + rounding:
                    break
            moved = max(abs(end_t - t) / t, float(np.abs(step).max()))
            t, c, value = new_t, new_c, new_value
            if moved < CONVERGED:
                break
        return t, c

    def _evaluate(self, t: float, c: Array) -> tuple[float, Array]:
        """The value, and the class probabilities of the rows."""
        scores = t * self.evidence
        scores += self.offset
        scores += c[:, None]
        log_norm = log_sum_exp(scores)
        losses = log_norm - scores[self.codes, np.arange(len(self.codes))]
        scores -= log_norm
        value = float(self.weights @ losses + 0.5 * np.log(t) ** 2 + 0.5 * PRECISION * (c @ c))
        return value, np.exp(scores, out=scores)

    def _step(self, t: float, c: Array, p: Array) -> tuple[float, Array, float]:
        """The minimum of the quadratic model over t within its bounds: t there, the step of c, and half the descent.

        The step of c is −H⁻¹·(∂f/∂c + step of t · ∂²f/∂c∂t), with H the second derivatives in c.
        """
        away = self.evidence - np.einsum("kn,kn->n", p, self.evidence)
        total, pull = p @ self.weights, self.weights @ away[self.codes, np.arange(len(self.codes))]
        observed = np.bincount(self.codes, self.weights, minlength=len(c))
        by_t, by_c = np.log(t) / t - pull, PRECISION * c + total - observed
        away *= p
        cross = away @ self.weights
        own = max((1.0 - np.log(t)) / t**2, 1e-3)  # of the prior of t
        curve = float(np.einsum("kn,kn,n->", away, self.evidence, self.weights)) + own
        along, free = self._solved(p, total, np.array([cross, by_c]))
        end = t - (by_t - float(cross @ free)) / max(curve - float(cross @ along), own)
        end = float(min(max(end, SMALLEST), LARGEST))
        step = -free - (end - t) * along
        return end, step, -0.5 * float(by_t * (end - t) + by_c @ step)

    def _solved(self, p: Array, total: Array, right: Array) -> Array:
        """H⁻¹ times each row of `right`; with many classes by conjugate gradients, to about four digits."""
        if len(total) <= FEW_CLASSES:
            hessian = np.diag(PRECISION + total) - (p * self.weights) @ p.T
            return np.asarray(np.linalg.solve(hessian, right.T).T)
        scale = 1.0 / np.sqrt(PRECISION + total - (p * p) @ self.weights)

        def product(v: Array) -> Array:
            v = scale * v
            return np.asarray(scale * ((PRECISION + total) * v - p @ (self.weights * (v @ p))))

        scaled = LinearOperator((len(total), len(total)), matvec=product, dtype=np.float64)
        return np.array([scale * cg(scaled, scale * each, rtol=CG_TOL, maxiter=MOST_STEPS)[0] for each in right])
