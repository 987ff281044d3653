"""Reliability of predicted probabilities: observed frequencies of rows with similar predictions."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from likely.data.labels import label_values
from likely.data.validation import read_weights
from likely.errors import InputError, check_choice, listed
from likely.model.explanation import code_of
from likely.model.rendering import RenderedResult, TextTable, count, new_axes, number, short_names, to_frame, with_error
from likely.typing import AnyArray, Array, LabelsLike, WeightsLike

STRATEGIES = ("quantile", "uniform")


@dataclass(frozen=True, slots=True, eq=False)
class Reliability(RenderedResult):
    """Predicted probabilities and observed frequencies, in bins of similar predictions.

    Attributes
    ----------
    low, high : ndarray of shape (n_bins,)
        Least and largest predicted probability in the bin.
    predicted : ndarray of shape (n_bins,)
        Mean predicted probability.
    observed : ndarray of shape (n_bins,)
        Observed frequency: the proportion of rows that have the class.
    count : ndarray of shape (n_bins,)
        Number of rows in the bin; with weights, their total weight.
    standard_error : ndarray of shape (n_bins,)
        Standard error of the observed frequency if the predicted probabilities p are right: the square root of
        Σ p·(1 − p), divided by the number of rows.
    label : object
        The class whose probability is compared; None if it is the most probable class of each row.
    library : str or None
        Library of the frame that `to_frame` returns. None is pandas, or pyarrow if pandas is not installed.

    See Also
    --------
    reliability : Returns this object, for any probabilities.
    GenerativeClassifier.reliability : Returns this object, for the predictions of a model.
    """

    low: Array
    high: Array
    predicted: Array
    observed: Array
    count: Array
    standard_error: Array
    label: Any = None
    library: str | None = None

    @property
    def expected_calibration_error(self) -> float:
        """Mean of |observed − predicted| over the bins, weighted by their numbers of rows."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.count))

    def to_frame(self) -> Any:
        """The bins as a frame.

        Returns
        -------
        frame
            Columns `bin`, `low`, `high`, `predicted`, `observed`, `count` and `standard_error`, one row for each bin.
        """
        names = ("low", "high", "predicted", "observed", "count", "standard_error")
        columns = {name: getattr(self, name) for name in names}
        return to_frame({"bin": np.arange(len(self.count))} | columns, self.library)

    def plot(self, ax: Any = None) -> Any:
        """Draw observed frequencies against predicted probabilities with matplotlib.

        Bars are one standard error on either side. Calibrated probabilities are on the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in. None creates a figure.

        Returns
        -------
        Axes
            The panel.

        Raises
        ------
        likely.errors.MissingExtraError
            If `ax` is None and matplotlib is not installed.
        """
        if ax is None:
            ax = new_axes(figsize=(4.6, 4.4))
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linestyle=":", linewidth=1.0, zorder=0)
        ax.errorbar(
            self.predicted, self.observed, yerr=self.standard_error, color="C0", marker="o", markersize=4, capsize=2
        )
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed frequency")
        ax.set_xlabel(f"predicted probability of {self._subject()}".replace("$", r"\$"))
        ax.set_title(f"expected calibration error {self.expected_calibration_error:.4f}", fontsize="medium")
        ax.set_aspect("equal")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _subject(self) -> str:
        return "the most probable class" if self.label is None else f"class {short_names([self.label])[0]}"

    def _parts(self) -> list[str | TextTable]:
        columns = (self.low, self.high, self.count, self.predicted, self.observed, self.standard_error)
        rows = [
            [f"{_edge(low)} to {_edge(high)}", count(size), number(predicted), with_error(observed, error)]
            for low, high, size, predicted, observed, error in zip(*(each.tolist() for each in columns), strict=True)
        ]
        error = f"Expected calibration error {self.expected_calibration_error:.4f}."
        return [
            f"Reliability of the probability of {self._subject()}",
            TextTable(("predicted", "rows", "mean predicted", "observed frequency"), rows),
            f"{error} Standard errors are those of calibrated probabilities.",
        ]


def _edge(probability: float) -> str:
    return f"{probability:.3f}" if probability == 0.0 or probability >= 0.001 else f"{probability:.1e}"


