"""Results as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.quality.measures import BINS, DRAWS, Results, calibration_error, difference, ranks, values
from benchmarks.quality.validation import Failure, Result

MARGIN = 0.01
SECONDS = "Fit time, seconds"
# Each with its digits in the tables by table.
MEASURES: dict[str, tuple[Callable[[Result], float], int]] = {
    "Log-loss": (lambda result: result.mean_loss, 4),
    "Accuracy": (lambda result: result.accuracy, 3),
    "Expected calibration error": (calibration_error, 3),
    SECONDS: (lambda result: result.fit_seconds, 2),
}


def markdown(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A table with aligned columns; all but the first are right-aligned."""
    widths = [max(3, *(len(row[i]) for row in [header, *rows])) for i in range(len(header))]
    yield "| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(header, widths, strict=True)) + " |"
    yield "| " + " | ".join("---" if i == 0 else "---:" for i in range(len(header))) + " |"
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        yield "| " + " | ".join([f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)]) + " |"


def listed(items: list[str]) -> Iterator[str]:
    """A list after an empty line, if there is any item."""
    if items:
        yield ""
        yield from (f"- {item}" for item in items)


def overview(results: Results, models: list[str]) -> Iterator[str]:
    """One row per model: means over tables, sorted by mean rank."""
    yield "### Summary"
    yield ""
    order = ranks(values(results, models, MEASURES["Log-loss"][0]))
    means = {
        title: [_number(value, 4 if title != SECONDS else 2) for value in values(results, models, measure).mean(axis=0)]
        for title, (measure, _) in MEASURES.items()
    }
    first = (order == order.min(axis=1, keepdims=True)).sum(axis=0)
    rows = [
        [models[j], f"{order[:, j].mean():.2f}", f"{first[j]}", *(column[j] for column in means.values())]
        for j in np.argsort(order.mean(axis=0), kind="stable")
    ]
    yield from markdown(["model", "mean rank", "first", *(title.lower() for title in means)], rows)
    yield from listed(
        [
            f"{model} cannot be fitted to {table}: {result.message}"
            for table, by_model in results.items()
            for model, result in by_model.items()
            if isinstance(result, Failure)
        ]
    )
    yield ""


def by_table(results: Results, models: list[str], title: str) -> Iterator[str]:
    """One row per table: a measure of each model."""
    measure, digits = MEASURES[title]
    found = values(results, models, measure)
    rows = [
        [name, *(_number(value, digits) for value in row)]
        for name, row in zip([*results, "mean"], [*found, found.mean(axis=0)], strict=True)
    ]
    yield f"### {title}"
    yield ""
    yield from markdown(["table", *models], rows)
    yield ""


def differences(results: Results, model: str, peers: list[str]) -> Iterator[str]:
    """Bootstrap interval of the difference to each peer."""
    yield f"### Log-loss of {model} minus that of each peer"
    yield ""
    rows = []
    for peer in peers:
        found = difference(results, model, peer)
        if found is not None:
            interval = f"{found.low:+.4f} to {found.high:+.4f}"
            rows.append([peer, f"{found.mean:+.4f}", interval, f"{100 * found.relative:+.1f}%", f"{found.n_tables}"])
    yield from markdown(["peer", "difference", "95% interval", "relative", "tables"], rows)
    yield ""
    yield f"Means over tables; paired bootstrap of {DRAWS:,} draws of rows within tables."
    yield ""


def calibration(results: Results, model: str, peers: list[str]) -> Iterator[str]:
    """On how many tables the calibration error is at most the median peer's plus 0.01."""
    rows = []
    for table, by_model in results.items():
        fitted = [result for peer in peers if isinstance(result := by_model[peer], Result)]
        result = by_model[model]
        if fitted and isinstance(result, Result):
            error, median = calibration_error(result), float(np.median([calibration_error(peer) for peer in fitted]))
            rows.append([table, f"{error:.4f}", f"{median:.4f}", "yes" if error <= median + MARGIN else "no"])
    if rows:
        yield "### Calibration"
        yield ""
        yield from markdown(["table", model, "median peer", f"at most {MARGIN} more"], rows)
        yield ""
        met = sum(row[-1] == "yes" for row in rows)
        yield (
            f"Expected calibration error of {model}, {BINS} bins of equally many rows: "
            f"at most {MARGIN} above the median peer's on {met} of {len(rows)} tables."
        )
        yield ""


def _number(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
