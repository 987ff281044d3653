"""Regression by conditioning: the joint Gaussian of features and targets, conditioned on the features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from likely.choice.column_reading import choose_reading
from likely.choice.default_families import Declared
from likely.data.batches import Batch, Batches
from likely.data.frames import names_columns
from likely.data.reading import Reading
from likely.data.sources import Tables, predicted_with_targets
from likely.data.table import ENCODE, Table
from likely.data.target_batches import TargetBatches
from likely.data.unseen import TrainingCategories
from likely.data.validation import read_targets
from likely.errors import InputError, InputTypeError, MissingCellError, NoDensityError, listed
from likely.estimators.base import Learner
from likely.estimators.result_files import Results, write_predictions
from likely.families.categorical import Categorical
from likely.families.gaussian.conditional import ConditionalMeans
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.gaussian.shrinkage import Shrinkage
from likely.model.class_prior import estimate_prior
from likely.model.components import learn_components
from likely.model.fit import Fit
from likely.model.parameters import regression_parameters
from likely.model.persistence import FilePath, register
from likely.model.plans import Plan
from likely.model.regression import ConditionedRows, RegressionModel
from likely.model.summary import RegressionSummary, class_summaries
from likely.numerics.random import seeded
from likely.statistics.joint import JointStatistics
from likely.typing import (
    AnyArray,
    Array,
    ClassPriorLike,
    RandomStateLike,
    RowsLike,
    TableLike,
    TargetsLike,
    TypesLike,
    Vocabulary,
    WeightsLike,
)

CLASSES = "Set classes={column} for one regression per category, encode the column (OneHotEncoder), or drop it."


def _check_level(level: object) -> None:
    """Raise where the probability of an interval is none."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0.0 < float(level) < 1.0:
        raise InputError(f"level={level!r} is not a number between 0 and 1.")


def _has_partial_fit(model: GenerativeRegressor) -> bool:
    """Whether partial_fit is available: mixtures of regressions have none."""
    if model.components != 1:
        raise AttributeError(
            f"GenerativeRegressor(components={model.components!r}) has no partial_fit: EM needs all rows "
            "at once. Use fit."
        )
    return True


