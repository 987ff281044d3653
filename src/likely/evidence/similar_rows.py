"""The training rows that are most similar to new rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from likely.errors import InputError
from likely.evidence.model import EvidenceModel
from likely.evidence.neighbours import FittedNeighbours
from likely.evidence.rows import EncodedRows
from likely.model.rendering import to_frame


def similar_rows(model: EvidenceModel, parts: Iterable[EncodedRows], n: int, library: str | None) -> Any:
    """A frame of the nearest training rows of each row."""
    found = [each.view for each in model.views if isinstance(each.view, FittedNeighbours)]
    if not found:
        raise InputError("similar_rows needs the view 'neighbours', which this model does not have.")
    view = found[0]
    nearest = [view.similar(rows, n) for rows in parts]
    index = np.concatenate([each[0] for each in nearest])
    distance = np.concatenate([each[1] for each in nearest])
    rows = np.repeat(np.arange(len(index)), index.shape[1])
    flat = index.ravel()
    data = {
        "row": rows,
        "similar_row": view.references.positions[flat],
        "class": model.classes[view.references.codes[flat]].tolist(),
        "distance": distance.ravel(),
    }
    return to_frame(data, library)
