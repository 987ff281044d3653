"""Gaussian classifiers: linear and quadratic discriminant analysis, and the nearest class mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from likely.data.parts import source_of
from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.errors import InputError
from likely.estimators.gaussian_attributes import class_covariances, class_means, coefficients, conditionals, intercepts
from likely.estimators.generative import JointDensity
from likely.estimators.given_parameters import gaussian_from_parameters
from likely.estimators.posterior import Posterior
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.gaussian.shrinkage import Shrinkage
from likely.model.imputation import filled_rows
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.summary import DiscriminantSummary, ModelSummary
from likely.numerics.arrays import has_missing
from likely.numerics.ties import ROUNDING
from likely.typing import Array, ClassPriorLike, LabelsLike, TableLike, TypesLike, WeightsLike


@register
class LinearDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, JointDensity, Posterior):
    """Linear discriminant analysis: Gaussian classes with a pooled covariance.

    The log-odds of two classes are linear in x. `transform` projects rows onto the canonical discriminants, scaled so
    that the covariance within the classes is the identity, as in R's MASS. Missing values are handled by EM
    in the estimate and integrated out in predictions.

    Parameters
    ----------
    covariance : {'full', 'diagonal', 'spherical', 'identity'}, default='full'
        Structure of the pooled covariance: any, independent columns, equal variances, or variances of 1.
    shrinkage : float, {'ledoit-wolf', 'oas'} or Regularized, default=None
        Shrinkage of the covariance towards a multiple of the identity: an intensity from 0 to 1, an estimate of it, or
        `Regularized` discriminant analysis. Only for estimation='mle'.
    unbiased : bool, default=False
        Whether to divide by the degrees of freedom instead of the number of rows. Only for estimation='mle'.
    prior : NormalInverseWishart, default=None
        Prior of mean and covariance for estimation='map' and 'bayes'. None is a weak prior.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default=None
        Class prior: equal probabilities, probabilities in the order of the sorted classes, a mapping {class:
        probability}, or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class
        counts. A mapping may name classes that have no rows yet.
    estimation : {'mle', 'map', 'bayes'}, default='mle'
        Maximum likelihood, posterior modes, or posterior predictive distributions (Student t).
    n_components : int, default=None
        Number of canonical discriminants that `transform` returns. None is min(n_classes − 1, n_features).
    max_iter : int, default=200
        Maximum number of EM iterations, where values are missing and the covariance is full.
    tol : float, default=1e-6
        EM stops when no mean and no covariance changes by more than `tol` / 1000 standard deviations.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.
    ledger : bool, default=False
        Whether to keep hashes of the learnt rows, so that `forget` refuses rows that were never learnt, or were
        forgotten already.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class prior.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Pooled covariance; for estimation='bayes' the scale matrices of the Student t, (n_classes, n_features,
        n_features).
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the scores; for two classes those of the log-odds of the second class.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the scores.
    scalings_ : ndarray of shape (n_features, n_components)
        Canonical discriminant directions.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Proportion of the variance between classes along each direction.
    model_ : JointModel
        The joint model: class prior and class-conditional densities.
    statistics_ : JointStatistics
        Sufficient statistics of the training rows.
    log_evidence_ : float
        Log marginal likelihood of the training rows, for estimation='bayes' with proper conjugate priors.
    n_iter_ : int
        Number of EM iterations; 1 without EM.
    converged_ : bool
        Whether EM converged; True without EM.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    QuadraticDiscriminant : Per-class covariances.
    SoftmaxRegression : The discriminative model with the same form of log-odds.

    References
    ----------
    T. Hastie, R. Tibshirani and J. Friedman (2009), The Elements of Statistical Learning, section 4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminant().fit(X, y)
    >>> model.score(X, y)
    0.98
    >>> model.transform(X[:1]).shape
    (1, 2)
    """

    _dense = True
    means_, covariance_ = property(class_means), property(class_covariances)
    coef_, intercept_ = property(coefficients), property(intercepts)

    from_parameters: Any = classmethod(gaussian_from_parameters)

    def __init__(
        self,
        covariance: str = "full",
        shrinkage: Shrinkage = None,
        unbiased: bool = False,
        prior: NormalInverseWishart | None = None,
        class_prior: ClassPriorLike | None = None,
        estimation: str = "mle",
        n_components: int | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        types: TypesLike | None = None,
        normalize: bool = False,
        ledger: bool = False,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.types = types
        self.normalize = normalize
        self.ledger = ledger

    def _family(self) -> Gaussian:
        return Gaussian(self.covariance, True, self.shrinkage, self.unbiased, self.prior)

    def _check_options(self) -> None:
        super()._check_options()
        count: Any = self.n_components
        if count is not None and (not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 1):
            raise InputError(f"n_components={count!r} is not a positive whole number.")

    def _check_model(self, model: JointModel) -> None:
        classes, columns = len(model.classes), len(model.names)
        if self.n_components is not None and self.n_components > min(classes - 1, columns):
            raise InputError(
                f"n_components={self.n_components} exceeds the number of canonical discriminants, which is "
                f"{min(classes - 1, columns)} for {classes} class{'' if classes == 1 else 'es'} and {columns} columns."
            )

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    @property
    def scalings_(self) -> Array:
        """Canonical discriminant directions, of shape (n_features, n_components), the most separating first."""
        return np.asarray(self._canonical()[0] / conditionals(self).coordinates.unit[:, None])

    @property
    def explained_variance_ratio_(self) -> Array:
        """Proportion of the variance between classes along each direction, of shape (n_components,)."""
        return self._canonical()[1]

    def summary(self) -> ModelSummary:
        """Summarize the fitted model: classes, leave-one-out log-loss and linear discriminants.

        The coefficients of the linear discriminants are `scalings_`, and the proportion of trace is
        `explained_variance_ratio_`, as R's MASS prints them.

        Returns
        -------
        ModelSummary
            Plain data; ``print(model.summary())`` shows it as text.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> summary = LinearDiscriminant().fit(*load_iris(return_X_y=True)).summary()
        >>> [round(each.proportion, 4) for each in summary.discriminants]
        [0.9912, 0.0088]
        >>> round(summary.log_loss, 4), round(summary.baseline, 4)
        (0.0545, 1.1121)
        """
        found = super().summary()
        names, parts = self.model_.names, zip(self.explained_variance_ratio_, self.scalings_.T, strict=True)
        discriminants = tuple(
            DiscriminantSummary(float(proportion), tuple(zip(names, column.tolist(), strict=True)))
            for proportion, column in parts
        )
        return replace(found, discriminants=discriminants)

    def _canonical(self) -> tuple[Array, Array, Array]:
        """Directions, proportions of the variance between classes, and the overall mean; in local coordinates."""
        parts = conditionals(self)
        prior = self.class_prior_
        centre = prior @ parts.mean
        white = np.sqrt(prior)[:, None] * parts.covariance.whiten(parts.mean - centre, 0)
        _, size, vectors = np.linalg.svd(white, full_matrices=False)
        limit = min(len(self.classes_) - 1, parts.covariance.rank)
        rank = min(limit, int(np.sum(size > 1e-10 * size.max(initial=0.0))) or limit)
        count = min(self.n_components or limit, limit, max(rank, 1) if limit else 0)
        basis = parts.covariance.whiten(np.eye(parts.dimension), 0) @ vectors[:count].T
        large = np.abs(basis) >= (1.0 - ROUNDING) * np.abs(basis).max(axis=0, initial=0.0)
        flip = np.sign(basis[large.argmax(axis=0), np.arange(count)])  # by the first of the largest entries
        proportion = size[:count] ** 2 / max(float((size**2).sum()), np.finfo(float).tiny)
        return basis * flip, proportion, centre

    def fit_transform(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Any:
        """Fit the model, and project the rows onto the canonical discriminants.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows. NaN and null are missing values. An object with a method `chunks`, which yields tables and
            starts again at every call, stands for rows that do not fit in memory.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projected rows.
        """
        X = source_of(X)
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: TableLike) -> Array:
        """Project rows onto the canonical discriminants.

        Missing values are replaced by their expectation given the observed values.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projected rows, with identity covariance within the classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> LinearDiscriminant(n_components=1).fit(X, y).transform(X[[0, 70]]).round(2)
        array([[-8.14],
               [ 3.75]])
        """
        return self._of_rows(X, lambda _, table: self._project(table))

    def _project(self, table: Table) -> Array:
        basis, _, centre = self._canonical()
        out = np.empty((table.rows, basis.shape[1]))
        read = table.numbers(None, sparse=False)

        def work(start: int, stop: int) -> None:
            rows = read(start, stop)
            if has_missing(rows):
                rows = filled_rows(self.model_, rows)
            out[start:stop] = np.subtract(conditionals(self).local(rows), centre, dtype=np.float64) @ basis

        evaluate(table, work, 2 * table.width)
        return out


@register
class QuadraticDiscriminant(JointDensity, Posterior):
    """Quadratic discriminant analysis: Gaussian classes with per-class covariances.

    The log-odds of two classes are quadratic in x. Missing values are handled by EM in the estimate and integrated
    out in predictions.

    Parameters
    ----------
    covariance : {'full', 'diagonal', 'spherical', 'identity'}, default='full'
        Structure of the covariances: any, independent columns, equal variances, or variances of 1.
    groups : sequence of sequences of classes, default=None
        Groups of classes with a pooled covariance, such as ``[['a', 'b']]``. Log-odds are linear within a group.
        Classes in no group have their per-class covariance.
    shrinkage : float, {'ledoit-wolf', 'oas'} or Regularized, default=None
        Shrinkage of the covariance towards a multiple of the identity: an intensity from 0 to 1, an estimate of it, or
        `Regularized` discriminant analysis. Only for estimation='mle'.
    unbiased : bool, default=False
        Whether to divide by the degrees of freedom instead of the number of rows. Only for estimation='mle'.
    prior : NormalInverseWishart, default=None
        Prior of mean and covariance for estimation='map' and 'bayes'. None is a weak prior.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default=None
        Class prior: equal probabilities, probabilities in the order of the sorted classes, a mapping {class:
        probability}, or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class
        counts. A mapping may name classes that have no rows yet.
    estimation : {'mle', 'map', 'bayes'}, default='mle'
        Maximum likelihood, posterior modes, or posterior predictive distributions (Student t).
    max_iter : int, default=200
        Maximum number of EM iterations, where values are missing and the covariance is full.
    tol : float, default=1e-6
        EM stops when no mean and no covariance changes by more than `tol` / 1000 standard deviations.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.
    ledger : bool, default=False
        Whether to keep hashes of the learnt rows, so that `forget` refuses rows that were never learnt, or were
        forgotten already.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class prior.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_classes, n_features, n_features)
        Covariances; for estimation='bayes' the scale matrices of the Student t.
    model_ : JointModel
        The joint model: class prior and class-conditional densities.
    statistics_ : JointStatistics
        Sufficient statistics of the training rows.
    log_evidence_ : float
        Log marginal likelihood of the training rows, for estimation='bayes' with proper conjugate priors.
    n_iter_ : int
        Number of EM iterations; 1 without EM.
    converged_ : bool
        Whether EM converged; True without EM.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    LinearDiscriminant : A pooled covariance.
    Regularized : Covariances between pooled and per-class.

    References
    ----------
    T. Hastie, R. Tibshirani and J. Friedman (2009), The Elements of Statistical Learning, section 4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import QuadraticDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminant().fit(X, y).score(X, y)
    0.98
    """

    _dense = True
    means_, covariance_ = property(class_means), property(class_covariances)

    from_parameters: Any = classmethod(gaussian_from_parameters)

    def __init__(
        self,
        covariance: str = "full",
        groups: Sequence[Sequence[Any]] | None = None,
        shrinkage: Shrinkage = None,
        unbiased: bool = False,
        prior: NormalInverseWishart | None = None,
        class_prior: ClassPriorLike | None = None,
        estimation: str = "mle",
        max_iter: int = 200,
        tol: float = 1e-6,
        types: TypesLike | None = None,
        normalize: bool = False,
        ledger: bool = False,
    ) -> None:
        self.covariance = covariance
        self.groups = groups
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation
        self.max_iter = max_iter
        self.tol = tol
        self.types = types
        self.normalize = normalize
        self.ledger = ledger

    def _family(self) -> Gaussian:
        shared = False if self.groups is None else self.groups
        if isinstance(shared, bool) and shared:
            raise InputError("groups=True is not a list of groups. Use groups=[['a', 'b']], or LinearDiscriminant.")
        family = Gaussian(self.covariance, shared, self.shrinkage, self.unbiased, self.prior)
        try:
            family._sharing()
        except InputError as error:
            raise InputError(str(error).replace("shared=", "groups=", 1).replace("True, False, or ", "", 1)) from None
        return family


@register
class NearestPrototype(JointDensity, Posterior):
    """Nearest class mean: each row has the class whose mean is nearest.

    It is a linear discriminant with a uniform class prior. Distances are Euclidean for covariance='identity', and
    Mahalanobis distances under the pooled covariance otherwise.

    Parameters
    ----------
    covariance : {'identity', 'full', 'diagonal', 'spherical'}, default='identity'
        Structure of the pooled covariance that defines distances.
    shrinkage : float, {'ledoit-wolf', 'oas'} or Regularized, default=None
        Shrinkage of the covariance towards a multiple of the identity: an intensity from 0 to 1, an estimate of it, or
        `Regularized` discriminant analysis. Only for estimation='mle'.
    unbiased : bool, default=False
        Whether to divide by the degrees of freedom instead of the number of rows. Only for estimation='mle'.
    prior : NormalInverseWishart, default=None
        Prior of mean and covariance for estimation='map' and 'bayes'. None is a weak prior.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default='uniform'
        Class prior: equal probabilities, probabilities in the order of the sorted classes, a mapping {class:
        probability}, or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class
        counts. A mapping may name classes that have no rows yet.
    estimation : {'mle', 'map', 'bayes'}, default='mle'
        Maximum likelihood, posterior modes, or posterior predictive distributions (Student t).
    max_iter : int, default=200
        Maximum number of EM iterations, where values are missing and the covariance is full.
    tol : float, default=1e-6
        EM stops when no mean and no covariance changes by more than `tol` / 1000 standard deviations.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.
    ledger : bool, default=False
        Whether to keep hashes of the learnt rows, so that `forget` refuses rows that were never learnt, or were
        forgotten already.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class prior.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Pooled covariance; for estimation='bayes' the scale matrices of the Student t, (n_classes, n_features,
        n_features).
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the scores; for two classes those of the log-odds of the second class.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the scores.
    model_ : JointModel
        The joint model: class prior and class-conditional densities.
    statistics_ : JointStatistics
        Sufficient statistics of the training rows.
    log_evidence_ : float
        Log marginal likelihood of the training rows, for estimation='bayes' with proper conjugate priors.
    n_iter_ : int
        Number of EM iterations; 1 without EM.
    converged_ : bool
        Whether EM converged; True without EM.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    LinearDiscriminant : With an estimated class prior.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import NearestPrototype
    >>> X, y = load_iris(return_X_y=True)
    >>> NearestPrototype().fit(X, y).means_.round(1)
    array([[5. , 3.4, 1.5, 0.2],
           [5.9, 2.8, 4.3, 1.3],
           [6.6, 3. , 5.6, 2. ]])
    """

    _dense = True
    means_, covariance_ = property(class_means), property(class_covariances)
    coef_, intercept_ = property(coefficients), property(intercepts)

    from_parameters: Any = classmethod(gaussian_from_parameters)

    def __init__(
        self,
        covariance: str = "identity",
        shrinkage: Shrinkage = None,
        unbiased: bool = False,
        prior: NormalInverseWishart | None = None,
        class_prior: ClassPriorLike | None = "uniform",
        estimation: str = "mle",
        max_iter: int = 200,
        tol: float = 1e-6,
        types: TypesLike | None = None,
        normalize: bool = False,
        ledger: bool = False,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation
        self.max_iter = max_iter
        self.tol = tol
        self.types = types
        self.normalize = normalize
        self.ledger = ledger

    def _family(self) -> Gaussian:
        return Gaussian(self.covariance, True, self.shrinkage, self.unbiased, self.prior)
