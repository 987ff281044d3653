"""The weights of an `EvidenceClassifier` as a table, and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.errors import amount, listed
from likely.evidence.model import EvidenceModel
from likely.evidence.weights import PooledWeights
from likely.model.rendering import RenderedResult, TextTable, count, limited, number, short_names, to_frame, wrapped
from likely.typing import Array

SHOWN = 12  # classes and columns that are printed, at most
SMALL_SHARE = 0.005  # printed as less than 1%
MOST_OF_IT = 0.8  # share of the evidence of the views that a summary names first


def weight_table(model: EvidenceModel, shares: Array) -> Any:
    """The weight of each term of each view, and its share of the evidence; terms of several columns have no column."""
    names = model.encoding.names
    terms = [(each, i, j) for each in model.views for i, j in enumerate(each.view.term_columns)]
    data = {
        "view": [each.view.name for each, _, _ in terms],
        "column": [None if j is None else names[j] for _, _, j in terms],
        "term": [each.view.term_names[i] if j is None else names[j] for each, i, j in terms],
        "weight": [float(each.weights[i]) for each, i, _ in terms],
        "share": shares.tolist(),
    }
    return to_frame(data, None)


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceSummary(RenderedResult):
    """Summary of an `EvidenceClassifier`. Printing shows it as text.

    Attributes
    ----------
    views : tuple of str
        Names of the views, those with the largest share first.
    shares : tuple of float
        Share of each view in the mean absolute weighted evidence of the training rows.
    n_terms : tuple of int
        Number of terms of each view.
    column_shares : dict
        Share of each column in the evidence of the views with one term for each column.
    classes : tuple
        Class labels.
    class_weights : tuple of float
        Total weight of the training rows of each class.
    class_prior : tuple of float
        Class prior.
    log_loss : float
        Mean log-loss on held-out rows during the fit: the average over the solutions for all penalties, with the same
        mixing weights as their coefficients. NaN if no rows were held out.
    baseline : float
        Mean log-loss of the class proportions on the same rows.
    decisions : tuple of str
        What the columns of the input became, in a few lines; `columns_` of the model is the table.
    """

    views: tuple[str, ...]
    shares: tuple[float, ...]
    n_terms: tuple[int, ...]
    column_shares: dict[str, float]
    classes: tuple[Any, ...]
    class_weights: tuple[float, ...]
    class_prior: tuple[float, ...]
    log_loss: float
    baseline: float
    decisions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return str(self)

    def to_frame(self) -> Any:
        """Return the views as a table.

        Returns
        -------
        frame
            One row for each view, with `view`, `terms` and `share`.
        """
        return to_frame({"view": list(self.views), "terms": list(self.n_terms), "share": list(self.shares)}, None)

    def _parts(self) -> list[str | TextTable]:
        rows = [
            [name, str(n), _percent(share)]
            for name, n, share in zip(self.views, self.n_terms, self.shares, strict=True)
        ]
        columns, more = limited(sorted(self.column_shares.items(), key=lambda item: -item[1]), SHOWN)
        classes, others = limited(list(zip(self.classes, self.class_weights, self.class_prior, strict=True)), SHOWN)
        names = short_names([label for label, _, _ in classes])
        class_rows = [[name, count(w), number(p, 3)] for name, (_, w, p) in zip(names, classes, strict=True)]
        size = amount(len(self.classes), "class", "classes")
        parts: list[str | TextTable] = [
            f"EvidenceClassifier: {size}, {count(sum(self.class_weights))} rows",
            self._sentence(),
            "\n".join(map(wrapped, self.decisions)),
            TextTable(["view", "terms", "share of the evidence"], rows),
        ]
        if columns:
            shown = [[name, _percent(share)] for name, share in columns]
            title = "Columns, in the views with one term for each column"
            parts.append(TextTable(["column", "share"], shown, title, more=more))
        return [*parts, TextTable(["class", "rows", "prior"], class_rows, more=others)]

    def _sentence(self) -> str:
        """The views with the largest shares, and the held-out log-loss compared with the class proportions."""
        if not sum(self.shares):
            return "No view has any weight: the probabilities are the class prior."
        n = int(np.searchsorted(np.cumsum(self.shares), MOST_OF_IT)) + 1
        leading, reached = self.views[:n], sum(self.shares[:n])
        text = f"{reached:.0%} of the evidence comes from {'the view' if len(leading) == 1 else 'the views'} "
        text += f"{listed(leading)}."
        if np.isnan(self.log_loss):
            return text
        gain = f" Log-loss of held-out rows during the fit: {self.log_loss:.4f}; of the class proportions: "
        worse = "" if self.log_loss < self.baseline else " Worse than predicting the class proportions."
        return f"{text}{gain}{self.baseline:.4f}.{worse}"


def _percent(share: float) -> str:
    """A share of the evidence; one that is small differs from none."""
    return f"{share:.0%}" if share >= SMALL_SHARE else "<1%" if share else "none"


def summarise_evidence(
    model: EvidenceModel, shares: Array, pooled: PooledWeights, class_prior: Array
) -> EvidenceSummary:
    """The summary of a model whose terms have these shares of the evidence."""
    cuts = np.cumsum([len(each.weights) for each in model.views])[:-1]
    parts = np.split(shares, cuts) if model.views else []
    totals = [float(part.sum()) for part in parts]
    order = sorted(range(len(totals)), key=lambda i: -totals[i])
    columns: dict[str, float] = {}
    for each, part in zip(model.views, parts, strict=True):
        for j, share in zip(each.view.term_columns, part.tolist(), strict=True):
            if j is not None:
                name = model.encoding.names[j]
                columns[name] = columns.get(name, 0.0) + share
    losses = pooled.mean_losses
    return EvidenceSummary(
        tuple(model.views[i].view.name for i in order),
        tuple(totals[i] for i in order),
        tuple(len(model.views[i].weights) for i in order),
        columns,
        tuple(model.classes.tolist()),
        tuple(model.class_weights.tolist()),
        tuple(class_prior.tolist()),
        float(pooled.mixing @ losses),
        float(losses[-1]),
    )
