"""The theory, once: class-conditionals of the exponential family, all classes at a time.

    p(x | class k) = h(x) · exp(θ_k · u(x) − A(θ_k))

u(x) are the sufficient statistics, θ_k the natural parameters, A the log-partition and h the carrier,
which is the same for every class and therefore cancels in a posterior. A `Family` says how such
class-conditionals are learnt from additive statistics; `Conditionals` are what was learnt, either plugged in
(`ExponentialConditionals`) or integrated over the posterior of their parameters, which leaves the family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.base import BaseEstimator

from likely.errors import NoDensityError, NoEvidenceError
from likely.families.estimation import Estimation
from likely.statistics.accumulator import Accumulator
from likely.typing import AnyArray, Array, Codes, Index, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """log p(x | class) = zᵀ·square·z + linear·z + constant, z = x − centre, for every class, up to a term all share.

    About a centre near the class means nothing large has to cancel.
    """

    square: Array | None  # (K, d, d); None where no class has a square of its own
    linear: Array  # (K, d)
    constant: Array  # (K,)
    centre: Array  # (d,)


class Conditionals(ABC):
    """Learnt class-conditional densities of a block of columns. Scores are laid out (classes, rows)."""

    given: ClassVar[str | None] = None  # what of a row is not modelled: it is the same in all draws of a class

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...] | None:
        """Of columns of labels, whose cells are codes by them; None where columns hold numbers."""
        return None

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of columns."""

    @property
    def width(self) -> int:
        """About how many numbers one row needs while it is evaluated: it sizes the row blocks."""
        return self.dimension + self.n_classes

    @abstractmethod
    def log_density(self, rows: AnyArray) -> Array:
        """log p(x | class), (classes, n)."""

    def expectation(self, rows: AnyArray, label: int) -> Array:
        """What missing cells of rows are expected to be in a class, given the others, (n, d)."""
        raise NoDensityError(f"{type(self).__name__} does not tell what missing cells are expected to be")

    def possible(self, cells: Array) -> Array:
        """Expected cells as values that there can be, where expectations are not."""
        return cells

    def own_log_density(self, rows: AnyArray, codes: Codes) -> Array:
        """log p(x | class) of each row under one class, (n,)."""
        return np.asarray(self.log_density(rows)[codes, np.arange(len(codes))])

    def scores(self, rows: AnyArray) -> Array:
        """log p(x | class) up to a term that all classes share, (classes, n); as cheap as possible."""
        return self.log_density(rows)

    @abstractmethod
    def explain(self, rows: AnyArray) -> Array:
        """Terms (n, classes, columns) of log p(x | class) that add up to it."""

    @abstractmethod
    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Draw n rows of one class."""

    @abstractmethod
    def marginal(self, columns: Index) -> Self:
        """The densities of some of the columns, the others integrated out."""

    @final
    def split_by_missing(
        self, rows: AnyArray, whole: Callable[[AnyArray], Array], holed: Callable[[AnyArray], Array]
    ) -> Array:
        """Scores (classes, n) of rows without missing cells by one way, and of the others by another."""
        scores = np.empty((self.n_classes, len(rows)))
        missing = np.isnan(rows).any(axis=1)
        scores[:, ~missing], scores[:, missing] = whole(rows[~missing]), holed(rows[missing])
        return scores

    @final
    def by_pattern(self, rows: AnyArray, evaluate: Callable[[AnyArray, Self], Array]) -> Array:
        """Scores (classes, n) by the marginal of what each row has; rows that miss the same cells come together."""
        scores = np.zeros((self.n_classes, len(rows)))
        for index, observed in patterns(rows):
            if len(observed):
                scores[:, index] = evaluate(rows[np.ix_(index, observed)], self.marginal(observed))
        return scores

    @final
    def explain_with_missing(self, rows: AnyArray) -> Array:
        """Explanations by the marginal of what each row has: missing cells contribute 0."""
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        for index, observed in patterns(rows):
            if len(observed):
                part = self.marginal(observed).explain(rows[np.ix_(index, observed)])
                terms[index[:, None], :, observed] = part.transpose(0, 2, 1)
        return terms

    def quadratic(self) -> Quadratic | None:
        """The log-densities as polynomials of degree two at most, or None where they are none."""
        return None

    @property
    def has_line(self) -> bool:
        """Whether `quadratic` has a form without squares."""
        form = self.quadratic()
        return form is not None and form.square is None

    def line(self, rows: AnyArray) -> Array:
        """The values, (classes, n), of a `quadratic` without squares."""
        form = self.quadratic()
        assert form is not None
        return np.asarray(form.linear @ (rows - form.centre).T + form.constant[:, None])

    def unowned(self, rows: AnyArray) -> Array | None:
        """The part of log p(x | class) that no single column owns, (classes, n); None where there is none."""
        return None

    def unread(self) -> AnyArray:
        """Columns whose values change no answer; what is missing there must still be noticed."""
        return np.zeros(0, dtype=np.intp)

    def notes(self, names: Sequence[str]) -> list[str]:
        """What a reader of a summary should know about these densities."""
        return []


def patterns(rows: AnyArray) -> Iterator[tuple[Index, Index]]:
    """Rows that miss the same cells, and the columns that they have."""
    missing = np.isnan(rows)
    _, place = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
    order = np.argsort(place, kind="stable")
    for index in np.split(order, np.cumsum(np.bincount(place))[:-1]):
        yield index, np.flatnonzero(~missing[index[0]])


class ExponentialConditionals(Conditionals):
    """Class-conditionals of the exponential family with plugged-in parameters."""

    @abstractmethod
    def natural_parameters(self) -> Array:
        """θ, (classes, m)."""

    @abstractmethod
    def sufficient_statistics(self, rows: AnyArray) -> Array:
        """u(x), (n, m)."""

    @abstractmethod
    def log_partition(self) -> Array:
        """A(θ), (classes,)."""

    @abstractmethod
    def log_carrier(self, rows: AnyArray) -> Array:
        """log h(x), (n,)."""

    @final
    def natural_log_density(self, rows: AnyArray) -> Array:
        """θ·u(x) − A(θ) + log h(x), (classes, n): what every `log_density` must equal."""
        products = self.natural_parameters() @ self.sufficient_statistics(rows).T
        return np.asarray(products - self.log_partition()[:, None] + self.log_carrier(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a block: their names, and for columns of labels their categories."""

    names: tuple[str, ...]
    vocabularies: tuple[Vocabulary, ...] | None = None  # None where the block holds numbers
    joint: bool = False  # whether the user wants one density of all of them

    @property
    def dimension(self) -> int:
        return len(self.names)


