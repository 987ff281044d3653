"""Learning curves of several models as plain data: their points, where they cross, as text and as a picture."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.special

from likely.errors import InputError, check_choice
from likely.typing import AnyArray

CLEAR = 0.95  # the level of the interval, by Student's t, that a clear lead keeps out of 0
SCORES = {"log_loss": "log-loss", "error": "error"}
TICKS = 12  # beyond so many points, ticks stand at powers of ten
AXES = ("size", "labelled", "missing")
UNITS = {"size": "training rows", "labelled": "labelled rows", "missing": "share of cells deleted"}


@dataclass(frozen=True, slots=True)
class Score:
    """A score over the repeats: its mean, the standard error of that, and the value of each, NaN where a fit failed."""

    mean: float
    standard_error: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Score:
        """The mean of the repeats that have a value."""
        given = tuple(float(value) for value in values)
        return cls(*_mean(np.array(given)), given)


@dataclass(frozen=True, slots=True)
class Point:
    """One model at one size of the training rows, share of missing cells, and share or number of labels.

    `labels` is how many of the rows had a label. `reason` is why the first of the `failures` could not be fitted.
    """

    model: str
    size: int
    missing: float
    labelled: float
    labels: int
    log_loss: Score
    error: Score
    failures: int = 0
    reason: str | None = None

    def at(self, along: str) -> float:
        """Where the point stands on an axis."""
        return float(self.labels if along == "labelled" else getattr(self, along))


@dataclass(frozen=True, slots=True)
class Lead:
    """By how much the first of two models has the lower score: the mean over the repeats, each compared with itself.

    `winner` is the model with the clearly lower score: the 95% interval of the lead, by Student's t, leaves out 0. It
    is None where neither has it, and always with one repeat.
    """

    at: float
    lead: float
    standard_error: float
    winner: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two models along an axis, the rest given: who leads where, and where the curves cross.

    Of `size`, `missing` and `labelled`, the one that is the axis is None. Curves cross between two points where
    different models clearly lead; `crossings` are the places, between points on straight lines, over the logarithm of
    rows and labels.
    """

    score: str
    first: str
    second: str
    along: str
    size: int | None
    missing: float | None
    labelled: float | None
    leads: tuple[Lead, ...]
    crossings: tuple[float, ...]

    def __str__(self) -> str:
        word = SCORES[self.score]
        parts = [f"{name} has the lower {word} {where}" for name, where in self._runs()]
        if not parts:
            parts = [f"neither has a clearly lower {word}"]
        if self.crossings:
            *before, last = (self._number(place) for place in self.crossings)
            places = f"{', '.join(before)} and {last}" if before else last
            parts.append(f"the curves cross at about {places} {self._unit()}")
        return "; ".join([*parts, self._end()])

    def _end(self) -> str:
        """How far apart they are at the end of the axis."""
        end = self.leads[-1]
        where = f"with {self._described(end.at)}"
        if np.isnan(end.lead):
            return f"{where} there is nothing to compare"
        size = f"{abs(end.lead):.4f}" + ("" if np.isnan(end.standard_error) else f" ± {end.standard_error:.4f}")
        return f"{where} they differ by {size}" if end.winner is None else f"{where} {end.winner} leads by {size}"

    def _runs(self) -> list[tuple[str, str]]:
        """Who clearly leads, and over which points, one run after another."""
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
        return f"{self._number(place)} {self._unit()}"

    def _unit(self) -> str:
        return {"size": "rows", "labelled": "labels", "missing": "of the cells deleted"}[self.along]

    def _number(self, place: float) -> str:
        return f"{100.0 * place:.3g}%" if self.along == "missing" else f"{place:.0f}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Learning curves of models that were fitted to the same rows and judged by the same rows. `str()` renders it.

    `points` has one for each model, size, share of missing cells and share of labels. `verdicts` compare the first
    model with each of the others. `notes` tell how models were helped, what they warned of, and why some could not be
    fitted. Standard errors are over the repeats, which share rows: they tell how much the draw matters, not how much
    another table would differ.
    """

    models: tuple[str, ...]
    sizes: tuple[int, ...]
    missing: tuple[float, ...]
    labelled: tuple[float, ...]
    repeats: int
    judged: int  # rows that models are judged by, in each repeat
    points: tuple[Point, ...]
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]

    @property
    def along(self) -> str:
        """The axis of the curves: the size, or where there is only one, the labels or the missing cells."""
        return _along(self.points)

    def records(self) -> list[dict[str, Any]]:
        """One plain dictionary for each point: the rows of a data frame."""
        return [_record(point) for point in self.points]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain dictionaries, tuples, numbers and text."""
        return asdict(self)

    def curve(self, model: str, **setting: float) -> tuple[Point, ...]:
        """The points of a model, in the order of the axis; `size`, `missing` and `labelled` narrow them down."""
        check_choice("model", model, self.models)
        for name, value in setting.items():
            check_choice("axis", name, AXES)
            known = {getattr(point, name) for point in self.points}
            if value not in known:
                raise InputError(f"{name}={value!r} was not tried. Tried: {', '.join(map(str, sorted(known)))}.")
        chosen = (
            point
            for point in self.points
            if point.model == model and all(getattr(point, name) == value for name, value in setting.items())
        )
        return tuple(sorted(chosen, key=lambda point: point.at(self.along)))

    def __str__(self) -> str:
        lines = []
        for setting in settings(self.points):
            title = _setting_words(setting, self._varied())
            lines += [*([title, ""] if title else []), *self._table(setting), ""]
            lines += [
                f"{SCORES[v.score]}, {v.first} against {v.second}: {v}." for v in self.verdicts if _is_of(v, setting)
            ]
            lines.append("")
        lines.append(
            f"Means of {self.repeats} repeats ± their standard errors, on {self.judged} rows that were not learnt. "
            "Who has the lower score is told where the 95% interval of the lead leaves out 0."
        )
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _varied(self) -> set[str]:
        """The axes that have several values."""
        return {name for name, values in self._values().items() if len(values) > 1}

    def _values(self) -> dict[str, tuple[float, ...]]:
        return {"size": self.sizes, "labelled": self.labelled, "missing": self.missing}

    def _table(self, setting: dict[str, float]) -> list[str]:
        """Both scores of all models, one line for each place on the axis."""
        wide = max(18, *(len(name) + 2 for name in self.models))
        curves = [self.curve(name, **setting) for name in self.models]
        lines = []
        for score, word in SCORES.items():
            lines.append(f"{word:<16}" + "".join(f"{name:>{wide}}" for name in self.models))
            for points in zip(*curves, strict=True):
                cells = "".join(f"{_cell(getattr(point, score)):>{wide}}" for point in points)
                lines.append(f"{_place(points[0], self.along):<16}{cells}")
            lines.append("")
        return lines[:-1]

    def plot(self, ax: Any = None, score: str | None = None) -> Any:
        """Draw the curves: an array of matplotlib's Axes, one row for each score, one column for each setting.

        A line is the mean of a model, its band one standard error either way; a dotted line is where curves cross.
        Sizes and log-losses are on logarithmic scales. `score` is "log_loss" or "error", None both. `ax` are Axes to
        draw in: one, or as many as there are panels.
        """
        if score is not None:
            check_choice("score", score, SCORES)
        shown = [*SCORES] if score is None else [score]
        columns = settings(self.points)
        panels = _panels(ax, len(shown), len(columns))
        for row, name in zip(panels, shown, strict=True):
            for panel, setting in zip(row, columns, strict=True):
                self._draw(panel, name, setting)
                if name == shown[0]:
                    panel.set_title(_setting_words(setting, self._varied()), fontsize="medium")
            row[0].set_ylabel(SCORES[name])
            _limit(row, name, [getattr(point, name).mean for point in self.points])
        for panel in panels[-1]:
            panel.set_xlabel(UNITS[self.along])
        panels[0, -1].legend(frameon=False)
        return panels

    def _draw(self, panel: Any, score: str, setting: dict[str, float]) -> None:
        """One panel: a line and a band for each model."""
        for number, name in enumerate(self.models):
            points = self.curve(name, **setting)
            at = np.array([point.at(self.along) for point in points])
            mean, spread = (
                np.array([getattr(getattr(point, score), part) for point in points])
                for part in ("mean", "standard_error")
            )
            colour = f"C{number % 10}"
            panel.plot(at, mean, color=colour, marker="o", markersize=4, linewidth=1.6, label=_escaped(name))
            low = np.maximum(
                mean - spread, 0.0 if score == "error" else 1e-3 * mean
            )  # a logarithm needs a number above 0
            panel.fill_between(at, low, mean + spread, color=colour, alpha=0.2, linewidth=0)
        for verdict in self.verdicts:
            if verdict.score == score and _is_of(verdict, setting):
                for place in verdict.crossings:
                    panel.axvline(place, color="0.5", linestyle=":", linewidth=1.0, zorder=0)
        _scale(panel, self.along, at)


