"""Newton's method for softmax regression: the sums over the rows, and the descent that they drive.

Scores are relative to the first class: a_j = b_j·φ(x) for the others, and 0 for it. With p the softmax of (0, a), w the
weight of a row and t its target (1 for its class), the objective, its gradient and its Hessian are

    f = Σ w·log(1 + Σ_j exp a_j) − Σ_j b_j·s_j + ½·tr(C·B·Λ·Bᵀ)
    ∂f/∂b_j = Σ w·p_j·φ − s_j + (C·B·Λ)_j
    ∂²f/∂b_j∂b_l = Σ w·(p_j·[j = l] − p_j·p_l)·φφᵀ + C_jl·Λ

The labels are nowhere but in s_j = Σ w·t_j·φ, which a discriminant's statistics hold too. The Hessian of the first term
is nowhere larger than ½·(I − 11ᵀ/K) ⊗ Σ w·φφᵀ (Böhning 1992), which needs no p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse

from likely.discriminative.design import LARGEST, Design
from likely.errors import NotEstimableError
from likely.numerics.linalg import correlation_scale
from likely.numerics.progress import progress
from likely.numerics.special import EPS, sum_log
from likely.numerics.threads import single_threaded_blas
from likely.typing import AnyArray, Array

NEAR = 40.0  # scores up to which exponentials of sixteen rows may be multiplied
DIRECT = 2e8  # rows times squared parameters up to which every step has a Hessian of its own
AFFORDED = 1e10  # the same for a Hessian that many steps have in common
SAMPLE = 10_000  # rows of the smallest sample that a descent starts from
GROWTH = 8  # how much larger the next one is
ROUGH = 1e-6  # how far a descent on a sample goes, as a tolerance
MEMORY = 12  # steps that a descent remembers
PATIENCE = 40  # steps after which a metric is renewed
HALVINGS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is minimised over B, (classes − 1, size).

    `sums` are s; `precision` is C, (classes − 1, classes − 1), and `penalty` Λ, one number for each weight of a class.
    """

    design: Design
    sums: Array
    precision: Array
    penalty: Array

    @property
    def parameters(self) -> int:
        return int(self.sums.size)

    def sample(self, count: int, rng: np.random.Generator) -> Problem:
        """The same problem on some of the rows."""
        design = self.design.sample(count, rng)
        return replace(self, design=design, sums=design.sums())

    def slope(self, B: Array) -> tuple[float, Array]:
        """The objective and its gradient: one pass over the rows."""
        design, d = self.design, self.design.width

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> tuple[float, Array]:
            p = design.scores(rows, B)
            total = logistic_into(p, weights)
            part = np.empty_like(B)
            part[:, :d] = (rows.T @ p.T).T if scipy.sparse.issparse(rows) else p @ rows
            if design.intercept:
                part[:, d] = p.sum(axis=1)
            return total, part

        parts = design.over_blocks(work, d + 3 * len(B))
        pull = self.precision @ (B * self.penalty)
        value = sum(part[0] for part in parts) + 0.5 * float((B * pull).sum()) - float((B * self.sums).sum())
        return value, sum(part[1] for part in parts) - self.sums + pull

    def hessian(self, B: Array) -> Array:
        """The Hessian, (classes − 1, size, classes − 1, size): one pass over the rows."""
        (few, size), design = B.shape, self.design

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
            p, full = design.scores(rows, B), design.with_one(rows)
            out = np.zeros((few, size, few, size))
            if few == 1:  # p·(1 − p), which loses nothing where p is near 1
                tail = np.exp(-np.abs(p[0]))
                spread = tail / (1.0 + tail) ** 2
                out[0, :, 0, :] = full.T @ (full * (spread if weights is None else spread * weights)[:, None])
                return out
            logistic_into(p, None)
            share = p if weights is None else p * weights
            for j in range(few):
                out[j, :, j, :] = full.T @ (full * share[j][:, None])
            root = p if weights is None else p * np.sqrt(weights)
            wide = (root.T[:, :, None] * full[:, None, :]).reshape(len(full), -1)
            out.reshape(few * size, few * size)[...] -= wide.T @ wide
            return out

        total = sum(design.over_blocks(work, few * size + size))
        return total + self.precision[:, None, :, None] * np.diag(self.penalty)[None, :, None, :]


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """A problem with more of a penalty, about a centre: ½·tr(C·D·M·Dᵀ), D = B − centre, minimised over D.

    However tight that is, D has all its digits.
    """

    problem: Problem
    centre: Array
    matrix: Array  # M, (size, size)

    def slope(self, D: Array) -> tuple[float, Array]:
        value, slope = self.problem.slope(self.centre + D)
        pull = self.problem.precision @ D @ self.matrix
        return value + 0.5 * float((D * pull).sum()), slope + pull

    def hessian(self, D: Array) -> Array:
        precision = self.problem.precision[:, None, :, None]
        return self.problem.hessian(self.centre + D) + precision * self.matrix[None, :, None, :]


