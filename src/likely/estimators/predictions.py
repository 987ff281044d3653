"""Predictions from a joint density p(x, class): probabilities, decisions, explanations and typicality."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.data.parts import lazily, read_here
from likely.data.sources import Tables
from likely.data.table import Table
from likely.errors import InputError, check_choice, check_number, listed
from likely.model.decision import Decisions, decide
from likely.model.explanation import Explanation, code_of, concatenated
from likely.model.joint import JointModel
from likely.model.rendering import frame_library
from likely.model.typicality import typicality
from likely.numerics.random import seeded
from likely.typing import AnyArray, Array, LossLike, RandomStateLike, TableLike

Result = TypeVar("Result")


class JointPredictions:
    """Mixin of estimators with a joint density: everything that is computed for new rows."""

    if TYPE_CHECKING:  # of Learner

        @property
        def model_(self) -> JointModel: ...
        @property
        def classes_(self) -> AnyArray: ...
        def _read(self, X: Any, start: int = 0) -> Table: ...

    def _evaluate(self, X: Any, compute: Callable[[JointModel, Table], Array]) -> Array:
        """compute(model, table) of all rows of X, one batch after another."""
        parts = self._compute(X, compute)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _compute(self, X: Any, compute: Callable[[JointModel, Table], Result]) -> list[Result]:
        """compute(model, table) of every batch of rows."""
        check_is_fitted(self)

        def work(table: Table) -> Result:
            refuse_unseen(self, self.model_, table)
            return compute(self.model_, table)

        return Tables(X, self._read).compute(work)

    def log_joint(self, X: TableLike) -> Array:
        """Compute the joint log-density log p(x, class) of each row and class.

        Missing values are integrated out: a row has the density of its observed values.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Joint log-densities, in the order of `classes_`.

        See Also
        --------
        log_density : The marginal log p(x).
        predict_log_proba : The conditional log p(class | x).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.log_joint(X[:1]).round(2)
        array([[  0.1 , -50.21, -97.61]])
        """
        return self._evaluate(X, JointModel.log_joint)

    def log_density(self, X: TableLike, label: object = None) -> Array:
        """Compute the log-density log p(x) of each row, or log p(x | class) under one class.

        log p(x) is the logarithm of the sum of p(x, class) over the classes. Missing values are integrated out.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        label : object, default=None
            A class label, for log p(x | label). None is log p(x).

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.

        See Also
        --------
        typicality : A p-value, which is comparable between models and numbers of columns.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.log_density(X[:2]).round(2)
        array([ 0.1 , -0.79])
        >>> model.log_density(X[:2], label=0).round(2)
        array([1.2 , 0.31])
        """
        if label is None:
            return self._evaluate(X, JointModel.log_density)
        check_is_fitted(self)
        code = code_of(self.classes_, label)
        return self._evaluate(X, lambda model, table: model.class_log_density(table, code))

    def score_samples(self, X: TableLike) -> Array:
        """Compute the log-density log p(x) of each row, under scikit-learn's name.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.

        See Also
        --------
        log_density : The same method.
        """
        return self.log_density(X)

    @lazily
    def predict(self, X: TableLike) -> AnyArray:
        """Predict the most probable class of each row.

        The result of a Dask object is a Dask array, and that of a Spark DataFrame is the DataFrame with the column
        `predicted`. Both are computed later, where the rows are.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels; for a `MixtureModel`, numbers of components.

        See Also
        --------
        predict_proba : Probabilities of all classes.
        decide : Decisions with other losses than the error rate.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.predict(X[[0, 70, 149]])
        array([0, 2, 2])
        """
        codes = self._evaluate(X, JointModel.most_probable)
        return np.asarray(self.classes_[codes])

    @lazily
    def predict_proba(self, X: TableLike) -> Array:
        """Predict class probabilities, p(class | x).

        Missing values are integrated out. A row that has density 0 under every class has the class prior, with a
        warning. The result of a Dask object is a Dask array, and that of a Spark DataFrame is the DataFrame with the
        columns `predicted` and `probability_<label>`. Both are computed later, where the rows are.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`. Each row sums to 1.

        See Also
        --------
        predict : The most probable class.
        predict_log_proba : Logarithms, without underflow.
        left_out_proba : Leave-one-out probabilities of the training rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.predict_proba(X[[0, 70]]).round(3)
        array([[1.   , 0.   , 0.   ],
               [0.   , 0.249, 0.751]])
        """
        return self._evaluate(X, JointModel.posterior)

    @lazily
    def predict_log_proba(self, X: TableLike) -> Array:
        """Predict logarithms of class probabilities, log p(class | x).

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.

        See Also
        --------
        predict_proba : The probabilities.
        """
        return self._evaluate(X, JointModel.log_posterior)

    def typicality(self, X: TableLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0) -> Array:
        """Compute the typicality of each row, a p-value that is small for novel rows.

        It is the probability that a row drawn from a class has at most the density of this row, in its observed
        columns, for the class under which it is largest. For a single Gaussian block it is a χ² or F probability in
        closed form, for other models a proportion of simulated rows. The p-value is conservative: of rows drawn from
        the model, at most a proportion α has a typicality below α.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n_samples : int, default=None
            Number of rows to simulate from each class, where there is no closed form. None is 10,000 for up to 20
            classes, and 200,000 in total for more, at least 1,000 per class. The least p-value is then 1 / (n_samples +
            1).
        random_state : int or RandomState, default=0
            Seed of the simulation.

        Returns
        -------
        ndarray of shape (n_samples,)
            Typicality, from 0 (novel) to 1. A row without any observed value has 1.

        See Also
        --------
        novelty : Its negative logarithm, which also ranks rows that are far from all classes.
        log_density : The log-density itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.typicality([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 1.2]]).round(3)
        array([0.998, 0.   ])
        """
        return self._typicality(X, n_samples, random_state, "p_value")

    def novelty(self, X: TableLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0) -> Array:
        """Compute a novelty score of each row, which is large for novel rows.

        It is −log10 of the typicality: 2 for a row that is less probable than 99 in 100 rows of its class. Rows whose
        density is below that of all simulated rows are ranked by their log-density.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n_samples : int, default=None
            Number of rows to simulate from each class, as in `typicality`.
        random_state : int or RandomState, default=0
            Seed of the simulation.

        Returns
        -------
        ndarray of shape (n_samples,)
            Novelty, from 0 (typical). It is infinite only for rows that have probability 0 under every class.

        See Also
        --------
        typicality : The p-value.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.novelty([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 1.2]]).round(1)
        array([0. , 6.1])
        """
        return self._typicality(X, n_samples, random_state, "novelty")

    def _typicality(
        self, X: TableLike, n_samples: int | None, random_state: RandomStateLike | None, name: str
    ) -> Array:
        if n_samples is not None:
            check_number("n_samples", n_samples, 1, whole=True)
        seed = int(seeded(random_state).randint(2**32, dtype=np.uint64))
        return self._evaluate(X, lambda model, table: getattr(typicality(model, table, n_samples, seed), name))

    def decision_function(self, X: TableLike) -> Array:
        """Compute log-odds or scores of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the log-odds of the second class against the first. For more classes, ``X @ coef_.T +
            intercept_`` for linear models, and log p(class | x) for others.

        See Also
        --------
        predict_proba : Class probabilities.
        """
        check_is_fitted(self)
        return self._evaluate(X, JointModel.log_odds if len(self.classes_) == 2 else JointModel.scores)

    def decide(
        self,
        X: TableLike,
        loss: LossLike | None = None,
        reject: float | None = None,
        reject_label: object = None,
    ) -> Decisions:
        """Choose the action with the least expected loss for each row.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        loss : mapping, frame or array-like of shape (n_classes, n_actions), default=None
            Loss of each action under each true class: a mapping {class: {action: loss}}, a frame with actions as
            columns and classes as index (or, without an index, with classes in the order of its rows), or an array
            with rows in the order of `classes_`; the actions of an array are the classes if it is square, and column
            numbers otherwise. None is 0 for the true class and 1 for any other.
        reject : float, default=None
            Cost of abstaining. A row is rejected where its least expected loss exceeds it. None never rejects.
        reject_label : object, default=None
            The `action` of rejected rows, such as 'ask an expert'.

        Returns
        -------
        Decisions
            Arrays `action`, `expected_loss`, `rejected` and `best_action` of shape (n_samples,). The `action` of a
            rejected row is `reject_label` and its `expected_loss` is `reject`; `best_action` is the action with the
            least expected loss. `to_frame()` returns them as a table.

        See Also
        --------
        predict : The most probable class, which minimizes the error rate.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> decisions = model.decide(X[[0, 70]], reject=0.1, reject_label="ask")
        >>> decisions.action, decisions.best_action
        (array([0, 'ask'], dtype=object), array([0, 2]))

        With other actions than the classes:

        >>> loss = {0: {"keep": 0, "discard": 5}, 1: {"keep": 1, "discard": 0}, 2: {"keep": 1, "discard": 0}}
        >>> model.decide(X[[0, 70]], loss).action
        array(['keep', 'discard'], dtype='<U7')
        """
        return decide(self.predict_proba(read_here(X)), self.classes_, loss, reject, reject_label, frame_library(X))

    def explain(self, X: TableLike, method: str = "symmetric") -> Explanation:
        """Decompose log p(x, class) into contributions of the columns.

        The decomposition is exact. An independent column contributes its log-density. In a block with a full
        covariance, the squared Mahalanobis distance is divided among the columns by Garthwaite and Koch's partition, in
        a joint table of categories the log-probability by Shapley values. Contributions do not depend on the order of
        the columns.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        method : {'symmetric', 'sequential'}, default='symmetric'
            'sequential' uses the chain rule in the order of the columns instead: the density of the first column of a
            block, of the second given the first, and so on.

        Returns
        -------
        Explanation
            `evidence` of shape (n_samples, n_classes, n_features), `offset` of shape (n_samples, n_classes) and the
            names of the `columns`. The offset plus the evidence summed over the columns is log p(x, class), or, where
            class probabilities are calibrated, t·log p(x | class) + log p(class) + c: its softmax is `predict_proba`.
            A missing value contributes 0. `contrast(a, b)` has the contributions to the log-odds of two classes,
            `to_frame()` all contributions as a table, and `plot(row)` draws them.

        See Also
        --------
        boundary : The log-odds of two classes as a function of x.

        References
        ----------
        P. H. Garthwaite and I. Koch (2016), Evaluating the contributions of individual variables to a quadratic form,
        Australian and New Zealand Journal of Statistics 58.

        Examples
        --------
        >>> from scipy.special import softmax
        >>> from sklearn.datasets import load_iris
        >>> from likely import NaiveBayes
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NaiveBayes().fit(X, y)
        >>> parts = model.explain(X[:1])
        >>> parts.evidence.shape
        (1, 3, 4)
        >>> scores = parts.offset + parts.evidence.sum(axis=2)
        >>> bool(abs(softmax(scores, axis=1) - model.predict_proba(X[:1])).max() < 1e-9)
        True

        Contributions of the columns to the log-odds of class 2 against class 1:

        >>> model.explain(X[[70]]).contrast(2, 1).round(2)
        array([[-0.53,  0.44, -0.28,  1.21]])
        """
        check_choice("method", method, ("symmetric", "sequential"))
        parts = self._compute(X, lambda model, table: model.explain(table, method == "sequential"))
        return concatenated(parts, frame_library(X))


def refuse_unseen(estimator: Any, model: JointModel, table: Table) -> None:
    """Raise for categories and numbers that the training rows exclude, if the option `unseen` is 'error'.

    Else warn about columns whose categories all have another type than those of the training rows.
    """
    strict = getattr(estimator, "unseen", "missing") == "error"
    for block in model.blocks:
        outside = block.first_outside(table) if strict else None
        if outside is not None:
            row, j, value = outside
            raise InputError(
                f"Column {table.names[j]!r}, row {table.number(row)}: {value} is outside the support of the family "
                "that was chosen by the training rows. Set unseen='missing', or declare the family of the column."
            )
        for j, words in zip(block.index, block.conditionals.vocabularies or (), strict=False):
            if not strict:
                table.warn_other_type(int(j), words)
                continue
            found = table.unseen(int(j), words)
            if found is not None:
                raise InputError(
                    f"Column {table.names[j]!r}, row {found[0]}: {found[1]!r} was not seen in training. Known "
                    f"categories: {listed(words)}. Set unseen='missing', or Categorical(categories=...)."
                )
