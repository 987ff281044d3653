"""Numerical helpers that know nothing of statistics: log-sum-exp, whitening factors, rank.

Arrays of scores are laid out (classes, rows): reductions over a handful of classes then run over
contiguous memory, which is several times faster than along short rows.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.special

from likely.errors import CellError, MissingCellError

Array = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

EPS = float(np.finfo(np.float64).eps)
FEW_CODES = 16
LARGEST_COUNT = 1e300  # counts beyond are taken for this one: their logarithms overflow
LARGEST_ODDS = 600.0  # exp of it, summed over any number of classes, is far from overflow
MISSING = "is missing (NaN), and columns that vary together need complete rows here"
MISSING_HINT = "use NaiveBayes, or declare Gaussian('diagonal'), with holes; leave out such rows; or fill them in"
LOG_2PI = float(np.log(2.0 * np.pi))
TINY = float(np.finfo(np.float64).tiny)


class Scratch(threading.local):
    """Arrays that a thread uses again and again: fresh memory costs more than the arithmetic on it."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}
        self.kept: dict[Any, Any] = {}  # other things that are made once

    def array(self, name: str, rows: int, columns: int) -> Array:
        """Room for (rows, columns) numbers, of any content, until the same name is asked for again."""
        held = self._held.get(name)
        if held is None or held.size < rows * columns:
            held = self._held[name] = np.empty(rows * columns)
        return held[: rows * columns].reshape(rows, columns)

    def like(self, name: str, rows: AnyArray) -> Array:
        """Room for as many numbers as `rows` has, in its order in memory."""
        n, d = rows.shape
        turned = abs(rows.strides[0]) < abs(rows.strides[1])
        return self.array(name, d, n).T if turned else self.array(name, n, d)

    def clear(self) -> None:
        """Give the memory back."""
        self._held.clear()
        self.kept.clear()


scratch = Scratch()


def count_codes(codes: AnyArray, size: int) -> npt.NDArray[np.int64]:
    """How often each code from 0 to size - 1 occurs."""
    if size <= FEW_CODES:  # a comparison for each is faster than going from code to code
        return np.array([np.count_nonzero(codes == k) for k in range(size)], dtype=np.int64)
    return np.bincount(codes, minlength=size).astype(np.int64, copy=False)


def all_same(values: AnyArray) -> bool:
    """Whether all values are one, and there are any."""
    return len(values) > 0 and (values.strides == (0,) or bool(values.min() == values.max()))


