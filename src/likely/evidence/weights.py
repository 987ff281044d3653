"""Weights of evidence terms: a penalised softmax regression with non-negative weights, and an average over penalties.

log p(k | x) = b_k + Σ_j w_j · E_jk(x) − log Σ_k' exp(b_k' + Σ_j w_j · E_jk'(x)),  w ≥ 0, with

    min over w, b of  −Σ_n weight_n · log p(y_n | x_n) + l_c Σ_v Σ_{j in v} (w_j − w̄_v)² + l_v Σ_v J_v (w̄_v − a_v)²
                      + 0.1 Σ_k (b_k − log N_k/N)²

for terms j in views v; J_v is the number of terms of a view, w̄_v their mean weight, a_v = 0.7 / (V √J_v), V the number
of views, N_k the total weight of class k. The problem is strictly convex: it has one minimum, which is finite for
separable classes too. A number that all classes of a row share cancels, so the terms need not be centred to solve it.
Centring matters for `Ranges`: terms are defined up to such a number, and are centred before they are clipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.linalg
import scipy.optimize

from likely.errors import NotConvergedWarning, warn
from likely.model.persistence import register
from likely.numerics.block_sizes import COPIED
from likely.numerics.shapes import Shape
from likely.numerics.special import EPS, log_sum_exp
from likely.typing import AnyArray, Array, Codes

TOTAL = 0.7  # a_v · √J_v · V: the sum of the expected weights of the views, each with one term
INTERCEPT_PENALTY = 0.1
WITHIN, BETWEEN = (1000.0, 100.0, 10.0, 1.0), (50.0, 5.0, 0.5)  # l_c and l_v, strong ones first
EXPONENT_PRECISION = 10.0  # of the prior of log exponents, with mean 0
EXPONENTS = (-3.0, 1.0)  # bounds of log exponents
MANY_ROWS = 1500  # from here on without the largest l_v
MANY_TERMS = 300  # beyond it, the matrix of second derivatives is not computed
DECREASE = 1e-14  # of the last step of Newton's method, relative to the objective: errors of w and b are below 1e-6
SLOW = 0.01  # where a step with old second derivatives decreases the next step less, they are computed again
RIDGE = 64.0 * EPS  # of second derivatives, relative: where weights differ much, their rounding exceeds the penalty
NEGLIGIBLE = 1e-10  # a smaller weight in the average is 0
STEPS = 200
FRUITLESS = 10  # steps without a visible decrease, after which only rounding moves the weights
SHORTEST = 40  # quarterings of the first weights, at most
EXCHANGES = 10  # of the weights that are 0, before non-negative least squares starts without a guess


def centre(terms: Array) -> Array:
    """Subtract the mean over the classes from terms (terms, classes, n), in place; returns the same array."""
    terms -= terms.mean(axis=1, keepdims=True)
    return terms


@register
@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """The range of each centred term and class in training; terms of new rows are clipped to it."""

    low: Annotated[Array, Shape("terms classes")]
    high: Annotated[Array, Shape("terms classes")]

    def _valid(self) -> bool:
        return bool(np.all(self.low <= self.high))

    @classmethod
    def of(cls, terms: Array) -> Ranges:
        """Ranges of centred leave-one-out terms (terms, classes, n) of at least one row."""
        return cls(terms.min(axis=2), terms.max(axis=2))

    def clip(self, terms: Array) -> Array:
        """Terms (terms, classes, n), centred over the classes, then clipped; a new array."""
        centred = terms - terms.mean(axis=1, keepdims=True)
        return np.clip(centred, self.low[:, :, None], self.high[:, :, None], out=centred)


def class_proportions(class_weights: Array) -> Array:
    """N_k/N; a class without rows counts as half of the rarest class, or as half a row if that is less."""
    totals = np.asarray(class_weights, dtype=np.float64)
    totals = np.where(totals > 0.0, totals, totals[totals > 0.0].min(initial=1.0) / 2.0)
    return np.asarray(totals / totals.sum())


@dataclass(frozen=True, eq=False)
class EvidenceRows:
    """Evidence of rows whose classes are known."""

    terms: Array  # (terms, classes, n)
    codes: Codes
    weights: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", np.ascontiguousarray(self.terms, dtype=np.float64))

    def true_class(self, scores: Array) -> Array:
        """The scores (classes, n) of the class of each row."""
        return scores[self.codes, np.arange(len(self.codes))]

    def loss(self, scores: Array, total: Array) -> float:
        """−Σ_n weight_n · log p(y_n | x_n) of scores (classes, n), with `total` their log Σ exp."""
        return float(self.weights @ (total - self.true_class(scores)))


@dataclass(frozen=True, eq=False)
class EvidenceProblem(EvidenceRows):
    """Leave-one-out evidence that weights are learnt from."""

    views: AnyArray  # the index of the view of each term
    class_weights: Array  # the total weight of each class in training

    @property
    def centres(self) -> Array:
        """The weights a_v that the penalty shrinks to, one for each term."""
        _, view, sizes = np.unique(self.views, return_inverse=True, return_counts=True)
        return TOTAL / (len(sizes) * np.sqrt(sizes))[view] if len(view) else np.zeros(0)

    @property
    def log_proportions(self) -> Array:
        return np.log(class_proportions(self.class_weights))

    @property
    def class_proportions_alone(self) -> Weights:
        return Weights(np.zeros(len(self.terms)), self.log_proportions)


@register
@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Weights of the terms and intercepts of the classes."""

    w: Annotated[Array, Shape("terms")]
    b: Annotated[Array, Shape("classes")]

    def scores(self, terms: Array) -> Array:
        """b_k + Σ_j w_j · terms_jk, (classes, n)."""
        return _combined(self.w, terms) + self.b[:, None]

    def loss(self, rows: EvidenceRows) -> float:
        """−Σ_n weight_n · log p(y_n | x_n)."""
        scores = self.scores(rows.terms)
        return rows.loss(scores, log_sum_exp(scores))


