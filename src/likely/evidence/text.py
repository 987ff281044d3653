"""The view of text columns: log p(document | class) by the default model of `TextClassifier`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from likely.choice.term_options import Sample, TermChoice, TermTrial
from likely.data.table import Table
from likely.errors import InputError
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import AdditiveTerms, PartsView, View
from likely.families.text.family import Text
from likely.families.text.term_models import unobserved
from likely.model.persistence import register
from likely.model.plans import column_index
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.statistics.documents import Documents
from likely.statistics.term_sums import TermSums
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
        return FittedText(columns) if columns else None


def documents_of(table: Table, j: int) -> Documents:
    """The documents of a column; missing ones are empty."""
    found: Documents = table.documents(j)(0, table.rows)
    return found


@register
@dataclass(frozen=True, eq=False)
class TextColumn(AdditiveTerms):
    """Vocabulary, sums of terms and smoothing of a text column: one term."""

    place: int  # in the table
    content: dict[str, Any]  # of `fit`, as files store it

    def _sizes(self) -> dict[str, Any]:
        return {"classes": tuple(self.fit.sums.classes.tolist())}

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return (self.place,)

    @cached_property
    def fit(self) -> TextFit:
        return TextFit.of_content(self.content)

    @classmethod
    def fitted(cls, rows: TrainingRows, place: int, option: Text) -> Self:
        """The column of training rows, with the smoothing of the least leave-one-out log-loss."""
        empty = TextFit(
            option._empty_vocabulary, TermSums.empty_sums(), (TermChoice(option._model, 0.0, 1.0, None),), None
        )
        column = cls.of(place, empty).counted(rows)
        fit = column.fit
        if not fit.vocabulary.size:
            return column
        documents = documents_of(rows.rows.table, place)
        values = fit.model.transform(fit.vocabulary.read(documents))
        trial = TermTrial(fit.sums, not fit.vocabulary.grows, Sample.of(documents, values, rows.codes, rows.weights))
        choices = trial.choices(option._model, option.smoothing, option._merging, 0.0)
        return cls.of(place, replace(fit, choices=choices))

    @classmethod
    def of(cls, place: int, fit: TextFit) -> Self:
        column = cls(place, fit.content())
        column.__dict__["fit"] = fit  # it need not be restored
        return column

    def _values(self, rows: EncodedRows) -> tuple[Any, AnyArray]:
        """Transformed counts of documents, and which of them have no evidence."""
        documents = documents_of(rows.table, self.place)
        values = self.fit.model.transform(self.fit.vocabulary.read(documents))
        return values, unobserved(self.fit.model, values, documents)

    def terms(self, rows: EncodedRows) -> Array:
        values, blank = self._values(rows)
        return np.where(blank, 0.0, self.fit.evidence.scores(values).T)[None]

    def left_out(self, rows: TrainingRows) -> Array:
        values, blank = self._values(rows.rows)
        evidence = self.fit.model.leave_one_out(self.fit.evidence, values, rows.codes, rows.held_out)
        return np.where(blank, 0.0, evidence.T)[None]

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
    n_rows = np.zeros(len(rows.classes), dtype=np.int64)
    np.add.at(n_rows, rows.codes, rows.copies)
    return replace(sums, counts=replace(sums.counts, rows=n_rows))


@register
@dataclass(frozen=True, eq=False)
class FittedText(PartsView):
    """Text columns of training rows. Statistics are sums of transformed counts of terms."""

    parts: tuple[Annotated[TextColumn, Shape("classes")], ...]

    name = TextView.name

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedText:
        return self.removed(held_out)
