"""The scikit-learn estimators: read, summarise, estimate."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.decision import (
    Decisions,
    LinearBoundary,
    QuadraticBoundary,
    boundary,
    decide,
    declared_classes,
    estimate_prior,
)
from likely.errors import InputError, listed
from likely.families.base import Family, Quadratic, check_estimation
from likely.families.gaussian import Elliptical, Gaussian, GaussianConditionals
from likely.joint import Block, Explanation, JointModel
from likely.numerics import AnyArray, Array, check_finite
from likely.passes import evaluate, summarise
from likely.statistics import Codes, Counts, JointStatistics, unite_classes
from likely.summary import ModelSummary, summarise_model
from likely.tables import Table, frame_backend, read_labels, read_table, read_weights, split_target, to_frame


class GenerativeModel(ClassifierMixin, BaseEstimator):
    """What all generative classifiers share: everything that follows from the joint p(x, y)."""

    class_prior: Any
    estimation: str

    @abstractmethod
    def _families(self, names: Sequence[str]) -> list[tuple[tuple[int, ...] | None, Family]]:
        """Column blocks and their families; None stands for all columns."""

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y: read, summarise, estimate.

        X is an array or a frame of numbers; where it is a frame, y may be the name of its target
        column. `sample_weight` counts rows: a weight of 2 is the row twice, 0 is no row.
        """
        check_estimation(self.estimation)
        X, y = split_target(X, y)
        table = read_table(X)
        counts, codes, weights = self._read_target(table, y, sample_weight)
        blocks = self._families(table.names)
        for _, family in blocks:
            family.check(self.estimation)
        statistics = _summarise(table, codes, weights, counts, blocks)
        model, shares = self._estimate(statistics, blocks, table.names)
        self._check_fitted(model)
        validate_data(self, X, skip_check_array=True)
        self._frame_backend = frame_backend(X)
        self._set_fitted(model, shares, statistics, blocks)
        return self

    def _read_target(self, table: Table, y: Any, sample_weight: Any) -> tuple[Counts, Codes, Array | None]:
        """Class counts, codes and weights; classes are those with rows, and those that the prior declares."""
        classes, codes = read_labels(y, table.rows, type(self).__name__)
        weights = read_weights(sample_weight, table.rows)
        counts = Counts.of(classes, codes, weights)
        wanted = classes[counts.rows > 0]
        declared = declared_classes(self.class_prior)
        if declared:
            try:
                wanted = unite_classes(wanted, _label_array(declared, classes))
            except InputError as error:
                raise InputError(f"class_prior: {error}") from None
        if len(wanted) != len(classes) or not np.array_equal(wanted, classes):
            place = np.searchsorted(wanted, classes)
            codes = np.minimum(place, len(wanted) - 1)[codes].astype(codes.dtype)
            counts = Counts.of(wanted, codes, weights)
        return counts, codes, weights

    def _estimate(
        self, statistics: JointStatistics, blocks: Sequence[tuple[Any, Family]], names: Sequence[str]
    ) -> tuple[JointModel, Array]:
        """The joint model from additive statistics alone."""
        shares = estimate_prior(self.class_prior, statistics.counts, self.estimation)
        fitted = []
        for (columns, family), part in zip(blocks, statistics.blocks, strict=True):
            mine = names if columns is None else [names[j] for j in columns]
            index = None if columns is None else np.array(columns, dtype=np.intp)
            fitted.append(Block(index, family.estimate(part, self.estimation, mine)))
        return JointModel(statistics.counts.classes, _log(shares), tuple(fitted), tuple(names)), shares

    def _check_fitted(self, model: JointModel) -> None:
        """Raise for options that do not suit what was fitted."""

    def _set_fitted(
        self,
        model: JointModel,
        shares: Array,
        statistics: JointStatistics,
        blocks: Sequence[tuple[Any, Family]],
    ) -> None:
        self.model_ = model
        self.classes_ = model.classes
        self.class_prior_ = shares
        self.statistics_ = statistics
        self.families_ = {
            tuple(model.names) if columns is None else tuple(model.names[j] for j in columns): family
            for columns, family in blocks
        }

    def _read(self, X: Any) -> Table:
        """Rows to evaluate, with the columns of the fit."""
        check_is_fitted(self)
        table = read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return table

    # -- answers

    def log_joint(self, X: Any) -> Array:
        """log p(x, class), (rows, classes)."""
        table = self._read(X)
        return self.model_.log_joint(table)

    def log_density(self, X: Any) -> Array:
        """log p(x), (rows,)."""
        table = self._read(X)
        return self.model_.log_density(table)

    def score_samples(self, X: Any) -> Array:
        """log p(x), (rows,): scikit-learn's name for `log_density`."""
        return self.log_density(X)

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        table = self._read(X)
        labels: AnyArray = self.classes_[self.model_.most_probable(table)]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (rows, classes)."""
        table = self._read(X)
        return self.model_.posterior(table)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (rows, classes)."""
        table = self._read(X)
        return self.model_.log_posterior(table)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class where there are two, (rows,); else scores (rows, classes).

        Scores are ``X @ coef_.T + intercept_`` for linear models, and log p(class | x) for others.
        """
        table = self._read(X)
        return self.model_.log_odds(table) if len(self.classes_) == 2 else self.model_.scores(table)

    def decide(self, X: Any, loss: Any = None, reject: float | None = None) -> Decisions:
        """The action of least expected loss for each row, or rejection where that costs less.

        `loss[true class, action]` is an array, a mapping {class: {action: cost}}, or a pandas frame with
        classes as index and actions as columns; None is 0 for the right class and 1 for any other.
        """
        return decide(self.predict_proba(X), self.classes_, loss, reject)

    def explain(self, X: Any) -> Explanation:
        """Exact, additive log-evidence of each column for each class.

        A diagonal block gives every column its own term. In a block with a full covariance the terms are
        the chain of conditionals in the block's order of columns: the first column's own density, the
        second's given the first, and so on.
        """
        table = self._read(X)
        return self.model_.explain(table)

    def sample(self, n_samples: int = 1, label: Any = None, random_state: Any = None) -> tuple[Any, AnyArray]:
        """Draw rows with their labels from the joint, or from the class `label` alone."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        code = None if label is None else self._code_of(label)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint64))
        rows, codes = self.model_.sample(int(n_samples), code, rng)
        X = rows if self._frame_backend is None else to_frame(rows, self.model_.names, self._frame_backend)
        return X, self.classes_[codes]

    def _code_of(self, label: Any) -> int:
        labels = self.classes_.tolist()
        if label not in labels:
            raise InputError(f"Class {label!r} is not among the classes {listed(labels)}.")
        return int(labels.index(label))

    def with_prior(self, prior: Any) -> Self:
        """The same class-conditionals with another class prior: a new, fitted estimator."""
        check_is_fitted(self)
        shares = estimate_prior(prior, self.statistics_.counts, self.estimation)
        other = copy.copy(self)
        other.class_prior = prior
        other.class_prior_ = shares
        other.model_ = self.model_.with_log_prior(_log(shares))
        return other

    def boundary(self, first: Any, second: Any) -> LinearBoundary | QuadraticBoundary:
        """log p(first | x) − log p(second | x) in closed form: zero on the boundary of the two classes."""
        return boundary(self._form(), self.classes_, first, second)

    def _form(self) -> Quadratic:
        check_is_fitted(self)
        form = self.model_.quadratic()
        if form is None:
            raise AttributeError(
                f"{type(self).__name__} with estimation={self.estimation!r} has no linear or quadratic form. Gaussian "
                "columns have one under estimation='mle' and 'map'; their posterior predictive is a Student t."
            )
        return form

    def summary(self) -> ModelSummary:
        """What was fitted, as plain data; ``print(model.summary())`` shows it."""
        check_is_fitted(self)
        families = list(self.families_.values())
        name = type(self).__name__
        return summarise_model(name, self.estimation, self.model_, self.statistics_, families, self.class_prior_)