def logistic_into(scores: Array, weights: Array | None) -> float:
    """Turn scores into w·p, in place; Σ w·log(1 + Σ_j exp a_j)."""
    top = scores.max(axis=0)
    shifted = not float(top.max(initial=0.0)) <= NEAR
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
    """Σ log of numbers from 1 to about e⁴⁰: the logarithms of products of sixteen."""
    whole = len(values) - len(values) % 16
    return float(sum_log(values[:whole].reshape(16, -1)).sum() + np.log(values[whole:]).sum())


def inverse(hessian: Array) -> Array:
    """The inverse of a Hessian (classes − 1, size, classes − 1, size), whose rounding does not depend on units."""
    size = hessian.shape[0] * hessian.shape[1]
    square = hessian.reshape(size, size)
    scale = correlation_scale(square)
    try:
        factor = scipy.linalg.cho_factor(square * scale * scale[:, None], lower=True)
    except np.linalg.LinAlgError:
        raise NotEstimableError(
            "The likelihood does not determine all weights, so that they have no standard errors. Hint: a larger "
            "penalty, or inference=False."
        ) from None
    return np.asarray(scipy.linalg.cho_solve(factor, np.eye(size)) * scale * scale[:, None]).reshape(hessian.shape)


class Metric(Protocol):
    """What a gradient is measured by: a positive definite matrix."""

    def solve(self, slope: Array) -> Array:
        """The matrix's inverse times a gradient."""


