"""Gaussian mixtures as class-conditional densities (mixture discriminant analysis).

Components are sub-classes, (class, component), with the statistics, estimates and densities of the Gaussian family. The
component of a row is latent, so mixtures are fitted by expectation maximisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.special

from likely.errors import InputError, NoEvidenceError
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.expected_moments import ExpectedMoments
from likely.families.gaussian.family import Gaussian
from likely.families.parameters import Parameter
from likely.numerics.shapes import Shape
from likely.numerics.special import log_sum_exp
from likely.numerics.ties import ROUNDING
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index


@dataclass(frozen=True, slots=True, eq=False)
class SubMoments:
    """Moments of (class, component), and the weight of each component."""

    classes: Annotated[AnyArray, Shape("=classes")]
    inner: Annotated[Moments, Shape("d")]  # classes are integers, class by class, component by component
    mass: Annotated[Array, Shape("classes components", ">=0")]

    def _valid(self) -> bool:
        return len(self.inner.classes) == self.mass.size

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def rows(self) -> AnyArray:
        return np.asarray(np.ceil(self.mass.sum(axis=1)), dtype=np.int64)

    def __add__(self, other: SubMoments) -> SubMoments:
        return SubMoments(self.classes, self.inner + other.inner, self.mass + other.mass)

    def align(self, classes: AnyArray) -> SubMoments:
        """The same: classes are known from the start."""
        if len(classes) != len(self.classes) or any(classes != self.classes):
            raise InputError("All classes of a model with components must be known from the start.")
        return self


class MixtureFamily(Family):
    """The family behind ``Gaussian(components=...)``."""

    _joint = True

    def __init__(self, shown: Gaussian, components: int) -> None:
        self.shown = shown
        self.components = components

    def check(self, estimation: Estimation) -> None:
        self.shown.check(estimation)
        self._inner(None).check(estimation)

    def _inner(self, classes: AnyArray | None) -> Gaussian:
        """The same Gaussian for sub-classes."""
        options = self.shown.get_params(deep=False) | {"components": 1}
        if not isinstance(self.shown.shared, bool | np.bool_) and classes is not None:
            place = {label: i for i, label in enumerate(classes.tolist())}
            unknown = [label for group in self.shown.shared for label in group if label not in place]
            if unknown:
                raise InputError(f"shared={self.shown.shared!r} names class {unknown[0]!r}, which is not in y.")
            options["shared"] = [
                [place[label] * self.components + r for label in group for r in range(self.components)]
                for group in self.shown.shared
            ]
        return Gaussian(**options)

    @property
    def _needs_em(self) -> bool:
        return True

    @property
    def _needs_complete_rows(self) -> bool:
        return self.shown._needs_complete_rows

    def describe(self) -> str:
        return f"{self._inner(None).describe()}, {self.components} components"

    def _accumulator(self, classes: AnyArray, columns: Columns) -> Split:
        return Split(self, classes, columns)

    def _expected_accumulator(self, builder: Split, fitted: Conditionals) -> Split:
        return Split(self, builder.classes, builder.columns, fitted)

    def _initial_family(self) -> Family:
        return self._inner(None)._initial_family().set_params(shared=self.shown.shared)

    @property
    def _components(self) -> int:
        return self.components

    def _seeded(self, start: Conditionals, centres: Array, scale: Array) -> Conditionals:
        assert isinstance(start, Elliptical)
        return SeededMixtures.of(start, centres, scale)

    @property
    def _declared_family(self) -> Family:
        return self.shown

    def _with_fixed_prior(self, statistics: SubMoments, estimation: Estimation) -> Family:
        inner = self._inner(statistics.classes)._with_fixed_prior(statistics.inner, estimation)
        options = self.shown.get_params(deep=False) | {"prior": inner.prior}
        return MixtureFamily(Gaussian(**options), self.components)

    def estimate(self, statistics: SubMoments, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        inner = self._inner(statistics.classes).estimate(statistics.inner, estimation, names)
        more = estimation.default_smoothing
        mass = statistics.mass + more
        with np.errstate(divide="ignore"):
            return Mixtures(inner, np.log(mass / mass.sum(axis=1, keepdims=True)))

    def _parameters(
        self, statistics: SubMoments, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        """Parameters of the components, without errors: their statistics are expectations."""
        assert isinstance(fitted, Mixtures)
        inner = self._inner(statistics.classes)._parameters(statistics.inner, fitted.inner, estimation, names)
        shape = fitted.log_weight.shape
        weights = np.exp(fitted.log_weight).T
        found = [Parameter(", ".join(names), f"weight of component {r}", weight) for r, weight in enumerate(weights)]
        return found + [
            Parameter(each.column, f"{each.name}, component {r}", each.value.reshape(shape)[:, r])
            for r in range(shape[1])
            for each in inner
        ]

    def _log_prior(self, statistics: SubMoments, fitted: Conditionals) -> float:
        assert isinstance(fitted, Mixtures)
        inner = self._inner(statistics.classes)._log_prior(statistics.inner, fitted.inner)
        return inner + float(fitted.log_weight.sum())

    def _n_parameters(self, statistics: SubMoments, names: Sequence[str]) -> int:
        inner = self._inner(statistics.classes)._n_parameters(statistics.inner, names)
        return inner + len(statistics.classes) * (self.components - 1)

    def _log_evidence(self, statistics: Any, names: Sequence[str]) -> float:
        raise NoEvidenceError("a mixture has no closed-form marginal likelihood")

    def _leave_one_out(
        self, statistics: Any, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        """Each row is removed from the components of its class by its responsibilities under the fitted densities.

        A covariance that several components share loses the row once, as a row of the component in question for the
        class of the row, and as one of its most probable component for other classes.
        """
        assert isinstance(fitted, Mixtures)
        inner = self._inner(statistics.classes)._leave_one_out(statistics.inner, fitted.inner, estimation, names)
        count, smoothing = self.components, estimation.default_smoothing
        size = len(statistics.classes)

        def log_density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            codes, each = codes.astype(np.intp), np.arange(len(codes))
            responsibilities = fitted.split(rows, codes)
            parts = inner(rows, codes * count + responsibilities.argmax(axis=0), weights).reshape(size, count, -1)
            mass = np.repeat(np.log(statistics.mass + smoothing)[:, :, None], len(codes), axis=2)
            left = statistics.mass[codes].T - weights * responsibilities + smoothing
            for r in range(count):
                sub = codes * count + r
                parts[codes, r, each] = inner(rows, sub, weights * responsibilities[r])[sub, each]
            with np.errstate(divide="ignore"):
                mass[codes, :, each] = np.log(np.maximum(left, 0.0)).T
            mass -= log_sum_exp(mass.transpose(1, 0, 2))[:, None]
            return log_sum_exp((parts + mass).transpose(1, 0, 2))

        return log_density


class Split:
    """Accumulates moments of rows, each weighted by its responsibilities p(component | x, class).

    Without densities (`fitted` is None) there are none, and rows cannot be added.
    """

    groups = None
    block_rows = 2**15

    def __init__(
        self, family: MixtureFamily, classes: AnyArray, columns: Columns, fitted: Conditionals | None = None
    ) -> None:
        self.family, self.classes, self.columns, self._fitted = family, classes, columns, fitted
        self._mass = np.zeros(len(classes) * family.components)
        if isinstance(fitted, Mixtures):
            inner = family._inner(classes)._accumulator(np.arange(len(self._mass)), columns)
            self._inner: Any = ExpectedMoments(inner, fitted.inner) if family._needs_complete_rows else inner

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        components = self.family.components
        if not isinstance(self._fitted, Mixtures):
            raise InputError(
                f"Gaussian(components={components}) is fitted by expectation maximisation from all rows at once. Use "
                "fit."
            )
        weights = np.ones(len(block)) if weights is None else weights
        responsibilities = self._fitted.split(block, codes)
        for r in range(components):
            sub = codes.astype(np.intp) * components + r
            mine = weights * responsibilities[r]
            self._inner.add(block, sub, mine)
            self._mass += np.bincount(sub, mine, minlength=len(self._mass))

    def finish(self) -> SubMoments:
        return SubMoments(self.classes, self._inner.finish(), self._mass.reshape(len(self.classes), -1))


@dataclass(frozen=True, eq=False)
class Mixtures(Conditionals):
    """Mixture class-conditionals: densities of all components, and their weights in each class."""

    inner: Any  # Elliptical, over (class, component)
    log_weight: Array  # (classes, components)

    not_exported: ClassVar[str] = "a mixture within classes has no expression. Set components=1."

    @property
    def n_classes(self) -> int:
        return len(self.log_weight)

    @property
    def dimension(self) -> int:
        return int(self.inner.dimension)

    @property
    def width(self) -> int:
        return int(self.inner.width) + 2 * self.log_weight.size

    def _parts(self, rows: AnyArray) -> Array:
        """log p(x, component | class), (classes, components, n)."""
        found = self.inner.log_density(rows).reshape(*self.log_weight.shape, -1)
        found += self.log_weight[:, :, None]
        return np.asarray(found)

    def log_density(self, rows: AnyArray) -> Array:
        parts = self._parts(rows).transpose(1, 0, 2)
        return log_sum_exp(parts)

    def split(self, rows: AnyArray, codes: Codes) -> Array:
        """p(component | x, class), (components, n), of each row under its class."""
        parts = self._parts(rows)[codes, :, np.arange(len(codes))].T
        return np.exp(parts - log_sum_exp(parts))

    def expectation(self, rows: AnyArray, label: int) -> Array:
        responsibilities = self.split(rows, np.full(len(rows), label))
        first = label * len(responsibilities)
        return np.asarray(
            sum(part[:, None] * self.inner.expectation(rows, first + r) for r, part in enumerate(responsibilities))
        )

    def _responsibilities(self, rows: AnyArray) -> Array:
        """p(component | x, class), (classes, components, n)."""
        parts = self._parts(rows)
        return np.exp(parts - log_sum_exp(parts.transpose(1, 0, 2))[:, None])

    def explain(self, rows: AnyArray) -> Array:
        """Contributions under the components, averaged with p(component | x, class)."""
        return self._averaged(rows, self.inner.explain(rows))

    def explain_sequential(self, rows: AnyArray) -> Array:
        return self._averaged(rows, self.inner.explain_sequential(rows))

    def _averaged(self, rows: AnyArray, terms: Array) -> Array:
        shape = (len(rows), *self.log_weight.shape, self.dimension)
        return np.asarray(np.einsum("nkrd,krn->nkd", terms.reshape(shape), self._responsibilities(rows)))

    def column_log_densities(self, rows: AnyArray) -> Array:
        terms = self.inner.column_log_densities(rows).reshape(len(rows), *self.log_weight.shape, -1)
        return np.asarray(log_sum_exp((terms + self.log_weight[:, :, None]).transpose(2, 0, 1, 3)))

    def unattributed(self, rows: AnyArray) -> Array:
        """Σ_r p(r | x, class)·log(weight_r / p(r | x, class)): the part of log p(x | class) that chooses components."""
        responsibilities = self._responsibilities(rows)
        logs = np.maximum(self.log_weight, np.log(np.finfo(np.float64).tiny))[:, :, None]
        return np.asarray(
            (responsibilities * logs - scipy.special.xlogy(responsibilities, responsibilities)).sum(axis=1)
        )

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        chosen = rng.choice(self.log_weight.shape[1], size=n, p=np.exp(self.log_weight[label]))
        rows = np.empty((n, self.dimension))
        for r in np.unique(chosen).tolist():
            here = chosen == r
            rows[here] = self.inner.sample(label * self.log_weight.shape[1] + r, int(here.sum()), rng)
        return rows

    def marginal(self, columns: Index) -> Self:
        return replace(self, inner=self.inner.marginal(columns))

    def ignored_columns(self) -> AnyArray:
        return np.asarray(self.inner.ignored_columns())

    def notes(self, names: Sequence[str]) -> list[str]:
        return list(self.inner.notes(names))


@dataclass(frozen=True, eq=False)
class SeededMixtures(Mixtures):
    """Mixtures of equal components, whose rows belong to the nearest centre: the start of expectation maximisation."""

    centres: Array  # (classes, components, d)
    scale: Array  # (d,)

    @classmethod
    def of(cls, one: Elliptical, centres: Array, scale: Array) -> Self:
        """Every component of a class has the one density of the class."""
        classes, size = centres.shape[:2]
        components = one.of_classes(np.repeat(np.arange(classes), size))
        return cls(components, np.full((classes, size), -np.log(size)), centres, scale)

    def split(self, rows: AnyArray, codes: Codes) -> Array:
        """Responsibilities (components, n): 1 for the nearest centre of the class of a row."""
        away = (np.asarray(rows, dtype=np.float64)[:, None] - self.centres[codes]) / self.scale
        distance = np.nansum(away * away, axis=2)
        nearest = (distance <= (1.0 + ROUNDING) * distance.min(axis=1, keepdims=True)).argmax(axis=1)
        return (np.arange(self.centres.shape[1])[:, None] == nearest).astype(np.float64)

    def marginal(self, columns: Index) -> Self:
        return replace(super().marginal(columns), centres=self.centres[:, :, columns], scale=self.scale[columns])
