"""Learning curves as plain data: points, pairwise verdicts, crossings, and their rendering as text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.special

from likely.errors import InputError, check_choice
from likely.evaluation.learning_curve_plots import draw_curves
from likely.evaluation.scoring import is_worse, mean_and_error
from likely.model.rendering import RenderedResult, TextTable, short_names, to_frame, with_error
from likely.typing import AnyArray

CONFIDENCE = 0.95  # level of the confidence intervals of differences
SCORES = {"log_loss": "log-loss", "error": "error"}
UNITS = {"size": "rows", "labeled": "labels", "missing": "of the cells deleted"}
AXES = tuple(UNITS)


@dataclass(frozen=True, slots=True)
class Score:
    """A score over the repeats.

    Attributes
    ----------
    mean : float
        Mean over the repeats whose fit succeeded.
    standard_error : float
        Standard error of the mean; NaN for fewer than two repeats.
    values : tuple of float
        The value of each repeat, NaN where the fit failed.
    """

    mean: float
    standard_error: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Score:
        """Summarize the values of all repeats.

        Parameters
        ----------
        values : iterable of float
            The value of each repeat, NaN where the fit failed.

        Returns
        -------
        Score
            Mean, standard error and values.
        """
        given = tuple(float(value) for value in values)
        return cls(*mean_and_error(np.array(given)), given)


@dataclass(frozen=True, slots=True)
class Point:
    """Scores of one model at one training set size, proportion of missing values, and number of labels.

    Attributes
    ----------
    model : str
        Name of the model.
    size : int
        Number of training rows.
    missing : float
        Proportion of deleted values.
    labeled : float
        Proportion or number of labeled training rows, as requested.
    labels : int
        Number of training rows that had a label.
    log_loss, error : Score
        Log-loss and error rate on the test rows.
    failures : int
        Number of repeats whose fit failed.
    reason : str or None
        Error message of the first failure.
    """

    model: str
    size: int
    missing: float
    labeled: float
    labels: int
    log_loss: Score
    error: Score
    failures: int = 0
    reason: str | None = None

    def at(self, along: str) -> float:
        """Coordinate of the point on an axis.

        Parameters
        ----------
        along : {'size', 'labeled', 'missing'}
            The axis. Points on the axis 'labeled' have the number of labels as coordinate.

        Returns
        -------
        float
            The coordinate.
        """
        return float(self.labels if along == "labeled" else getattr(self, along))


@dataclass(frozen=True, slots=True)
class Lead:
    """Paired difference between the scores of two models at one point of an axis.

    Attributes
    ----------
    at : float
        Coordinate on the axis.
    lead : float
        Score of the second model minus score of the first, averaged over the repeats.
    standard_error : float
        Standard error of the mean difference.
    winner : str or None
        The better model, where the 95% confidence interval of the difference (Student's t) excludes zero; else None.
    """

    at: float
    lead: float
    standard_error: float
    winner: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of two models along an axis. `str()` renders it as a sentence.

    Attributes
    ----------
    score : {'log_loss', 'error'}
        The score that is compared.
    first, second : str
        Names of the models.
    along : {'size', 'labeled', 'missing'}
        The axis of the curves.
    size, missing, labeled : float or None
        The setting of the curves; None for the axis itself.
    leads : tuple of Lead
        The difference at each point of the axis.
    crossings : tuple of float
        Where the curves cross: between two points at which different models are better, by linear interpolation, over
        the logarithm of rows and labels.
    """

    score: str
    first: str
    second: str
    along: str
    size: int | None
    missing: float | None
    labeled: float | None
    leads: tuple[Lead, ...]
    crossings: tuple[float, ...]

    def __str__(self) -> str:
        score = SCORES[self.score]
        parts = [f"{name} has the lower {score} {where}" for name, where in self._runs()]
        if not parts:
            parts = [f"neither has a significantly lower {score}"]
        if self.crossings:
            *before, last = (self._number(place) for place in self.crossings)
            places = f"{', '.join(before)} and {last}" if before else last
            parts.append(f"the curves cross at about {places} {UNITS[self.along]}")
        return "; ".join([*parts, self._last_difference()])

    def is_of(self, setting: dict[str, float]) -> bool:
        """Whether the curves have these values of the other axes.

        Parameters
        ----------
        setting : dict of str to float
            Values of 'size', 'labeled' or 'missing'.

        Returns
        -------
        bool
            Whether all values agree.
        """
        return _has(self, setting)

    def _last_difference(self) -> str:
        """The difference at the end of the axis."""
        end = self.leads[-1]
        where = f"with {self._described(end.at)}"
        if np.isnan(end.lead):
            return f"{where} there is nothing to compare"
        size = with_error(abs(end.lead), end.standard_error)
        return f"{where} they differ by {size}" if end.winner is None else f"{where} {end.winner} leads by {size}"

    def _runs(self) -> list[tuple[str, str]]:
        """Runs of consecutive points with the same winner: its name, and where."""
        found = []
        for winner, group in itertools.groupby(self.leads, lambda lead: lead.winner):
            run = list(group)
            low, high = run[0].at, run[-1].at
            if winner is None:
                continue
            if len(run) == len(self.leads) > 1:
                where = f"everywhere, from {self._number(low)} to {self._described(high)}"
            elif low == high:
                where = f"with {self._described(low)}"
            elif low == self.leads[0].at:
                where = f"up to {self._described(high)}"
            elif high == self.leads[-1].at:
                where = f"from {self._described(low)} on"
            else:
                where = f"from {self._number(low)} to {self._described(high)}"
            found.append((winner, where))
        return found

    def _described(self, place: float) -> str:
        return f"{self._number(place)} {UNITS[self.along]}"

    def _number(self, place: float) -> str:
        return f"{100.0 * place:.3g}%" if self.along == "missing" else f"{place:.0f}"


@dataclass(frozen=True, slots=True)
class Comparison(RenderedResult):
    """Learning curves of models that were fitted to the same rows.

    `str()` renders them as text, and notebooks show them as tables.

    Standard errors are over the repeats, which share rows: they measure the variation due to the random split, not the
    variation between tables.

    Attributes
    ----------
    models : tuple of str
        Names of the models.
    sizes : tuple of int
        Numbers of training rows.
    missing : tuple of float
        Proportions of deleted values.
    labeled : tuple of float
        Proportions or numbers of labeled training rows.
    repeats : int
        Number of random splits.
    judged : int
        Number of test rows in each repeat.
    points : tuple of Point
        Scores, for each model, size, proportion of missing values and proportion of labels.
    verdicts : tuple of Verdict
        The first model against each of the others, for each score and setting.
    notes : tuple of str
        Imputed values, use of unlabeled rows, failed fits and warnings, by model; and the number of rows that were
        drawn, where X is a source of more rows.
    baseline : tuple of Point
        Scores of the class proportions of the labeled training rows, for each size and proportion of labels, on the
        same test rows.
    library : str or None
        Library of the frame that `to_frame` returns: that of X. None is pandas, or pyarrow if pandas is not installed.

    See Also
    --------
    compare : Returns this object.
    """

    models: tuple[str, ...]
    sizes: tuple[int, ...]
    missing: tuple[float, ...]
    labeled: tuple[float, ...]
    repeats: int
    judged: int
    points: tuple[Point, ...]
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    baseline: tuple[Point, ...]
    library: str | None = None

    @property
    def along(self) -> str:
        """Axis of the curves: 'size', or if there is only one size, 'labeled' or 'missing'."""
        return _axis(self.points)

    def records(self) -> list[dict[str, Any]]:
        """All points as dictionaries.

        Returns
        -------
        list of dict
            One dictionary per point, with means and standard errors of both scores, and those of the class proportions.
        """
        return [_record(point, self._baseline_of(point)) for point in self.points]

    def to_frame(self) -> Any:
        """All points as a frame.

        Returns
        -------
        frame
            One row per point, with means and standard errors of both scores, and those of the class proportions; a
            frame of the library of X, or of pandas if X is not a frame.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import compare
        >>> result = compare(*load_iris(return_X_y=True), sizes=[30], repeats=2, random_state=0)
        >>> result.to_frame()[["model", "size", "failures"]].values.tolist()
        [['generative', 30, 0], ['discriminative', 30, 0]]
        """
        records = self.records()
        return to_frame({name: [record[name] for record in records] for name in records[0]}, self.library)

    def _baseline_of(self, point: Point) -> Point:
        """The scores of the class proportions with the same training rows."""
        return next(each for each in self.baseline if (each.size, each.labeled) == (point.size, point.labeled))

    def to_dict(self) -> dict[str, Any]:
        """The whole comparison as dictionaries, tuples, numbers and text.

        Returns
        -------
        dict
            One entry per attribute.
        """
        return asdict(self)

    def curve(self, model: str, **setting: float) -> tuple[Point, ...]:
        """Points of one model, in the order of the axis.

        Parameters
        ----------
        model : str
            Name of the model.
        **setting : float
            Values of `size`, `missing` or `labeled`; only points with these values are returned.

        Returns
        -------
        tuple of Point
            The points.
        """
        check_choice("model", model, self.models)
        for name, value in setting.items():
            check_choice("axis", name, AXES)
            known = {getattr(point, name) for point in self.points}
            if value not in known:
                raise InputError(f"{name}={value!r} was not tried. Tried: {', '.join(map(str, sorted(known)))}.")
        return _curve(self.points, model, setting, self.along)

    def plot(self, ax: Any = None, score: str | None = None) -> AnyArray:
        """Draw the learning curves with matplotlib.

        Lines are means, bands are one standard error on either side, and dotted vertical lines are crossings. Training
        set sizes and log-losses are on logarithmic scales.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of Axes, default=None
            Axes to draw in, one for each panel. None creates a figure.
        score : {'log_loss', 'error'}, default=None
            The score to draw. None draws both.

        Returns
        -------
        ndarray of Axes of shape (n_scores, n_settings)
            The panels.

        Raises
        ------
        likely.errors.MissingExtraError
            If `ax` is None and matplotlib is not installed.
        """
        if score is not None:
            check_choice("score", score, SCORES)
        shown = SCORES if score is None else {score: SCORES[score]}
        columns = [(setting_text(setting, self._varied()), setting) for setting in settings(self.points)]
        return draw_curves(self, ax, shown, columns)

    def _parts(self) -> list[str | TextTable]:
        parts: list[str | TextTable] = []
        for setting in settings(self.points):
            parts += [setting_text(setting, self._varied()), *self._tables(setting)]
            sentences = [
                f"{SCORES[v.score]}, {v.first} against {v.second}: {v}." for v in self.verdicts if v.is_of(setting)
            ]
            parts.append("\n".join([*sentences, *self._worse(setting)]))
        about = (
            f"Mean of {self.repeats} repeats ± standard error, on {self.judged} held-out rows. A model is called better"
            " only where the 95% confidence interval of the difference excludes zero."
        )
        return [*parts, "\n".join([about, *(f"note: {note}" for note in self.notes)])]

    def _worse(self, setting: dict[str, float]) -> list[str]:
        """Sentences on models whose log-loss is above that of the class proportions."""
        found = []
        for name in self.models:
            points = self.curve(name, **setting)
            where = [each for each in points if is_worse(each.log_loss.mean, self._baseline_of(each).log_loss.mean)]
            if where:
                places = ", ".join(_place(each, self.along) for each in where)
                found.append(f"{name} is worse than predicting the class proportions with {places} (log-loss).")
        return found

    def _varied(self) -> set[str]:
        """The axes that have several values."""
        values = {"size": self.sizes, "labeled": self.labeled, "missing": self.missing}
        return {name for name, tried in values.items() if len(tried) > 1}

    def _tables(self, setting: dict[str, float]) -> list[TextTable]:
        """Each score of all models and of the class proportions, one line for each point of the axis."""
        curves = [self.curve(name, **setting) for name in self.models]
        names = [*short_names(self.models), "class proportions"]
        found = []
        for score, word in SCORES.items():
            rows = []
            for points in zip(*curves, strict=True):
                scores = [getattr(point, score) for point in (*points, self._baseline_of(points[0]))]
                shown = (with_error(each.mean, each.standard_error) or "none" for each in scores)
                rows.append([_place(points[0], self.along), *shown])
            found.append(TextTable((word, *names), rows))
        return found


def settings(points: Sequence[Point]) -> list[dict[str, float]]:
    """Settings of the curves: the values of the two axes other than that of the curves, in the order of the points."""
    others = [name for name in AXES if name != _axis(points)]
    found = dict.fromkeys(tuple(getattr(point, name) for name in others) for point in points)
    return [dict(zip(others, values, strict=True)) for values in found]


def _curve(points: Sequence[Point], model: str, setting: Mapping[str, float], along: str) -> tuple[Point, ...]:
    """The points of one model with this setting, in the order of an axis."""
    found = (point for point in points if point.model == model and _has(point, setting))
    return tuple(sorted(found, key=lambda point: point.at(along)))


def _has(part: Point | Verdict, setting: Mapping[str, float]) -> bool:
    """Whether a point or a verdict has these values of axes."""
    return all(getattr(part, name) == value for name, value in setting.items())


def verdicts(models: Sequence[str], points: Sequence[Point]) -> tuple[Verdict, ...]:
    """The first model against each of the others, for every setting and both scores."""
    along = _axis(points)
    found = []
    for setting, other, score in itertools.product(settings(points), models[1:], SCORES):
        curves = (_curve(points, model, setting, along) for model in (models[0], other))
        leads = tuple(_lead(one, two, score, along) for one, two in zip(*curves, strict=True))
        given: dict[str, Any] = dict.fromkeys(AXES) | setting
        found.append(Verdict(score, models[0], other, along, leads=leads, crossings=crossings(leads, along), **given))
    return tuple(found)


def crossings(leads: Sequence[Lead], along: str) -> tuple[float, ...]:
    """Where curves cross: between two points with different winners, at the middle zero of the difference."""
    known = [lead for lead in leads if not np.isnan(lead.lead)]
    decided = [i for i, lead in enumerate(known) if lead.winner is not None]
    found = []
    for start, stop in itertools.pairwise(decided):
        if known[start].winner == known[stop].winner:
            continue
        zeros = [
            _zero(one, two, along)
            for one, two in itertools.pairwise(known[start : stop + 1])
            if (one.lead > 0.0) != (two.lead > 0.0)
        ]
        found.append(zeros[len(zeros) // 2])
    return tuple(found)


def _zero(one: Lead, two: Lead, along: str) -> float:
    """Zero of the straight line between two differences; over the logarithm of rows and labels."""
    fraction = one.lead / (one.lead - two.lead)
    if along == "missing":
        return one.at + fraction * (two.at - one.at)
    return float(one.at * (two.at / one.at) ** fraction)


def _lead(one: Point, two: Point, score: str, along: str) -> Lead:
    """Paired t-interval of the difference between two models."""
    difference = np.array(getattr(two, score).values) - np.array(getattr(one, score).values)
    mean, standard_error = mean_and_error(difference)
    quantile = scipy.special.stdtrit(np.sum(~np.isnan(difference)) - 1, 0.5 + 0.5 * CONFIDENCE)
    significant = abs(mean) > quantile * standard_error  # False where either is NaN
    return Lead(one.at(along), mean, standard_error, (one.model if mean > 0.0 else two.model) if significant else None)


def _axis(points: Sequence[Point]) -> str:
    """The first axis that has several values; 'size' where none has."""
    return next((name for name in AXES if len({getattr(point, name) for point in points}) > 1), "size")


def _record(point: Point, baseline: Point) -> dict[str, Any]:
    found = {name: getattr(point, name) for name in ("model", "size", "missing", "labeled", "labels")}
    for score in SCORES:
        own: Score = getattr(point, score)
        found |= {score: own.mean, f"{score}_standard_error": own.standard_error}
    found |= {f"baseline_{score}": getattr(baseline, score).mean for score in SCORES}
    repeats = len(point.log_loss.values) - point.failures
    return found | {"repeats": repeats, "failures": point.failures, "reason": point.reason}


def _place(point: Point, along: str) -> str:
    if along == "missing":
        return f"{100.0 * point.missing:.3g}% deleted"
    return f"{point.labels} labels" if along == "labeled" else f"{point.size} rows"


def setting_text(setting: dict[str, float], varied: set[str]) -> str:
    """A setting as a title: the values that vary between curves or differ from the default."""
    words = []
    size, labeled, missing = (setting.get(name) for name in AXES)
    if size is not None:
        words.append(f"{size:g} training rows")
    if labeled is not None and ("labeled" in varied or labeled != 1.0):
        proportion = "all labels" if labeled == 1.0 else f"{100.0 * labeled:.3g}% of the labels"
        words.append(f"{labeled:g} labels" if labeled > 1.0 else proportion)
    if missing is not None and ("missing" in varied or missing):
        words.append(f"{100.0 * missing:.3g}% of the cells deleted" if missing else "no cells deleted")
    return ", ".join(words)
