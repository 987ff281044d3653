"""Plain data about a fitted model, and its rendering as text, HTML and frames."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.families.estimation import Estimation
from likely.model.choices import Choice
from likely.model.joint import JointModel
from likely.model.rendering import RenderedResult, TextTable, limited, number, short_names, to_frame, wrapped
from likely.model.separation import expected_evidence
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.typing import Array

SHOWN = 12  # classes, columns and choices that are printed, at most
MOST_DISCRIMINANTS = 6  # that are printed
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
        Expected log-evidence for the class of a row, in nats; None if it is not available.
    """

    name: str
    evidence: float | None


@dataclass(frozen=True, slots=True)
class DiscriminantSummary:
    """Summary of one canonical (linear) discriminant.

    Attributes
    ----------
    proportion : float
        Proportion of trace: that of the variance between the classes.
    coefficients : tuple of (str, float)
        Names of the columns, and their coefficients, as in `scalings_`.
    """

    proportion: float
    coefficients: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ModelSummary(RenderedResult):
    """Summary of a fitted model.

    `str()` renders it as text, and notebooks show it as tables.

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
    log_loss : float or None
        Leave-one-out log-loss of the training rows, or of a random sample of them; None if `fit` did not compute it.
    baseline : float or None
        Leave-one-out log-loss of the class proportions: of rows whose class has other rows too. None if the model
        has no labels.
    library : str or None
        Library of the frame that `to_frame` returns. None is pandas, or pyarrow if pandas is not installed.
    scored_rows : int or None
        Number of rows that `log_loss` is a mean of; None for all rows.
    decisions : tuple of str
        What the columns of the input became, in a few lines; `columns_` of the model is the table.
    discriminants : tuple of DiscriminantSummary
        Canonical discriminants of a `LinearDiscriminant`.

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
    log_loss: float | None = None
    baseline: float | None = None
    library: str | None = None
    scored_rows: int | None = None  # rows that the log-loss is a mean of; None for all rows
    discriminants: tuple[DiscriminantSummary, ...] = ()
    decisions: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """The columns as a frame, the most informative first.

        Returns
        -------
        frame
            One row for each column: `column`, `family`, `block` (columns with the same number have a joint density or
            the same family) and `evidence`, the expected log-evidence for the class in nats.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> LinearDiscriminant().fit(X, y).summary().to_frame().columns.tolist()
        ['column', 'family', 'block', 'evidence']
        """
        blocks = {name: (i, block.family) for i, block in enumerate(self.blocks) for name in block.columns}
        evidence: dict[str, float | None] = {column.name: column.evidence for column in self.columns}
        names = list(dict.fromkeys([*evidence, *blocks]))
        columns: dict[str, list[Any]] = {
            "column": names,
            "family": [blocks[name][1] if name in blocks else None for name in names],
            "block": [blocks[name][0] if name in blocks else None for name in names],
            "evidence": [evidence.get(name) for name in names],
        }
        return to_frame(columns, self.library)

    def _parts(self) -> list[str | TextTable]:
        families = [wrapped(f"{block.family}: {_column_list(block.columns)}") for block in self.blocks]
        return [
            f"{self.estimator}, estimation={self.estimation!r}",
            _class_table(self.classes),
            self._scores(),
            "\n".join(map(wrapped, self.decisions)),
            "\n".join([*families, *(wrapped(f"note: {note}") for note in self.notes)]),
            *self._choices(),
            self._discriminants(),
            self._evidence(),
        ]

    def _scores(self) -> str:
        """Leave-one-out log-loss, and that of the class proportions."""
        if self.baseline is None:
            return ""
        if self.log_loss is None:
            return f"log-loss of the class proportions: {self.baseline:.4f}"
        rows = "" if self.scored_rows is None else f" of {self.scored_rows:,} rows"
        text = f"leave-one-out log-loss{rows}: {self.log_loss:.4f}; of the class proportions: {self.baseline:.4f}"
        worse = self.log_loss > self.baseline + 1e-12 * (1.0 + self.baseline)
        return f"{text}\nThe model is worse than predicting the class proportions." if worse else text

    def _discriminants(self) -> str | TextTable:
        """Coefficients of linear discriminants and the proportion of trace, as R's MASS prints them."""
        if not self.discriminants:
            return ""
        found = self.discriminants[:MOST_DISCRIMINANTS]
        shown, more = limited(range(len(found[0].coefficients)), SHOWN)
        names = short_names(found[0].coefficients[j][0] for j in shown)
        rows = [
            [name, *(f"{each.coefficients[j][1]:.6g}" for each in found)] for name, j in zip(names, shown, strict=True)
        ]
        rows += [[f"{more} more columns", *("" for _ in found)]] if more else []
        rows.append(["proportion of trace", *(f"{each.proportion:.4f}" for each in found)])
        header = ("column", *(f"LD{i + 1}" for i in range(len(found))))
        return TextTable(header, rows, "coefficients of linear discriminants")

    def _choices(self) -> list[str | TextTable]:
        """What was chosen by leave-one-out: families of columns, then covariances and the strength of their prior."""
        by_density = [choice for choice in self.choices if choice.log_density]
        by_loss = [choice for choice in self.choices if choice.log_loss]
        rest = [wrapped(str(choice)) for choice in self.choices if choice.score is None]
        chosen = "chosen by leave-one-out"
        return [
            _choice_table(by_density, "log-density", f"families, {chosen} log p(x | class), higher is better"),
            _choice_table(by_loss, "log-loss", f"covariances, {chosen} log-loss, lower is better"),
            "\n".join(rest),
        ]

    def _evidence(self) -> str | TextTable:
        known = [column for column in self.columns if column.evidence is not None]
        if not known:
            return ""
        shown, more = limited(known, SHOWN)
        names = short_names(column.name for column in shown)
        rows = [[name, f"{column.evidence:.3f}"] for name, column in zip(names, shown, strict=True)]
        return TextTable(("column", "expected log-evidence"), rows, more=more)


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
class RegressionSummary(RenderedResult):
    """Summary of a fitted regression.

    `str()` renders it as text, and notebooks show it as tables.

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
    library : str or None
        Library of the frame that `to_frame` returns. None is pandas, or pyarrow if pandas is not installed.

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
    library: str | None = None

    def to_frame(self) -> Any:
        """Intercepts and slopes as a frame.

        Returns
        -------
        frame
            One row for each coefficient: `target`, `class`, `column` ('(intercept)' for intercepts), `estimate` and
            `standard_deviation`, that of the residuals.
        """
        rows = [
            (line.target, line.label, name, value, line.deviation)
            for line in self.lines
            for name, value in (("(intercept)", line.intercept), *line.slopes)
        ]
        names = ("target", "class", "column", "estimate", "standard_deviation")
        return to_frame({name: [row[i] for row in rows] for i, name in enumerate(names)}, self.library)

    def _parts(self) -> list[str | TextTable]:
        notes = [wrapped(f"note: {note}") for note in self.notes]
        head = f"{self.estimator}, estimation={self.estimation!r}"
        rows = (
            _class_table(self.classes) if len(self.classes) > 1 else f"{sum(each.rows for each in self.classes)} rows"
        )
        parts: list[str | TextTable] = [head, rows, "\n".join([wrapped(self.family), *notes])]
        labels = short_names(line.label for line in self.lines)
        shown, more = limited(self.lines, SHOWN)
        for line, label in zip(shown, labels, strict=False):
            where = f", class {label}" if len(self.classes) > 1 else ""
            parts.append(_line_table(line, f"{line.target}{where}: standard deviation {line.deviation:.6g}"))
        return [*parts, f"and {more} more"] if more else parts


def _line_table(line: LineSummary, title: str) -> TextTable:
    """Intercept and slopes of one regression."""
    slopes, more = limited(line.slopes, SHOWN)
    names = short_names(name for name, _ in slopes)
    rows = [[name, f"{value:.6g}"] for name, (_, value) in zip(names, slopes, strict=True)]
    return TextTable(("column", "slope"), [["intercept", f"{line.intercept:.6g}"], *rows], title, more=more)


def _choice_table(choices: Sequence[Choice], score: str, title: str) -> str | TextTable:
    """The family chosen for each column or block, its score, the next best candidate and by how much it differs."""
    if not choices:
        return ""
    shown, more = limited(choices, SHOWN)
    rows = []
    for choice in shown:
        others, found = choice.next_best, choice.score
        words = _shortened(choice.family, list(choice.log_loss or choice.log_density))
        second, difference = "", ""
        if others is not None and found is not None:
            second = _shortened(others[0], list(choice.log_loss or choice.log_density))
            difference = f"{others[1] - found:+.4f}"
        columns = short_names(choice.columns[:1])[0]
        if len(choice.columns) > 1:
            columns += f" and {len(choice.columns) - 1} more"
        rows.append([columns, words, second, number(found), difference])
    header = ("column", "chosen", "next best", score, "difference")
    return TextTable(header, rows, title, left=3, more=more)


def _shortened(family: str, candidates: Sequence[str]) -> str:
    """The description of a family without the parts at its beginning that all candidates have."""
    parts = [name.split(", ") for name in candidates]
    same = 0
    while all(len(each) > same + 1 for each in parts) and len({each[same] for each in parts}) == 1:
        same += 1
    return ", ".join(family.split(", ")[same:])


def _class_table(classes: Sequence[ClassSummary]) -> TextTable:
    """Rows and prior of each class, and weights where they are not the numbers of rows."""
    shown, more = limited(classes, SHOWN)
    names = short_names(each.label for each in shown)
    weighted = any(each.weight != each.rows for each in classes)
    rows = [
        [name, str(each.rows), *([f"{each.weight:.6g}"] if weighted else []), f"{each.prior:.4f}"]
        for name, each in zip(names, shown, strict=True)
    ]
    return TextTable(("class", "rows", *(["weight"] if weighted else []), "prior"), rows, more=more)


def _column_list(columns: Sequence[str]) -> str:
    """Names of columns in quotes, the first few."""
    shown, more = limited(columns, SHOWN)
    names = ", ".join(map(repr, short_names(shown)))
    return f"{names} and {more} more" if more else names


def class_summaries(counts: Counts, class_prior: Any) -> tuple[ClassSummary, ...]:
    """Rows, weight and prior of each class."""
    parts = zip(counts.classes.tolist(), counts.rows, counts.weight, class_prior, strict=True)
    return tuple(ClassSummary(label, int(rows), float(weight), float(prior)) for label, rows, weight, prior in parts)


def summarise_model(
    estimator: str,
    estimation: Estimation,
    model: JointModel,
    statistics: JointStatistics,
    families: Sequence[str],
    class_prior: Any,
    choices: tuple[Choice, ...],
    *,
    labeled: bool = True,
    log_loss: float | None = None,
    library: str | None = None,
    ignored: Collection[str] = (),
) -> ModelSummary:
    """The summary of a fitted model; `log_loss` is that of leave-one-out, where it is known.

    `ignored` are the columns that the user declared to be so.
    """
    blocks = tuple(
        BlockSummary(tuple(model.names[j] for j in block.index), family)
        for block, family in zip(model.blocks, families, strict=True)
    )
    return ModelSummary(
        estimator,
        estimation,
        class_summaries(statistics.counts, class_prior),
        blocks,
        tuple(model.notes(ignored)),
        _ranked(model),
        choices,
        log_loss,
        proportions_log_loss(statistics.counts.weight) if labeled else None,
        library,
    )


def proportions_log_loss(weight: Array) -> float | None:
    """Leave-one-out log-loss of the class proportions: Σ_k W_k·(−log((W_k − 1) / (W − 1))) / Σ_k W_k.

    The sums are over the classes with W_k > 1: a row that is the only one of its class has no leave-one-out proportion.
    """
    several = weight[weight > 1.0]
    if not len(several):
        return None
    return float(several @ -np.log((several - 1.0) / (weight.sum() - 1.0)) / several.sum())


def _ranked(model: JointModel) -> tuple[ColumnSummary, ...]:
    """Columns by decreasing evidence; those without any come last."""
    if len(model.names) > MANY or len(model.classes) < 2:
        return ()
    evidence = [None if np.isnan(value) else max(float(value), 0.0) for value in expected_evidence(model)]
    columns = [ColumnSummary(name, value) for name, value in zip(model.names, evidence, strict=True)]
    return tuple(sorted(columns, key=lambda column: -1.0 if column.evidence is None else column.evidence, reverse=True))
