"""The normal-inverse-Wishart prior of a Gaussian, its defaults, and its posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likely.errors import InputError, NotEstimableError, listed
from likely.families.gaussian.covariance import Diagonal, Structure
from likely.families.priors import real_array, real_scalar
from likely.numerics.options import NamedOptions
from likely.numerics.special import TINY
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedPrior:
    """A normal-inverse-Wishart prior without defaults, of the columns that vary, in local coordinates."""

    mean: Array  # (d,)
    rows: float | Array  # what the mean counts for
    degrees: float
    scale: Array  # (d, d) or (d,)

    def posterior(self, moments: Moments, structure: Structure) -> NormalInverseWishartPosterior:
        """The posterior given the moments of rows.

        With r_k = κ₀ + n_k and δ_k = x̄_k − μ₀, the means are μ₀ + n_k/r_k·δ_k, the scale is
        Ψ₀ + S + Σ_k κ₀·n_k/r_k·δ_k·δ_kᵀ, and the degrees are ν₀ + n.
        """
        weight = moments.weight if np.ndim(self.rows) == 0 else across(moments.weight)
        rows = np.asarray(self.rows + weight)
        if not np.all(rows > 0.0):
            unseen = across(rows <= 0.0).any(axis=1)
            raise NotEstimableError(
                f"Class {listed(moments.classes[unseen])} has no rows, so a flat prior leaves its mean undetermined. "
                "Set NormalInverseWishart(mean_rows=...) to a positive number."
            )
        mean, scatter = self.combined(moments, weight, rows)
        # A flat prior: unknown means cost degrees of freedom.
        flat = moments.group_classes() if np.all(self.rows == 0.0) else 0
        size = moments.dimension
        return NormalInverseWishartPosterior(
            self,
            mean,
            rows,
            self.degrees + structure.degrees_of(moments.group_weight() - flat, size),
            self.scale + structure.columns_together(size) * structure.shape(scatter),
        )

    def combined(self, moments: Moments, weight: Array, rows: Array) -> tuple[Array, Array]:
        """The posterior means, and the scatters about them and the prior mean, given n_k and r_k."""
        away, scatter = moments.mean - self.mean, moments.scatter.copy()
        step = across(weight / rows) * away
        for k, g in enumerate(moments.group):
            scaled = self.rows * step[k]
            scatter[g] += np.outer(scaled, away[k]) if scatter.ndim == 3 else scaled * away[k]
        return self.mean + step, scatter


@dataclass(frozen=True, slots=True, eq=False)
class NormalInverseWishartPosterior:
    """Posterior of class means (K) and covariances (groups)."""

    prior: ResolvedPrior
    mean: Array  # (K, d)
    mean_rows: Array  # (K,), or (K, d) where values are missing
    degrees: Array  # (groups,), or (groups, d) where values are missing and each column has its own variance
    scale: Array  # (groups, d, d) or (groups, d)


class NormalInverseWishart(NamedOptions):
    """Normal-inverse-Wishart prior of class means and covariances.

    Σ ~ InverseWishart(degrees, scale) and mean_k | Σ ~ Normal(mean, Σ / mean_rows). With a diagonal covariance it is an
    inverse gamma per column, with a spherical covariance a single inverse gamma. Parameters that are None are derived
    from the data so that the prior is weak [1]_.

    Parameters
    ----------
    mean : float or array-like of shape (n_columns,), default=None
        Prior mean of every class. None is the overall mean of each column.
    mean_rows : float or array-like of shape (n_columns,), default=None
        Number of rows that the prior mean counts for. 0 is a flat prior of the means. One number per column is allowed
        for diagonal covariances. None is 0.01, or less where class means lie more than ten standard deviations apart,
        so that the prior is as wide as the class means are scattered.
    degrees : float, default=None
        Degrees of freedom of the inverse Wishart. None is d + 2 (full covariance) or 3 (diagonal and spherical), the
        smallest integer for which the prior expectation of the covariance exists; it then equals `scale`. Where only a
        fraction s of the values of a full block is observed, a pair of values is observed in s² of the rows: the
        degrees are divided by s², with the same expectation.
    scale : float, array-like of shape (n_columns,) or (n_columns, n_columns), default=None
        Scale matrix, or its diagonal. None is the diagonal matrix of the within-class variances; a column that is
        constant within every class contributes its total variance divided by the squared number of classes.
    strength : float, default=0.0
        Strength of a prior whose `degrees` are None: the degrees are increased by `strength` times d (full covariance)
        or by `strength` (diagonal and spherical), and the prior expectation of the covariance stays the same. A larger
        value shrinks covariances further toward their prior expectation. `GenerativeClassifier` and `NaiveBayes` choose
        it by leave-one-out log-loss where a `Gaussian` has no prior.

    See Also
    --------
    Gaussian : The family whose means and covariances this is a prior of.

    References
    ----------
    .. [1] C. Fraley and A. E. Raftery, "Bayesian regularization for normal mixture estimation and model-based
       clustering", Journal of Classification 24 (2007), 155-181.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import Gaussian, GenerativeClassifier, NormalInverseWishart
    >>> X, y = load_iris(return_X_y=True)
    >>> prior = NormalInverseWishart(mean_rows=1.0)
    >>> model = GenerativeClassifier(Gaussian(prior=prior), estimation="bayes").fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        mean: Any = None,
        mean_rows: Any = None,
        degrees: float | None = None,
        scale: Any = None,
        strength: float = 0.0,
    ) -> None:
        self.mean = mean
        self.mean_rows = mean_rows
        self.degrees = degrees
        self.scale = scale
        self.strength = strength

    @classmethod
    def reference(cls) -> Self:
        """Return the reference prior |Σ|^(-(d+1)/2), flat in the means: the improper limit without pseudo-data.

        Returns
        -------
        NormalInverseWishart
            ``NormalInverseWishart(mean_rows=0, degrees=0, scale=0)``.

        Examples
        --------
        >>> from likely import NormalInverseWishart
        >>> NormalInverseWishart.reference()
        NormalInverseWishart(degrees=0.0, mean_rows=0.0, scale=0.0)
        """
        return cls(mean_rows=0.0, degrees=0.0, scale=0.0)

    def _number(self, name: str, value: Any) -> float:
        number = real_scalar("NormalInverseWishart", name, value)
        if not (np.isfinite(number) and number >= 0.0):
            raise InputError(f"NormalInverseWishart({name}={value!r}): must be finite and not negative.")
        return number

    def _location(self, moments: Moments, columns: AnyArray, d: int) -> Array:
        """Prior mean in the moments' coordinates."""
        if self.mean is None:
            return moments.overall_mean
        mean = real_array("NormalInverseWishart", "mean", self.mean)
        if mean.ndim > 1 or (mean.ndim == 1 and len(mean) != d) or not np.all(np.isfinite(mean)):
            raise InputError(f"NormalInverseWishart(mean=...) must be a number or {d} finite numbers, one per column.")
        local = moments.coordinates
        return (np.broadcast_to(mean, (d,))[columns] - local.origin) / local.unit

    def _pseudo_rows(self, moments: Moments, structure: Structure, columns: AnyArray, d: int) -> float | Array:
        """Rows that the prior mean counts for; per column where each column has its own variance."""
        apart = isinstance(structure, Diagonal) and structure.columns_together(2) == 1
        if np.ndim(self.mean_rows) == 1 and apart:
            each = [self._number("mean_rows", value) for value in np.asarray(self.mean_rows).tolist()]
            if len(each) != d:
                raise InputError(f"NormalInverseWishart(mean_rows=...) must be one number, or {d}, one per column.")
            return np.array(each)[columns]
        if self.mean_rows is not None:
            return self._number("mean_rows", self.mean_rows)
        between = (moments.total_squares - moments.squares.sum(axis=0)) / np.maximum(moments.total_weight, TINY)
        with np.errstate(over="ignore"):
            ratio = moments.within_variance / np.where(between > 0.0, between, 1.0)
        rows = np.where(between > 0.0, np.minimum(ratio, 0.01), 0.01)
        if apart and rows.min(initial=0.01) < 0.01:
            return np.asarray(rows)
        return float(rows.min(initial=0.01))

    def _prior_scale(self, moments: Moments, structure: Structure, columns: AnyArray, d: int) -> Array:
        """Prior scale, (d, d) or (d,), in the moments' coordinates."""
        if self.scale is None:
            variance = moments.within_variance
            return np.diag(variance) if structure.full else variance
        scale = real_array("NormalInverseWishart", "scale", self.scale)
        if scale.ndim > 2 or scale.shape not in {(), (d,), (d, d)} or not np.all(np.isfinite(scale)):
            raise InputError(
                f"NormalInverseWishart(scale=...) must be a number, {d} numbers, or a {d} x {d} matrix, all finite."
            )
        _check_definite(scale)
        unit = moments.coordinates.unit
        if scale.ndim < 2:
            each = np.broadcast_to(scale, (d,))[columns] / unit / unit
            return np.diag(each) if structure.full else each
        matrix = scale[np.ix_(columns, columns)] / unit / unit[:, None]
        return matrix if structure.full else np.diagonal(matrix).copy()

    def _prior_degrees(self, moments: Moments, structure: Structure) -> tuple[float, float]:
        """Degrees of freedom ν0, and the factor of the scale that keeps the expectation of the covariance.

        The expectation is Ψ0/(ν0 − d − 1) for a full covariance of d columns, and Ψ0/(ν0 − 2) for others.
        """
        strength, size = self._number("strength", self.strength), moments.dimension
        if self.degrees is not None:
            if strength:
                raise InputError(
                    f"NormalInverseWishart(degrees={self.degrees!r}, strength={strength:g}): strength increases the "
                    "default degrees of freedom. Set one of the two."
                )
            return self._number("degrees", self.degrees), 1.0
        first = degrees = structure.prior_degrees(size)
        if structure.full and moments.observed < 1.0 and self.scale is None:
            degrees /= moments.observed**2
        degrees += strength * (size if structure.full else 1.0)
        return degrees, degrees - first + 1.0

    def _resolved(self, moments: Moments, structure: Structure, columns: AnyArray, d: int) -> ResolvedPrior:
        """The prior of the `columns` (of d) that vary, given their moments."""
        mean_rows = self._pseudo_rows(moments, structure, columns, d)
        location = self._location(moments, columns, d)
        scale = structure.shape(self._prior_scale(moments, structure, columns, d)[None])[0]
        degrees, growth = self._prior_degrees(moments, structure)
        return ResolvedPrior(location, mean_rows, degrees, scale * growth)


def _check_definite(scale: Array) -> None:
    """Raise for a scale matrix, or its diagonal, with a negative eigenvalue."""
    slack = -1e-12 * np.abs(scale).max(initial=0.0)
    if scale.ndim < 2:
        fine = scale.min(initial=0.0) >= slack
    else:
        fine = np.allclose(scale, scale.T) and np.linalg.eigvalsh(scale).min(initial=0.0) >= slack
    if not fine:
        raise InputError("NormalInverseWishart(scale=...) must be symmetric and positive semi-definite.")
