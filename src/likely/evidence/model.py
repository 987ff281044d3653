"""The weighted posterior: evidence of several views, clipped, weighted and added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Annotated, Any, Self

import numpy as np

from likely.data.ledger import Ledger, united
from likely.errors import InputError, listed
from likely.evidence.encoding import SHARED, Encoding
from likely.evidence.rows import DistinctRows, EncodedRows, TrainingRows
from likely.evidence.training import encoded_parts
from likely.evidence.view import ROUNDING, FittedView, remaining
from likely.evidence.weights import Ranges, centre
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
        return {"terms": len(self.view.term_columns)}


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
    category_weights: Annotated[Array, Shape("_", ">=0")]  # of the categories of the encoding, of all training rows
    ledger: Ledger | None = None  # of the training rows, if it is kept
    structure: str = ""  # a digest of what determines the structures of the views

    def evidence(self, rows: EncodedRows) -> Array:
        """The weighted evidence of all views, (classes, n)."""
        nothing = np.zeros((len(self.classes), len(rows)))
        return sum((view.scores(rows) for view in self.views), start=nothing)

    # Counts change in updates, and structures and weights stay.

    def added(self, rows: DistinctRows, step: Callable[[], object] = lambda: None) -> Self:
        """The model of these rows too; `step` is called after each part of them."""
        ledger = None if self.ledger is None else self.ledger.added([rows.hashed()])
        model = replace(self, ledger=None)
        for part in encoded_parts(rows, self.encoding):
            model += model._counted(part)
            step()
        return replace(model, ledger=ledger)

    def without(self, rows: DistinctRows) -> Self:
        """The model without these rows, and without categories that no other row has."""
        ledger = None if self.ledger is None else self.ledger.without([rows.hashed()])
        _check_remaining(self, rows)
        model, weights = self, self.category_weights
        for part in encoded_parts(rows, self.encoding):
            views = (each.view.removed(part) for each in model.views)
            model = model._with(views, model.class_weights - part.class_weights)
            weights = remaining(weights, self.encoding.category_weights(part.rows, part.weights))
        encoding = self.encoding.without_categories((weights == 0.0) & (self.category_weights > 0.0))
        return replace(model, encoding=encoding, category_weights=weights, ledger=ledger)

    def counted(self, rows: DistinctRows) -> Self:
        """The model with the same structures and weights, and the counts of these rows alone."""
        return replace(reduce(add, map(self._counted, encoded_parts(rows, self.encoding))), ledger=None)

    def _counted(self, rows: TrainingRows) -> Self:
        model = self._with((each.view.counted(rows) for each in self.views), rows.class_weights)
        return replace(model, category_weights=self.encoding.category_weights(rows.rows, rows.weights))

    def renumbered(self, first: int) -> Self:
        """The model with `first` added to the positions of its training rows."""
        return self._with((each.view.renumbered(first) for each in self.views), self.class_weights)

    def __add__(self, other: Self) -> Self:
        if self.structure != other.structure:
            raise InputError(
                "Models with different structures (cells, ranks, trees) cannot be added. Fit one of them with those of "
                "the other: EvidenceClassifier().fit(X, y, structure_of=first)."
            )
        views = (a.view + b.view for a, b in zip(self.views, other.views, strict=True))
        weights = self.category_weights + other.category_weights
        total = self._with(views, self.class_weights + other.class_weights)
        ledger = united(self.ledger, other.ledger)
        return replace(total, encoding=self.encoding + other.encoding, category_weights=weights, ledger=ledger)

    def _with(self, views: Iterable[FittedView], class_weights: Array) -> Self:
        """The same weights of other views."""
        pairs = zip(self.views, views, strict=True)
        return replace(self, views=tuple(replace(a, view=b) for a, b in pairs), class_weights=class_weights)

    def _sizes(self) -> dict[str, Any]:
        return {"terms": sum(len(each.weights) for each in self.views)}

    def _valid(self) -> bool:
        columns, texts = {None, *np.flatnonzero(self.encoding.used).tolist()}, set(self.encoding.texts.tolist())
        known = (set(each.view.term_columns) <= (texts if each.view.name == "text" else columns) for each in self.views)
        sized = len(self.category_weights) == sum(map(len, self.encoding.vocabularies))
        return bool(self.class_weights.any()) and sized and all(known)

    def contributions(self, rows: EncodedRows) -> Iterator[Contributions]:
        """The contributions of each view that has any weight."""
        for each in self.views:
            if each.weights.any():
                found = each.view.contributions(rows, each.weights)
                found -= found.mean(axis=1, keepdims=True)
                terms = centre(each.view.terms(rows))
                excess = np.tensordot(each.weights, each.ranges.clip(terms) - terms, axes=1)
                yield Contributions(each.view, found, excess.T)


def _check_remaining(model: EvidenceModel, rows: DistinctRows) -> None:
    """Raise if the remaining weight of a class would be negative or zero."""
    before, removed = model.class_weights, rows.class_weights
    left = before - removed
    if np.any(left < -ROUNDING * before):
        raise InputError(
            f"More rows are to be removed than were added, in class {listed(model.classes[left < 0.0].tolist())}. Pass "
            "rows as they were in the fit, with the same weights."
        )
    empty = (removed > 0.0) & (left <= ROUNDING * before)
    if empty.any():
        raise InputError(
            f"No row of class {listed(model.classes[empty].tolist())} would be left. Structures and weights are those "
            "of all classes: fit again without these rows."
        )