LeaveOneOutDensity = Callable[[Any, Codes, Array], Array]
"""From rows (n, d), the codes of their classes and their weights to log p(x | class), (classes, n)."""


class Family(BaseEstimator, ABC):
    """A distribution for one column, or for one block of columns that vary together.

    It holds options only; `get_params`, `set_params` and `clone` work as in scikit-learn.
    """

    _reads_categories: ClassVar[bool] = False  # blocks hold codes of categories instead of numbers
    _reads_sparse: ClassVar[bool] = False  # blocks of sparse tables may come as sparse rows
    _joint: ClassVar[bool] = False  # a block is one density of all its columns

    @property
    def _independent(self) -> bool:
        """Whether the columns of a block are independent within a class."""
        return not self._joint

    @abstractmethod
    def check(self, estimation: Estimation) -> None:
        """Raise for options that are not known or do not go together."""

    def _extra_columns(self) -> tuple[Any, ...]:
        """Columns that a block needs beside its own, which follow them."""
        return ()

    @property
    def _needs_complete_rows(self) -> bool:
        """Whether rows with missing cells cannot be learnt from."""
        return False

    @property
    def _needs_em(self) -> bool:
        """Whether it is learnt by expectation maximisation, whatever rows have."""
        return False

    def _statistics_key(self) -> tuple[Any, ...]:
        """What its builder sums: families that say the same have one sum, made by the one `serving` all of them."""
        return (type(self).__name__,)

    def _common_collector(self, other: Any) -> Family:
        """A family whose statistics serve another one that collects the same, too."""
        return self

    def _project_statistics(self, statistics: Any) -> Any:
        """What its own builder would have made of the rows, from the statistics of a family that serves it."""
        return statistics

    @abstractmethod
    def _accumulator(self, classes: AnyArray, columns: Columns) -> Accumulator:
        """An empty sum of this family's sufficient statistics."""

    def _expected_accumulator(self, builder: Any, fitted: Conditionals) -> Any:
        """A builder of expected statistics, given densities: where cells are missing that it cannot leave out."""
        return builder

    def _initial_family(self) -> Family:
        """A family like this one that can be learnt from rows with missing cells."""
        return self

    def _seeded(self, start: Conditionals, rows: AnyArray, codes: Codes, weights: Array) -> Conditionals:
        """Where expectation maximisation begins: what `start` has learnt, and what some rows add to that."""
        return start

    @property
    def _declared_family(self) -> Family:
        """The family as a user writes it."""
        return self

    def _with_fixed_prior(self, statistics: Any, estimation: Estimation) -> Family:
        """The same family with what it derives from the data as these statistics have it, where that is an option."""
        return self

    def _smooths(self, estimation: Estimation) -> bool:
        """Whether estimates have pseudo-data beside the rows, so that there are some without any rows."""
        return estimation != Estimation.MLE

    def _log_prior(self, statistics: Any, fitted: Conditionals) -> float:
        """log p(parameters) at the plugged-in ones, up to a constant; what is derived from the data as they have it."""
        raise NoEvidenceError(f"{type(self).__name__} does not tell the density of its prior")

    @abstractmethod
    def estimate(self, statistics: Any, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        """Class-conditionals from additive statistics: maximum likelihood, MAP, or posterior predictive."""

    @abstractmethod
    def describe(self) -> str:
        """The family in a few words, for a summary."""

    def _leave_one_out(self, statistics: Any, estimation: Estimation, names: Sequence[str]) -> LeaveOneOutDensity:
        """Log-densities of rows that were learnt, each with itself left out; see `LeftOut`.

        What is derived from the data (default priors, shrinkage, which columns vary) stays that of all rows.
        """
        raise NoDensityError(f"{type(self).__name__} cannot leave out a row: it has no leaving_out.")

    def _log_likelihood(self, statistics: Any, fitted: Conditionals, names: Sequence[str]) -> float:
        """Σ log p(x | class) of any rows at plugged-in parameters, from the statistics of these rows."""
        raise NoEvidenceError(f"{type(self).__name__} does not collect what its likelihood needs")

    def _n_parameters(self, statistics: Any, names: Sequence[str]) -> int:
        """How many free parameters the class-conditionals have; columns without spread have none."""
        raise NoEvidenceError(f"{type(self).__name__} does not count its parameters")

    def _impossible_columns(self, left: Any, before: Any) -> AnyArray:
        """Columns, (d,), of which no rows have the statistics that a removal has left, as far as these can tell."""
        return np.zeros(before.dimension, dtype=bool)

    def _log_evidence(self, statistics: Any, names: Sequence[str]) -> float:
        """log ∫ p(rows | parameters) p(parameters), given the labels: the marginal likelihood under "bayes"."""
        raise NoEvidenceError(f"{type(self).__name__} has no closed marginal likelihood")
