"""Explanations of an `EvidenceClassifier`: contributions of columns and views to scores, and similar training rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from likely.errors import InputError
from likely.evidence.model import Contributions, EvidenceModel
from likely.evidence.neighbours import FittedNeighbours
from likely.evidence.rows import EncodedRows
from likely.model.explanation import Explanation
from likely.model.rendering import to_frame
from likely.typing import Array

SIMILAR_ROWS = "(similar rows)"  # the entry of views whose evidence belongs to no column
CLIPPED = "(clipped)"  # the entry of what clipping removes

Entries = list[tuple[str, Array]]


def explained(model: EvidenceModel, rows: EncodedRows, intercepts: Array, by: str) -> Explanation:
    """Contributions to the scores of rows, by column, by view or by both."""
    parts = list(model.contributions(rows))
    if by == "view":
        entries = [(part.view.name, part.columns.sum(axis=2)) for part in parts]
    else:
        entries = _of_columns(model, parts) if by == "column" else _of_columns_and_views(model, parts)
    nothing = np.zeros((len(rows), len(model.classes)))
    entries.append((CLIPPED, sum((part.clipped for part in parts), start=nothing)))
    possible = np.isfinite(intercepts)  # a class of prior probability 0 has none
    offset = np.tile(intercepts - intercepts[possible].mean(), (len(rows), 1))
    evidence = np.stack([values for _, values in entries], axis=2)
    return Explanation(evidence, offset, tuple(name for name, _ in entries), model.classes)


def _of_columns(model: EvidenceModel, parts: list[Contributions]) -> Entries:
    found: Entries = []
    attributed = [part.columns for part in parts if part.view.attributes_columns]
    if attributed:
        total = np.sum(attributed, axis=0)
        found = [(name, total[:, :, j]) for j, name in enumerate(model.encoding.names)]
    return found + [(SIMILAR_ROWS, part.columns[:, :, 0]) for part in parts if not part.view.attributes_columns]


def _of_columns_and_views(model: EvidenceModel, parts: list[Contributions]) -> Entries:
    used = np.union1d(np.flatnonzero(model.encoding.used), model.encoding.texts).tolist()
    found: Entries = []
    for part in parts:
        if part.view.attributes_columns:
            names = ((f"{model.encoding.names[j]} ({part.view.name})", j) for j in used)
            found += [(name, part.columns[:, :, j]) for name, j in names]
        else:
            found.append((SIMILAR_ROWS, part.columns[:, :, 0]))
    return found


def similar_rows(model: EvidenceModel, parts: Iterable[EncodedRows], n: int, library: str | None) -> Any:
    """A frame of the nearest training rows of each row."""
    found = [each.view for each in model.views if isinstance(each.view, FittedNeighbours)]
    if not found:
        raise InputError("similar_rows needs the view 'neighbours', which this model does not have.")
    view = found[0]
    nearest = [view.similar(rows, n) for rows in parts]
    index, distance = (np.concatenate(each) for each in zip(*nearest, strict=True))
    rows = np.repeat(np.arange(len(index)), index.shape[1])
    flat = index.ravel()
    data = {
        "row": rows,
        "similar_row": view.references.positions[flat],
        "class": model.classes[view.references.codes[flat]].tolist(),
        "distance": distance.ravel(),
    }
    return to_frame(data, library)
