"""What follows from a joint model for rows that lack something: cells filled in, and how usual a row is."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse
import scipy.special

from likely.errors import InputError, NoDensityError, listed
from likely.families.base import patterns
from likely.families.elliptical import GaussianConditionals, StudentConditionals
from likely.frames import is_frame
from likely.joint import Block, JointModel
from likely.numerics import AnyArray, Array, all_finite, is_missing, log_sum_exp
from likely.tables import Table

# ------------------------------------------------------------------------------------------------------------ filling


def fill_cells(model: JointModel, table: Table, codes: AnyArray | None, X: Any) -> Any:
    """What was handed over, with expectations in place of missing numbers and the most probable ones of labels.

    `codes` are those of known labels, -1 where a row's is not known; None where none is.
    """
    if table.is_sparse:
        raise InputError("impute: X is sparse. Hint: X.toarray(), where empty cells are zeros and NaN is missing.")
    joint = np.repeat(model.log_prior[:, None], table.rows, axis=1)
    parts = []
    for block in model.blocks:
        rows = np.array(block.reader(table)(0, table.rows))
        parts.append(rows)
        joint += block.evaluate(rows, exact=True)
    if codes is not None:
        known = np.flatnonzero(codes >= 0)
        own = joint[codes[known], known]
        joint[:, known] = -np.inf
        joint[codes[known], known] = np.where(np.isneginf(own), 0.0, own)
    lost = np.isneginf(joint.max(axis=0))
    joint[:, lost] = model.log_prior[:, None]
    share = np.exp(joint - log_sum_exp(joint))
    found: dict[int, tuple[AnyArray, AnyArray]] = {}  # of each column: which rows are filled, and with what
    for block, rows in zip(model.blocks, parts, strict=True):
        if block.conditionals.vocabularies is not None:
            found |= _labels(block, rows, share, table)
        else:
            found |= _numbers(block, rows, share)
    return _written(X, table, found)


def filled_rows(model: JointModel, rows: AnyArray) -> Array:
    """Rows of a model with one block of numbers, with the expectations of missing cells, over their classes."""
    (block,) = model.blocks
    joint = model.log_prior[:, None] + block.evaluate(rows, exact=True)
    share = np.exp(joint - log_sum_exp(joint))
    filled = np.array(rows, dtype=np.float64)
    for j, (index, values) in _numbers(block, rows, share).items():
        filled[index, block.index.tolist().index(j)] = values
    return filled


def _numbers(block: Block, rows: AnyArray, share: Array) -> dict[int, tuple[AnyArray, AnyArray]]:
    """Expectations of missing numbers, over the classes of their rows."""
    width = len(block.index)
    missing = np.isnan(rows[:, :width]) if rows.dtype.kind == "f" else np.zeros((len(rows), width), dtype=bool)
    index = np.flatnonzero(missing.any(axis=1))
    if not len(index):
        return {}
    some = np.asarray(rows[index], dtype=np.float64)
    mean = np.zeros((len(index), width))
    for k in range(len(share)):
        mean += share[k, index, None] * block.conditionals.expectation(some, k)[:, :width]
    mean = block.conditionals.possible(mean)
    found = {}
    for place, j in enumerate(block.index.tolist()):
        holed = missing[index, place]
        if holed.any():
            found[j] = index[holed], mean[holed, place]
    return found


def _labels(block: Block, rows: AnyArray, share: Array, table: Table) -> dict[int, tuple[AnyArray, AnyArray]]:
    """The most probable labels of missing cells, over the classes of their rows."""
    words = block.conditionals.vocabularies
    assert words is not None
    found = {}
    for place, j in enumerate(block.index.tolist()):
        (mine,) = table.labels([j])  # a label that was never seen is no missing one
        index = np.flatnonzero((rows[:, place] < 0) & (mine.part(0, table.rows) < 0))
        if not len(index) or not len(words[place]):
            continue
        before = block.conditionals.log_density(rows[index])
        best, chosen = np.full(len(index), -np.inf), np.zeros(len(index), dtype=np.intp)
        for value in range(len(words[place])):
            trial = rows[index].copy()
            trial[:, place] = value
            with np.errstate(invalid="ignore"):
                gain = np.exp(block.conditionals.log_density(trial) - before)
            score = np.nansum(share[:, index] * gain, axis=0)
            better = score > best
            best, chosen = np.where(better, score, best), np.where(better, value, chosen)
        labels = np.empty(len(index), dtype=object)
        labels[:] = [words[place][value] for value in chosen.tolist()]
        found[j] = index, labels
    return found


def _written(X: Any, table: Table, found: dict[int, tuple[AnyArray, AnyArray]]) -> Any:
    """What was handed over with some cells replaced, as what it was."""
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        columns = {str(name): name for name in frame.columns}
        changed = [_filled(frame.get_column(columns[table.names[j]]), *found[j]) for j in found]
        return frame.with_columns(*changed).to_native() if changed else X
    array = np.array(X, dtype=object) if np.asarray(X).dtype.kind not in "biuf" else np.array(X, dtype=np.float64)
    for j, (index, values) in found.items():
        array[index, j] = values
    return array


def _filled(series: Any, index: AnyArray, values: AnyArray) -> Any:
    """A column with some cells replaced, in the type it had, or as floats where that has no place for them."""
    kind = series.dtype
    numbers = values.dtype != object
    whole = numbers and not np.any(values != np.rint(values))
    fits = not numbers or kind.is_float() or (whole and kind.is_integer()) or kind == nw.Boolean
    if numbers and kind == nw.Boolean:
        given: list[Any] = [bool(value >= 0.5) for value in values.tolist()]
    elif numbers and kind.is_integer() and whole:
        given = [int(value) for value in values.tolist()]
    else:
        given = values.tolist()
    native = series.to_native()
    if hasattr(native, "iloc"):  # pandas keeps its own kinds of types only where cells are set
        native = native.copy() if fits or kind == nw.Object else native.astype("Float64")
        if native.dtype == object and numbers and all(isinstance(v, bool) or is_missing(v) for v in native.tolist()):
            given = [bool(value >= 0.5) for value in values.tolist()]
        for row, value in zip(index.tolist(), given, strict=True):
            native.iloc[row] = value
        return nw.from_native(native, series_only=True).alias(series.name)
    cells = series.to_list()
    for row, value in zip(index.tolist(), given, strict=True):
        cells[row] = value
    if not fits:
        cells, kind = [float(cell) for cell in cells], nw.Float64()
    return nw.new_series(series.name, cells, kind, backend=series.implementation)


# -------------------------------------------------------------------------------------------------------------- usual


class Usual:
    """How usual rows are: max over the classes of P(a row of the class is at most as likely as this one)."""

    def __init__(self, model: JointModel, n_samples: int, rng: np.random.Generator) -> None:
        self._model, self._draws = model, n_samples
        self._only: GaussianConditionals | StudentConditionals | None = None
        if len(model.blocks) == 1:
            parts = model.blocks[0].conditionals
            if isinstance(parts, GaussianConditionals | StudentConditionals):
                self._only = parts
        for block in model.blocks:
            if block.conditionals.given is not None:
                columns = listed([model.names[j] for j in block.index])
                raise NoDensityError(
                    f"Columns {columns}: {block.conditionals.given} is given, not modelled, and makes no row "
                    "unusual. Hint: novelty of a model without these columns, or with Poisson() and no exposure."
                )
        self._samples = [] if self._only is not None else self._drawn(rng)
        self._known: dict[bytes, list[Array]] = {}

    def _drawn(self, rng: np.random.Generator) -> list[list[AnyArray]]:
        """Rows of every class, one array for each block."""
        return [
            [block.conditionals.sample(k, self._draws, rng) for block in self._model.blocks]
            for k in range(len(self._model.classes))
        ]

    def of(self, table: Table) -> Array:
        """Probabilities, (rows,)."""
        parts = []
        for block in self._model.blocks:  # a block of rows is gone with the next one
            rows = block.reader(table)(0, table.rows)
            parts.append(rows.toarray() if scipy.sparse.issparse(rows) else np.array(rows))
        if self._only is not None:
            self._model.blocks[0].evaluate(parts[0], exact=True)  # for its errors
            return self._gaussian(self._only, np.asarray(parts[0], dtype=np.float64))
        return self._sampled(parts)

    @staticmethod
    def _gaussian(fitted: GaussianConditionals | StudentConditionals, rows: Array) -> Array:
        """By the squared distances of what is there: χ², or F where a predictive is a Student t."""
        parts = fitted.observed(rows)
        if parts is not None and all_finite(parts[0]):
            squared, count = parts[0], parts[2]
        else:  # columns that depend on one another, or rows too far for squares: pattern after pattern
            squared, count = np.zeros((fitted.n_classes, len(rows))), np.zeros(len(rows))
            for index, observed in patterns(rows):
                part = fitted.marginal(observed)
                count[index] = part.covariance.rank
                with np.errstate(over="ignore", divide="ignore"):
                    squared[:, index] = np.exp(part.log_squared(rows[np.ix_(index, observed)]))
        d = np.maximum(count, 1.0)
        if isinstance(fitted, StudentConditionals):
            chance = scipy.special.fdtrc(d, fitted.degrees[:, None], squared / d)
        else:
            chance = scipy.special.chdtrc(d, squared)
        return np.where(count > 0.0, chance.max(axis=0), 1.0)

    def _sampled(self, parts: list[AnyArray]) -> Array:
        """By draws of every class, for each pattern of missing cells."""
        masks = [rows < 0 if self._words(i) else np.isnan(rows) for i, rows in enumerate(parts)]
        whole = np.hstack([np.asarray(mask) for mask in masks])
        found = np.zeros(len(whole))
        for index, observed in patterns(np.where(whole, np.nan, 0.0)):
            there = np.zeros(whole.shape[1], dtype=bool)
            there[observed] = True
            best = np.zeros(len(index))
            for k in range(len(self._model.classes)):
                mine = self._density([rows[index] for rows in parts], k)
                drawn = self._drawn_densities(k, there)
                # the row itself is one of them: never 0, and uniform for rows like them
                best = np.maximum(best, (np.searchsorted(drawn, mine, side="right") + 1.0) / (len(drawn) + 1.0))
            found[index] = best if len(observed) else 1.0
        return found

    def _words(self, place: int) -> bool:
        return self._model.blocks[place].conditionals.vocabularies is not None

    def _density(self, parts: list[AnyArray], k: int) -> Array:
        total = np.zeros(len(parts[0]))
        for block, rows in zip(self._model.blocks, parts, strict=True):
            total = total + block.evaluate(rows, exact=True)[k]
        return total

    def _drawn_densities(self, k: int, there: AnyArray) -> Array:
        """Log-densities of draws of a class, of some cells, sorted."""
        key = there.tobytes()
        if key not in self._known:
            self._known[key] = [self._sorted(label, there) for label in range(len(self._model.classes))]
        return self._known[key][k]

    def _sorted(self, k: int, there: AnyArray) -> Array:
        parts, start = [], 0
        for i, rows in enumerate(self._samples[k]):
            mask = there[start : start + rows.shape[1]]
            start += rows.shape[1]
            parts.append(np.where(mask, rows, -1).astype(np.intp) if self._words(i) else np.where(mask, rows, np.nan))
        return np.sort(self._density(parts, k))
