"""Explanations of an `EvidenceClassifier`: contributions of columns and views to the scores of the classes."""

from __future__ import annotations

import numpy as np

from likely.evidence.model import Contributions, EvidenceModel
from likely.evidence.rows import EncodedRows
from likely.model.explanation import Explanation
from likely.typing import Array

SIMILAR_ROWS = "(similar rows)"  # the entry of views whose evidence belongs to no column
CLIPPED = "(clipped)"  # the entry of what clipping removes


def explained(model: EvidenceModel, rows: EncodedRows, intercepts: Array, by: str) -> Explanation:
    """Contributions to the scores of rows, by column, by view or by both."""
    parts = list(model.contributions(rows))
    entries = {"column": _by_column, "view": _by_view, "column and view": _by_both}[by](model, parts)
    nothing = np.zeros((len(rows), len(model.classes)))
    entries.append((CLIPPED, sum((part.clipped for part in parts), start=nothing)))
    possible = np.isfinite(intercepts)  # a class of prior probability 0 has none
    offset = np.tile(intercepts - intercepts[possible].mean(), (len(rows), 1))
    evidence = np.stack([values for _, values in entries], axis=2)
    return Explanation(evidence, offset, tuple(name for name, _ in entries), model.classes)


Entries = list[tuple[str, Array]]


def _by_column(model: EvidenceModel, parts: list[Contributions]) -> Entries:
    found: Entries = []
    attributed = [part.columns for part in parts if part.view.attributes_columns]
    if attributed:
        total = np.sum(attributed, axis=0)
        found = [(name, total[:, :, j]) for j, name in enumerate(model.encoding.names)]
    return found + [(SIMILAR_ROWS, part.columns[:, :, 0]) for part in parts if not part.view.attributes_columns]


def _by_view(model: EvidenceModel, parts: list[Contributions]) -> Entries:
    return [(part.view.name, part.columns.sum(axis=2)) for part in parts]


def _by_both(model: EvidenceModel, parts: list[Contributions]) -> Entries:
    used = np.union1d(np.flatnonzero(model.encoding.used), model.encoding.texts).tolist()
    found: Entries = []
    for part in parts:
        if part.view.attributes_columns:
            names = ((f"{model.encoding.names[j]} ({part.view.name})", j) for j in used)
            found += [(name, part.columns[:, :, j]) for name, j in names]
        else:
            found.append((SIMILAR_ROWS, part.columns[:, :, 0]))
    return found
