"""What an `EvidenceClassifier` computes from its joint density: densities, novelty, samples and imputed values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from likely.estimators.classifiers import GenerativeClassifier
from likely.typing import AnyArray, Array, LabelsLike, RandomStateLike, TableLike


class GenerativeCore:
    """Mixin of the methods of `generative_`."""

    if TYPE_CHECKING:
        generative_: GenerativeClassifier

    def log_joint(self, X: TableLike) -> Array:
        """Compute the joint log-density log p(x, class) of `generative_`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.log_joint(X[[71]]).round(1)
        array([[-27.9,  -0.6, -11.6]])
        """
        check_is_fitted(self)
        return self.generative_.log_joint(X)

    def log_density(self, X: TableLike, label: object = None) -> Array:
        """Compute the log-density log p(x), or log p(x | class), of `generative_`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        label : object, default=None
            A class label, for log p(x | label). None is log p(x).

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.log_density(X[[1, 71]]).round(1)
        array([-1.4, -0.6])
        """
        check_is_fitted(self)
        return self.generative_.log_density(X, label)

    def score_samples(self, X: TableLike) -> Array:
        """Compute the log-density log p(x) of `generative_`, under scikit-learn's name.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.score_samples(X[[1, 71]]).round(1)
        array([-1.4, -0.6])
        """
        return self.log_density(X)

    def typicality(self, X: TableLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0) -> Array:
        """Compute the typicality of each row under `generative_`, a p-value that is small for novel rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n_samples : int, default=None
            Number of rows to simulate from each class; see `GenerativeClassifier.typicality`.
        random_state : int or RandomState, default=0
            Seed of the simulation.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.typicality(X[[1]] + 5) < 0.01
        array([ True])
        """
        check_is_fitted(self)
        return self.generative_.typicality(X, n_samples, random_state)

    def novelty(self, X: TableLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0) -> Array:
        """Compute the novelty of each row under `generative_`, which is large for novel rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n_samples : int, default=None
            Number of rows to simulate from each class; see `GenerativeClassifier.novelty`.
        random_state : int or RandomState, default=0
            Seed of the simulation.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.novelty(X[[1]] + 5) > model.novelty(X[[1]])
        array([ True])
        """
        check_is_fitted(self)
        return self.generative_.novelty(X, n_samples, random_state)

    def sample(
        self, n_samples: int = 1, label: object = None, random_state: RandomStateLike | None = None
    ) -> tuple[Any, AnyArray]:
        """Draw rows and their classes from `generative_`.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        label : object, default=None
            Class to draw from. None draws the class of each row from the class prior.
        random_state : int or RandomState, default=None
            Seed.

        Returns
        -------
        X : array or frame of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Class labels.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> rows, labels = model.sample(2, random_state=0)
        >>> rows.shape, labels.shape
        ((2, 4), (2,))
        """
        check_is_fitted(self)
        return self.generative_.sample(n_samples, label, random_state)

    def impute(self, X: TableLike, y: LabelsLike | None = None) -> Any:
        """Impute missing values with their expectation under `generative_` given the observed values of the row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with missing values, in memory, with the columns of the training rows.
        y : array-like of shape (n_samples,) or str, default=None
            Class labels, some of which may be missing, or the name of the column of X that has them.

        Returns
        -------
        array or frame of shape (n_samples, n_features)
            X without missing values, as the same kind of table.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> X[1, 2] = float("nan")
        >>> model.impute(X[[1]]).round(1)
        array([[4.9, 3. , 1.5, 0.2]])
        """
        check_is_fitted(self)
        return self.generative_.impute(X, y)