# ------------------------------------------------------------------------------------------------------------ judging
def settings(points: Sequence[Point]) -> list[dict[str, float]]:
    """What is given along a curve: the values of the two other axes, in the order of the points."""
    others = [name for name in AXES if name != _along(points)]
    found = dict.fromkeys(tuple(getattr(point, name) for name in others) for point in points)
    return [dict(zip(others, values, strict=True)) for values in found]


def verdicts(models: Sequence[str], points: Sequence[Point]) -> tuple[Verdict, ...]:
    """The first model against each of the others, for every setting and both scores."""
    along = _along(points)
    found = []
    for setting, other, score in itertools.product(settings(points), models[1:], SCORES):
        chosen = [point for point in points if all(getattr(point, name) == value for name, value in setting.items())]
        chosen.sort(key=lambda point: point.at(along))
        pairs = zip(
            (point for point in chosen if point.model == models[0]),
            (point for point in chosen if point.model == other),
            strict=True,
        )
        leads = tuple(_lead(one, two, score, along) for one, two in pairs)
        given: dict[str, Any] = dict.fromkeys(AXES) | setting
        found.append(Verdict(score, models[0], other, along, leads=leads, crossings=crossings(leads, along), **given))
    return tuple(found)


def crossings(leads: Sequence[Lead], along: str) -> tuple[float, ...]:
    """Where curves cross: between two points where different models clearly lead, at the middle zero of the lead."""
    known = [lead for lead in leads if not np.isnan(lead.lead)]
    clear = [i for i, lead in enumerate(known) if lead.winner is not None]
    found = []
    for start, stop in itertools.pairwise(clear):
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
    """Where a straight line between two leads is 0; over the logarithm of rows and labels."""
    share = one.lead / (one.lead - two.lead)
    if along == "missing":
        return one.at + share * (two.at - one.at)
    return float(one.at * (two.at / one.at) ** share)


