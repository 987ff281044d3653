"""Newton's method and preconditioned L-BFGS for softmax regression.

Scores are relative to the first class: a_j = b_j·φ(x) for the others, and 0 for it. With p the softmax of (0, a), w the
weight of a row and t its target (1 for its class), the objective, its gradient and its Hessian are

    f = Σ w·log(1 + Σ_j exp a_j) − Σ_j b_j·s_j + ½·tr(C·B·Λ·Bᵀ)
    ∂f/∂b_j = Σ w·p_j·φ − s_j + (C·B·Λ)_j
    ∂²f/∂b_j∂b_l = Σ w·(p_j·[j = l] − p_j·p_l)·φφᵀ + C_jl·Λ

The labels enter only through s_j = Σ w·t_j·φ, which are also the statistics of a linear discriminant. The Hessian of
the first term is bounded by ½·(I − 11ᵀ/K) ⊗ Σ w·φφᵀ (Böhning 1992), which does not depend on p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from likely.discriminative.design import MAX_FACTORED, Design
from likely.errors import NotEstimableError
from likely.numerics.linalg import correlation_scale
from likely.numerics.progress import progress
from likely.numerics.special import EPS, sum_log
from likely.numerics.threads import single_threaded_blas
from likely.typing import AnyArray, Array

LARGE_SCORE = 40.0  # scores up to which exponentials of sixteen rows may be multiplied
NEWTON_COST = 2e8  # rows times squared parameters up to which every step computes a Hessian
HESSIAN_COST = 1e10  # the same for a Hessian that many steps use as preconditioner
SAMPLE = 10_000  # rows of the smallest subsample
GROWTH = 8  # ratio of the sizes of successive subsamples
SAMPLE_TOL = 1e-6  # tolerance on subsamples
MEMORY = 12  # steps that L-BFGS remembers
STEPS_PER_PRECONDITIONER = 40
HALVINGS = 40

Solver = Callable[[Array], Array]  # the inverse of a matrix that approximates the Hessian, times a gradient


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Penalised negative log-likelihood f as a function of B, (classes − 1, size).

    `sums` are s, `precision` is C, (classes − 1, classes − 1), and `penalty` is the diagonal of Λ, (size,).
    """

    design: Design
    sums: Array
    precision: Array
    penalty: Array

    @property
    def parameters(self) -> int:
        """Number of coefficients."""
        return int(self.sums.size)

    def rounding(self, B: Array, value: float, weight: float) -> float:
        """A bound of the rounding of f(B) = `value`, a difference of sums that may be much larger."""
        return 64.0 * EPS * (abs(value) + weight + float(np.abs(B * self.sums).sum()))

    def sample(self, count: int, rng: np.random.Generator) -> Problem:
        """The same problem on a random sample of the rows."""
        design = self.design.sample(count, rng)
        return replace(self, design=design, sums=design.sums()[1:])

    def value_and_gradient(self, B: Array) -> tuple[float, Array]:
        """f(B) and ∂f/∂B, by one pass over the rows."""
        design, d = self.design, self.design.width

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
            p = design.scores(rows, B)
            out = np.empty(1 + B.size)
            out[0] = logistic_into(p, weights)
            part = out[1:].reshape(B.shape)
            part[:, :d] = (rows.T @ p.T).T if scipy.sparse.issparse(rows) else p @ rows
            if design.intercept:
                part[:, d] = p.sum(axis=1)
            return out

        total = design.total(work, d + 3 * len(B))
        pull = self.precision @ (B * self.penalty)
        value = float(total[0]) + 0.5 * float((B * pull).sum()) - float((B * self.sums).sum())
        return value, total[1:].reshape(B.shape) - self.sums + pull

    def hessian(self, B: Array) -> Array:
        """The Hessian, (classes − 1, size, classes − 1, size), by one pass over the rows."""
        (few, size), design = B.shape, self.design

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
            p, full = design.scores(rows, B), design.with_intercept(rows)
            out = np.zeros((few, size, few, size))
            if few == 1:  # p·(1 − p) without cancellation where p is near 1
                tail = np.exp(-np.abs(p[0]))
                variance = tail / (1.0 + tail) ** 2
                out[0, :, 0, :] = full.T @ (full * (variance if weights is None else variance * weights)[:, None])
                return out
            logistic_into(p, None)
            weighted = p if weights is None else p * weights
            for j in range(few):
                out[j, :, j, :] = full.T @ (full * weighted[j][:, None])
            root = p if weights is None else p * np.sqrt(weights)
            wide = (root.T[:, :, None] * full[:, None, :]).reshape(len(full), -1)
            out.reshape(few * size, few * size)[...] -= wide.T @ wide
            return out

        total = design.total(work, few * size + size)
        return total + self.precision[:, None, :, None] * np.diag(self.penalty)[None, :, None, :]