class Factored:
    """A matrix over all weights, of any shape, factored. One that rounding has made singular gets a little more."""

    def __init__(self, matrix: Array, shape: tuple[int, ...]) -> None:
        size = int(np.prod(shape))
        square = matrix.reshape(size, size)
        line = np.diagonal(square)
        self._shape, self._scale = shape, 1.0 / np.sqrt(np.where(line > 0.0, line, 1.0))
        square = square * self._scale * self._scale[:, None]
        more = 0.0
        while True:
            try:
                self._factor = scipy.linalg.cho_factor(square + more * np.eye(size), lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                more = max(100.0 * more, 1e-14)
            else:
                break

    def solve(self, slope: Array) -> Array:
        scaled = scipy.linalg.cho_solve(self._factor, slope.ravel() * self._scale, check_finite=False)
        return np.asarray(scaled * self._scale).reshape(self._shape)


@dataclass(frozen=True, slots=True, eq=False)
class Diagonal:
    """A matrix that is diagonal."""

    line: Array

    def solve(self, slope: Array) -> Array:
        return slope / np.where(self.line > 0.0, self.line, 1.0)


class Bound:
    """½·(I − 11ᵀ/K) ⊗ G + C ⊗ Λ, which no Hessian exceeds. G = Σ w·φφᵀ, or its diagonal."""

    def __init__(self, problem: Problem, gram: Array) -> None:
        shares, self._turn = scipy.linalg.eigh(problem.precision, half_bound(len(problem.sums)))
        known: dict[float, Metric] = {}
        self._rows: list[Metric] = []
        for share in shares.tolist():
            more = share * problem.penalty
            thin, key = gram.ndim == 1, round(share, 9)
            if key not in known:
                known[key] = Diagonal(gram + more) if thin else Factored(gram + np.diag(more), (len(gram),))
            self._rows.append(known[key])

    def solve(self, slope: Array) -> Array:
        turned = self._turn.T @ slope
        return self._turn @ np.array([one.solve(row) for one, row in zip(self._rows, turned, strict=True)])


def half_bound(few: int) -> Array:
    """½·(I − 11ᵀ/K) of the classes but the first."""
    return 0.5 * (np.eye(few) - 1.0 / (few + 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Where a descent ended, the objective on its way there, how many steps it took, and whether it came to rest."""

    B: Array
    path: tuple[float, ...]
    converged: bool

    @property
    def steps(self) -> int:
        return len(self.path) - 1

    @property
    def value(self) -> float:
        return self.path[-1]


def minimise(problem: Problem, weight: float, tol: float, max_iter: int) -> Descent:
    """The minimum, from 0 on: where a step promises less than tol for each unit of the rows' weight.

    Small problems are solved by Newton-Raphson. Large ones start at the minimum of a sample of the rows and have its
    Hessian for a metric, which leaves a handful of passes over all rows; where even that is too large, the bound is the
    metric.
    """
    with single_threaded_blas():
        return _minimise(problem, weight, tol, max_iter)


def _minimise(problem: Problem, weight: float, tol: float, max_iter: int) -> Descent:
    B = np.zeros_like(problem.sums)
    if _small(problem, DIRECT):
        return descend(problem, B, None, weight, tol, max_iter)
    rng = np.random.default_rng(0)
    metric: Metric | None = None
    for count in _samples(problem):
        part = problem.sample(count, rng)
        own = None if _small(part, 2.0 * DIRECT) else Bound(part, part.design.gram())
        B = descend(part, B, own, weight, ROUGH, 2 * PATIENCE).B
        if _small(part, AFFORDED):
            metric = Factored(part.hessian(B), B.shape)
    metric = Bound(problem, problem.design.gram()) if metric is None else metric
    path: list[float] = []
    with progress("steps of the descent") as step:
        while True:
            left = max_iter - max(len(path) - 1, 0)
            found = descend(problem, B, metric, weight, tol, min(PATIENCE, left), step)
            path, B = [*path[:-1], *found.path], found.B
            if found.converged or left <= PATIENCE:
                return Descent(B, tuple(path), found.converged)
            if _small(problem, 4.0 * AFFORDED):
                metric = Factored(problem.hessian(B), B.shape)


def _small(problem: Problem, most: float) -> bool:
    return problem.parameters <= LARGEST and problem.design.rows * float(problem.parameters) ** 2 <= most


def _samples(problem: Problem) -> list[int]:
    """How many rows to begin with; none where all are not many more."""
    rows, count = problem.design.rows, max(SAMPLE, 10 * problem.parameters)
    if rows < 4 * count:
        return []
    return [count] if rows < GROWTH**2 * count else [count, GROWTH * count]


def descend(
    problem: Problem | Around,
    B: Array,
    metric: Metric | None,
    weight: float,
    tol: float,
    max_iter: int,
    step_done: Callable[[], None] = lambda: None,
) -> Descent:
    """Descend from B until a step promises less than tol · weight. Where `metric` is None, every step is Newton's.

    Otherwise steps are measured by the metric, and corrected by what earlier ones found out (L-BFGS). A step that does
    not pay is halved: the objective never rises, but for rounding.
    """
    value, slope = problem.slope(B)
    memory: list[tuple[Array, Array, float]] = []
    path = [value]
    for _ in range(max_iter):
        own = Factored(problem.hessian(B), B.shape) if metric is None else metric
        step = -_solved(slope, memory, own)
        promised = -0.5 * float((slope * step).sum())
        small = promised <= max(tol * weight, 4.0 * EPS * EPS * abs(value))  # below, steps are rounding
        if small and metric is not None:
            return Descent(B, tuple(path), True)
        slack, share = 64.0 * EPS * (abs(value) + weight), 1.0
        for _ in range(HALVINGS):
            there = B + share * step
            new, up = problem.slope(there)
            if new <= value - 2e-4 * share * promised + slack:
                break
            share *= 0.5
        else:
            return Descent(B, tuple(path), small)
        moved, bent = there - B, up - slope
        curve = float((moved * bent).sum())
        if metric is not None and curve > EPS * float(np.linalg.norm(moved) * np.linalg.norm(bent)):
            memory = [*memory[1 - MEMORY :], (moved, bent, 1.0 / curve)]
        B, value, slope = there, new, up
        path.append(value)
        step_done()
        if small:
            return Descent(B, tuple(path), True)
    return Descent(B, tuple(path), False)


def _solved(slope: Array, memory: list[tuple[Array, Array, float]], metric: Metric) -> Array:
    """The inverse metric, as the memory corrects it, times a gradient: the two loops of L-BFGS."""
    left, shares = slope, []
    for moved, bent, over in reversed(memory):
        shares.append(over * float((moved * left).sum()))
        left = left - shares[-1] * bent
    step = metric.solve(left)
    for (moved, bent, over), share in zip(memory, reversed(shares), strict=True):
        step = step + (share - over * float((bent * step).sum())) * moved
    return step
