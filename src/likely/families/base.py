"""The interface of families, and class-conditional distributions of the exponential family, for all classes at a time.

    p(x | class k) = h(x) · exp(θ_k · u(x) − A(θ_k))

u(x) are the sufficient statistics, θ_k the natural parameters, A the log-partition function and h the carrier, which
cancels in the posterior. A `Family` estimates such class-conditionals from additive statistics. `Conditionals` are the
result: with plug-in parameters (`ExponentialConditionals`), or integrated over their posterior (a predictive).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self, final

import numpy as np

from likely.errors import InputError, NoDensityError, NoEvidenceError, listed
from likely.families.estimation import Estimation
from likely.families.parameters import Parameter
from likely.families.quadratic import Quadratic
from likely.numerics.expressions import Cell, Expression, finite
from likely.numerics.missingness import patterns
from likely.numerics.options import NamedOptions
from likely.statistics.accumulator import Accumulator
from likely.typing import AnyArray, Array, Codes, ColumnLike, Index, Vocabulary


class Conditionals(ABC):
    """Base class of estimated class-conditional densities of a block of columns.

    `Family.estimate` returns such densities. They are frozen: another estimate is another object. Log-densities and
    scores have the shape (classes, rows). A subclass overrides `n_classes`, `dimension`, `log_density`, `explain`,
    `sample` and `marginal`.

    See Also
    --------
    Family : Estimates these densities from sufficient statistics.
    ExponentialConditionals : Densities of the exponential family.
    """

    given: ClassVar[str | None] = None  # what the density is conditional on, such as the exposure of a row
    remedy: ClassVar[str] = "Use a model without these columns."  # where that has no density but needs one
    reads_text: ClassVar[bool] = False  # rows are documents
    tempered: ClassVar[bool] = False  # scores are evidence with an exponent, which EM and held-out scores use
    not_exported: ClassVar[str] = (  # why `expressions` returns None, and what to do
        "the family has no expression. Declare another family, or add statistic_expressions or expression to its "
        "densities and condition to its support."
    )
    needs_values: ClassVar[bool] = False  # whether rows with missing values have no density
    ignored_note: ClassVar[str] = "constant columns, ignored"  # why columns are not informative, for summaries

    @property
    def has_density(self) -> bool:
        """Whether `log_density` is available."""
        return True

    def without_evidence(self, rows: AnyArray) -> AnyArray:
        """Which documents have no evidence for any class, (n,), where `reads_text` is true."""
        raise NoDensityError(f"{type(self).__name__} does not read text")

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...] | None:
        """The categories of categorical columns, whose values are their codes; None for columns of numbers."""
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
        """Approximate number of floats that the evaluation of one row needs: it determines the block size."""
        return self.dimension + self.n_classes

    @abstractmethod
    def log_density(self, rows: AnyArray) -> Array:
        """Return the log-density of rows under every class.

        Parameters
        ----------
        rows : array of shape (n_samples, n_columns)
            Values, or codes of categories. NaN, or the code −1, is a missing value: its column is integrated out.

        Returns
        -------
        array of shape (n_classes, n_samples)
            log p(x | class).
        """

    def expectation(self, rows: AnyArray, label: int) -> Array:
        """E[missing values | observed values, class] of rows (n, d) in the class with the code `label`, (n, d)."""
        raise NoDensityError(f"{type(self).__name__} does not provide expectations of missing values")

    def round_to_support(self, cells: Array) -> Array:
        """Expected values rounded to values of the support."""
        return cells

    def class_log_density(self, rows: AnyArray, codes: Codes) -> Array:
        """log p(x | class) of each row under the class with its code, (n,)."""
        return np.asarray(self.log_density(rows)[codes, np.arange(len(codes))])

    def scores(self, rows: AnyArray) -> Array:
        """log p(x | class) up to a term that all classes share, (classes, n); as cheap as possible."""
        return self.log_density(rows)

    @abstractmethod
    def explain(self, rows: AnyArray) -> Array:
        """Return the contributions of the columns to the log-density of rows.

        Parameters
        ----------
        rows : array of shape (n_samples, n_columns)
            Values, or codes of categories.

        Returns
        -------
        array of shape (n_samples, n_classes, n_columns)
            Terms whose sum over the columns is log p(x | class), minus what `unattributed` returns. They do not depend
            on the order of the columns.
        """

    def explain_sequential(self, rows: AnyArray) -> Array:
        """The same by the chain rule in the order of the columns, log p(x_j | x_1, …, x_(j−1), class).

        Where columns are independent, this is `explain`.
        """
        return self.explain(rows)

    def class_terms(self, rows: AnyArray, label: int) -> Array | None:
        """log p(x_j | class) of each column under one class, (n, d); None if columns are not independent."""
        return None

    def column_log_densities(self, rows: AnyArray) -> Array:
        """log p(x_j | class) of each column by itself, (n, classes, d)."""
        return self.explain(rows)

    @property
    def has_linear_contrasts(self) -> bool:
        """Whether `contrast` is linear in x for some pairs of classes."""
        return False

    def contrast(self, rows: AnyArray, first: int, second: int) -> Array | None:
        """Contributions to log p(x | first) − log p(x | second) that are linear in x, (n, d).

        None if the difference is not linear in x: differences of `explain` are the contributions then.
        """
        return None

    @abstractmethod
    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Draw rows of one class.

        Parameters
        ----------
        label : int
            The index of the class.
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (n, n_columns)
        """

    @abstractmethod
    def marginal(self, columns: Index) -> Self:
        """Return the densities of some of the columns, with the others integrated out.

        Parameters
        ----------
        columns : int array of shape (m,)
            Indices of the columns, in the order of the result.

        Returns
        -------
        Conditionals
            Densities of the same kind, of m columns.
        """

    @final
    def split_by_missing(
        self, rows: AnyArray, complete: Callable[[AnyArray], Array], incomplete: Callable[[AnyArray], Array]
    ) -> Array:
        """Scores (classes, n): `complete` evaluates rows without missing values, `incomplete` the others."""
        scores = np.empty((self.n_classes, len(rows)))
        missing = np.isnan(rows).any(axis=1)
        scores[:, ~missing], scores[:, missing] = complete(rows[~missing]), incomplete(rows[missing])
        return scores

    def _patterns(self, rows: AnyArray) -> Iterator[tuple[Index, Index]]:
        """The rows of each missingness pattern, and their observed columns."""
        return patterns(rows)

    @final
    def by_pattern(self, rows: AnyArray, evaluate: Callable[[AnyArray, Self], Array]) -> Array:
        """Scores (classes, n) by the marginal density of the observed values, one missingness pattern at a time."""
        scores = np.zeros((self.n_classes, len(rows)))
        for index, observed in self._patterns(rows):
            if len(observed):
                scores[:, index] = evaluate(rows[np.ix_(index, observed)], self._of_observed(observed))
        return scores

    def _of_observed(self, columns: Index) -> Self:
        """The marginal, and these densities themselves for all columns: a marginal may factor them in another way."""
        return self if len(columns) == self.dimension else self.marginal(columns)

    @final
    def explain_with_missing(self, rows: AnyArray, sequential: bool = False) -> Array:
        """Contributions by the marginal density of the observed values: missing values contribute 0."""
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        for index, observed in self._patterns(rows):
            if len(observed):
                marginal, values = self._of_observed(observed), rows[np.ix_(index, observed)]
                part = marginal.explain_sequential(values) if sequential else marginal.explain(values)
                terms[index[:, None], :, observed] = part.transpose(0, 2, 1)
        return terms

    def quadratic(self) -> Quadratic | None:
        """The log-densities as polynomials of degree at most two; None if they are not such polynomials."""
        return None

    @property
    def is_linear(self) -> bool:
        """Whether `quadratic` has no squares, so that log-odds are linear."""
        form = self.quadratic()
        return form is not None and form.square is None

    def linear_scores(self, rows: AnyArray) -> Array:
        """The values, (classes, n), of a `quadratic` without squares."""
        form = self.quadratic()
        assert form is not None
        return np.asarray(form.linear @ (rows - form.centre).T + form.constant[:, None])

    def outside_support(self, rows: AnyArray) -> AnyArray | None:
        """Which finite values of rows are outside the support, (n, d); None if every finite number is inside."""
        return None

    def unattributed(self, rows: AnyArray) -> Array | None:
        """The part of log p(x | class) that belongs to no single column, (classes, n); None if there is none."""
        return None

    def ignored_columns(self) -> AnyArray:
        """Indices of columns that do not change any prediction; their missing values must still be noticed."""
        return np.zeros(0, dtype=np.intp)

    def notes(self, names: Sequence[str]) -> list[str]:
        """Remarks on these densities for a summary."""
        ignored = [names[j] for j in self.ignored_columns()]
        return [f"{self.ignored_note}: {listed(ignored)}"] if ignored else []

    def expressions(self, cells: Sequence[Cell]) -> list[Expression] | None:
        """The scores of a row as expressions of its values, one for each class; None if there are none.

        They equal `scores` up to a term that all classes share. Values outside the support are missing here.
        """
        return None

    def inside(self, column: int, x: Expression) -> Expression:
        """Whether a value of a column is in the support."""
        return finite(x)

    def accurate(self, column: int, x: Expression) -> Expression | None:
        """Whether the expression of a value is as accurate as its density; else the row is invalid. None: always."""
        return None

    @property
    def is_joint(self) -> bool:
        """Whether the expressions of rows with missing values are longer than those of complete rows."""
        return False

    @property
    def incomplete_steps(self) -> int | None:
        """About how many steps the expressions of rows with missing values have beyond those of complete rows.

        None if there are no such expressions.
        """
        return 0

    def offset_columns(self) -> AnyArray:
        """Indices of columns of whole numbers beyond 2^53, from which an origin is subtracted in integers."""
        return np.zeros(0, dtype=np.intp)


