"""Results of cross-validation: scores of each fold with those of a model without features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.data import row_draw
from likely.errors import InputError, NotKeptError
from likely.evaluation.score_names import score_values
from likely.evaluation.scoring import is_worse, mean_and_error
from likely.model.explanation import code_of
from likely.model.reliability import Reliability, binned
from likely.model.rendering import (
    RenderedResult,
    TextTable,
    compact,
    count,
    distinct_names,
    number,
    short_names,
    short_title,
    to_frame,
    with_error,
)
from likely.typing import AnyArray, Array

MOST_FOLDS = 12  # folds that are printed one by one
MOST_CLASSES = 10  # classes up to which the confusion matrix is printed whole
MOST_CHARACTERS = 80  # of the names of the classes above the columns of the confusion matrix
MOST_ERRORS = 10  # most frequent errors that are printed where there are more classes
SCORES = {"log_loss": "log-loss", "error": "error rate", "brier": "Brier score", "log_likelihood": "log-likelihood"}
RANK_SCORES = {"auc": "AUC", "average_precision": "average precision"}
REGRESSION_SCORES = {"squared_error": "mean squared error", "log_likelihood": "log-likelihood"}
MEAN = "Means over the folds ± standard error of the mean."


class FoldScores(NamedTuple):
    """Held-out rows of each fold, their scores in the order of SCORES, those of the baseline and of RANK_SCORES."""

    rows: AnyArray
    scores: Array
    baseline: Array
    ranked: Array
    recall: Array  # (folds, classes)


class RowResults(NamedTuple):
    """Predictions, fold, class code and weight of every row."""

    posterior: Array
    fold: AnyArray
    codes: AnyArray
    sample_weight: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation(RenderedResult):
    """Scores and predictions of a classifier on held-out rows.

    `str()` renders scores, baseline and confusion matrix as text, and notebooks show them as tables.

    Attributes
    ----------
    log_loss : ndarray of shape (n_folds,)
        Mean of −log p(class | x) of the true classes, as `sklearn.metrics.log_loss`; NaN where the model has no
        `predict_proba`.
    error : ndarray of shape (n_folds,)
        Proportion of misclassified rows.
    brier : ndarray of shape (n_folds,)
        Mean of Σ_k (p_k − [y = k])², halved for two classes; NaN where the model has no `predict_proba`.
    log_likelihood : ndarray of shape (n_folds,)
        Mean of log p(x, y); NaN where the model has no density.
    auc : ndarray of shape (n_folds,)
        Area under the ROC curve, as `sklearn.metrics.roc_auc_score`: of the second of two classes; of more, the mean
        over one class against the others. NaN without `predict_proba`, and for sources of more than 20,000 rows.
    average_precision : ndarray of shape (n_folds,)
        Area under the precision-recall curve, as `sklearn.metrics.average_precision_score`, for the same classes.
    recall : ndarray of shape (n_folds, n_classes)
        Proportion of the rows of each class that are predicted as this class; NaN for a class without rows in the fold.
    scoring : tuple of str
        Names of the scores that were asked for; none are all scores that the model has.
    posterior : ndarray of shape (n_samples, n_classes)
        p(class | x) of every row, by a model that was fitted without it; NaN for rows in no fold. This and the other
        attributes with a value for each row, `fold`, `codes` and `sample_weight`, and `reliability()` raise
        `NotKeptError` for sources of more than 20,000 rows, of which only sums are kept.
    fold : ndarray of shape (n_samples,)
        Fold number of each row, -1 for rows in no fold.
    classes : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of `posterior`.
    codes : ndarray of shape (n_samples,)
        Position of the true class of each row in `classes`, -1 for unlabeled rows.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the rows; None if all are 1.
    rows : ndarray of shape (n_folds,)
        Number of held-out rows of each fold.
    baseline_log_loss, baseline_error, baseline_brier : ndarray of shape (n_folds,)
        The same scores where the class proportions of the training rows of the fold are predicted for every row.
    confusion : ndarray of shape (n_classes, n_classes)
        Number (with weights, total weight) of held-out rows of each true class (rows) and predicted class (columns).
    model : str
        The model, as text.
    notes : tuple of str
        Remarks, such as scores that the model does not have.
    copies : int
        Number of labeled rows that are equal to another row in all columns and in the label, without the first row of
        each kind. Of a source with more than 65,536 distinct rows it is an estimate (standard error 0.5% of the rows).
    library : str or None
        Library of the frames that are returned: that of X. None is pandas, or pyarrow if pandas is not installed.

    See Also
    --------
    cross_validate : Returns this object.
    """

    log_loss: Array
    error: Array
    brier: Array
    log_likelihood: Array
    classes: AnyArray
    rows: AnyArray
    baseline_log_loss: Array
    baseline_error: Array
    baseline_brier: Array
    confusion: AnyArray
    auc: Array
    average_precision: Array
    recall: Array
    model: str
    notes: tuple[str, ...] = ()
    copies: int = 0
    scoring: tuple[str, ...] = ()
    library: str | None = None
    _row_results: RowResults | None = None  # None for the rows of a source

    @property
    def posterior(self) -> Array:
        """p(class | x) of every row, by a model that was fitted without it; NaN for rows in no fold."""
        return self._kept("posterior").posterior

    @property
    def fold(self) -> AnyArray:
        """Fold number of each row, -1 for rows in no fold."""
        return self._kept("fold").fold

    @property
    def codes(self) -> AnyArray:
        """Position of the true class of each row in `classes`, -1 for unlabeled rows."""
        return self._kept("codes").codes

    @property
    def sample_weight(self) -> Array | None:
        """Weights of the rows; None if all are 1."""
        return self._kept("sample_weight").sample_weight

    def _kept(self, name: str) -> RowResults:
        """The results of single rows; an error for the rows of a source."""
        if self._row_results is None:
            raise NotKeptError(
                f"{name} is not kept for sources of more than {row_draw.MOST_DRAWN:,} rows: cross_validate sums the "
                "scores of their rows. Pass some of the rows as a frame for results of single rows."
            )
        return self._row_results

    @property
    def accuracy(self) -> Array:
        """Proportion of the rows of each fold that are classified correctly."""
        return np.asarray(1.0 - self.error)

    @property
    def scores(self) -> dict[str, Array]:
        """The scores by name, one value per fold: those of `scoring`, or all that the model has."""
        return {name: score_values(name, self) for name in self.scoring or self._known()}

    def to_frame(self) -> Any:
        """Scores of the folds as a frame, one row for each fold.

        Returns
        -------
        frame
            Columns `fold`, `rows`, the scores of the model, `recall_` with the name of each class, `baseline_log_loss`,
            `baseline_error` and `baseline_brier`; with `scoring`, those scores alone. A frame of the library of X, or
            of pandas if X is not a frame. Scores that the model does not have are omitted.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant, cross_validate
        >>> result = cross_validate(LinearDiscriminant(), *load_iris(return_X_y=True), folds=5)
        >>> result.to_frame()[["fold", "rows", "error"]].round(3).values.tolist()[:3]
        [[0.0, 30.0, 0.0], [1.0, 30.0, 0.033], [2.0, 30.0, 0.0]]
        """
        columns: dict[str, Any] = {"fold": np.arange(len(self.rows)), "rows": self.rows} | self.scores
        if self.scoring:
            return to_frame(columns, self.library)
        recall = distinct_names([*columns, *(f"recall_{label}" for label in self.classes.tolist())])[len(columns) :]
        columns |= dict(zip(recall, self.recall.T, strict=True))
        baseline = [f"baseline_{name}" for name in SCORES if name in self._known() and name != "log_likelihood"]
        return to_frame(columns | {name: getattr(self, name) for name in baseline}, self.library)

    def confusion_frame(self) -> Any:
        """Confusion matrix as a frame, one row for each true class and one column for each predicted class.

        Returns
        -------
        frame
            Column `true`, the true class, and a column named after each predicted class.
        """
        names = distinct_names(["true", *self.classes.tolist()])
        columns = dict(zip(names, [self.classes.tolist(), *self.confusion.T.tolist()], strict=True))
        return to_frame(columns, self.library)

    def reliability(self, label: object = None, bins: int = 10, strategy: str = "quantile") -> Reliability:
        """Compare predicted probabilities of held-out rows with observed frequencies.

        Parameters
        ----------
        label : object, default=None
            Class whose probability is compared. None is the second class of two; with more classes, the most probable
            class of each row.
        bins : int, default=10
            Number of bins.
        strategy : {'quantile', 'uniform'}, default='quantile'
            Bins with about the same number of rows, or of the same width.

        Returns
        -------
        Reliability
            Mean predicted probability and observed frequency of each bin; `plot()` draws them.
        """
        if "log_loss" not in self._known():
            raise InputError(f"{short_title(self.model)} has no predict_proba, which reliability needs.")
        every = self._kept("reliability")
        held = np.flatnonzero((every.fold >= 0) & (every.codes >= 0))
        weights = None if every.sample_weight is None else every.sample_weight[held]
        place = code_of(self.classes, label) if label is not None else 1 if len(self.classes) == 2 else None
        shown = None if place is None else self.classes.tolist()[place]
        return binned(every.codes[held], every.posterior[held], place, bins, strategy, weights, shown, self.library)

    def _known(self) -> dict[str, str]:
        """Scores that the model has."""
        every = SCORES | RANK_SCORES
        return {name: text for name, text in every.items() if not np.isnan(getattr(self, name)).all()}

    def _titles(self) -> dict[str, str]:
        """Scores that are shown, with their titles."""
        return {name: (SCORES | RANK_SCORES).get(name, name) for name in self.scores}

    def _parts(self) -> list[str | TextTable]:
        folds = len(self.rows)
        title = short_title(self.model)
        classes = "one class" if len(self.classes) == 1 else f"{len(self.classes)} classes"
        head = f"{title}: {folds} folds, {int(self.rows.sum())} held-out rows, {classes}"
        return [
            head,
            TextTable(("", "model", "class proportions"), self._means()),
            "\n".join([self._verdict(), MEAN, *(f"note: {note}" for note in self.notes)]),
            self._folds() if folds <= MOST_FOLDS else f"to_frame() has the scores of all {folds} folds.",
            self._confusions(),
        ]

    def _means(self) -> list[list[str]]:
        """The mean of each score, and that of the baseline where it has one."""
        rows = []
        for name, title in self._titles().items():
            baseline = 0.5 + 0.0 * self.auc if name == "auc" else getattr(self, f"baseline_{name}", None)
            pair = (self.scores[name], baseline)
            rows.append([title, *("" if each is None else with_error(*mean_and_error(each)) for each in pair)])
        return rows

    def _verdict(self) -> str:
        """How the model compares with the class proportions, by log-loss, or by error rate where it has none."""
        if "log_loss" in self._known():
            return compared_with_baseline(
                self.log_loss, self.baseline_log_loss, "log-loss", "predicting the class proportions"
            )
        return compared_with_baseline(
            self.error, self.baseline_error, "error rate", "predicting the most frequent class"
        )

    def _folds(self) -> TextTable:
        scores = self.scores.values()
        rows = [
            [str(i), str(size), *(number(values[i]) for values in scores)] for i, size in enumerate(self.rows.tolist())
        ]
        return TextTable(("fold", "rows", *self._titles().values()), rows)

    def _confusions(self) -> TextTable:
        """The confusion matrix; with many classes, the most frequent errors."""
        names = short_names(self.classes.tolist())
        if len(names) <= MOST_CLASSES:
            columns = names
            if sum(map(len, names)) > MOST_CHARACTERS:  # numbers stand for long names
                columns = [f"({k})" for k in range(len(names))]
                names = [f"{place} {name}" for place, name in zip(columns, names, strict=True)]
            recall = [with_error(*mean_and_error(values)) for values in self.recall.T]
            table = zip(names, self.confusion.tolist(), recall, strict=True)
            rows = [[name, *map(count, row), mean] for name, row, mean in table]
            return TextTable(("true \\ predicted", *columns, "recall"), rows, "confusion matrix")
        wrong = np.array(self.confusion, dtype=np.float64)
        np.fill_diagonal(wrong, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[: np.count_nonzero(wrong)]
        pairs = [divmod(int(place), len(names)) for place in order[:MOST_ERRORS]]
        rows = [[names[i], names[j], count(wrong[i, j]), count(self.confusion[i].sum())] for i, j in pairs]
        title = "most frequent errors (confusion_frame() has all)"
        return TextTable(("true", "predicted", "rows", "of"), rows, title, left=2)


def cross_validation(
    model: Any,
    library: str | None,
    folds: FoldScores,
    classes: AnyArray,
    confusion: AnyArray,
    notes: tuple[str, ...],
    copies: int,
    row_results: RowResults | None = None,
) -> CrossValidation:
    """The result of all folds."""
    fields: dict[str, Any] = dict(zip(SCORES | RANK_SCORES, (*folds.scores, *folds.ranked), strict=True))
    fields |= {f"baseline_{name}": values for name, values in zip(SCORES, folds.baseline, strict=False)}
    fields |= {
        "recall": folds.recall,
        "classes": classes,
        "rows": folds.rows,
        "confusion": confusion,
        "model": " ".join(repr(model).split()),
    }
    return CrossValidation(**fields, notes=notes, copies=copies, library=library, _row_results=row_results)


@dataclass(frozen=True, slots=True, eq=False)
class RegressionCrossValidation(RenderedResult):
    """Scores and predictions of a regressor on held-out rows.

    `str()` renders scores and baseline as text, and notebooks show them as tables.

    Attributes
    ----------
    squared_error : ndarray of shape (n_folds,)
        Mean squared error, averaged over the outputs.
    log_likelihood : ndarray of shape (n_folds,)
        Mean of log p(y | x); NaN where the model has no predictive density (`log_predictive`).
    prediction : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Prediction for every row, by a model that was fitted without it; NaN for rows in no fold.
    fold : ndarray of shape (n_samples,)
        Fold number of each row, -1 for rows in no fold.
    rows : ndarray of shape (n_folds,)
        Number of held-out rows of each fold.
    baseline_squared_error : ndarray of shape (n_folds,)
        Mean squared error where the mean of y in the training rows of the fold is predicted for every row.
    baseline_log_likelihood : ndarray of shape (n_folds,)
        Mean log-density of normal distributions with mean and variance of each output in these training rows.
    model : str
        The model, as text.
    notes : tuple of str
        Remarks, such as scores that the model does not have.
    copies : int
        Number of rows that are equal to another row in all columns and in y, without the first row of each kind.
    scoring : tuple of str
        Names of the scores that were asked for; none are all scores that the model has.
    library : str or None
        Library of the frames that are returned: that of X. None is pandas, or pyarrow if pandas is not installed.

    See Also
    --------
    cross_validate : Returns this object.
    """

    squared_error: Array
    log_likelihood: Array
    prediction: Array
    fold: AnyArray
    rows: AnyArray
    baseline_squared_error: Array
    baseline_log_likelihood: Array
    model: str
    notes: tuple[str, ...] = ()
    copies: int = 0
    scoring: tuple[str, ...] = ()
    library: str | None = None

    @property
    def r2(self) -> Array:
        """1 − squared error / squared error of the mean of y, one value per fold."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1.0 - self.squared_error / self.baseline_squared_error)

    def to_frame(self) -> Any:
        """Scores of the folds as a frame, one row for each fold.

        Returns
        -------
        frame
            Columns `fold`, `rows`, the scores of the model and those of the baseline; a frame of the library of X, or
            of pandas if X is not a frame. Scores that the model does not have are omitted.
        """
        columns = {"fold": np.arange(len(self.rows)), "rows": self.rows}
        if self.scoring:
            return to_frame(columns | self.scores, self.library)
        for name in self._known():
            columns |= {name: getattr(self, name), f"baseline_{name}": getattr(self, f"baseline_{name}")}
        return to_frame(columns | {"r2": self.r2}, self.library)

    @property
    def scores(self) -> dict[str, Array]:
        """The scores by name, one value per fold: those of `scoring`, or all that the model has."""
        return {name: score_values(name, self) for name in self.scoring or (*self._known(), "r2")}

    def _known(self) -> dict[str, str]:
        """Scores that the model has."""
        return {name: text for name, text in REGRESSION_SCORES.items() if not np.isnan(getattr(self, name)).all()}

    def _parts(self) -> list[str | TextTable]:
        folds, known = len(self.rows), self._known()
        head = f"{short_title(self.model)}: {folds} folds, {int(self.rows.sum())} held-out rows"
        means = [
            [name, *(compact(*mean_and_error(getattr(self, prefix + score))) for score in known)]
            for name, prefix in (("model", ""), ("mean of y", "baseline_"))
        ]
        verdict = compared_with_baseline(
            self.squared_error, self.baseline_squared_error, "mean squared error", "predicting the mean of y"
        )
        return [
            head,
            TextTable(("", *known.values()), means),
            "\n".join([verdict, MEAN, *(f"note: {note}" for note in self.notes)]),
            self._folds() if folds <= MOST_FOLDS else f"to_frame() has the scores of all {folds} folds.",
        ]

    def _folds(self) -> TextTable:
        known = self._known()
        rows = [
            [str(i), str(size), *(compact(getattr(self, name)[i]) for name in known), number(self.r2[i])]
            for i, size in enumerate(self.rows.tolist())
        ]
        return TextTable(("fold", "rows", *known.values(), "R²"), rows)


def compared_with_baseline(scores: Array, baseline: Array, score: str, what: str) -> str:
    """A sentence on the paired difference between the scores of a model and those of a model without features."""
    difference, error = mean_and_error(scores - baseline)
    if np.isnan(difference):
        return f"No fold has a {score}."
    size = compact(abs(difference), error)
    close = ", within one standard error" if abs(difference) <= error else ""
    level = mean_and_error(baseline)[0]
    if is_worse(level + difference, level):
        return f"The model is worse than {what}: its {score} is {size} higher{close}."
    return f"The {score} is {size} lower than that of {what}{close}."