@register
@dataclass(frozen=True, slots=True, eq=False)
class PooledWeights:
    """The average of the weights of all penalties, and how it was formed."""

    weights: Annotated[Weights, Shape("terms classes")]
    penalties: Annotated[tuple[tuple[float, float], ...], Shape("penalties")]
    # summed over the nested held-out rows: of each penalty, then of the class proportions alone
    losses: Annotated[Array, Shape("penalties+1", "inf")]
    mixing: Annotated[Array, Shape("penalties+1", ">=0")]  # weights of the average, in the same order; their sum is 1
    held_out: Annotated[float, Shape(">=0")]  # total weight of the nested held-out rows
    exponent: Annotated[float, Shape(">0")]  # factor of all weights, learnt on the nested held-out rows

    @property
    def mean_losses(self) -> Array:
        """Log-losses per row; NaN without held-out rows."""
        return self.losses / self.held_out if self.held_out else np.full_like(self.losses, np.nan)

    def _valid(self) -> bool:
        return abs(float(self.mixing.sum()) - 1.0) < 1e-6


def choose(full: EvidenceProblem, nested: Iterable[tuple[EvidenceProblem, EvidenceRows]]) -> PooledWeights:
    """Average the solutions of all penalties, and the class proportions alone, with weights ∝ exp(−held-out loss).

    One exponent, learnt on the same held-out rows, multiplies all weights of the average. Each pair of `nested` is a
    problem whose views were fitted without the held-out rows, and these rows. If they are generated, one problem at a
    time is in memory.
    """
    between = BETWEEN if full.class_weights.sum() < MANY_ROWS else BETWEEN[1:]
    penalties = tuple((within, strength) for within in WITHIN for strength in between)

    def solved(problem: EvidenceProblem, rows: EvidenceRows) -> tuple[list[Weights], EvidenceRows]:
        solver = Solver(problem)
        return [*(solver.solve(*penalty) for penalty in penalties), problem.class_proportions_alone], rows

    folds = list(itertools.starmap(solved, nested))
    losses = np.zeros(len(penalties) + 1)
    for solutions, rows in folds:
        losses += [each.loss(rows) for each in solutions]
    mixing = np.exp(losses.min() - losses)
    mixing[mixing < NEGLIGIBLE * mixing.sum()] = 0.0
    mixing /= mixing.sum()
    solver = Solver(full)
    found = [
        solver.solve(*penalty) if weight else full.class_proportions_alone
        for penalty, weight in zip(penalties, mixing[:-1].tolist(), strict=True)
    ]
    average = _average([*found, full.class_proportions_alone], mixing)
    exponent = _exponent([(_average(solutions, mixing), rows) for solutions, rows in folds])
    held_out = sum(float(rows.weights.sum()) for _, rows in folds)
    return PooledWeights(Weights(exponent * average.w, average.b), penalties, losses, mixing, held_out, exponent)


