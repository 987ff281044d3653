"""The weighted posterior: evidence of several views, clipped, weighted and added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from likely.evidence.encoding import SHARED, Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView
from likely.evidence.weights import Ranges, centre, without_zeros
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array


@register
@dataclass(frozen=True, slots=True, eq=False)
class WeightedView:
    """A view, the weights of its terms, and the ranges of its terms for rows that it has not seen."""

    view: Annotated[FittedView, Shape(f"classes {SHARED}")]
    weights: Annotated[Array, Shape("terms", ">=0")]
    ranges: Annotated[Ranges, Shape("terms classes")]

    def scores(self, rows: EncodedRows) -> Array:
        """The weighted sum of the clipped terms, (classes, n)."""
        if not self.weights.any():
            return np.zeros((self.ranges.low.shape[1], len(rows)))
        return np.asarray(np.tensordot(self.weights, self.ranges.clip(self.view.terms(rows)), axes=1))

    def _sizes(self) -> dict[str, Any]:
        return {"terms": len(self.view.term_names)}


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """Contributions of one view to the scores of rows; they sum to 0 over the classes."""

    view: FittedView
    columns: Array  # (n, classes, columns of the table), or (n, classes, 1) where they belong to no column
    clipped: Array  # what clipping adds, (n, classes)


@register
@dataclass(frozen=True, slots=True, eq=False)
class EvidenceModel:
    """An encoding of columns, weighted views of encoded rows, and intercepts of the classes."""

    classes: Annotated[AnyArray, Shape("=classes")]
    encoding: Annotated[Encoding, Shape(SHARED)]
    views: tuple[Annotated[WeightedView, Shape(f"classes {SHARED}")], ...]
    # (classes,), of the intercepts: they are the logarithm of the class prior plus these
    offsets: Annotated[Array, Shape("classes")]
    class_weights: Annotated[Array, Shape("classes", ">=0")]  # total weight of the training rows
    structure: str = ""  # a digest of what determines the structures of the views

    @property
    def class_proportions(self) -> Array:
        """Of the training rows; a class without rows counts as half of the rarest one, or as half a row."""
        totals = without_zeros(self.class_weights)
        return np.asarray(totals / totals.sum())

    def evidence(self, rows: EncodedRows) -> Array:
        """The weighted evidence of all views, (classes, n)."""
        total = np.zeros((len(self.classes), len(rows)))
        for view in self.views:
            total += view.scores(rows)
        return total

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        """The model with rows added (sign 1) or removed (sign −1): counts change, structures and weights stay."""
        views = tuple(replace(each, view=each.view.updated(rows, sign)) for each in self.views)
        return replace(self, views=views, class_weights=self.class_weights + sign * rows.class_weights)

    def counted(self, rows: TrainingRows) -> Self:
        """The model with the same structures and weights, and the counts of these rows alone."""
        views = tuple(replace(each, view=each.view.counted(rows)) for each in self.views)
        return replace(self, views=views, class_weights=rows.class_weights)

    def renumbered(self, first: int) -> Self:
        """The model with `first` added to the positions of its training rows."""
        return replace(self, views=tuple(replace(each, view=each.view.renumbered(first)) for each in self.views))

    def __add__(self, other: Self) -> Self:
        pairs = zip(self.views, other.views, strict=True)
        views = tuple(replace(a, view=a.view + b.view) for a, b in pairs)
        return replace(self, views=views, class_weights=self.class_weights + other.class_weights)

    def _sizes(self) -> dict[str, Any]:
        return {"terms": sum(len(each.weights) for each in self.views)}

    def _valid(self) -> bool:
        texts = (set(each.view.term_columns) for each in self.views if each.view.name == "text")
        return bool(self.class_weights.any()) and all(each <= set(self.encoding.texts.tolist()) for each in texts)

    def contributions(self, rows: EncodedRows) -> Iterator[Contributions]:
        """The contributions of each view that has any weight."""
        for each in self.views:
            if each.weights.any():
                found = each.view.contributions(rows, each.weights)
                found -= found.mean(axis=1, keepdims=True)
                terms = centre(each.view.terms(rows))
                excess = np.tensordot(each.weights, each.ranges.clip(terms) - terms, axes=1)
                yield Contributions(each.view, found, excess.T)
