"""The view of text columns: log p(document | class) by the default model of `TextClassifier`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from likely.choice.term_options import Sample, TermChoice, TermTrial
from likely.data.table import Table
from likely.errors import InputError
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView, View
from likely.families.text.family import Text
from likely.families.text.term_models import unobserved
from likely.model.persistence import register
from likely.model.plans import column_index
from likely.statistics.documents import Documents
from likely.statistics.term_sums import TermSums
from likely.text.files import fit_content, restored_fit
from likely.text.fitting import TextFit
from likely.typing import AnyArray, Array


class TextView(View):
    """One term for each text column. Smoothing is chosen at the fit; the vocabulary grows with more rows."""

    name = "text"

    def __init__(self, families: Mapping[Any, Any] | None = None) -> None:
        self.families = families or {}

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedText | None:
        names = encoding.names
        given = {column_index(name, names): family for name, family in self.families.items() if family is not None}
        found = (TextColumn.fitted(rows, j, given.get(j, Text())) for j in encoding.texts.tolist())
        columns = tuple(column for column in found if column.fit.vocabulary.size)
        return FittedText(encoding.names, columns) if columns else None


def documents_of(table: Table, j: int) -> Documents:
    """The documents of a column; missing ones are empty."""
    found: Documents = table.documents(j)(0, table.rows)
    return found


@register
@dataclass(frozen=True, eq=False)
class TextColumn:
    """Vocabulary, sums of terms and smoothing of a text column."""

    place: int  # in the table
    content: dict[str, Any]  # of `fit`, as files store it

    @cached_property
    def fit(self) -> TextFit:
        return restored_fit(self.content)

    @classmethod
    def fitted(cls, rows: TrainingRows, place: int, option: Text) -> Self:
        """The column of training rows, with the smoothing of the least leave-one-out log-loss."""
        documents = documents_of(rows.rows.table, place)
        vocabulary, counts = option._empty_vocabulary.learn(documents)
        fit = TextFit(vocabulary, TermSums.empty_sums(), (TermChoice(option._model, 0.0, 1.0, None),), None)
        fit = replace(fit, sums=_sums(fit, documents, counts, rows))
        if vocabulary.size:
            sample = Sample.of(documents, fit.model.transform(counts), rows.codes, rows.weights)
            trial = TermTrial(fit.sums, not vocabulary.grows, sample)
            fit = replace(fit, choices=trial.choices(option._model, option.smoothing, option._merging, 0.0))
        return cls.of(place, fit)

    @classmethod
    def of(cls, place: int, fit: TextFit) -> Self:
        column = cls(place, fit_content(fit))
        column.__dict__["fit"] = fit  # it need not be restored
        return column

    def _values(self, rows: EncodedRows) -> tuple[Any, AnyArray]:
        """Transformed counts of documents, and which of them have no evidence."""
        documents = documents_of(rows.table, self.place)
        values = self.fit.model.transform(self.fit.vocabulary.read(documents))
        return values, unobserved(self.fit.model, values, documents)

    def terms(self, rows: EncodedRows) -> Array:
        values, blank = self._values(rows)
        return np.where(blank, 0.0, self.fit.evidence.scores(values).T)

    def left_out(self, rows: TrainingRows) -> Array:
        values, blank = self._values(rows.rows)
        evidence = self.fit.model.leave_one_out(self.fit.evidence, values, rows.codes, rows.held_out)
        return np.where(blank, 0.0, evidence.T)

    def added(self, rows: TrainingRows) -> Self:
        more = self.counted(rows).fit  # its vocabulary has all terms of this one, in the same order
        return self.of(self.place, replace(more, sums=self.fit.sums + more.sums))

    def removed(self, rows: TrainingRows) -> Self:
        fit = self.fit
        documents = documents_of(rows.rows.table, self.place)
        counts = fit.vocabulary.read(documents)
        unknown = np.flatnonzero(counts.indices == fit.vocabulary.size)
        if len(unknown):
            row = int(np.searchsorted(counts.indptr, unknown[0], side="right")) - 1
            raise InputError(
                f"X, row {rows.rows.table.number(row)}, column {rows.rows.table.names[self.place]!r}: the document has "
                "terms that no training document has. Pass rows as they were in the fit."
            )
        left = fit.sums - _sums(fit, documents, counts, rows)
        return self.of(self.place, fit.reduced(left.align(rows.classes, fit.vocabulary.size)))

    def counted(self, rows: TrainingRows) -> Self:
        documents = documents_of(rows.rows.table, self.place)
        vocabulary, counts = self.fit.vocabulary.learn(documents)
        fit = replace(self.fit, vocabulary=vocabulary)
        return self.of(self.place, replace(fit, sums=_sums(fit, documents, counts, rows)))

    def __add__(self, other: Self) -> Self:
        vocabulary, mapping = self.fit.vocabulary.united(other.fit.vocabulary)
        sums = self.fit.sums + other.fit.sums.renumbered(mapping, vocabulary.size)
        return self.of(self.place, replace(self.fit, vocabulary=vocabulary, sums=sums))


def _sums(fit: TextFit, documents: Documents, counts: Any, rows: TrainingRows) -> TermSums:
    """The sums of documents of all classes; rows that were merged count as often as they were there."""
    raw = fit.vocabulary.counts(documents, counts)
    sums = TermSums.of(rows.classes, rows.codes, rows.weights, fit.model.transform(counts), raw)
    if rows.copies is None:
        return sums
    n_rows = np.zeros(len(rows.classes), dtype=np.int64)
    np.add.at(n_rows, rows.codes, rows.copies)
    return replace(sums, counts=replace(sums.counts, rows=n_rows))


@register
@dataclass(frozen=True, eq=False)
class FittedText(FittedView):
    """Text columns of training rows. Statistics are sums of transformed counts of terms."""

    column_names: tuple[str, ...]
    columns: tuple[TextColumn, ...]

    name = TextView.name

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return tuple(column.place for column in self.columns)

    @property
    def term_names(self) -> tuple[str, ...]:
        return tuple(self.column_names[column.place] for column in self.columns)

    def terms(self, rows: EncodedRows) -> Array:
        return np.stack([column.terms(rows) for column in self.columns])

    def left_out(self, rows: TrainingRows) -> Array:
        return np.stack([column.left_out(rows) for column in self.columns])

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedText:
        return self.updated(held_out, -1.0)

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        changed = (column.added(rows) if sign > 0.0 else column.removed(rows) for column in self.columns)
        return replace(self, columns=tuple(changed))

    def counted(self, rows: TrainingRows) -> Self:
        return replace(self, columns=tuple(column.counted(rows) for column in self.columns))

    def __add__(self, other: Self) -> Self:
        return replace(self, columns=tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))

    def sound(self, encoding: Encoding, n_classes: int) -> bool:
        return bool(
            self.column_names == encoding.names
            and self.columns
            and len(set(self.term_columns)) == len(self.columns)
            and set(self.term_columns) <= set(encoding.texts.tolist())
            and all(len(column.fit.sums.classes) == n_classes for column in self.columns)
        )

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        terms = self.terms(rows)
        found = np.zeros((len(rows), terms.shape[1], len(self.column_names)))
        for weight, column, term in zip(weights, self.columns, terms, strict=True):
            found[:, :, column.place] = weight * term.T
        return found