def _lead(one: Point, two: Point, score: str, along: str) -> Lead:
    difference = np.array(getattr(two, score).values) - np.array(getattr(one, score).values)
    mean, spread = _mean(difference)
    reach = scipy.special.stdtrit(np.sum(~np.isnan(difference)) - 1, 0.5 + 0.5 * CLEAR)
    clear = abs(mean) > reach * spread  # never where one of them is NaN
    return Lead(one.at(along), mean, spread, (one.model if mean > 0.0 else two.model) if clear else None)


def _mean(values: AnyArray) -> tuple[float, float]:
    """The mean of what is known, and its standard error, NaN for fewer than two."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.nan, np.nan
    spread = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else np.nan
    return float(known.mean()), spread


def _along(points: Sequence[Point]) -> str:
    """The first axis that has several values; the size where none has."""
    return next((name for name in AXES if len({getattr(point, name) for point in points}) > 1), "size")


def _is_of(verdict: Verdict, setting: dict[str, float]) -> bool:
    return all(getattr(verdict, name) == value for name, value in setting.items())


# ----------------------------------------------------------------------------------------------------------- rendering
def _record(point: Point) -> dict[str, Any]:
    return {
        "model": point.model,
        "size": point.size,
        "missing": point.missing,
        "labelled": point.labelled,
        "labels": point.labels,
        "log_loss": point.log_loss.mean,
        "log_loss_standard_error": point.log_loss.standard_error,
        "error": point.error.mean,
        "error_standard_error": point.error.standard_error,
        "repeats": len(point.log_loss.values) - point.failures,
        "failures": point.failures,
        "reason": point.reason,
    }


def _cell(score: Score) -> str:
    if np.isnan(score.mean):
        return "none"
    return f"{score.mean:.4f}" + ("" if np.isnan(score.standard_error) else f" ± {score.standard_error:.4f}")


def _place(point: Point, along: str) -> str:
    if along == "missing":
        return f"{100.0 * point.missing:.3g}% deleted"
    return f"{point.labels} labels" if along == "labelled" else f"{point.size} rows"


def _setting_words(setting: dict[str, float], varied: set[str]) -> str:
    """What is given along a curve, as far as it varies between curves or is not what one expects."""
    words = []
    size, labelled, missing = (setting.get(name) for name in AXES)
    if size is not None:
        words.append(f"{size:g} training rows")
    if labelled is not None and ("labelled" in varied or labelled != 1.0):
        share = "all labels" if labelled == 1.0 else f"{100.0 * labelled:.3g}% of the labels"
        words.append(f"{labelled:g} labels" if labelled > 1.0 else share)
    if missing is not None and ("missing" in varied or missing):
        words.append(f"{100.0 * missing:.3g}% of the cells deleted" if missing else "no cells deleted")
    return ", ".join(words)


def _panels(ax: Any, rows: int, columns: int) -> AnyArray:
    """Axes to draw in, (rows, columns)."""
    if ax is None:
        from matplotlib import pyplot  # not loaded by `import likely`

        size = (1.6 + 4.2 * columns, 0.8 + 2.9 * rows)
        return pyplot.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey="row", layout="tight")[1]
    panels = np.array(ax, dtype=object).reshape(-1)
    if len(panels) != rows * columns:
        raise InputError(
            f"ax has {len(panels)} Axes, and there are {rows * columns} panels: {rows} for the scores times {columns} "
            'for the settings. Hint: score="log_loss" draws one score.'
        )
    return panels.reshape(rows, columns)


def _scale(panel: Any, along: str, at: AnyArray) -> None:
    """Ticks where there are points; rows and labels on a logarithmic scale."""
    panel.grid(axis="y", color="0.9", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    if along != "missing":
        panel.set_xscale("log")
        if len(at) <= TICKS:
            panel.set_xticks(at, [f"{place:.0f}" for place in at])
            panel.minorticks_off()


def _limit(row: Any, score: str, means: Sequence[float]) -> None:
    """The scale of a score, the same for a row of panels: errors from 0 on, log-losses on a logarithmic scale."""
    if score == "error":
        for panel in row:
            panel.set_ylim(bottom=0.0)
        return
    from matplotlib.ticker import FuncFormatter, LogLocator

    low = 0.7 * float(np.nanmin(means))
    for panel in row:
        panel.set_yscale("log")
        panel.set_ylim(bottom=low)
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if np.nanmax(means) < 1e3 * low else (1.0,)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.minorticks_off()


def _escaped(name: str) -> str:
    """A name as matplotlib shows it: no formula between dollars, and no leading underscore, which hides it."""
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