def _label_array(labels: list[Any], like: AnyArray) -> AnyArray:
    """Declared labels as a sorted array of the kind of those in y."""
    try:
        ordered = sorted(labels)
        array = np.empty(len(labels), dtype=object)
        array[:] = ordered
        return array if like.dtype.kind == "O" else np.array(ordered)
    except TypeError:
        raise InputError(f"class_prior names classes that cannot be sorted: {listed(labels)}.") from None


def _log(shares: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(shares)


def _summarise(
    table: Table, codes: Codes, weights: Array | None, counts: Counts, blocks: Sequence[tuple[Any, Family]]
) -> JointStatistics:
    """One pass over the rows, for all blocks."""
    makers = []
    for columns, family in blocks:
        index = None if columns is None else np.array(columns, dtype=np.intp)
        size = table.width if columns is None else len(columns)

        def make(family: Family = family, size: int = size) -> Any:
            return family.builder(counts.classes, size)

        makers.append((index, make, family.block_rows(len(counts.classes), size)))
    return JointStatistics(counts, tuple(summarise(table, codes, weights, makers)))


class GaussianModel(GenerativeModel):
    """A classifier with one Gaussian block over all columns."""

    @abstractmethod
    def _family(self) -> Gaussian:
        """The family that the options stand for."""

    def _families(self, names: Sequence[str]) -> list[tuple[tuple[int, ...] | None, Family]]:
        return [(None, self._family())]

    @property
    def _conditionals(self) -> Elliptical:
        check_is_fitted(self)
        return cast(Elliptical, self.model_.blocks[0].conditionals)

    @property
    def means_(self) -> Array:
        """Class means, (classes, columns)."""
        return self._conditionals.class_means()

    @property
    def covariance_(self) -> Array:
        """Covariances (classes, d, d), or one (d, d) where all classes share it.

        Under ``estimation="bayes"`` these are the scale matrices of the Student t, one for each class.
        """
        parts = self._conditionals
        if isinstance(parts, GaussianConditionals) and parts.linear:
            return parts.class_covariance(0)
        return np.array([parts.class_covariance(k) for k in range(parts.n_classes)])


class LinearModel(GaussianModel):
    """A Gaussian classifier with one covariance for all classes: its scores are linear in x."""

    @property
    def coef_(self) -> Array:
        """w_k = Σ⁻¹(μ_k − μ), (classes, columns), with μ the mean of the class means.

        Σ⁻¹μ is common to all classes and cancels. With two classes, their difference, (1, columns).
        """
        form = self._linear_form()
        return form.linear[1:] - form.linear[:1] if len(self.classes_) == 2 else form.linear

    @property
    def intercept_(self) -> Array:
        """w_k0 = ½·μᵀΣ⁻¹μ − ½·μ_kᵀΣ⁻¹μ_k + log p(class k), (classes,); with two classes their difference, (1,)."""
        form = self._linear_form()
        return form.constant[1:] - form.constant[:1] if len(self.classes_) == 2 else form.constant

    def _linear_form(self) -> Quadratic:
        form = self._form()
        if form.square is not None:
            raise AttributeError(f"The scores of this {type(self).__name__} are not linear in x.")
        return form


class GenerativeClassifier(GenerativeModel):
    """Class prior times class-conditional densities, one family for each block of columns.

    Parameters
    ----------
    families : None, one family for all columns together, or a mapping from a column (name or number), or
        a tuple of columns that vary together, to its family. Columns that a mapping does not name
        vary together in one Gaussian block with a shared covariance, which is also what None means.
    class_prior : None (from the data), "uniform", probabilities in the order of the classes, a mapping
        {class: probability}, or a `Dirichlet`. A mapping may declare classes that have no rows yet.
    estimation : "bayes" (posterior predictive), "map" or "mle".
    """

    def __init__(self, families: Any = None, class_prior: Any = None, estimation: str = "bayes") -> None:
        self.families = families
        self.class_prior = class_prior
        self.estimation = estimation

    def _families(self, names: Sequence[str]) -> list[tuple[tuple[int, ...] | None, Family]]:
        if self.families is None:
            return [(None, Gaussian(shared=True))]
        if isinstance(self.families, Family):
            return [(None, clone(self.families))]
        if not isinstance(self.families, Mapping):
            raise InputError(f"families={self.families!r} is neither a family nor a mapping from columns to families.")
        return _blocks_from_mapping(self.families, names)


def _blocks_from_mapping(
    families: Mapping[Any, Any], names: Sequence[str]
) -> list[tuple[tuple[int, ...] | None, Family]]:
    """Blocks as declared, and one more for the columns that nothing was said of."""
    blocks: list[tuple[tuple[int, ...] | None, Family]] = []
    used: set[int] = set()
    for key, family in families.items():
        if not isinstance(family, Family):
            raise InputError(f"families[{key!r}] = {family!r} is not a family.")
        columns = tuple(_column_index(name, names) for name in (key if isinstance(key, tuple) else (key,)))
        if not columns or used & set(columns) or len(set(columns)) < len(columns):
            raise InputError(f"families[{key!r}] names no column, or one that stands in a block already.")
        used |= set(columns)
        blocks.append((columns, clone(family)))
    rest = tuple(j for j in range(len(names)) if j not in used)
    if rest:
        blocks.append((rest, Gaussian(shared=True)))
    return blocks


def _column_index(name: Any, names: Sequence[str]) -> int:
    if str(name) in names:
        return names.index(str(name))
    if isinstance(name, Integral) and not isinstance(name, bool) and 0 <= int(name) < len(names):
        return int(name)
    raise InputError(f"families names column {name!r}, which is not in X: {listed(names)}.")


class LinearDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearModel):
    """Linear discriminant analysis: Gaussian classes with one covariance; linear boundaries.

    `transform` projects onto the canonical discriminants, scaled so that the covariance within the
    classes (under ``estimation="bayes"``, the scale of the predictive) is the identity, as in MASS.
    Options: see `Gaussian` and `GenerativeClassifier`.
    """

    def __init__(
        self,
        covariance: str = "full",
        shrinkage: Any = None,
        unbiased: bool = False,
        prior: Any = None,
        class_prior: Any = None,
        estimation: str = "mle",
        n_components: int | None = None,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation
        self.n_components = n_components

    def _family(self) -> Gaussian:
        return Gaussian(self.covariance, True, self.shrinkage, self.unbiased, self.prior)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y; see `GenerativeModel.fit`."""
        count: Any = self.n_components
        if count is not None and (not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 1):
            raise InputError(f"n_components={count!r} is not a positive whole number.")
        return super().fit(X, y, sample_weight)

    def _check_fitted(self, model: JointModel) -> None:
        classes, columns = len(model.classes), len(model.names)
        if self.n_components is not None and self.n_components > min(classes - 1, columns):
            raise InputError(
                f"n_components={self.n_components} is more than there are canonical discriminants: with {classes} "
                f"class{'' if classes == 1 else 'es'} and {columns} columns there are {min(classes - 1, columns)}."
            )

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    @property
    def scalings_(self) -> Array:
        """Canonical discriminant directions, (columns, components), by falling separation of the classes."""
        return self._canonical()[0]

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the variance between the classes along each component."""
        return self._canonical()[1]

    def _canonical(self) -> tuple[Array, Array, Array]:
        """Directions, their shares of the variance between classes, and the centre they start from."""
        parts = self._conditionals
        shares = self.class_prior_
        centre = shares @ parts.mean
        white = np.sqrt(shares)[:, None] * parts.covariance.whiten(parts.mean - centre, 0)
        _, size, turn = np.linalg.svd(white, full_matrices=False)
        limit = min(len(self.classes_) - 1, parts.covariance.rank)
        rank = min(limit, int(np.sum(size > 1e-10 * size.max(initial=0.0))) or limit)
        count = min(self.n_components or limit, limit, max(rank, 1) if limit else 0)
        basis = parts.covariance.whiten(np.eye(parts.dimension), 0) @ turn[:count].T
        flip = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(count)]) if count else np.ones(0)
        share = size[:count] ** 2 / max(float((size**2).sum()), np.finfo(float).tiny)
        return basis * flip / parts.coordinates.unit[:, None], share, parts.coordinates.to_user(centre)

    def transform(self, X: Any) -> Array:
        """Rows on the canonical discriminants, (rows, components)."""
        table = self._read(X)
        scalings, _, centre = self._canonical()
        out = np.empty((table.rows, scalings.shape[1]))

        def work(rows: AnyArray, start: int, stop: int) -> None:
            check_finite(rows)
            with np.errstate(over="ignore", invalid="ignore"):
                out[start:stop] = np.subtract(rows, centre, dtype=np.float64) @ scalings
                far = start + np.flatnonzero(~np.all(np.isfinite(out[start:stop]), axis=1))
                drawn = (rows[far - start] / 2.0**64 - centre / 2.0**64) @ scalings
                out[far] = drawn * 2.0**64

        evaluate(table, work, 2 * table.width)
        return out


