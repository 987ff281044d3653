"""Reliability diagrams: accuracy against confidence, one panel per table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.quality.measures import Results, calibration_error, reliability
from benchmarks.quality.validation import Result

COLUMNS = 4
PANEL = 3.2  # inches


def draw(results: Results, models: list[str], path: Path) -> None:
    """Write the diagrams of some models as an image."""
    columns = min(COLUMNS, len(results))
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(PANEL * columns, PANEL * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for panel, (table, by_model) in zip(panels, results.items(), strict=False):
        lowest = 1.0
        for model in models:
            result = by_model[model]
            if isinstance(result, Result):
                confidence, accuracy, _ = reliability(result)
                panel.plot(confidence, accuracy, marker=".", label=f"{model} ({calibration_error(result):.3f})")
                lowest = min(lowest, confidence.min(), accuracy.min())
        panel.plot([lowest, 1], [lowest, 1], color="grey", linestyle=":", linewidth=1)
        panel.set_title(table, fontsize=10)
        panel.legend(fontsize=7)
    for panel in panels[len(results) :]:
        panel.set_visible(False)
    figure.supxlabel("confidence: probability of the predicted class")
    figure.supylabel("accuracy")
    figure.savefig(path, dpi=120)
