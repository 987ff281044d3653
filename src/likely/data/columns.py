"""The columns of an estimator: remembered at fit, and found by name in the rows of every later call."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.data.frames import FrameSchema, as_narwhals, is_frame
from likely.data.reading import Reading
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError, listed, nearest, note

MOST_NAMES = 5  # in a message


def remember_columns(
    estimator: Any, X: Any, targets: tuple[Any, ...] = (), reading: Reading | None = None
) -> FrameSchema:
    """Set `n_features_in_` and `feature_names_in_` of an estimator, and return the schema of its frame.

    `targets` are the names of the columns that y was given by: see `read_rows`.
    """
    schema = replace(FrameSchema.of(X), reading=reading)
    remember_schema(estimator, schema, _width(X) if schema.names is None else len(schema.names), targets)
    return schema


def remember_schema(estimator: Any, schema: FrameSchema, width: int, targets: tuple[Any, ...] = ()) -> None:
    """The same with the schema of a frame, or of an array with `width` columns."""
    estimator._target_names = targets
    estimator.__dict__.pop("feature_names_in_", None)
    estimator._column_names, estimator._reading = schema.names, schema.reading
    estimator.n_features_in_ = width
    if schema.names is not None and schema.labels is None:  # scikit-learn knows names of text only
        estimator.feature_names_in_ = np.array(schema.names, dtype=object)


def read_rows(
    estimator: Any, X: Any, start: int = 0, absent: Collection[str] = (), unused: Collection[str] = ()
) -> Table:
    """New rows as a table with the columns of the fit in their order, which are found by name in a frame.

    Columns that the fit did not have are ignored, and those that the estimator was not given y by are noted. Columns
    `absent` may be missing in a frame, and columns `unused` may have any type.
    """
    names, targets = _fitted_names(estimator), set(map(str, getattr(estimator, "_target_names", ())))

    def ignored(found: Sequence[str]) -> Collection[int]:
        if names is None:
            return {j for j, name in enumerate(found) if name in targets or name in unused}
        check_names_of_fit(estimator, [name for name in found if name not in targets], names, absent)
        return {j for j, name in enumerate(found) if name not in names or name in unused}

    table = _in_order_of_fit(estimator, read_table(X, start, ignored), names)
    reading: Reading | None = getattr(estimator, "_reading", None)
    return table if reading is None else reading.apply(table)


def _in_order_of_fit(estimator: Any, table: Table, names: Sequence[str] | None) -> Table:
    """Rows with the columns of the fit in their order."""
    if not table.is_frame:
        _check_number(estimator, table.width)
        if names is not None:
            warnings.warn(
                f"X does not have valid feature names, but {type(estimator).__name__} was fitted with feature names. "
                "Columns were taken in the order of the fit.",
                UserWarning,
                stacklevel=3,
            )
        return table
    return _by_position(estimator, table) if names is None else table.reordered(names)


def in_order(estimator: Any, X: Any) -> Any:
    """A frame with its columns in the order of the fit, without those that the estimator was given y by.

    Anything else is returned as it is. An error where X has other columns than the fit.
    """
    names = _fitted_names(estimator)
    if names is None or not is_frame(X):
        _check_number(estimator, _width(X))
        return X
    frame = as_narwhals(X)
    targets = [name for name in getattr(estimator, "_target_names", ()) if name in frame.columns]
    frame = frame.drop(targets) if targets else frame
    labels = {str(name): name for name in frame.columns}
    check_names_of_fit(estimator, list(labels), names)
    ordered = frame if list(labels) == list(names) else frame.select(*(labels[name] for name in names))
    return ordered.to_native()


def check_names_of_fit(
    estimator: Any, found: Sequence[str], names: Sequence[str], absent: Collection[str] = ()
) -> None:
    """Raise where a column of the fit is missing, but for columns `absent`; note additional columns."""
    if not set(names) <= {*found, *absent}:
        raise InputError(_other_names(found, [name for name in names if name in found or name not in absent]))
    if not set(found) <= set(names):
        more = sorted(set(found) - set(names))
        many = len(more) > 1
        note(
            estimator,
            f"{'Columns' if many else 'Column'} {listed(more)} {'were' if many else 'was'} not in the fit, and "
            f"{'are' if many else 'is'} ignored.",
        )


def _fitted_names(estimator: Any) -> tuple[str, ...] | None:
    """The names of the columns of the fit; None if it had an array."""
    names = getattr(estimator, "_column_names", None)
    if names is None and hasattr(estimator, "feature_names_in_"):  # from a file
        names = tuple(estimator.feature_names_in_.tolist())
    return names


def _width(X: Any) -> int:
    """The number of columns of an array, sparse rows or a list of rows."""
    if isinstance(X, list | tuple):
        return len(X[0])
    return int((X if hasattr(X, "shape") else np.asarray(X)).shape[1])


def _by_position(estimator: Any, table: Table) -> Table:
    """A frame for a model that was fitted to an array: by the names x0, x1, …, or else by position."""
    _check_number(estimator, table.width)
    plain = [f"x{j}" for j in range(table.width)]
    if set(table.names) == set(plain):
        return table.reordered(plain)
    warnings.warn(
        f"X has feature names, but {type(estimator).__name__} was fitted without feature names. Columns were taken in "
        "the order of X.",
        UserWarning,
        stacklevel=4,
    )
    return table


def _check_number(estimator: Any, width: int) -> None:
    if width != estimator.n_features_in_:
        raise InputError(
            f"X has {width} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features "
            "as input. Pass rows with the columns of the fit, in their order, or a data frame with their names."
        )


def _other_names(found: Sequence[str], names: Sequence[str]) -> str:
    """The message about a frame with other columns than those of the fit, with the words of scikit-learn."""
    unseen, missing = sorted(set(found) - set(names)), sorted(set(names) - set(found))
    lines = ["The feature names should match those that were passed during fit."]
    for title, some in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if some:
            lines += [title, *(f"- {name}" for name in some[:MOST_NAMES])]
            if len(some) > MOST_NAMES:
                lines.append(f"- and {len(some) - MOST_NAMES} more")
    resembling = [nearest(name, unseen) for name in missing[:1] if unseen]
    meant = f" {resembling[0]}" if resembling and resembling[0].startswith("Did") else ""
    if unseen:
        remedy = f"Rename the columns of X to those of the fit: {listed(names)}.{meant}"
    else:
        remedy = f"Add the missing columns to X; values may be missing (NaN). The fit had {listed(names)}."
    return "\n".join([*lines, remedy])