@dataclass(frozen=True, slots=True, eq=False)
class CentredProblem:
    """A problem with an additional penalty ½·tr(C·D·M·Dᵀ) as a function of D = B − centre.

    D keeps its precision however strong the penalty is.
    """

    problem: Problem
    centre: Array
    matrix: Array  # M, (size, size)

    def value_and_gradient(self, D: Array) -> tuple[float, Array]:
        """The objective and its gradient in D."""
        value, gradient = self.problem.value_and_gradient(self.centre + D)
        pull = self.problem.precision @ D @ self.matrix
        return value + 0.5 * float((D * pull).sum()), gradient + pull

    def rounding(self, D: Array, value: float, weight: float) -> float:
        """A bound of the rounding of the objective."""
        return self.problem.rounding(self.centre + D, value, weight)

    def hessian(self, D: Array) -> Array:
        """The Hessian in D."""
        precision = self.problem.precision[:, None, :, None]
        return self.problem.hessian(self.centre + D) + precision * self.matrix[None, :, None, :]


def logistic_into(scores: Array, weights: Array | None) -> float:
    """Replace scores by w·p in place, and return Σ w·log(1 + Σ_j exp a_j)."""
    top = scores.max(axis=0)
    shifted = not float(top.max(initial=0.0)) <= LARGE_SCORE
    if shifted:
        np.maximum(top, 0.0, out=top)
        scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=0)
    total += np.exp(-top) if shifted else 1.0
    if weights is None:
        scores /= total
        return _sum_logs(total) + (float(top.sum()) if shifted else 0.0)
    logs = np.log(total)
    scores *= weights / total
    return float(weights @ (logs + top if shifted else logs))


def _sum_logs(values: Array) -> float:
    """Σ log of numbers from 1 to about e⁴⁰, as logarithms of products of sixteen."""
    whole = len(values) - len(values) % 16
    return float(sum_log(values[:whole].reshape(16, -1)).sum() + np.log(values[whole:]).sum())


def inverse(hessian: Array) -> Array:
    """The inverse of a Hessian (classes − 1, size, classes − 1, size), scaled so that rounding is free of units."""
    size = hessian.shape[0] * hessian.shape[1]
    square = hessian.reshape(size, size)
    scale = correlation_scale(square)
    try:
        factor = scipy.linalg.cho_factor(square * scale * scale[:, None], lower=True)
    except np.linalg.LinAlgError:
        raise NotEstimableError(
            "The Hessian is singular: the likelihood does not determine all coefficients, so their standard errors do "
            "not exist. Increase penalty, or set inference=False."
        ) from None
    return np.asarray(scipy.linalg.cho_solve(factor, np.eye(size)) * scale * scale[:, None]).reshape(hessian.shape)


