"""Categories that did not occur in training: counted over all rows of a call, and reported once for each column."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from likely.data.categories import normalized_label, spelling_difference
from likely.data.table import Table, UnseenValues
from likely.errors import UnseenCategoriesWarning, amount, listed, warn
from likely.typing import Vocabulary

LEAST = 0.05  # proportion of unseen values up to which there is no warning
TIMES = 10.0  # nor is there one up to this multiple of the proportion in training
RARE = 0.05  # probability, under the proportion in training, below which values are not all unseen by accident
SPELLED = 2000  # categories that one is compared with by spelling, at most


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCategories:
    """The categories of a column in training, and which proportion of the values of new rows may be unseen.

    It is (n₁ + 1) / (n + 1) for n values, n₁ of which no other row has: each of these is unseen by leave-one-out.
    """

    vocabulary: Vocabulary
    unseen: float


class ReadsCategories(Protocol):
    """What a model knows of categorical columns."""

    def _vocabularies(self) -> Iterable[tuple[int, Vocabulary]]:
        """Categorical columns, with categories that are known, at little cost: others may be known too."""

    def _training_categories(self, column: int) -> TrainingCategories | None:
        """All categories of a column in training; None if the model does not use the column."""


@dataclass(slots=True)
class _Column:
    """Unseen values of a column in several tables."""

    name: str
    training: TrainingCategories | None
    values: int = 0
    unseen: int = 0
    example: UnseenValues | None = None  # the most frequent category

    def add(self, table: Table, column: int, maybe: bool) -> None:
        """Count the values of a table; none is unseen unless `maybe`."""
        if self.training is None:
            return
        found = table.unseen_values(column, self.training.vocabulary) if maybe else None
        self.values += table.present_values(column) if found is None else found.values
        if found is not None and found.unseen:
            self.unseen += found.unseen
            if self.example is None or found.count > self.example.count:
                self.example = found

    @property
    def unusual(self) -> bool:
        """Whether more values are unseen than in training: see docs/mixed-tables.md."""
        if not self.unseen or self.training is None:
            return False
        before, now = self.training.unseen, self.unseen / self.values
        return now > max(LEAST, TIMES * before) or (self.unseen == self.values and before**self.unseen < RARE)

    def warn(self) -> None:
        assert self.example is not None
        assert self.training is not None
        value, words = self.example.value, self.training.vocabulary
        counted = f"{self.unseen:,} of {amount(self.values, 'value', 'values')} ({self.unseen / self.values:.0%})"
        comparison, remedy = _compared(value, words)
        verbs = "is unseen in training and counts" if self.unseen == 1 else "are unseen in training and count"
        place = f"{_shown(value)} in row {self.example.row}"
        warn(
            f"Column {self.name!r}: {counted} {verbs} as missing, such as {place}. {comparison}{remedy}",
            UnseenCategoriesWarning,
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _compared(value: Any, words: Vocabulary) -> tuple[str, str]:
    """How an unseen category differs from the nearest known one, and the remedy."""
    correct = "Correct the values, or add rows that have them by partial_fit or a new fit."
    if not words:
        return "", correct
    if isinstance(value, str) != isinstance(words[0], str):
        types = type(value).__name__, type(words[0]).__name__, _shown(words[0])
        other = "The column has categories of type {}, and the model knows categories of type {}, such as {}. "
        return other.format(*types), "Convert the column to the type of the training rows."
    known = f"Known categories: {listed(words, limit=5)}. "
    if not isinstance(value, str):
        return known, correct
    same = next((word for word in words if normalized_label(word) == normalized_label(value)), None)
    if same is not None:
        comparison = f"{_shown(value)} differs from {_shown(same)} by {spelling_difference(value, same)}. "
        remedy = "use normalize=True in the fit, which ignores case and blanks at the ends"
        return comparison, f"Correct the values, or {remedy}."
    near = difflib.get_close_matches(value, [word for word in words[:SPELLED] if isinstance(word, str)], n=1)
    return f"The nearest known category is {_shown(near[0])}. " if near else known, correct


class UnseenCategories:
    """Counts of unseen categories in the tables of one call."""

    def __init__(self) -> None:
        self._columns: dict[int, _Column] = {}
        self._until = 0  # the rows before this number are counted

    def add(self, table: Table, model: ReadsCategories, alone: bool) -> None:
        """Count those of a table; `alone` where no other table follows, so that known categories need no count."""
        known = list(model._vocabularies())
        if not known or table.start + table.rows <= self._until:  # another result of the same rows
            return
        self._until = table.start + table.rows
        for j, words in known:
            maybe = table.has_unseen(j, words)
            if maybe or not alone:
                if j not in self._columns:
                    self._columns[j] = _Column(table.names[j], model._training_categories(j))
                self._columns[j].add(table, j, maybe)

    def warn(self) -> None:
        """One warning for each column where more values are unseen than in training."""
        for column in self._columns.values():
            if column.unusual:
                column.warn()


_collected: ContextVar[UnseenCategories | None] = ContextVar("collected", default=None)


@contextmanager
def one_warning() -> Iterator[None]:
    """Count the unseen categories of all calls within, and warn at the end."""
    if _collected.get() is not None:
        yield
        return
    counts = UnseenCategories()
    token = _collected.set(counts)
    try:
        yield
    finally:
        _collected.reset(token)
    counts.warn()


class UnseenCounter:
    """Counts the unseen categories of the tables of a call, and warns after the last, or leaves it to `one_warning`."""

    __slots__ = ("_alone", "_counts", "_model", "_outer")

    def __init__(self, model: ReadsCategories | None, alone: bool) -> None:
        self._model, self._outer = model, _collected.get()
        self._counts = self._outer or UnseenCategories()
        self._alone = alone and self._outer is None

    def add(self, table: Table) -> None:
        if self._model is not None:
            self._counts.add(table, self._model, self._alone)

    def finish(self) -> None:
        if self._outer is None:
            self._counts.warn()