def _average(solutions: Sequence[Weights], mixing: Array) -> Weights:
    """The weighted mean of weights and intercepts."""
    return Weights(mixing @ np.array([each.w for each in solutions]), mixing @ np.array([each.b for each in solutions]))


def _exponent(parts: Sequence[tuple[Weights, EvidenceRows]]) -> float:
    """The factor t of the weights with the least loss on nested held-out rows, plus ½·10·(log t)².

    Leave-one-out evidence of a view has seen the classes of the other rows, and is too good where rows are few. The
    loss is convex in t up to e, so its least value is where the slope is 0, or at a bound.
    """
    if not any(weights.w.any() for weights, _ in parts):
        return 1.0
    evidence = [_combined(weights.w, rows.terms) for weights, rows in parts]

    def slope(log_t: float) -> float:
        """In log t: 10·log t + t·Σ w·(Σ_k p_k·E_k − E_y)."""
        total = 0.0
        for terms, (weights, rows) in zip(evidence, parts, strict=True):
            scores = np.exp(log_t) * terms + weights.b[:, None]
            mean = np.einsum("kn,kn->n", np.exp(scores - log_sum_exp(scores)), terms)
            total += float(rows.weights @ (mean - rows.true_class(terms)))
        return float(EXPONENT_PRECISION * log_t + np.exp(log_t) * total)

    low, high = EXPONENTS
    if slope(low) >= 0.0:
        return float(np.exp(low))
    if slope(high) <= 0.0:
        return float(np.exp(high))
    return float(np.exp(scipy.optimize.brentq(slope, low, high)))


