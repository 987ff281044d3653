"""Missing values filled in by their conditional expectation or most probable category."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import as_narwhals, is_frame, series_like
from likely.data.table import Table
from likely.errors import InputError
from likely.model.block import Block
from likely.model.joint import JointModel
from likely.numerics.arrays import is_missing
from likely.numerics.special import log_sum_exp
from likely.numerics.ties import exceeds
from likely.typing import AnyArray, Array


def fill_cells(model: JointModel, table: Table, codes: AnyArray | None, X: Any) -> Any:
    """X with missing numbers replaced by their expectations, and missing categories by the most probable ones.

    `codes` are those of the rows' labels, -1 for unlabeled rows; None if all rows are unlabeled.
    """
    if table.is_sparse:
        raise InputError("impute: X is sparse. Use X.toarray(), where values that are not stored are 0.")
    joint = np.repeat(model.log_prior[:, None], table.rows, axis=1)
    parts = []
    for block in model.blocks:
        rows = block.reader(table)(0, table.rows)
        rows = rows if block.conditionals.reads_text else np.array(rows)
        parts.append(rows)
        with table.named_cells(None, range(table.rows)):
            joint += block.evidence(rows)
    if codes is not None:
        known = np.flatnonzero(codes >= 0)
        observed = joint[codes[known], known]
        joint[:, known] = -np.inf
        joint[codes[known], known] = np.where(np.isneginf(observed), 0.0, observed)
    impossible = np.isneginf(joint.max(axis=0))
    joint[:, impossible] = model.log_prior[:, None]
    posterior = np.exp(joint - log_sum_exp(joint))
    found: dict[int, tuple[AnyArray, AnyArray]] = {}  # of each column, the rows to fill and their values
    for block, rows in zip(model.blocks, parts, strict=True):
        if block.conditionals.reads_text:
            continue  # missing documents stay missing
        if block.conditionals.vocabularies is not None:
            found |= _categories(block, rows, posterior, table)
        else:
            found |= _missing_only(_numbers(block, rows, posterior), table)
    return _written(X, table, found, {j for block in model.blocks for j in block.index.tolist()})


def _missing_only(found: dict[int, tuple[AnyArray, AnyArray]], table: Table) -> dict[int, tuple[AnyArray, AnyArray]]:
    """Without values that are not missing, but outside the support of a family that was chosen by default."""
    kept = {}
    for j, (index, values) in found.items():
        missing = np.isnan(np.asarray(table.column(j), dtype=np.float64)[index])
        if missing.any():
            kept[j] = index[missing], values[missing]
    return kept


def filled_rows(model: JointModel, rows: AnyArray) -> Array:
    """Rows of a model with one block of numbers, with missing values replaced by their expectations."""
    (block,) = model.blocks
    joint = model.log_prior[:, None] + block.evaluate(rows, exact=True)
    posterior = np.exp(joint - log_sum_exp(joint))
    filled = np.array(rows, dtype=np.float64)
    for j, (index, values) in _numbers(block, rows, posterior).items():
        filled[index, block.index.tolist().index(j)] = values
    return filled


def _numbers(block: Block, rows: AnyArray, posterior: Array) -> dict[int, tuple[AnyArray, AnyArray]]:
    """Expectations of missing numbers: E[x_j | observed] = Σ_k p(k | observed)·E[x_j | observed, k]."""
    width = len(block.index)
    missing = np.isnan(rows[:, :width]) if rows.dtype.kind == "f" else np.zeros((len(rows), width), dtype=bool)
    index = np.flatnonzero(missing.any(axis=1))
    if not len(index):
        return {}
    some = np.asarray(rows[index], dtype=np.float64)
    mean = np.zeros((len(index), width))
    for k in range(len(posterior)):
        mean += posterior[k, index, None] * block.conditionals.expectation(some, k)[:, :width]
    mean = block.conditionals.round_to_support(mean)
    found = {}
    for place, j in enumerate(block.index.tolist()):
        here = missing[index, place]
        if here.any():
            found[j] = index[here], mean[here, place]
    return found


def _categories(block: Block, rows: AnyArray, posterior: Array, table: Table) -> dict[int, tuple[AnyArray, AnyArray]]:
    """The most probable categories of missing values, over the classes of their rows."""
    words = block.conditionals.vocabularies
    assert words is not None
    found = {}
    for place, j in enumerate(block.index.tolist()):
        (mine,) = table.categories([j])  # an unseen category is not missing
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
            score = np.nansum(posterior[:, index] * gain, axis=0)
            better = exceeds(score, best)
            best, chosen = np.where(better, score, best), np.where(better, value, chosen)
        categories = np.empty(len(index), dtype=object)
        categories[:] = [words[place][value] for value in chosen.tolist()]
        found[j] = index, categories
    return found


def _written(X: Any, table: Table, found: dict[int, tuple[AnyArray, AnyArray]], used: Collection[int]) -> Any:
    """X with some values replaced, in the same format; of text that is read as numbers, the numbers."""
    read = _read_columns(table, found, used)
    if is_frame(X):
        frame = as_narwhals(X)
        columns = {str(name): frame.get_column(name) for name in frame.columns}
        changed = [_filled(columns[table.names[j]], *found[j]) for j in found if j not in read]
        for j, values in read.items():
            like = columns[table.names[j]]
            changed.append(nw.new_series(like.name, values, backend=like.implementation))
        return frame.with_columns(*changed).to_native() if changed else X
    array = np.array(X, dtype=object) if np.asarray(X).dtype.kind not in "biuf" else np.array(X, dtype=np.float64)
    for j, (index, values) in found.items():
        array[index, j] = values
    for j, values in read.items():
        array[:, j] = values.tolist()
    return array


def _read_columns(
    table: Table, found: dict[int, tuple[AnyArray, AnyArray]], used: Collection[int]
) -> dict[int, AnyArray]:
    """All values, with those that are filled in, of the columns in use whose text or dates are read as numbers."""
    columns = {}
    for j, each in enumerate(() if table.reading is None else table.reading.columns):
        if each.turns_values and j in used:
            numbers = np.array(table.column(j), dtype=np.float64)
            if j in found:
                numbers[found[j][0]] = found[j][1]
            columns[j] = each.restored(numbers)
    return columns


def _filled(series: Any, index: AnyArray, values: AnyArray) -> Any:
    """A column with some values replaced, in its type, or as floats where the values do not fit the type."""
    kind = series.dtype
    given: list[Any] = values.tolist()
    numbers = values.dtype != object or kind.is_numeric() or kind == nw.Boolean  # categories may be numbers
    whole = numbers and all(float(value).is_integer() for value in given)
    fits = not numbers or kind.is_float() or (whole and kind.is_integer()) or kind == nw.Boolean
    if numbers and kind == nw.Boolean:
        given = [value >= 0.5 for value in given]
    elif whole and kind.is_integer():
        given = [int(value) for value in given]
    elif numbers and fits:
        given = [float(value) for value in given]
    native = series.to_native()
    if hasattr(native, "iloc"):  # pandas keeps its nullable types only where values are set one by one
        native = native.copy() if fits or kind == nw.Object else native.astype("Float64")
        if native.dtype == object and numbers and all(isinstance(v, bool) or is_missing(v) for v in native.tolist()):
            given = [value >= 0.5 for value in given]
        for row, value in zip(index.tolist(), given, strict=True):
            native.iloc[row] = value
        return nw.from_native(native, series_only=True).alias(series.name)
    cells = series.to_list()
    for row, value in zip(index.tolist(), given, strict=True):
        cells[row] = value
    if not fits:
        return nw.new_series(series.name, list(map(float, cells)), nw.Float64(), backend=series.implementation)
    return series_like(cells, series)