class ExponentialConditionals(Conditionals):
    """Class-conditionals of the exponential family with plug-in parameters."""

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
        """θ·u(x) − A(θ) + log h(x), (classes, n): every `log_density` must equal it."""
        products = self.natural_parameters() @ self.sufficient_statistics(rows).T
        return np.asarray(products - self.log_partition()[:, None] + self.log_carrier(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a block: their names, and the categories of categorical columns."""

    names: tuple[str, ...]
    vocabularies: tuple[Vocabulary, ...] | None = None  # None for columns of numbers
    joint: bool = False  # whether the user declared one joint density of all columns

    @property
    def dimension(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """Statistics from which parameters are estimated, and how EM found the part of them that was missing."""

    statistics: Any
    iterations: int = 0  # 0 where nothing was missing
    converged: bool = True
    step: float = 0.0  # the last change of the parameters, in standard deviations


LeaveOneOutDensity = Callable[[Any, Codes, Array], Array]
"""From rows (n, d), the codes of their classes and their weights to log p(x | class), (classes, n)."""


class Family(NamedOptions, ABC):
    """Base class of distributions for a column, or for a block of columns with one joint density.

    A family holds options only. It estimates class-conditional densities from additive sufficient statistics; the
    estimates are separate objects, so one family can be used in several models. `get_params`, `set_params` and
    `sklearn.base.clone` work as in scikit-learn.

    See Also
    --------
    likely.families.columns.ColumnFamily : Base class of families of independent columns, with fewer methods.

    Notes
    -----
    A subclass overrides `check`, `estimate` and `_accumulator`. Further methods are optional, and the
    error of the base class names the feature that needs them: `_leave_one_out` (leave-one-out predictions),
    `_log_likelihood` and `_n_parameters` (AIC and BIC), `_log_prior` (MAP objective of EM), `_log_evidence`
    (marginal likelihood). `_parameters` lists the parameters in tables; without it there are none.

    Examples
    --------
    >>> from likely import Poisson
    >>> from sklearn.base import clone
    >>> clone(Poisson(exposure="days")).get_params()
    {'exposure': 'days', 'prior': None}
    """

    _reads_categories: ClassVar[bool] = False  # blocks hold codes of categories instead of numbers
    _reads_text: ClassVar[bool] = False  # blocks hold documents, one column of strings
    _reads_sparse: ClassVar[bool] = False  # blocks of sparse tables may be passed as sparse rows
    _joint: ClassVar[bool] = False  # a block has one joint density of all its columns

    _learns_options: ClassVar[bool] = False  # the rows of the first fit determine options that are not declared
    _is_nearly_gaussian: ClassVar[bool] = False  # counts, which a selection compares with a Gaussian
    _atom: float | None = None  # a value that has a probability of its own

    @property
    def _independent(self) -> bool:
        """Whether the columns of a block are independent within a class."""
        return not self._joint

    def _with_covariance(self, covariance: str, shared: bool) -> Family | None:
        """The same columns with another covariance, pooled or per class; None if a selection keeps the family."""
        return None

    @abstractmethod
    def check(self, estimation: Estimation) -> None:
        """Raise an error if an option is invalid or does not go with the estimation.

        Parameters
        ----------
        estimation : {"mle", "map", "bayes"}
            The estimation of the model that uses the family.
        """

    @abstractmethod
    def estimate(self, statistics: Any, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        """Estimate the class-conditional densities from sufficient statistics.

        Parameters
        ----------
        statistics : object
            The sufficient statistics of the block, such as `Sums` for a `ColumnFamily`.
        estimation : {"mle", "map", "bayes"}
            Maximum likelihood, posterior mode, or posterior predictive.
        names : sequence of str
            The names of the columns, for error messages.

        Returns
        -------
        Conditionals
            The densities of all classes.
        """

    def describe(self) -> str:
        """Describe the family and its options in a few words, for a summary.

        Returns
        -------
        str
            The name of the class, unless overridden.
        """
        return type(self).__name__

    @abstractmethod
    def _accumulator(self, classes: AnyArray, columns: Columns) -> Accumulator:
        """An empty accumulator of the family's sufficient statistics."""

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        """Densities of `size` classes with given parameters, by the names of the parameters."""
        raise InputError(f"{type(self).__name__} cannot be described by given parameters. Fit it to rows.")

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        """The parameters of densities that `_given` returned."""
        return []

    def _with_named_columns(self, names: Sequence[str]) -> Family:
        """The same family, with names for the numbers of columns in its options."""
        return self

    def _parameters(
        self, statistics: Any, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        """The estimated parameters with their standard errors; none where the family does not list any."""
        return []

    def _extra_columns(self) -> tuple[ColumnLike, ...]:
        """Columns that the family reads but does not model, such as an exposure; they follow those of the block."""
        return ()

    @property
    def _needs_complete_rows(self) -> bool:
        """Whether rows with missing values cannot be used for fitting."""
        return False

    @property
    def _needs_em(self) -> bool:
        """Whether the family is always fitted by expectation maximization."""
        return False

    def _statistics_key(self) -> tuple[Any, ...]:
        """What the accumulator sums. Families with equal keys share one sum, see `_common_collector`."""
        return (type(self).__name__,)

    def _common_collector(self, other: Any) -> Family:
        """A family whose statistics determine those of this family and of another one with the same key."""
        return self

    def _project_statistics(self, statistics: Any) -> Any:
        """The statistics that the family's accumulator would have returned, from those of the common collector."""
        return statistics

    @property
    def _sums_missing_values(self) -> bool:
        """Whether the statistics of rows with missing values are additive too, if the family needs complete rows."""
        return False

    def _complete(
        self, statistics: Any, estimation: Estimation, names: Sequence[str], max_iter: int, tol: float
    ) -> Completion:
        """The statistics that estimates are made from: those of missing values are replaced by their expectations."""
        return Completion(statistics)

    def _expected_accumulator(self, builder: Any, fitted: Conditionals) -> Any:
        """An accumulator of expected statistics under fitted densities, for rows with missing values."""
        return builder

    def _initial_family(self) -> Family:
        """A simpler family that can be fitted to rows with missing values, where EM starts."""
        return self

    @property
    def _components(self) -> int:
        """The number of components of each class, which EM starts from seeds."""
        return 1

    def _seeded(self, start: Conditionals, centres: Array, scale: Array) -> Conditionals:
        """The densities where EM starts: those of `_initial_family`, with centres (classes, components, columns)."""
        return start

    def _lacks_edges(self, names: Sequence[str]) -> bool:
        """Whether the rows determine the edges of cells of some of these columns."""
        return False

    def _of_column(self, name: str) -> Family:
        """The family of a block with the options of one column alone."""
        return self

    @property
    def _declared_family(self) -> Family:
        """The family as the user declared it."""
        return self

    def _with_fixed_prior(self, statistics: Any, estimation: Estimation) -> Family:
        """The same family with its data-dependent default prior computed from these statistics and fixed."""
        return self

    def _smooths(self, estimation: Estimation) -> bool:
        """Whether the prior adds pseudo-data, so that classes without any rows have an estimate."""
        return estimation != Estimation.MLE

    def _log_prior(self, statistics: Any, fitted: Conditionals) -> float:
        """log p(parameters) at the plug-in parameters, up to a constant; statistics determine a default prior."""
        raise NoEvidenceError(f"{type(self).__name__} does not provide the density of its prior")

    def _leave_one_out(
        self, statistics: Any, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        """Leave-one-out log-densities of training rows: each row is removed from the statistics of its class.

        `fitted` are the densities estimated from these statistics. What is derived from all rows (default priors,
        shrinkage, which columns vary) is not estimated again.
        """
        raise NoDensityError(f"{type(self).__name__} does not implement leave-one-out (_leave_one_out).")

    def _held_out_terms(self, statistics: Any, rows: AnyArray, codes: Codes, weights: Array, whole: bool) -> Array:
        """Leave-one-out log p(x_j | class) of each value under the predictive of its class, (n, d); 0 where missing.

        The density of whole numbers is log P(x − ½ < X ≤ x + ½) if `whole` is set, so that continuous distributions and
        those of counts have the same measure. −inf for columns that the family ignores as constant.
        """
        raise NoDensityError(f"{type(self).__name__} does not implement leave-one-out (_held_out_terms).")

    def _log_likelihood(self, statistics: Any, fitted: Conditionals, names: Sequence[str]) -> float:
        """Σ log p(x | class) of rows at plug-in parameters, from the statistics of these rows."""
        raise NoEvidenceError(f"{type(self).__name__} does not collect what its likelihood needs")

    def _n_parameters(self, statistics: Any, names: Sequence[str]) -> int:
        """Number of free parameters of the class-conditionals; constant columns have none."""
        raise NoEvidenceError(f"{type(self).__name__} does not count its parameters")

    def _impossible_columns(self, left: Any, before: Any) -> AnyArray:
        """Columns, (d,), whose statistics after a removal no rows can have: the removed rows were never added."""
        return np.zeros(before.dimension, dtype=bool)

    def _log_evidence(self, statistics: Any, names: Sequence[str]) -> float:
        """log ∫ p(rows | parameters) p(parameters), given the labels: the log marginal likelihood under "bayes"."""
        raise NoEvidenceError(
            f"{type(self).__name__} does not implement _log_evidence, a closed-form marginal likelihood"
        )


def by_name(option: str, values: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    """Options of columns, by the names of the columns, where some are given by their numbers."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        number = isinstance(key, Integral) and not isinstance(key, bool)
        if str(key) not in names and not (number and 0 <= int(key) < len(names)):
            raise InputError(f"{option} names column {key!r}, which is not in X: {listed(names)}.")
        found[str(key) if str(key) in names else names[int(key)]] = value
    return found
