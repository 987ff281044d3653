"""Missing values filled in by their conditional expectation or most probable category."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import is_frame
from likely.data.table import Table
from likely.errors import InputError
from likely.model.joint import Block, JointModel
from likely.numerics.arrays import is_missing
from likely.numerics.special import log_sum_exp
from likely.typing import AnyArray, Array


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
    mean = block.conditionals.round_to_support(mean)
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
        (mine,) = table.categories([j])  # a label that was never seen is no missing one
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
