"""Plain data about a fitted model, and its rendering as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.errors import listed
from likely.families.estimation import Estimation
from likely.model.family_choice import Choice
from likely.model.joint import JointModel
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics

SHOWN = 12  # columns and choices that are printed, at most
MANY = 1000  # columns beyond which their evidence is not computed


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """Summary of one class.

    Attributes
    ----------
    label : object
        The class.
    rows : int
        Number of training rows.
    weight : float
        Their total weight.
    prior : float
        Class prior.
    """

    label: Any
    rows: int
    weight: float
    prior: float


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """Summary of one block of columns.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    family : str
        Description of the family.
    """

    columns: tuple[str, ...]
    family: str


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Summary of one column.

    Attributes
    ----------
    name : str
        Name of the column.
    evidence : float or None
        Expected log-evidence for the class of a row, in nats; None where it is not available.
    """

    name: str
    evidence: float | None


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """Summary of a fitted model. `str()` renders it as text.

    Attributes
    ----------
    estimator : str
        Name of the estimator class.
    estimation : Estimation
        'mle', 'map' or 'bayes'.
    classes : tuple of ClassSummary
        The classes.
    blocks : tuple of BlockSummary
        Blocks of columns and their families.
    notes : tuple of str
        Remarks on columns, such as constant ones.
    columns : tuple of ColumnSummary
        The columns, the most informative first.
    choices : tuple of Choice
        Families chosen by leave-one-out log-loss.

    See Also
    --------
    GenerativeClassifier.summary : Returns this object.
    """

    estimator: str
    estimation: Estimation
    classes: tuple[ClassSummary, ...]
    blocks: tuple[BlockSummary, ...]
    notes: tuple[str, ...]
    columns: tuple[ColumnSummary, ...] = ()  # by decreasing evidence
    choices: tuple[Choice, ...] = ()  # of families for columns that are not declared

    def __str__(self) -> str:
        lines = [f"{self.estimator}, estimation={self.estimation!r}", "", *_class_table(self.classes), ""]
        lines += [f"{block.family}: {listed(block.columns, limit=12)}" for block in self.blocks]
        lines += [f"note: {note}" for note in self.notes]
        if self.choices:
            lines += ["", "chosen by leave-one-out log-loss (the simpler family is kept within one standard error)"]
            lines += [str(choice) for choice in self.choices[:SHOWN]]
            if len(self.choices) > SHOWN:
                lines.append(f"and {len(self.choices) - SHOWN} more")
        known = [column for column in self.columns if column.evidence is not None]
        if known:
            lines += ["", "column           expected log-evidence"]
            lines += [f"{column.name:<24.24} {column.evidence:>13.3f}" for column in known[:SHOWN]]
            if len(known) > SHOWN:
                lines.append(f"and {len(known) - SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class LineSummary:
    """Summary of the regression of one target in one class.

    Attributes
    ----------
    target : str
        Name of the target.
    label : object
        The class or component.
    intercept : float
        Mean of the target where all columns are 0.
    slopes : tuple of (str, float)
        Names of the columns, and their slopes.
    deviation : float
        Residual standard deviation.
    """

    target: str
    label: Any
    intercept: float
    slopes: tuple[tuple[str, float], ...]
    deviation: float


@dataclass(frozen=True, slots=True)
class RegressionSummary:
    """Summary of a fitted regression. `str()` renders it as text.

    Attributes
    ----------
    estimator : str
        Name of the estimator class.
    estimation : Estimation
        'mle', 'map' or 'bayes'.
    family : str
        Description of the joint Gaussian.
    classes : tuple of ClassSummary
        The classes or components.
    lines : tuple of LineSummary
        The regression of each target in each class.
    notes : tuple of str
        Remarks on columns, such as constant ones.

    See Also
    --------
    GenerativeRegressor.summary : Returns this object.
    """

    estimator: str
    estimation: Estimation
    family: str
    classes: tuple[ClassSummary, ...]
    lines: tuple[LineSummary, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.estimator}, estimation={self.estimation!r}", "", *_class_table(self.classes), "", self.family]
        lines += [f"note: {note}" for note in self.notes]
        for line in self.lines:
            of = f", class {line.label!s:.24}" if len(self.classes) > 1 else ""
            lines += ["", f"{line.target}{of}: standard deviation {line.deviation:.6g}"]
            lines.append(f"  {'intercept':<24} {line.intercept:>13.6g}")
            lines += [f"  {name:<24.24} {slope:>13.6g}" for name, slope in line.slopes[:SHOWN]]
            if len(line.slopes) > SHOWN:
                lines.append(f"  and {len(line.slopes) - SHOWN} more")
        return "\n".join(lines)


def _class_table(classes: Sequence[ClassSummary]) -> list[str]:
    return [
        "class            rows     weight    prior",
        *(f"{c.label!s:<14.14} {c.rows:>6} {c.weight:>10.6g} {c.prior:>8.4f}" for c in classes),
    ]


def class_summaries(counts: Counts, class_prior: Any) -> tuple[ClassSummary, ...]:
    """Rows, weight and prior of each class."""
    return tuple(
        ClassSummary(label, int(rows), float(weight), float(prior))
        for label, rows, weight, prior in zip(
            counts.classes.tolist(), counts.rows, counts.weight, class_prior, strict=True
        )
    )


def summarise_model(
    estimator: str,
    estimation: Estimation,
    model: JointModel,
    statistics: JointStatistics,
    families: Sequence[str],
    class_prior: Any,
    choices: tuple[Choice, ...],
) -> ModelSummary:
    """The summary of a fitted model."""
    classes = class_summaries(statistics.counts, class_prior)
    blocks = tuple(
        BlockSummary(tuple(model.names[j] for j in block.index), family)
        for block, family in zip(model.blocks, families, strict=True)
    )
    return ModelSummary(estimator, estimation, classes, blocks, tuple(model.notes()), _ranked(model), choices)


def _ranked(model: JointModel) -> tuple[ColumnSummary, ...]:
    """Columns by decreasing evidence; those without any come last."""
    if len(model.names) > MANY or len(model.classes) < 2:
        return ()
    evidence = [None if np.isnan(value) else max(float(value), 0.0) for value in model.separation()]
    columns = [ColumnSummary(name, value) for name, value in zip(model.names, evidence, strict=True)]
    return tuple(sorted(columns, key=lambda column: -1.0 if column.evidence is None else column.evidence, reverse=True))
