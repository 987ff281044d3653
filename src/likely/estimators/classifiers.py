"""Classifiers for tables of any column types: any family for each block of columns, and naive Bayes."""

from __future__ import annotations

from typing import Any, Self

from likely.choice.fitting import with_calibration
from likely.errors import InputError, listed
from likely.estimators import family_mapping, given_parameters
from likely.estimators.generative import JointDensity
from likely.estimators.posterior import Posterior
from likely.model.persistence import register
from likely.numerics.threads import one_at_a_time
from likely.typing import TableLike, TargetsLike, WeightsLike


@register
class GenerativeClassifier(JointDensity, Posterior):
    """Generative classifier for tables of any column types: class prior times class-conditional densities.

    Columns are divided into blocks, each with a family of distributions. Within a class, blocks are independent;
    columns in one block have a joint density. Missing values are integrated out, and unlabeled rows are used by EM.

    Parameters
    ----------
    families : Family or dict of column(s) to Family, default=None
        One family for all columns, or a mapping from a column (name or number), or from a tuple of columns with a joint
        density, to its family: `Gaussian`, `LogNormal`, `Gamma`, `Exponential`, `Beta`, `VonMises`, `Poisson`,
        `NegativeBinomial`, `Geometric`, `Multinomial`, `Bernoulli`, `Categorical`, `Histogram`, `PointMass` or `Text`;
        None sets a column aside. The family of other columns is chosen among candidates that suit their type and
        values, by leave-one-out log-density. Continuous columns have one joint Gaussian of x or log x, in which classes
        have pooled or per-class covariances, by leave-one-out log-loss; see `choices_`. In frames, text has the family
        `Text`, and identifiers are set aside.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default=None
        Class prior: equal probabilities, probabilities in the order of the sorted classes, a mapping {class:
        probability}, or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class
        counts. A mapping may name classes that have no rows yet.
    estimation : {'bayes', 'map', 'mle'}, default='bayes'
        Posterior predictive distributions, posterior modes, or maximum likelihood.
    calibration : {'auto'} or None, default='auto'
        Calibration of the class probabilities. 'auto' learns, under estimation='bayes', one exponent of the
        class-conditional densities and one intercept for each class by leave-one-out log-loss, which corrects
        probabilities that dependent columns make too extreme; the strength of the prior of Gaussians without a
        `prior` is chosen the same way. It has no effect under 'map' and 'mle'. None uses the joint density as it is.
    unlabeled : object, default=None
        A label that marks unlabeled rows, in addition to None and NaN. `fit` uses such rows by EM.
    unseen : {'missing', 'error'}, default='missing'
        Treatment of categories that do not occur in the training rows, and of numbers outside the support of a family
        that was chosen: as missing values, or as an error.
    max_iter : int, default=200
        Maximum number of EM iterations, where there are unlabeled rows or missing values in joint blocks.
    tol : float, default=1e-6
        EM over unlabeled rows stops when its objective changes by less than `tol` per row, EM for missing values when
        no mean and no covariance changes by more than `tol` / 1000 standard deviations.
    unlabeled_weight : float or 'auto', default='auto'
        Weight of unlabeled rows. 0 ignores them. 'auto' chooses among 0, 0.01, 0.03, 0.1, 0.3 and 1 by the
        cross-validated log-loss of labeled rows: the smallest weight within one standard error of the best, which for
        tables with text has to be better than 0 by two standard errors.
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
    families_ : dict
        Family of each column, or of each tuple of columns with a joint density; None for columns set aside.
    choices_ : tuple of Choice
        Families, covariances and strengths of priors that were chosen by leave-one-out, with the scores of all
        candidates and the reason.
    calibration_ : Calibration or None
        Exponent and intercepts of the calibration, and the leave-one-out log-loss before and after it.
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
    unlabeled_weight_ : float or None
        Weight of unlabeled rows, given or chosen; None if all rows are labeled.
    unlabeled_scores_ : tuple of WeightScore
        Cross-validated log-loss of each weight of unlabeled rows, where the weight was chosen.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    NaiveBayes : All columns independent within a class.
    LinearDiscriminant : A Gaussian with a pooled covariance.
    QuadraticDiscriminant : Gaussians with per-class covariances.

    References
    ----------
    C. M. Bishop (2006), Pattern Recognition and Machine Learning, section 4.2.

    Examples
    --------
    >>> import pandas as pd
    >>> from likely import Categorical, Gaussian, GenerativeClassifier
    >>> X = pd.DataFrame({"mass": [3.1, 3.3, None, 5.2, 5.0, 5.4], "sex": ["f", "m", "f", "m", "f", None]})
    >>> y = ["Adelie", "Adelie", "Adelie", "Gentoo", "Gentoo", "Gentoo"]
    >>> model = GenerativeClassifier({"mass": Gaussian("diagonal"), "sex": Categorical()}).fit(X, y)
    >>> model.predict(pd.DataFrame({"mass": [5.1, None], "sex": [None, "f"]})).tolist()
    ['Gentoo', 'Adelie']
    """

    _others = "joint"
    _periodic_dates = True
    from_parameters: Any = classmethod(given_parameters.from_parameters)
    get_params, set_params = family_mapping.get_params, family_mapping.set_params

    @one_at_a_time
    def calibrate(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Calibrate the class probabilities again, by leave-one-out evidence of the training rows.

        `fit` calibrates a model. `partial_fit` and `forget` leave its calibration as it is, and a model that was made
        by `partial_fit` alone has none. This method learns it from rows of the model: the exponent and the intercepts
        that minimize the leave-one-out log-loss. Densities and families stay the same.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows, or some of them. Of more than 4,000 a sample is used.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all rows.

        Returns
        -------
        estimator
            The estimator itself, with a new `calibration_`.

        See Also
        --------
        left_out_proba : Leave-one-out probabilities of the training rows.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from likely import NaiveBayes
        >>> X, y = load_wine(return_X_y=True)
        >>> model = NaiveBayes().partial_fit(X, y)
        >>> model.calibration_ is None
        True
        >>> round(model.calibrate(X, y).calibration_.exponent, 2)
        0.57
        """
        fit = self._fitted()
        batches = self._batches(X, y, sample_weight, self._read)
        known = self.classes_.tolist()
        for batch in batches:
            unknown = [label for label in batch.counts.classes.tolist() if label not in known]
            if unknown:
                raise InputError(f"y has the label {listed(unknown)}, which is not among the classes of the model.")
        return self._become(with_calibration(fit, batches))


@register
class NaiveBayes(JointDensity, Posterior):
    """Naive Bayes: columns are independent within a class, each with a family that suits its type.

    Missing values are integrated out, and unlabeled rows are used by EM.

    Parameters
    ----------
    families : Family or dict of column to Family, default=None
        One family for every column, or a mapping from a column (name or number) to its family; None sets a column
        aside. The family of other columns is chosen among candidates that suit their type and values, by leave-one-out
        log-density; see `choices_`. In frames, text has the family `Text`, and identifiers are set aside.
        `Multinomial` has one density for all its columns.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default=None
        Class prior: equal probabilities, probabilities in the order of the sorted classes, a mapping {class:
        probability}, or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class
        counts. A mapping may name classes that have no rows yet.
    estimation : {'bayes', 'map', 'mle'}, default='bayes'
        Posterior predictive distributions, posterior modes, or maximum likelihood.
    calibration : {'auto'} or None, default='auto'
        Calibration of the class probabilities. 'auto' learns, under estimation='bayes', one exponent of the
        class-conditional densities and one intercept for each class by leave-one-out log-loss, which corrects
        probabilities that dependent columns make too extreme; the strength of the prior of Gaussians without a
        `prior` is chosen the same way. It has no effect under 'map' and 'mle'. None uses the joint density as it is.
    unlabeled : object, default=None
        A label that marks unlabeled rows, in addition to None and NaN. `fit` uses such rows by EM.
    unseen : {'missing', 'error'}, default='missing'
        Treatment of categories that do not occur in the training rows, and of numbers outside the support of a family
        that was chosen: as missing values, or as an error.
    max_iter : int, default=200
        Maximum number of EM iterations, where there are unlabeled rows or missing values in joint blocks.
    tol : float, default=1e-6
        EM over unlabeled rows stops when its objective changes by less than `tol` per row, EM for missing values when
        no mean and no covariance changes by more than `tol` / 1000 standard deviations.
    unlabeled_weight : float or 'auto', default='auto'
        Weight of unlabeled rows. 0 ignores them. 'auto' chooses among 0, 0.01, 0.03, 0.1, 0.3 and 1 by the
        cross-validated log-loss of labeled rows: the smallest weight within one standard error of the best, which for
        tables with text has to be better than 0 by two standard errors.
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
    families_ : dict
        Family of each column, or of each tuple of columns with a joint density; None for columns set aside.
    choices_ : tuple of Choice
        Families, covariances and strengths of priors that were chosen by leave-one-out, with the scores of all
        candidates and the reason.
    calibration_ : Calibration or None
        Exponent and intercepts of the calibration, and the leave-one-out log-loss before and after it.
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
    unlabeled_weight_ : float or None
        Weight of unlabeled rows, given or chosen; None if all rows are labeled.
    unlabeled_scores_ : tuple of WeightScore
        Cross-validated log-loss of each weight of unlabeled rows, where the weight was chosen.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    GenerativeClassifier : Joint densities of several columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import NaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayes().fit(X, y)
    >>> model.predict(X[[0, 70, 149]])
    array([0, 2, 2])
    """

    _others = "independent"
    _periodic_dates = True
    from_parameters: Any = classmethod(given_parameters.from_parameters)
    calibrate = GenerativeClassifier.calibrate
    get_params, set_params = family_mapping.get_params, family_mapping.set_params