class QuadraticDiscriminant(GaussianModel):
    """Quadratic discriminant analysis: Gaussian classes with covariances of their own.

    `groups` lists classes that share a covariance, ``[["a", "b"]]``: linear boundaries inside a group,
    quadratic ones elsewhere. Other options: see `Gaussian` and `GenerativeClassifier`.
    """

    def __init__(
        self,
        covariance: str = "full",
        groups: Sequence[Sequence[Any]] | None = None,
        shrinkage: Any = None,
        unbiased: bool = False,
        prior: Any = None,
        class_prior: Any = None,
        estimation: str = "mle",
    ) -> None:
        self.covariance = covariance
        self.groups = groups
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation

    def _family(self) -> Gaussian:
        shared = False if self.groups is None else self.groups
        if isinstance(shared, bool) and shared:
            raise InputError("groups=True: name the groups, [['a', 'b']], or use LinearDiscriminant.")
        return Gaussian(self.covariance, shared, self.shrinkage, self.unbiased, self.prior)


class NearestPrototype(LinearModel):
    """Learning with prototypes: the class whose mean is nearest.

    Distances are Euclidean with ``covariance="identity"``, and Mahalanobis distances under the covariance
    that all classes share with ``"full"`` (or ``"diagonal"``, ``"spherical"``). The class prior is uniform
    unless one is given, so that the distance alone decides.
    """

    def __init__(
        self,
        covariance: str = "identity",
        shrinkage: Any = None,
        unbiased: bool = False,
        prior: Any = None,
        class_prior: Any = "uniform",
        estimation: str = "mle",
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation

    def _family(self) -> Gaussian:
        return Gaussian(self.covariance, True, self.shrinkage, self.unbiased, self.prior)
