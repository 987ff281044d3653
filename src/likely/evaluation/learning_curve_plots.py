"""Learning curves as a matplotlib figure: one row of panels for each score, one column for each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likely.errors import InputError
from likely.model.rendering import new_axes
from likely.typing import AnyArray

AXIS_LABELS = {"size": "training rows", "labeled": "labeled rows", "missing": "proportion of values deleted"}
MOST_TICKS = 12  # with more points than this, ticks are at powers of ten


def draw_curves(
    curves: Any, ax: Any, scores: Mapping[str, str], columns: Sequence[tuple[str, dict[str, float]]]
) -> AnyArray:
    """Draw all panels of a comparison; `scores` maps scores to their labels, and `columns` are titles and settings."""
    panels = _panels(ax, len(scores), len(columns))
    for row, (score, label) in zip(panels, scores.items(), strict=True):
        for panel, (_, setting) in zip(row, columns, strict=True):
            _draw(curves, panel, score, setting)
        row[0].set_ylabel(label)
        _scale_scores(row, score, [getattr(point, score).mean for point in curves.points])
    for panel, (title, _) in zip(panels[0], columns, strict=True):
        panel.set_title(title, fontsize="medium")
    for panel in panels[-1]:
        panel.set_xlabel(AXIS_LABELS[curves.along])
    panels[0, -1].legend(frameon=False)
    return panels


def _draw(curves: Any, panel: Any, score: str, setting: dict[str, float]) -> None:
    """One panel: a line and a band of one standard error for each model."""
    for number, name in enumerate(curves.models):
        points = curves.curve(name, **setting)
        at = np.array([point.at(curves.along) for point in points])
        mean = np.array([getattr(point, score).mean for point in points])
        standard_error = np.array([getattr(point, score).standard_error for point in points])
        colour = f"C{number % 10}"
        panel.plot(at, mean, color=colour, marker="o", markersize=4, linewidth=1.6, label=_escaped(name))
        least = 0.0 if score == "error" else 1e-3 * mean  # positive on a logarithmic scale
        low = np.maximum(mean - standard_error, least)
        panel.fill_between(at, low, mean + standard_error, color=colour, alpha=0.2, linewidth=0)
    for verdict in curves.verdicts:
        if verdict.score == score and verdict.is_of(setting):
            for place in verdict.crossings:
                panel.axvline(place, color="0.5", linestyle=":", linewidth=1.0, zorder=0)
    _scale_axis(panel, curves.along, at)


def _panels(ax: Any, rows: int, columns: int) -> AnyArray:
    """Axes to draw in, (rows, columns)."""
    if ax is None:
        size = (1.6 + 4.2 * columns, 0.8 + 2.9 * rows)
        return new_axes(rows, columns, figsize=size, squeeze=False, sharex=True, sharey="row")
    panels = np.array(ax, dtype=object).reshape(-1)
    if len(panels) != rows * columns:
        raise InputError(
            f"ax has {len(panels)} Axes, and there are {rows * columns} panels: {rows} for the scores times {columns} "
            'for the settings. score="log_loss" draws one score.'
        )
    return panels.reshape(rows, columns)


def _scale_axis(panel: Any, along: str, at: AnyArray) -> None:
    """Ticks at the points; rows and labels on a logarithmic scale."""
    panel.grid(axis="y", color="0.9", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    if along != "missing":
        panel.set_xscale("log")
        if len(at) <= MOST_TICKS:
            panel.set_xticks(at, [f"{place:.0f}" for place in at])
            panel.minorticks_off()


def _scale_scores(row: Any, score: str, means: Sequence[float]) -> None:
    """The same scale for a row of panels: errors from 0, log-losses on a logarithmic scale."""
    if score == "error":
        for panel in row:
            panel.set_ylim(bottom=0.0)
        return
    from matplotlib.ticker import FuncFormatter, LogLocator  # deferred: matplotlib is optional

    low = 0.7 * float(np.nanmin(means))
    for panel in row:
        panel.set_yscale("log")
        panel.set_ylim(bottom=low)
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if np.nanmax(means) < 1e3 * low else (1.0,)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.minorticks_off()


def _escaped(name: str) -> str:
    """A name for a legend: dollars do not start a formula, and a leading underscore does not hide the entry."""
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