@register
class GenerativeRegressor(RegressorMixin, Learner):
    """Regression by the joint Gaussian of features and targets: p(y | x) with its uncertainty.

    The joint density of x and y is conditioned on the observed values of x. Missing values of x are integrated out in
    predictions; in `fit`, missing values of x and y are handled by EM. With estimation='mle' predictions are those of
    ordinary least squares.

    Parameters
    ----------
    estimation : {'bayes', 'map', 'mle'}, default='bayes'
        Posterior predictive distributions (Student t), posterior modes, or maximum likelihood.
    classes : str or int, default=None
        A categorical column of X, by name or number: one regression for each of its categories. Where the category is
        missing or unseen, predictions average over the regressions, weighted by their probability given the other
        columns.
    components : int, default=1
        Number of components of a mixture of regressions (Gaussian mixture regression), where no column shows the
        component.
    shared : bool or sequence of sequences of classes, default=False
        Whether classes or components have a pooled covariance of x and y, or groups of classes that do.
    shrinkage : float, {'ledoit-wolf', 'oas'} or Regularized, default=None
        Shrinkage of the covariance of x and y. Only for estimation='mle'.
    prior : NormalInverseWishart, default=None
        Prior of mean and covariance of the columns of x, then y, for estimation='map' and 'bayes'. None is a weak
        prior.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default=None
        Prior of classes or components. None estimates it from the rows.
    n_init : int, default=5
        Number of starts of a mixture of regressions. The fit with the largest objective is kept.
    max_iter : int, default=200
        Maximum number of EM iterations, where there are missing values or several components.
    tol : float, default=1e-6
        EM of a mixture stops when its objective changes by less than `tol` per row, EM for missing values when
        no mean and no covariance changes by more than `tol` / 1000 standard deviations.
    random_state : int or RandomState, default=None
        Seed of the starts.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.
    ledger : bool, default=False
        Whether to keep hashes of the learnt rows, so that `forget` refuses rows that were never learnt, or were
        forgotten already.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Slopes, where there is one regression.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercepts, where there is one regression.
    classes_ : ndarray of shape (n_classes,)
        Categories of the column `classes`, or numbers of components.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of classes or components.
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
    GenerativeClassifier : Classification by a joint model.
    Imputer : Imputation of any column.

    References
    ----------
    C. M. Bishop (2006), Pattern Recognition and Machine Learning, sections 2.3.1 and 14.5.1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from likely import GenerativeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GenerativeRegressor(estimation="mle").fit(X, y)
    >>> round(model.score(X, y), 3)
    0.518
    >>> model.predict_interval(X[:1], level=0.9).round(0)
    array([[118., 294.]])
    """

    _regression: tuple[JointStatistics, RegressionModel] | None = None
    _derived = ("_estimates", "_regression")

    _not_exported = "regressors have no class probabilities"

    def __init__(
        self,
        estimation: str = "bayes",
        classes: str | int | None = None,
        components: int = 1,
        shared: bool | Sequence[Sequence[Any]] = False,
        shrinkage: Shrinkage = None,
        prior: NormalInverseWishart | None = None,
        class_prior: ClassPriorLike | None = None,
        n_init: int = 5,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: RandomStateLike | None = None,
        types: TypesLike | None = None,
        normalize: bool = False,
        ledger: bool = False,
    ) -> None:
        self.estimation = estimation
        self.classes = classes
        self.components = components
        self.shared = shared
        self.shrinkage = shrinkage
        self.prior = prior
        self.class_prior = class_prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.types = types
        self.normalize = normalize
        self.ledger = ledger

    unlabeled_weight = 1.0  # a missing class is a missing value of X: its row has a target as all others

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags

    def _check_options(self) -> None:
        super()._check_options()
        for name in ("components", "n_init"):
            value: Any = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
                raise InputError(f"{name}={value!r} is not a positive whole number.")
        if self.classes is not None and self.components != 1:
            raise InputError(
                f"classes={self.classes!r} and components={self.components} cannot be combined. Set one of them."
            )

    def _class_column(self, names: Sequence[str]) -> int | None:
        """The position of the column that has the class of a row."""
        if self.classes is None:
            return None
        if str(self.classes) in names:
            return names.index(str(self.classes))
        number = isinstance(self.classes, Integral) and not isinstance(self.classes, bool)
        if not (number and 0 <= int(self.classes) < len(names)):
            raise InputError(f"classes={self.classes!r} is not a column of X: {listed(names)}.")
        return int(self.classes)

    def _declared(self, names: Sequence[str]) -> Declared:
        class_column = self._class_column(names)
        columns = None if class_column is None else tuple(j for j in range(len(names)) if j != class_column)
        return Declared((Plan(columns, Gaussian("full", self.shared, self.shrinkage, prior=self.prior)),))

    def fit(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Fit the joint Gaussian of features and targets.

        Parameters
        ----------
        X : array-like, frame or chunk source of shape (n_samples, n_features)
            Training rows. NaN and null are missing values. An object with a method `chunks`, which yields tables and
            starts again at every call, stands for rows that do not fit in memory.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
            Targets, or the names of the columns of X that have them. Missing targets are allowed.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        GenerativeRegressor
            The fitted estimator.
        """
        self._check_options()
        batches = self._batches(X, y, sample_weight, self._table, allow_unlabeled=True)
        if self.components == 1:
            specification, first = self._specify(batches), batches.first
            fit = self._recorded(self._fit_rows(specification, batches), batches)
        else:
            first, fit = self._fit_components(batches)
        model = RegressionModel.of(fit, int(np.prod(first.table.target_shape)))
        self._set_fit(first, fit, record=self._column_record(batches, fit.specification))
        self._regression = fit.statistics, model
        return self

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Add rows to the model.

        The result is that of `fit` on all rows so far, in any order and any batches. It is not available for a mixture
        of regressions.

        Parameters
        ----------
        X : array-like, frame or chunk source of shape (n_samples, n_features)
            Training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
            Targets, or the names of the columns of X that have them.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        GenerativeRegressor
            The fitted estimator.
        """
        try:
            return super().partial_fit(X, y, None, sample_weight)
        except MissingCellError as error:
            hint = "drop such rows, or use fit with all rows, which integrates missing values out"
            raise MissingCellError(error.row, error.column, error.value, "is missing (NaN)", hint, error.name) from None

    def _fit_components(self, batches: Batches) -> tuple[Batch, Fit]:
        """The fit of a mixture of regressions."""
        batches.check_unlabeled_weight()
        specification, first, rng = self._specify(batches), batches.first, seeded(self.random_state)
        options = self._em_options()
        return first, learn_components(specification, batches, int(self.components), rng, int(self.n_init), options)

    def _batches(
        self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any, int], Table], allow_unlabeled: bool = False
    ) -> Batches:
        def batches(reader: Callable[[Any, int], Table]) -> Batches:
            return TargetBatches(
                X,
                y,
                sample_weight,
                reader,
                type(self).__name__,
                column=self._class_column,
                outputs=self._outputs if read == self._read else None,
                allow_unlabeled=allow_unlabeled,
                ignore_labels=self.components != 1,
            )

        return self._training_rows(batches) if read == self._table else batches(read)

    def _choose_reading(self, table: Table) -> Reading:
        class_column = self._class_column(table.names)
        families = None if class_column is None else {table.names[class_column]: Categorical()}  # its values are labels
        return choose_reading(table, self.types, families, periodic=False)

    def _checked(self, table: Table, remedy: str) -> Table:
        if table.is_sparse:
            raise InputTypeError(f"X is sparse, but {type(self).__name__} needs a dense array. Use X.toarray().")
        class_column = self._class_column(table.names)
        for j, kind in enumerate(table.kinds):
            if kind == "category" and j != class_column and table.has_categories(j):
                training = CLASSES if class_column is None else "Encode the column (OneHotEncoder), or drop it."
                raise table.not_numbers(j, table.column(j).first(), training if remedy == ENCODE else remedy)
        return table

    @property
    def _outputs(self) -> int:
        return int(np.prod(self._target_shape))

    def _regressions(self) -> RegressionModel:
        """The model of y given x, estimated once."""
        fit = self._fitted()
        if self._regression is None or self._regression[0] is not fit.statistics:
            self._regression = fit.statistics, RegressionModel.of(fit, self._outputs)
        return self._regression[1]

    @property
    def class_prior_(self) -> Array:
        """Probabilities of classes or components, an array of shape (n_classes,)."""
        fit = self._fitted()
        return estimate_prior(fit.specification.class_prior, fit.statistics.counts, fit.specification.estimation)

    def _vocabularies(self) -> Iterator[tuple[int, Vocabulary]]:
        """The column of classes and its categories."""
        model = self._regressions()
        if model.class_column is not None:
            yield model.class_column, model.vocabulary

    def _training_categories(self, column: int) -> TrainingCategories:
        """The classes, and the proportion of rows that are the only one of their class."""
        rows = self._fitted().statistics.counts.rows
        return TrainingCategories(self._regressions().vocabulary, float(((rows == 1).sum() + 1) / (rows.sum() + 1)))

    def _evaluate(self, X: Any, compute: Callable[[ConditionedRows, AnyArray], Array], width: int) -> Array:
        """compute(rows, targets) of all rows of X, (rows, width)."""
        model = self._regressions()
        parts = Tables(X, self._read, self).compute(lambda table: model.evaluate(table, compute, width))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def predict(self, X: TableLike, return_std: bool = False) -> Any:
        """Predict the mean of y given the observed values of x, and optionally its standard deviation.

        Parameters
        ----------
        X : array-like, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        return_std : bool, default=False
            Whether to return standard deviations of a new y too. With estimation='bayes' they include the uncertainty
            of the parameters.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Means of y given x.
        std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Standard deviations; only if `return_std` is True.

        See Also
        --------
        predict_interval : Prediction intervals.

        Examples
        --------
        >>> import numpy as np
        >>> from likely import GenerativeRegressor
        >>> X = np.arange(20.0)[:, None]
        >>> model = GenerativeRegressor(estimation="mle").fit(X, 3.0 * X[:, 0] + 1.0 + np.cos(X[:, 0]))
        >>> mean, std = model.predict([[20.0]], return_std=True)
        >>> mean.round(1), std.round(1)
        (array([61.1]), array([0.7]))
        """
        q, shape, to_user = self._outputs, self._target_shape, self._regressions().lines.y_coordinates.to_user
        if not return_std:
            return self._evaluate(X, lambda rows, _: to_user(rows.mean()), q).reshape(-1, *shape)
        unit = self._regressions().lines.y_coordinates.unit

        def compute(rows: ConditionedRows, _: AnyArray) -> Array:
            predictive = rows.predictive()
            return np.hstack([to_user(predictive.mean), predictive.standard_deviation * unit])

        found = self._evaluate(X, compute, 2 * q)
        return found[:, :q].reshape(-1, *shape), found[:, q:].reshape(-1, *shape)

    def predict_interval(self, X: TableLike, level: float = 0.95) -> Array:
        """Predict intervals that contain y with a given probability.

        Parameters
        ----------
        X : array-like, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        level : float, default=0.95
            Probability of the interval. It excludes equal probabilities below and above.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends. With several outputs, each interval is for one output.

        See Also
        --------
        predict : Means and standard deviations.
        """
        _check_level(level)
        to_user, tail = self._regressions().lines.y_coordinates.to_user, 0.5 - float(level) / 2.0

        def compute(rows: ConditionedRows, _: AnyArray) -> Array:
            predictive = rows.predictive()
            ends = [to_user(predictive.quantile(probability)) for probability in (tail, 1.0 - tail)]
            return np.stack(ends, axis=2).reshape(len(rows.rows), -1)

        return self._evaluate(X, compute, 2 * self._outputs).reshape(-1, *self._target_shape, 2)

    def predict_to(
        self,
        X: RowsLike,
        path: FilePath,
        *,
        keep: str | Iterable[object] = "all",
        std: bool = False,
        level: float | None = None,
        prefix: str = "",
    ) -> int:
        """Predict any number of rows, and write the results to a CSV or Parquet file.

        Rows are read, predicted and written chunk by chunk, in their order. Rows with a finite number beyond
        1e140 have no prediction in the file, and a warning says how many these are. The file appears under its name
        when it is complete; after an error, an interrupt or a crash there is no such file, or the old one.

        Parameters
        ----------
        X : frame, array, chunk source or scan of shape (n_samples, n_features)
            Rows with the columns of the training rows. Other columns, such as identifiers, are not used.
        path : str, bytes or path-like
            Name of the file, which ends with .csv or .parquet. An existing file is replaced.
        keep : 'all' or list of str, default='all'
            Columns of X that are written before the results.
        std : bool, default=False
            Whether to write standard deviations, as `predict(X, return_std=True)`.
        level : float, default=None
            Probability of the intervals to write, as `predict_interval`. None writes none.
        prefix : str, default=''
            Text before the names of all results.

        Returns
        -------
        int
            Number of rows written. The file has the columns of `keep`, `predicted`, and `std`, `lower` and `upper` if
            requested. With several outputs, each has its columns, such as `predicted_<name>`.

        See Also
        --------
        predict : Means and standard deviations as arrays.
        likely.scan : Rows in files and databases.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> from likely import GenerativeRegressor
        >>> X = pd.DataFrame({"mass": [3.1, 3.3, 5.2, 5.0], "length": [18.1, 18.9, 21.7, 21.2]})
        >>> model = GenerativeRegressor().fit(X, "length")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = model.predict_to(X, Path(folder) / "predicted.csv", keep=["mass"], level=0.9)
        ...     columns = pd.read_csv(Path(folder) / "predicted.csv").columns.tolist()
        >>> rows, columns
        (4, ['mass', 'predicted', 'lower', 'upper'])
        """
        check_is_fitted(self)
        if level is not None:
            _check_level(level)
        if not isinstance(prefix, str):
            raise InputTypeError(f"prefix={prefix!r} must be text.")
        parts = ["predicted", *(["std"] if std else []), *([] if level is None else ["lower", "upper"])]
        targets = self.specification_.names[-self._outputs :]
        ends = [f"_{name}" for name in targets] if self._outputs > 1 else [""]

        def compute(rows: Any) -> list[Array]:
            found = [*self.predict(rows, return_std=True)] if std else [self.predict(rows)]
            if level is not None:
                found.extend(np.moveaxis(self.predict_interval(rows, level), -1, 0))
            return [column for part in found for column in part.reshape(len(part), -1).T]

        names = [f"{prefix}{part}{end}" for part in parts for end in ends]
        return write_predictions(self, X, path, keep, Results(names, compute))

    def score(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> float:
        """Compute the coefficient of determination R² of the predictions.

        Parameters
        ----------
        X : array-like, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
            Targets, or the names of the columns of X that have them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. None is 1 for all rows.

        Returns
        -------
        float
            1 − residual sum of squares / total sum of squares.
        """

        def numbers(targets: Any, start: int) -> AnyArray:
            table = read_targets(targets, type(self).__name__, start)
            return np.array(table.block(0, table.rows)).reshape(-1, *table.target_shape)

        found, y, weights = predicted_with_targets(self.predict, X, y, sample_weight, names_columns, numbers)
        return float(r2_score(y, found, sample_weight=weights))

    def log_predictive(self, X: TableLike, y: TargetsLike) -> Array:
        """Compute the predictive log-density log p(y | x) of each row.

        Parameters
        ----------
        X : array-like, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
            Targets, or the names of the columns of X that have them. Missing targets are integrated out.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.
        """
        model = self._regressions()
        coordinates, varying = model.lines.y_coordinates, model.lines.varying
        log_unit = np.log(coordinates.unit)

        def compute(rows: ConditionedRows, targets: AnyArray) -> Array:
            observed = ~np.isnan(targets[:, varying])
            local = coordinates.to_local(np.asarray(targets, dtype=np.float64))
            density = rows.predictive().log_density(local, varying)
            return np.asarray(density - observed @ log_unit[varying])[:, None]

        batches = TargetBatches(
            X, y, None, self._read, type(self).__name__, column=lambda _: None, outputs=self._outputs
        )
        try:
            return np.concatenate([model.evaluate(batch.table, compute, 1, targets=True)[:, 0] for batch in batches])
        except NoDensityError as error:
            raise NoDensityError(f"log_predictive: {error}. Use estimation='bayes'.") from None

    @property
    def coef_(self) -> Array:
        """Slopes, of shape (n_features,) or (n_outputs, n_features), where there is one regression."""
        return self._line("coef_").slopes(0).reshape(*self._target_shape, -1)

    @property
    def intercept_(self) -> Any:
        """Intercepts, a float or an array of shape (n_outputs,), where there is one regression."""
        values = self._line("intercept_").intercepts(0)
        return values if self._target_shape else float(values[0])

    def _line(self, name: str) -> ConditionalMeans:
        check_is_fitted(self)
        if self.classes is not None or self.components != 1:
            raise AttributeError(
                f"This GenerativeRegressor has no {name}: it is a mixture of regressions, and not linear in x. "
                "summary() has the slopes of each."
            )
        return self._regressions().lines

    def _parameter_table(self) -> dict[str, list[Any]]:
        return regression_parameters(self._fitted(), self._regressions(), self.class_prior_)

    def summary(self) -> RegressionSummary:
        """Summarize the fitted model: slopes, intercepts and residual standard deviations of each class.

        Returns
        -------
        RegressionSummary
            Plain data; ``print(model.summary())`` shows it as text.
        """
        model = self._regressions()
        lines, (plan,) = model.lines, self.specification_.plans
        names = self.specification_.columns(plan)
        classes = class_summaries(self.statistics_.counts, self.class_prior_)
        assert isinstance(plan.family, Gaussian)
        family = f"{plan.family._described(len(classes) > 1)}: {listed(names, limit=12)}"
        estimation = self.specification_.estimation
        return RegressionSummary(
            type(self).__name__,
            estimation,
            family,
            classes,
            model.line_summaries(names),
            tuple(lines.notes(names)),
            self._frame.backend,
        )
