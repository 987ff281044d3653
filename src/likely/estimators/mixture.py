"""Mixture models: the joint model without labels. Components take the place of classes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import ClassifierTags

from likely.data.batches import Batches
from likely.data.parts import source_of
from likely.errors import InputError
from likely.estimators import family_mapping
from likely.estimators.generative import JointDensity
from likely.estimators.posterior import Posterior
from likely.model.components import learn_components
from likely.model.fit import Fit
from likely.model.persistence import register
from likely.model.specification import Specification
from likely.numerics.random import seeded
from likely.typing import (
    AnyArray,
    Array,
    ClassPriorLike,
    FamiliesLike,
    LabelsLike,
    RandomStateLike,
    TableLike,
    TypesLike,
    WeightsLike,
)

MAX_COMPONENTS = 10  # of n_components='bic'
PATIENCE = 3  # numbers of components to try beyond the best so far


@register
class MixtureModel(DensityMixin, JointDensity):
    """Mixture model of unlabeled rows, for density estimation and clustering.

    Each component has a density of all columns, with the families of `GenerativeClassifier`; for continuous columns it
    is a Gaussian mixture with full covariances. The model is fitted by EM from several k-means++ starts. Missing values
    are integrated out. Components take the place of classes in all methods.

    Parameters
    ----------
    n_components : int or 'bic', default=1
        Number of components. 'bic' chooses the number from 1 to 10 with the least Bayesian information criterion.
    families : Family or dict of column(s) to Family, default=None
        One family for all columns, or a mapping from a column (name or number), or from a tuple of columns with a joint
        density, to its family. Columns that are not specified have a family by their type; continuous columns have one
        joint Gaussian for each component, which needs dense rows.
    class_prior : {'uniform'}, array-like of shape (n_components,), dict or Dirichlet, default=None
        Prior of the component weights. None estimates them.
    estimation : {'map', 'mle', 'bayes'}, default='map'
        Posterior modes, maximum likelihood, or posterior predictive distributions. The prior of 'map' and 'bayes' keeps
        components from collapsing onto single rows.
    n_init : int, default=3
        Number of starts. The fit with the largest objective is kept.
    start : array-like of shape (n_samples,), default=None
        Initial component of each row. None uses k-means++ seeding.
    max_iter : int, default=200
        Maximum number of EM iterations.
    tol : float, default=1e-6
        EM stops when its objective changes by less than `tol` per row.
    unseen : {'missing', 'error'}, default='missing'
        Treatment of categories that do not occur in the training rows: as missing values, or as an error.
    random_state : int or RandomState, default=None
        Seed of the starts.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_components_,)
        Numbers of the components.
    n_components_ : int
        Number of components.
    weights_ : ndarray of shape (n_components_,)
        Component weights; `class_prior_` is the same.
    lower_bound_ : float
        Objective of EM at the end.
    bic_path_ : ndarray
        BIC of each number of components that was tried, for n_components='bic'.
    families_ : dict
        Family of each column, or of each tuple of columns that have a joint density.
    choices_ : tuple of Choice
        Families that were chosen by leave-one-out, with the scores of all candidates and the reason.
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
    GenerativeClassifier : The same model with labels.
    Imputer : Imputation by a mixture model.

    References
    ----------
    G. McLachlan and D. Peel (2000), Finite Mixture Models, Wiley.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import MixtureModel
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureModel(2, random_state=0).fit(X)
    >>> sorted(model.weights_.round(3).tolist())
    [0.336, 0.664]
    """

    _not_exported = "its components are not classes"
    _others = "components"

    # Of what follows from class probabilities, a mixture has all that needs no labels.
    predict, predict_proba, predict_log_proba = Posterior.predict, Posterior.predict_proba, Posterior.predict_log_proba
    decision_function, decide, _of_scores = Posterior.decision_function, Posterior.decide, Posterior._of_scores
    get_params, set_params = family_mapping.get_params, family_mapping.set_params

    def __init__(
        self,
        n_components: int | str = 1,
        families: FamiliesLike | None = None,
        class_prior: ClassPriorLike | None = None,
        estimation: str = "map",
        n_init: int = 3,
        start: LabelsLike | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        unseen: str = "missing",
        random_state: RandomStateLike | None = None,
        types: TypesLike | None = None,
        normalize: bool = False,
    ) -> None:
        self.n_components = n_components
        self.families = families
        self.class_prior = class_prior
        self.estimation = estimation
        self.n_init = n_init
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.unseen = unseen
        self.random_state = random_state
        self.types = types
        self.normalize = normalize

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.families is not None  # joint Gaussians, the default, need dense rows
        # scikit-learn's checks read these tags of every estimator with predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _check_options(self) -> None:
        super()._check_options()
        for name in ("n_components", "n_init"):
            value: Any = getattr(self, name)
            if name == "n_components" and isinstance(value, str) and value == "bic":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
                raise InputError(f"{name}={value!r} is not a positive whole number.")

    def fit(self, X: TableLike, y: object = None, sample_weight: WeightsLike | None = None) -> Self:
        """Fit the mixture by EM.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows. NaN and null are missing values. An object with a method `chunks`, which yields tables and
            starts again at every call, stands for rows that do not fit in memory.
        y : None
            Ignored; it is there for scikit-learn's API.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        MixtureModel
            The fitted estimator.
        """
        self._check_options()
        batches = self._training_rows(
            lambda read: Batches(X, None, sample_weight, read, type(self).__name__, ignore_labels=True)
        )
        rng = seeded(self.random_state)
        batches.check_unlabeled_weight()
        specification, first = self._specify(batches), batches.first
        self.__dict__.pop("bic_path_", None)
        if self.n_components == "bic":
            fit, scores = self._lowest_bic(specification, batches, rng)
            self.bic_path_ = np.array(scores)
        else:
            fit = self._best(specification, batches, int(self.n_components), rng)
        return self._set_fit(first, fit, fit.estimate(), self._column_record(batches, fit.specification))

    @property
    def partial_fit(self) -> Any:
        """Not available: the statistics of EM are not sums over the rows. Raises AttributeError."""
        raise AttributeError("MixtureModel has no partial_fit: EM needs all rows at once. Use fit.")

    def fit_predict(self, X: TableLike, y: object = None, sample_weight: WeightsLike | None = None) -> AnyArray:
        """Fit the mixture, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows. NaN and null are missing values. An object with a method `chunks`, which yields tables and
            starts again at every call, stands for rows that do not fit in memory.
        y : None
            Ignored; it is there for scikit-learn's API.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of components.

        Examples
        --------
        >>> from likely import MixtureModel
        >>> MixtureModel(2, random_state=0).fit_predict([[0.0], [0.2], [0.1], [5.0], [5.1], [5.3]])
        array([1, 1, 1, 0, 0, 0])
        """
        X = source_of(X)
        return self.fit(X, y, sample_weight).predict(X)

    def _most(self, batches: Batches) -> int:
        rows = sum(batch.unlabeled.table.rows for batch in batches if batch.unlabeled is not None)
        return min(MAX_COMPONENTS, rows)

    def _lowest_bic(self, specification: Specification, batches: Batches, rng: Any) -> tuple[Fit, list[float]]:
        """The fit with the number of components of least BIC, and the BIC of every number tried."""
        fits: list[Fit] = []
        scores: list[float] = []
        for size in range(1, self._most(batches) + 1):
            fits.append(self._best(specification, batches, size, rng))
            scores.append(_bic(fits[-1]))
            if len(scores) > PATIENCE + int(np.argmin(scores)):
                break
        return fits[int(np.argmin(scores))], scores

    def _best(self, specification: Specification, batches: Batches, size: int, rng: Any) -> Fit:
        return learn_components(specification, batches, size, rng, int(self.n_init), self._em_options(), self.start)

    def score(self, X: TableLike, y: object = None) -> float:
        """Compute the mean log-density of rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : None
            Ignored; it is there for scikit-learn's API.

        Returns
        -------
        float
            Mean of log p(x).
        """
        return float(np.mean(self.log_density(X)))

    @property
    def n_components_(self) -> int:
        """Number of components."""
        return len(self.classes_)

    @property
    def lower_bound_(self) -> float:
        """Objective of EM at the end."""
        history = self._history
        assert history is not None
        return history.objective[-1]

    @property
    def weights_(self) -> Array:
        """Component weights, an array of shape (n_components_,)."""
        return self.class_prior_

    def bic(self, X: TableLike) -> float:
        """Compute the Bayesian information criterion, p·log n − 2·log L.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        float
            The criterion, with p free parameters and n rows. Smaller is better.
        """
        density = self.log_density(X)
        return float(self._parameters() * np.log(len(density)) - 2.0 * density.sum())

    def aic(self, X: TableLike) -> float:
        """Compute the Akaike information criterion, 2·p − 2·log L.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        float
            The criterion, with p free parameters and n rows. Smaller is better.
        """
        return float(2.0 * self._parameters() - 2.0 * self.log_density(X).sum())

    def _parameters(self) -> int:
        return self.specification_.n_parameters(self.statistics_)


def _bic(fit: Fit) -> float:
    """The BIC at the log-likelihood at the end of EM."""
    assert fit.history is not None
    size = fit.specification.n_parameters(fit.statistics)
    return float(size * np.log(fit.statistics.counts.weight.sum()) - 2.0 * fit.history.log_likelihood)