def by_row(do: np.ufunc, rows: AnyArray, row: Array, out: Array) -> Array:
    """Write do(rows, row) into `out`, several rows at a time where they lie one after another: short runs are slow."""
    n, d = rows.shape
    many = max(1024 // max(d, 1), 1)
    whole = n - n % many if rows.flags.c_contiguous and out.flags.c_contiguous else 0
    if many > 1 and whole:
        long = whole // many, many * d
        do(rows[:whole].reshape(long), np.tile(row, many), out=out[:whole].reshape(long), casting="same_kind")
        rows, rest = rows[whole:], out[whole:]
    else:
        rest = out
    do(rows, row, out=rest, casting="same_kind")
    return out


def float_rows(rows: AnyArray, origin: Array | None = None) -> Array:
    """Rows as float64, minus an origin, in their order in memory; they themselves where that changes nothing."""
    if origin is None and rows.dtype == np.float64:
        return rows
    out = scratch.like("rows", rows)
    if origin is None:
        np.copyto(out, rows)
        return out
    return by_row(np.subtract, rows, origin, out)


def put_rows(out: Array, index: AnyArray, rows: Array) -> None:
    """out[index] = rows, of arrays that lie in rows: each row is copied as one thing, which short ones gain by."""
    if not out.size:
        return
    whole = np.dtype((np.void, out.itemsize * out.shape[1]))
    out.view(whole)[index] = np.ascontiguousarray(rows).view(whole)


def few_products(weights: Array, rows: Array, out: Array) -> None:
    """Write weights @ rows.T, (few, n), into `out`.

    BLAS copies what it multiplies into an order of its own, and for a few weights that takes most of the
    time: rows that lie one after another go there so many at a time that the copy stays in a core's own cache.
    """
    n, d = rows.shape
    few = max(2**16 // max(d, 1), 64)
    whole = n - n % few if rows.flags.c_contiguous else 0
    if whole:
        pieces = rows[:whole].reshape(-1, few, d).transpose(0, 2, 1)
        np.matmul(weights, pieces, out=out[:, :whole].reshape(len(out), -1, few).transpose(1, 0, 2))
    if whole < n:
        np.matmul(weights, rows[whole:].T, out=out[:, whole:])


class Extrapolation:
    """Where an iteration x → g(x), x of shape (k, d), is heading to, from its last steps (Anderson 1965).

    Of all combinations of the last points it takes the one whose step g(x) − x would be the shortest, were g linear.
    Steps are as long as their products with `metric` (d, m) are.
    """

    def __init__(self, metric: Array, memory: int = 8) -> None:
        self._metric, self._memory = metric, memory
        self._points: list[Array] = []
        self._steps: list[Array] = []

    def ahead(self, x: Array, target: Array) -> Array | None:
        """The next point, where x leads to the target; None while too little is known."""
        step = target - x
        self._points = [*self._points[-self._memory :], x]
        self._steps = [*self._steps[-self._memory :], step]
        if len(self._points) < 2:
            return None
        turns = np.array(self._steps[:-1]) - step
        further = np.array(self._points[:-1]) - x + turns
        length = (turns @ self._metric).reshape(len(turns), -1)
        share, *_ = np.linalg.lstsq(length.T, -(step @ self._metric).ravel(), rcond=1e-10)
        return np.asarray(target + np.einsum("i,ikd->kd", share, further))

    def forget(self) -> None:
        """Begin anew: the last steps told nothing of the next."""
        self._points, self._steps = self._points[-1:], self._steps[-1:]


def log_sum_exp(scores: Array) -> Array:
    """log Σ_k exp(scores[k]) over the first axis; -inf where all are -inf."""
    top = scores.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total = np.log(np.exp(scores - safe).sum(axis=0))
    return np.asarray(total + safe)


def softmax_into(scores: Array, out: Array) -> None:
    """Write softmax over the first axis of `scores` (overwritten) into `out`, transposed.

    Where no score overflows beside the first class's, they are taken relative to that one: its exponential is 1.
    As a rule they are already, and the first class's are 0.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        relative = not scores[0].any()
        if (scores if relative else scores.max(axis=0) - scores[0]).max(initial=0.0) <= LARGEST_ODDS:
            if not relative:
                scores[1:] -= scores[0]
            np.exp(scores[1:], out=scores[1:])
            scores[0] = 1.0
        else:
            scores -= scores.max(axis=0)
            np.exp(scores, out=scores)
    np.divide(scores, scores.sum(axis=0), out=out.T)


def total_log(values: Array) -> float:
    """Σ log v of numbers from EPS to 1: one logarithm serves sixteen, whose product is no less than 1e-251."""
    whole = len(values) // 16 * 16
    products = np.multiply.reduce(values[:whole].reshape(16, -1), axis=0)
    return float(np.log(products).sum() + np.log(values[whole:]).sum())


def less_one(z: Array) -> Array:
    """Π_j (1 + z_j) − 1 over the first axis of z (overwritten), (n,): one logarithm then serves all."""
    if not len(z):
        return np.zeros(z.shape[1:])
    while len(z) > 1:  # (1 + a)(1 + b) − 1 = a + b + a·b, which loses nothing
        half = len(z) // 2
        first, second = z[:half], z[len(z) - half :]
        more = first * second
        first += second
        first += more
        z = z[: len(z) - half]
    return z[0]


def sum_log1p(z: Array) -> Array:
    """Σ_j log(1 + z_j) over the first axis of z >= 0 (overwritten), (n,): exact for tiny ones, by few logarithms."""
    total = np.zeros(z.shape[1:])
    for start in range(0, len(z), 16):
        total += np.log1p(less_one(z[start : start + 16]))
    return total


def sum_log(z: Array) -> Array:
    """Σ_j log z_j over the first axis, (n,), by few logarithms: of products of 64, which must fit a float64."""
    total = np.zeros(z.shape[1:])
    for start in range(0, len(z), 64):
        total += np.log(np.multiply.reduce(z[start : start + 64], axis=0))
    return total


def log_softmax_into(scores: Array, out: Array) -> None:
    """Write log-softmax over the first axis of `scores` (overwritten) into `out`, transposed."""
    with np.errstate(over="ignore"):
        scores -= scores.max(axis=0)
    np.subtract(scores, np.log(np.exp(scores).sum(axis=0)), out=out.T)


def rank_tolerance(dimension: int) -> float:
    """Relative conditional variance below which a column counts as a combination of others."""
    return 64.0 * EPS * max(dimension, 1)


def correlation_scale(matrix: Array) -> Array:
    """Reciprocal square roots of the diagonal: D such that D·matrix·D has a unit diagonal."""
    diagonal = np.diagonal(matrix)
    scale = np.zeros_like(diagonal)
    positive = diagonal > 0.0
    scale[positive] = 1.0 / np.sqrt(diagonal[positive])
    return scale


def lower_factor(matrix: Array) -> Array | None:
    """The Cholesky factor L with L·Lᵀ = matrix, or None where the matrix has not full rank.

    Its rounding does not depend on the units of the columns. The rank is judged by the squared diagonal,
    which is each column's variance given the columns before it, as a share of the column's own variance.
    """
    if not len(matrix):
        return np.zeros((0, 0))
    variances = np.diagonal(matrix)
    if not np.all(variances > 0.0):
        return None
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    if np.min(np.diagonal(factor) ** 2 / variances) <= rank_tolerance(len(matrix)):
        return None
    return np.asarray(factor, dtype=np.float64)


def whitener_of(lower: Array) -> Array:
    """Upper triangular T with Tᵀ·L·Lᵀ·T = I: the transposed inverse of L.

    Its i-th column gives the residual of column i given the columns before it, divided by that residual's
    deviation.
    """
    if not len(lower):
        return np.zeros((0, 0))
    # LAPACK leaves the other triangle as it finds it, and NumPy's factor has zeros there.
    inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1)
    return np.ascontiguousarray(inverse.T)


def whitener(matrix: Array) -> Array | None:
    """Upper triangular T with Tᵀ·matrix·T = I, or None where the matrix has not full rank."""
    lower = lower_factor(matrix)
    return None if lower is None else whitener_of(lower)


def independent_columns(matrix: Array) -> tuple[Index, Index]:
    """Columns, in their order, that are not combinations of earlier ones; and the others.

    A Cholesky factorisation row by row on the correlation scale: column j depends on the columns kept
    so far where its conditional variance, as a share of its own, is at rounding level.
    """
    scale = correlation_scale(matrix)
    correlation = matrix * scale * scale[:, None]
    tolerance = rank_tolerance(len(matrix))
    d = len(matrix)
    factor = np.zeros((d, d))
    kept: list[int] = []
    for j in range(d):
        if scale[j] == 0.0:
            continue
        if kept:
            known = factor[: len(kept), : len(kept)]
            row = scipy.linalg.solve_triangular(known, correlation[kept, j], lower=True)
        else:
            row = np.zeros(0)
        left = 1.0 - float(row @ row)
        if left > tolerance:
            r = len(kept)
            factor[r, :r] = row
            factor[r, r] = np.sqrt(left)
            kept.append(j)
    chosen = np.array(kept, dtype=np.intp)
    return chosen, np.setdiff1d(np.arange(d), chosen)


def range_whitener(matrix: Array) -> Array:
    """T of shape (d, rank) with Tᵀ·matrix·T = I on the range of a rank-deficient matrix.

    Found from the eigenvectors on the correlation scale, which do not depend on the order of the
    columns, and then rotated so that column i of T reads only the first d - rank + i + 1 columns.
    """
    basis, _ = range_and_null(matrix)
    if basis.shape[1] == 0:
        return np.zeros((len(matrix), 0))
    _, triangle = np.linalg.qr(basis[::-1].T)
    return np.ascontiguousarray(triangle.T[::-1, ::-1])


def range_and_null(matrix: Array) -> tuple[Array, Array]:
    """B (d, rank) with Bᵀ·matrix·B = I, and N (d, the rest) with matrix·N = 0, judged on the correlation scale.

    Columns of variance 0 are in neither.
    """
    scale = correlation_scale(matrix)
    varying = np.flatnonzero(scale)
    inner = scale[varying]
    values, vectors = np.linalg.eigh(matrix[np.ix_(varying, varying)] * inner * inner[:, None])
    keep = values > rank_tolerance(len(matrix)) * max(float(values[-1]) if len(values) else 1.0, 1.0)
    basis, null = np.zeros((len(scale), int(keep.sum()))), np.zeros((len(scale), int((~keep).sum())))
    basis[varying] = vectors[:, keep] / np.sqrt(values[keep]) * inner[:, None]
    null[varying] = vectors[:, ~keep] * inner[:, None]
    return basis, null


def power_of_two(magnitude: Array) -> Array:
    """The powers of two just above the magnitudes; 1 where a magnitude is 0."""
    exponent = np.frexp(magnitude)[1]
    return np.where(magnitude > 0.0, np.ldexp(1.0, np.clip(exponent, -1000, 1000)), 1.0)


def log_gamma_ratio(a: Array, b: float | Array) -> Array:
    """log Γ(a + b) − log Γ(a) for a > 0, b > −min(a, 1), without the cancellation of two large logarithms.

    For large a by the difference of two Stirling series, whose leading terms are combined first.
    """
    a = np.asarray(a, dtype=np.float64)
    large = np.maximum(a, 30.0)
    total = large + b
    series = (large - 0.5) * np.log1p(b / large) + b * (np.log(total) - 1.0)
    series = series + _stirling_series(total) - _stirling_series(large)
    if np.all(a >= 30.0):
        return np.asarray(series)
    return np.where(a >= 30.0, series, scipy.special.gammaln(a + b) - scipy.special.gammaln(a))


def _stirling_series(x: Array) -> Array:
    """log Γ(x) − (x − ½)·log x + x − ½·log 2π for x >= 30."""
    inverse = (1.0 / x) ** 2
    return (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x


_LOG_FACTORIALS = scipy.special.gammaln(np.arange(1.0, 1026.0))


def log_factorial(x: Array) -> Array:
    """log x! of whole numbers: small ones, which come again and again, are looked up."""
    x = np.asarray(x, dtype=np.float64)
    if x.size and x.max() < len(_LOG_FACTORIALS):
        return np.asarray(_LOG_FACTORIALS[x.astype(np.intp)])
    return np.asarray(scipy.special.gammaln(x + 1.0))


def log_repeated(x: Array, r: float) -> Array:
    """log Γ(x + r)/(Γ(r)·x!) for whole x >= 0 and r > 0, by ratios in which the larger of x and r cancels first."""
    x = np.asarray(x, dtype=np.float64)
    top = x.max(initial=0.0)
    if top < min(x.size - 1, len(_LOG_FACTORIALS)):  # the same numbers come again and again
        return np.asarray(log_repeated(np.arange(top + 1.0), r)[x.astype(np.intp)])
    many = log_gamma_ratio(x + 1.0, r - 1.0) - scipy.special.gammaln(r)
    few = np.minimum(x, r)
    return np.where(x >= r, many, log_gamma_ratio(np.full_like(few, r), few) - log_factorial(few))


def stirling_error(x: Array) -> Array:
    """log Γ(x + 1) − (x + ½)·log x + x − ½·log 2π for x > 0: what Stirling's formula leaves out."""
    x = np.asarray(x, dtype=np.float64)
    small = np.clip(x, TINY, 30.0)
    direct = scipy.special.gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.5 * LOG_2PI
    return np.where(x > 30.0, _stirling_series(np.maximum(x, 30.0)), direct)


def deviance(x: Array, mean: Array) -> Array:
    """x·log(x/mean) + mean − x for x >= 0, mean > 0, without cancellation where they are close.

    With u = (x − mean)/(x + mean), log(x/mean) = 2·artanh u (Loader 2000).
    """
    x, mean = np.asarray(x, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    u = (x - mean) / (x + mean)
    near = np.abs(u) < 0.1
    square = np.where(near, u, 0.0) ** 2
    series = np.zeros_like(square)
    for power in range(21, 1, -2):  # artanh u − u = u³/3 + u⁵/5 + …
        series = square * (1.0 / power + series)
    close = (x - mean) * u + 2.0 * x * u * series
    with np.errstate(over="ignore"):
        return np.where(near, close, scipy.special.xlogy(x, x / mean) + mean - x)


def poisson_log_density(x: Array, mean: Array) -> Array:
    """x·log mean − mean − log x! for whole x >= 0 and mean >= 0, exact for large counts too (Loader 2000)."""
    x, mean = np.minimum(np.asarray(x, dtype=np.float64), LARGEST_COUNT), np.asarray(mean, dtype=np.float64)
    safe, middle = np.maximum(x, 1.0), np.maximum(mean, TINY)
    density = -stirling_error(safe) - deviance(safe, middle) - 0.5 * (LOG_2PI + np.log(safe))
    return np.where(x == 0.0, -mean, np.where(mean == 0.0, -np.inf, density))


def negative_binomial_log_density(x: Array, successes: Array, odds: Array) -> Array:
    """log of Γ(x + r)/(Γ(r)·x!)·pʳ·(1 − p)ˣ, r successes, odds = p/(1 − p) > 0; exact for large counts too.

    It is r/(r + x) times the binomial chance of r successes in r + x trials (Loader 2000).
    """
    x, successes = np.minimum(np.asarray(x, dtype=np.float64), LARGEST_COUNT), np.asarray(successes, dtype=np.float64)
    safe = np.maximum(x, 1.0)
    trials = successes + safe
    chance = (
        stirling_error(trials)
        - stirling_error(successes)
        - stirling_error(safe)
        - deviance(successes, trials * (odds / (1.0 + odds)))
        - deviance(safe, trials / (1.0 + odds))
        - 0.5 * (LOG_2PI + np.log(successes) + np.log(safe / trials))
    )
    density = chance + np.log(successes / trials)
    return np.where(x == 0.0, -successes * np.log1p(1.0 / odds), density)


def is_missing(value: Any) -> bool:
    """Whether this object stands for a missing value: None, NaN, or a library's NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN differs from itself
    except ArithmeticError:
        return False  # a signalling NaN: no number, and no hole either
    except (TypeError, ValueError):
        return not isinstance(value, np.ndarray | list | tuple | dict)  # NA has no truth value


def all_finite(values: AnyArray) -> bool:
    """Whether no value is NaN or infinite; one sum decides as a rule, and no array is made."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.all(np.isfinite(values)))


def has_holes(rows: AnyArray) -> bool:
    """Whether any cell is missing (NaN)."""
    return rows.dtype.kind == "f" and not all_finite(rows) and bool(np.isnan(rows).any())


def check_finite(rows: AnyArray, allow_missing: bool = False) -> None:
    """Raise for the first cell that is infinite, or missing (NaN) unless that is allowed."""
    finite = ~np.isinf(rows) if allow_missing else np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        value = rows[row, column]
        if np.isnan(value):
            raise MissingCellError(int(row), int(column), value, MISSING, MISSING_HINT)
        raise CellError(int(row), int(column), value)