def cholesky_solver(matrix: Array, shape: tuple[int, ...]) -> Solver:
    """Of a matrix over all coefficients. If it is numerically singular, its diagonal is increased."""
    size = int(np.prod(shape))
    square = matrix.reshape(size, size)
    diagonal = np.diagonal(square)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    square = square * scale * scale[:, None]
    ridge, factor = 0.0, None
    while factor is None:
        try:
            factor = scipy.linalg.cho_factor(square + ridge * np.eye(size), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge = max(100.0 * ridge, 1e-14)

    def solve(gradient: Array) -> Array:
        scaled = scipy.linalg.cho_solve(factor, gradient.ravel() * scale, check_finite=False)
        return np.asarray(scaled * scale).reshape(shape)

    return solve


def bound_solver(problem: Problem, gram: Array) -> Solver:
    """Of Böhning's bound of the Hessian, ½·(I − 11ᵀ/K) ⊗ G + C ⊗ Λ, with G = Σ w·φφᵀ or its diagonal.

    In the generalised eigenvectors of C and ½·(I − 11ᵀ/K), with eigenvalues s, it is block diagonal: G + s·Λ.
    """
    eigenvalues, vectors = scipy.linalg.eigh(problem.precision, half_bound(len(problem.sums)))
    keys = eigenvalues.round(9).tolist()
    known = {key: _block_solver(gram, value * problem.penalty) for key, value in zip(keys, eigenvalues, strict=True)}

    def solve(gradient: Array) -> Array:
        rotated = vectors.T @ gradient
        return np.asarray(vectors @ np.array([known[key](row) for key, row in zip(keys, rotated, strict=True)]))

    return solve


def _block_solver(gram: Array, ridge: Array) -> Solver:
    """Of G + diag(ridge)."""
    if gram.ndim == 2:
        return cholesky_solver(gram + np.diag(ridge), ridge.shape)
    diagonal = np.where(gram + ridge > 0.0, gram + ridge, 1.0)
    return lambda gradient: gradient / diagonal


def half_bound(few: int) -> Array:
    """½·(I − 11ᵀ/K) of all classes but the first."""
    return 0.5 * (np.eye(few) - 1.0 / (few + 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Coefficients at the end of a minimisation, the objective after each step, and whether it converged."""

    B: Array
    path: tuple[float, ...]
    converged: bool

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.path) - 1

    @property
    def value(self) -> float:
        """The objective at the end."""
        return self.path[-1]


def minimise(problem: Problem, weight: float, tol: float, max_iter: int) -> Minimum:
    """The minimum, starting from 0: until a step is predicted to decrease f by less than tol · weight.

    Small problems are solved by Newton's method. Large ones start at the minimum of a subsample of the rows and use its
    Hessian as preconditioner, so that a few passes over all rows remain. If that Hessian is too large, the
    preconditioner is Böhning's bound.
    """
    with single_threaded_blas():
        B = np.zeros_like(problem.sums)
        if affordable(problem, NEWTON_COST):
            return descend(problem, B, None, weight, tol, max_iter)
        B, preconditioner = _from_samples(problem, B, weight)
        if preconditioner is None:
            preconditioner = bound_solver(problem, problem.design.gram())
        return _preconditioned(problem, B, preconditioner, weight, tol, max_iter)


def _from_samples(problem: Problem, B: Array, weight: float) -> tuple[Array, Solver | None]:
    """The minimum on growing subsamples, and the Hessian of the last one, if affordable."""
    rng = np.random.default_rng(0)
    preconditioner: Solver | None = None
    for count in _sample_sizes(problem):
        part = problem.sample(count, rng)
        bound = None if affordable(part, 2.0 * NEWTON_COST) else bound_solver(part, part.design.gram())
        B = descend(part, B, bound, weight, SAMPLE_TOL, 2 * STEPS_PER_PRECONDITIONER).B
        if affordable(part, HESSIAN_COST):
            preconditioner = cholesky_solver(part.hessian(B), B.shape)
    return B, preconditioner


def _preconditioned(
    problem: Problem, B: Array, preconditioner: Solver, weight: float, tol: float, max_iter: int
) -> Minimum:
    """Preconditioned L-BFGS on all rows; an affordable Hessian replaces the preconditioner from time to time."""
    path: list[float] = []
    with progress("steps of the descent") as step:
        while True:
            left = max_iter - max(len(path) - 1, 0)
            found = descend(problem, B, preconditioner, weight, tol, min(STEPS_PER_PRECONDITIONER, left), step)
            path, B = [*path[:-1], *found.path], found.B
            if found.converged or left <= STEPS_PER_PRECONDITIONER:
                return Minimum(B, tuple(path), found.converged)
            if affordable(problem, 4.0 * HESSIAN_COST):
                preconditioner = cholesky_solver(problem.hessian(B), B.shape)


def affordable(problem: Problem, most: float) -> bool:
    """Whether a Hessian costs at most `most`, as rows times squared parameters."""
    return problem.parameters <= MAX_FACTORED and problem.design.rows * float(problem.parameters) ** 2 <= most


def _sample_sizes(problem: Problem) -> list[int]:
    """Sizes of the subsamples; none unless there are many more rows."""
    rows, count = problem.design.rows, max(SAMPLE, 10 * problem.parameters)
    if rows < 4 * count:
        return []
    return [count] if rows < GROWTH**2 * count else [count, GROWTH * count]


def descend(
    problem: Problem | CentredProblem,
    B: Array,
    preconditioner: Solver | None,
    weight: float,
    tol: float,
    max_iter: int,
    step_done: Callable[[], None] = lambda: None,
) -> Minimum:
    """Descend from B until a step is predicted to decrease the objective by less than tol · weight.

    Without a preconditioner, every step is a Newton step; with one, steps are those of preconditioned L-BFGS. A step
    that does not decrease the objective enough is halved, so that the objective never rises except by rounding.
    """
    value, gradient = problem.value_and_gradient(B)
    memory: list[tuple[Array, Array, float]] = []
    path = [value]
    for _ in range(max_iter):
        matrix = cholesky_solver(problem.hessian(B), B.shape) if preconditioner is None else preconditioner
        step = -_lbfgs_direction(gradient, memory, matrix)
        predicted = -0.5 * float((gradient * step).sum())
        small = predicted <= max(tol * weight, 4.0 * EPS * EPS * abs(value))  # smaller steps are rounding errors
        if small and preconditioner is not None:
            return Minimum(B, tuple(path), True)
        found = _line_search(problem, B, step, value, predicted, problem.rounding(B, value, weight))
        if found is None:
            return Minimum(B, tuple(path), small)
        new_B, value, new_gradient = found
        moved, change = new_B - B, new_gradient - gradient
        curvature = float((moved * change).sum())
        if preconditioner is not None and curvature > EPS * float(np.linalg.norm(moved) * np.linalg.norm(change)):
            memory = [*memory[1 - MEMORY :], (moved, change, 1.0 / curvature)]
        B, gradient = new_B, new_gradient
        path.append(value)
        step_done()
        if small:
            return Minimum(B, tuple(path), True)
    return Minimum(B, tuple(path), False)


def _line_search(
    problem: Problem | CentredProblem, B: Array, step: Array, value: float, predicted: float, slack: float
) -> tuple[Array, float, Array] | None:
    """Backtracking by halves until the Armijo condition holds, up to rounding; None if it never does.

    A step that predicts less than the rounding of the value, the slack, is taken without a comparison of values.
    """
    fraction = 1.0
    for _ in range(HALVINGS):
        new_B = B + fraction * step
        new_value, gradient = problem.value_and_gradient(new_B)
        if predicted <= slack or new_value <= value - 2e-4 * fraction * predicted + slack:
            return new_B, new_value, gradient
        fraction *= 0.5
    return None


def _lbfgs_direction(gradient: Array, memory: list[tuple[Array, Array, float]], preconditioner: Solver) -> Array:
    """The two-loop recursion of L-BFGS (Nocedal 1980), with a preconditioner as initial matrix."""
    left, factors = gradient, []
    for moved, change, inverse_curvature in reversed(memory):
        factors.append(inverse_curvature * float((moved * left).sum()))
        left = left - factors[-1] * change
    step = preconditioner(left)
    for (moved, change, inverse_curvature), factor in zip(memory, reversed(factors), strict=True):
        step = step + (factor - inverse_curvature * float((change * step).sum())) * moved
    return step