class Solver:
    """Solves a problem for several penalties, each from the solution of the last.

    Weights and intercepts are one vector x = (w, b), in which the penalty is a quadratic form about its centre. The
    second derivatives of the likelihood are computed again only where they no longer describe its gradient: the
    gradient, which is exact, decides where the iteration ends. They do not depend on the penalty.
    """

    def __init__(self, problem: EvidenceProblem) -> None:
        self.problem, self.rows = problem, np.arange(problem.terms.shape[2])
        self.centre = np.concatenate([problem.centres, problem.log_proportions])
        _, self.view, sizes = np.unique(problem.views, return_inverse=True, return_counts=True)
        self.sizes = sizes.astype(np.float64)
        self.split = len(problem.terms)  # where b begins
        self.x = self._start()
        self.hessian: Array | None = None

    def _start(self) -> Array:
        """The best of the weights a_v times 1, ¼, …: large terms need small ones, or second derivatives vanish."""
        x, shorter = self.centre, self.centre.copy()
        value = self._likelihood(self._scores(x))[0]
        for _ in range(SHORTEST):
            shorter[: self.split] /= 4.0
            reached = self._likelihood(self._scores(shorter))[0]
            if reached >= value:
                break
            x, value = shorter.copy(), reached
        return x

    def solve(self, within: float, between: float) -> Weights:
        """The minimum for l_c = `within` > 0 and l_v = `between` > 0. With a single class all weights are 0."""
        terms, classes, _ = self.problem.terms.shape
        if classes == 1 or terms == 0:
            return self.problem.class_proportions_alone
        if terms <= MANY_TERMS:
            self._newton((within, between))
        else:
            self._quasi_newton((within, between))
        return Weights(self.x[: self.split], self.x[self.split :])

    def _newton(self, penalties: tuple[float, float]) -> None:
        """Newton's method with steps that minimise the quadratic model under w ≥ 0."""
        penalty, last, fresh = self._penalty_hessian(*penalties), np.inf, False
        scores, lowest, fruitless = self._scores(self.x), np.inf, 0
        for _ in range(STEPS):
            value, gradient = self._objective(self.x, scores, penalties)
            if self.hessian is None:
                self.hessian, fresh = self._likelihood_hessian(scores), True
            step = self._step(self.hessian + penalty, gradient)
            decrease = -float(gradient @ step)
            least = DECREASE * (1.0 + value + 0.1 * float(self.problem.weights.sum()))
            if not fresh and decrease > max(least, SLOW * last):
                self.hessian, last = None, np.inf
                continue
            fruitless = 0 if value < lowest - self._rounding(value) else fruitless + 1
            lowest = min(lowest, value)
            length, scores = self._line_search(scores, value, step, decrease, penalties)
            self.x = self.x + length * step
            np.maximum(self.x[: self.split], 0.0, out=self.x[: self.split])
            if decrease <= least or fruitless > FRUITLESS:
                return
            last, fresh = decrease, False
        warn(f"Weights of evidence terms did not converge in {STEPS} steps.", NotConvergedWarning)

    def _step(self, hessian: Array, gradient: Array) -> Array:
        """The step to the minimum of the quadratic model over w ≥ 0, from which b is eliminated."""
        split = self.split
        linear = hessian @ self.x - gradient
        mixed = hessian[:split, split:]
        solved = _solve_positive(hessian[split:, split:], np.column_stack([mixed.T, linear[split:]]))
        across, free = solved[:, :-1], solved[:, -1]
        positive = self.x[:split] > 0.0
        w = _non_negative(hessian[:split, :split] - mixed @ across, linear[:split] - mixed @ free, positive)
        return np.concatenate([w, free - across @ w]) - self.x

    def _line_search(
        self, scores: Array, value: float, step: Array, decrease: float, penalties: tuple[float, float]
    ) -> tuple[float, Array]:
        """The first of the step lengths 1, ½, ¼, … that decreases the objective, and the scores there.

        A decrease below the rounding of the objective is not visible in its values: then the whole step is taken.
        """
        change, length = self._scores(step), 1.0
        rounding = self._rounding(value)
        while length > 1e-12:
            new = scores + length * change
            reached = self.problem.loss(new, log_sum_exp(new)) + self._penalty(self.x + length * step, *penalties)[0]
            if decrease <= rounding or reached <= value - 1e-4 * length * decrease + rounding:
                return length, new
            length /= 2
        return 0.0, scores

    def _rounding(self, value: float) -> float:
        """The rounding of the objective: log-probabilities are rounded before they are multiplied by weights."""
        return float(64.0 * EPS * (1.0 + abs(value) + self.problem.weights.sum()))

    def _quasi_newton(self, penalties: tuple[float, float]) -> None:
        found = scipy.optimize.minimize(
            lambda x: self._objective(x, self._scores(x), penalties),
            self.x,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * self.split + [(None, None)] * (len(self.x) - self.split),
            options={"maxcor": 20, "ftol": 1e-14, "gtol": 1e-6, "maxiter": 5000, "maxfun": 10000},
        )
        self.x = found.x
        if not found.success:
            warn(f"Weights of evidence terms did not converge (L-BFGS-B: {found.message}).", NotConvergedWarning)

    def _scores(self, x: Array) -> Array:
        return Weights(x[: self.split], x[self.split :]).scores(self.problem.terms)

    def _objective(self, x: Array, scores: Array, penalties: tuple[float, float]) -> tuple[float, Array]:
        """The objective and its gradient at x, which has these scores."""
        value, residuals = self._likelihood(scores)
        penalty, pull = self._penalty(x, *penalties)
        pull += np.concatenate([_matrix(self.problem.terms) @ residuals.ravel(), residuals.sum(axis=1)])
        return value + penalty, pull

    def _likelihood(self, scores: Array) -> tuple[float, Array]:
        """−Σ weight · log p(y | x), and its derivatives in the scores: weight · (p − [k = y])."""
        total = log_sum_exp(scores)
        residuals = np.exp(scores - total)
        residuals[self.problem.codes, self.rows] -= 1.0
        residuals *= self.problem.weights
        return self.problem.loss(scores, total), residuals

    def _penalty(self, x: Array, within: float, between: float) -> tuple[float, Array]:
        """The penalty and its gradient."""
        w, b = np.split(x - self.centre, [self.split])
        means = (np.bincount(self.view, w, minlength=len(self.sizes)) / self.sizes)[self.view]
        value = within * np.sum((w - means) ** 2) + between * np.sum(means**2) + INTERCEPT_PENALTY * np.sum(b**2)
        gradient = [within * (w - means) + between * means, INTERCEPT_PENALTY * b]
        return float(value), 2 * np.concatenate(gradient)

    def _penalty_hessian(self, within: float, between: float) -> Array:
        split = self.split
        out = 2 * INTERCEPT_PENALTY * np.eye(len(self.x))
        mean = (self.view[:, None] == self.view) / self.sizes[self.view]
        out[:split, :split] = 2 * within * (np.eye(split) - mean) + 2 * between * mean
        return out

    def _likelihood_hessian(self, scores: Array) -> Array:
        """Second derivatives of the likelihood in (w, b): Σ_n weight_n Σ_k p_k (E_jk − Σ p E_j)(E_ik − Σ p E_i).

        They are 0 in the direction in which all b_k grow alike, and so is the gradient, as Σ_k (b_k − log N_k/N) stays
        0. There they are replaced by their mean over b, which changes no step, and b can be eliminated without loss of
        digits.
        """
        terms, split = self.problem.terms, self.split
        probabilities = np.exp(scores - log_sum_exp(scores))
        weighted = probabilities * self.problem.weights
        out = np.zeros((split + len(scores), split + len(scores)))
        intercepts = out[split:, split:]
        intercepts -= weighted @ probabilities.T
        np.fill_diagonal(intercepts, 0.0)
        np.fill_diagonal(intercepts, -intercepts.sum(axis=1))  # Σ weight·p·(1 − p), without the difference
        rows = max(1, COPIED // max(1, split * len(scores)))
        for begin in range(0, scores.shape[1], rows):
            part = slice(begin, begin + rows)
            p, q = probabilities[:, part], weighted[:, part]
            block = terms[:, :, part] - np.einsum("jkn,kn->jn", terms[:, :, part], p)[:, None]
            out[:split, split:] += np.einsum("jkn,kn->jk", block, q)
            block *= np.sqrt(q)
            block = block.reshape(split, -1)
            out[:split, :split] += block @ block.T
        out[:split, split:] -= out[:split, split:].mean(axis=1, keepdims=True)
        out[split:, :split] = out[:split, split:].T
        intercepts += intercepts.trace() / len(scores) ** 2
        np.einsum("ii->i", out)[:] *= 1.0 + RIDGE
        return out


def _non_negative(matrix: Array, linear: Array, positive: AnyArray) -> Array:
    """The minimum of ½ w·matrix·w − linear·w over w ≥ 0, from a guess which weights are positive.

    The guess is mostly right, or nearly so: where the conditions of the minimum do not hold, weights are exchanged.
    """
    for _ in range(EXCHANGES):
        w = np.zeros(len(linear))
        if positive.any():
            some = matrix[np.ix_(positive, positive)]
            w[positive] = _solve_positive(some, linear[positive])
        better = np.where(positive, w > 0.0, matrix @ w < linear)
        if np.array_equal(better, positive):
            return w
        positive = better
    root = _root(matrix)
    w, _ = scipy.optimize.nnls(root, scipy.linalg.solve_triangular(root, linear, trans=1))
    return np.asarray(w)


def _solve_positive(matrix: Array, right: Array) -> Array:
    """The solution of a system with a positive definite matrix, by LAPACK alone: the systems are small and many."""
    return np.asarray(scipy.linalg.lapack.dpotrs(_root(matrix), right)[0])


def _root(matrix: Array) -> Array:
    """The upper Cholesky factor of a positive definite matrix.

    Where rounding made the matrix indefinite, its diagonal is increased: the step becomes shorter and still descends.
    """
    root, info = scipy.linalg.lapack.dpotrf(matrix)
    ridge = RIDGE
    while info and ridge < 1.0:
        root, info = scipy.linalg.lapack.dpotrf(matrix + np.diag(ridge * matrix.diagonal()))
        ridge *= 100.0
    if info:
        raise np.linalg.LinAlgError("Second derivatives of the weights of evidence terms are not positive definite.")
    return np.asarray(root)


def _combined(w: Array, terms: Array) -> Array:
    """Σ_j w_j · terms_j, (classes, n)."""
    return (w @ _matrix(terms)).reshape(terms.shape[1:])


def _matrix(terms: Array) -> Array:
    """Terms as (terms, classes · n), without a copy."""
    return terms.reshape(len(terms), terms.shape[1] * terms.shape[2])