def reliability(
    y: LabelsLike,
    proba: Any,
    classes: LabelsLike | None = None,
    label: object = None,
    bins: int = 10,
    strategy: str = "quantile",
    sample_weight: WeightsLike | None = None,
) -> Reliability:
    """Compare predicted probabilities with observed frequencies.

    Rows are grouped into bins of similar predictions. Where probabilities are calibrated, the observed frequency of a
    class in a bin is the mean predicted probability, up to sampling error. Use rows that the model was not fitted to,
    or `cross_validate(model, X, y).reliability()`.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True class labels.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities of all classes, or of the class `label`.
    classes : array-like of shape (n_classes,), default=None
        Class labels in the order of the columns of `proba`. None is the sorted labels of y.
    label : object, default=None
        Class whose probability is compared. None is the second class of two; with more classes, the most probable class
        of each row.
    bins : int, default=10
        Number of bins.
    strategy : {'quantile', 'uniform'}, default='quantile'
        Bins with about the same number of rows, or of the same width. Rows with the same probability are in one bin.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of times that each row counts. None is 1 for all rows.

    Returns
    -------
    Reliability
        Mean predicted probability, observed frequency, number of rows and standard error of each bin, and
        `expected_calibration_error`; `to_frame()` gives a table and `plot()` draws it.

    See Also
    --------
    GenerativeClassifier.reliability : The same for the predictions of a model.
    cross_validate : The result has a method `reliability`, for held-out rows.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017), On calibration of modern neural networks, Proceedings of the
    34th International Conference on Machine Learning.

    Examples
    --------
    >>> from likely import reliability
    >>> result = reliability([0, 0, 1, 1, 0, 1], [0.1, 0.1, 0.1, 0.8, 0.8, 0.8], bins=2)
    >>> result.predicted, result.observed.round(3)
    (array([0.1, 0.8]), array([0.333, 0.667]))
    >>> round(result.expected_calibration_error, 3)
    0.183
    """
    labels = label_values(y).tolist()
    probabilities = _probabilities(proba, len(labels))
    weights = read_weights(sample_weight, len(labels))
    if probabilities.ndim == 1:
        if label is None:
            label = _known_classes(labels, classes, 2)[1]
        codes = np.array([each == label for each in labels], dtype=np.intp)
        both = np.column_stack([1.0 - probabilities, probabilities])
        return binned(codes, both, 1, bins, strategy, weights, label)
    known = _known_classes(labels, classes, probabilities.shape[1])
    code = {each: k for k, each in enumerate(known)}
    place = code_of(known, label) if label is not None else 1 if len(known) == 2 else None
    codes = np.array([code[each] for each in labels], dtype=np.intp)
    return binned(codes, probabilities, place, bins, strategy, weights, None if place is None else known[place])


def binned(
    codes: AnyArray,
    probabilities: Array,
    place: int | None,
    bins: int,
    strategy: str,
    weights: Array | None,
    label: Any,
    library: str | None = None,
) -> Reliability:
    """Reliability of the probability of the class at `place`, or (None) of the most probable class of each row."""
    check_choice("strategy", strategy, STRATEGIES)
    if not isinstance(bins, Integral) or isinstance(bins, bool) or bins < 1:
        raise InputError(f"bins={bins!r} is not a positive whole number.")
    if place is None:
        best = probabilities.argmax(axis=1)
        p, event = probabilities[np.arange(len(best)), best], best == codes
    else:
        p, event = probabilities[:, place], codes == place
    w = np.ones(len(p)) if weights is None else weights
    p, event, w = p[w > 0.0], event[w > 0.0], w[w > 0.0]
    if not len(p):
        raise InputError("sample_weight: no row has positive weight.")
    number_of = _bins(p, w, int(bins), strategy)
    starts, number_of = np.unique(number_of, return_inverse=True)
    size = np.bincount(number_of, w)
    low, high = np.full(len(starts), np.inf), np.zeros(len(starts))
    np.minimum.at(low, number_of, p)
    np.maximum.at(high, number_of, p)
    variance = np.bincount(number_of, w * p * (1.0 - p))
    return Reliability(
        low,
        high,
        np.bincount(number_of, w * p) / size,
        np.bincount(number_of, w * event) / size,
        size,
        np.sqrt(variance) / size,
        label,
        library,
    )


def _bins(p: Array, weights: Array, bins: int, strategy: str) -> AnyArray:
    """The bin of each row.

    A distinct probability with weight m, and c below it, is in the quantile bin that has the fraction (c + m/2) of the
    total weight: rows with the same probability are together, whatever their order, and weights are repeats.
    """
    if strategy == "uniform":
        return np.minimum((p * bins).astype(np.intp), bins - 1)
    _, place = np.unique(p, return_inverse=True)
    mass = np.bincount(place, weights)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return np.minimum((middle * bins).astype(np.intp), bins - 1)[place]


def _probabilities(proba: Any, rows: int) -> Array:
    """Probabilities as an array of one or two dimensions, checked."""
    try:
        found = np.asarray(proba, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("proba: probabilities must be numbers, of shape (n_samples, n_classes).") from None
    if found.ndim not in (1, 2) or len(found) != rows:
        raise InputError(f"proba has shape {found.shape}, but y has {rows} labels: it needs one row for each label.")
    bad = np.argwhere(~((found >= -1e-12) & (found <= 1.0 + 1e-12)))
    if len(bad):
        raise InputError(f"proba, row {bad[0][0]}: {found[tuple(bad[0])]} is not a probability between 0 and 1.")
    if found.ndim == 2 and not np.allclose(found.sum(axis=1), 1.0, atol=1e-6):
        row = int(np.argmax(np.abs(found.sum(axis=1) - 1.0)))
        raise InputError(f"proba, row {row}: the probabilities sum to {found[row].sum():g}, not to 1.")
    return np.clip(found, 0.0, 1.0)


def _known_classes(labels: list[Any], classes: Any, size: int) -> list[Any]:
    """The classes in the order of the columns of probabilities."""
    present = list(dict.fromkeys(labels))
    try:
        given = sorted(present) if classes is None else label_values(classes).tolist()
    except TypeError:
        raise InputError("y: the labels cannot be sorted. Pass classes=, in the order of the columns.") from None
    if len(given) != size:
        raise InputError(
            f"proba has probabilities of {size} classes, but there are {len(given)}: {listed(given)}. Pass classes= "
            "with the labels in the order of the columns, or label= with the probabilities of one class."
        )
    unknown = [each for each in present if each not in given]
    if unknown:
        raise InputError(f"y has the label {listed(unknown)}, which is not among the classes {listed(given)}.")
    return given
