"""Documents from lists, arrays, series and frames, as a list of strings; missing documents are empty strings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse
from narwhals.typing import IntoDataFrame, IntoLazyFrame, IntoSeries

from likely.data.frames import as_narwhals, whole_frame
from likely.data.ledger import HashedRows
from likely.data.sources import in_memory
from likely.errors import InputError, InputTypeError, listed
from likely.numerics.arrays import is_missing
from likely.typing import AnyArray, Array, ChunkSource, Codes

DocumentsLike: TypeAlias = Sequence[object] | npt.ArrayLike | IntoSeries | IntoDataFrame | IntoLazyFrame | ChunkSource
SAMPLE = 1000  # values of a column by which it is recognised as text


@dataclass(frozen=True, slots=True, eq=False)
class TextRows:
    """Documents to be classified."""

    texts: list[str]

    @property
    def rows(self) -> int:
        """Their number."""
        return len(self.texts)


@dataclass(frozen=True, slots=True, eq=False)
class LabeledDocuments:
    """Documents with the codes of their classes; weights of None are 1 for all documents."""

    texts: list[str]
    classes: AnyArray
    codes: Codes
    weights: Array | None

    def hashed(self) -> HashedRows:
        """Their hashes for a ledger."""
        return HashedRows.of_documents(self.texts, self.classes, self.codes, self.weights)

    def used(self) -> LabeledDocuments:
        """Those of positive weight."""
        if self.weights is None or self.weights.all():
            return self
        used = np.flatnonzero(self.weights)
        texts = [self.texts[i] for i in used.tolist()]
        return LabeledDocuments(texts, self.classes, self.codes[used], self.weights[used])


def read_documents(
    X: Any, column: Any, encoding: tuple[str, str], ignored: Sequence[Any] = (), start: int = 0
) -> tuple[list[str], Any]:
    """The documents of X, and the name of their column: X is a list, an array, a series, or a frame.

    `column` is the name of the column; None is the only text column that is not among the `ignored` ones. Errors number
    the documents from `start`.
    """
    X = in_memory(X)
    frame = None if isinstance(X, list | tuple | np.ndarray) else as_narwhals(whole_frame(X))
    if isinstance(frame, nw.DataFrame):
        column = _text_column(frame, ignored) if column is None else column
        if column not in frame.columns:
            raise InputError(f"column={column!r} is not among the columns of X: {listed(frame.columns)}.")
        values = list(frame.get_column(column).to_list())
    else:
        values = _values(X)
    if not len(values):
        raise InputError("X has no documents: Found array with 0 sample(s) while a minimum of 1 is required.")
    if set(map(type, values)) == {str}:
        return values, column
    documents = [
        value if type(value) is str else _document(i, value, encoding) for i, value in enumerate(values, start)
    ]
    return documents, column


def _document(row: int, value: Any, encoding: tuple[str, str]) -> str:
    """One document as text; missing ones are empty."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode(*encoding)
        except UnicodeDecodeError as error:
            raise InputError(
                f"X, row {row}: the bytes cannot be decoded as {encoding[0]} ({error.reason} at byte {error.start}). "
                "Decode them first, or set encoding or decode_error of the vectorizer."
            ) from None
    if value is None or is_missing(value):
        return ""
    shown = repr(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    raise InputTypeError(
        f"X, row {row}: {shown} is of type {type(value).__name__}, and not text. Pass strings, for example str(value)."
    )


def _values(X: Any) -> list[Any]:
    """The values of X, which is not a frame, as a list."""
    if isinstance(X, str | bytes | os.PathLike):
        raise InputError(f"X is a single {type(X).__name__}: Iterable over raw text documents expected. Use [X].")
    if scipy.sparse.issparse(X):
        raise InputTypeError("X is sparse. TextClassifier counts terms itself: pass raw text documents.")
    if isinstance(X, Iterator):
        X = list(X)
    X = whole_frame(X)
    if isinstance(X, np.ndarray):
        X = X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X
        if X.ndim != 1:
            raise InputError(f"X has shape {X.shape}. Pass an array of documents of shape (n_samples,).")
        return list(X.tolist())  # None if values are masked
    if isinstance(X, list | tuple):
        return list(X)
    found = as_narwhals(X)
    if isinstance(found, nw.LazyFrame):
        raise InputError(f"X is a {type(X).__name__}, a query whose rows are not in memory. Use X.collect().")
    series = nw.from_native(X, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return list(series.to_list())
    if hasattr(X, "to_pylist"):  # an array of pyarrow
        return list(X.to_pylist())
    if hasattr(X, "chunks") or not hasattr(X, "__iter__"):
        raise InputTypeError(
            f"X is a {type(X).__name__}. Pass a list, an array, a series or a frame; use partial_fit for chunks."
        )
    return list(X)


def _text_column(frame: nw.DataFrame[Any], ignored: Sequence[Any]) -> Any:
    """The only text column of a frame: of strings, or of categories where no column has strings."""
    names = [name for name in frame.columns if name not in ignored]
    for kinds in ((nw.String, nw.Object, nw.Binary, nw.Unknown), (nw.Categorical, nw.Enum)):
        text = [name for name in names if _is_text(frame.get_column(name), kinds)]
        if len(text) == 1:
            return text[0]
        if text:
            break
    found = "no text column" if not text else f"the text columns {listed(text)}"
    raise InputError(f"X has {found} among {listed(names)}. Name the column of documents, with column=...")


def _is_text(series: nw.Series[Any], kinds: tuple[Any, ...]) -> bool:
    """Whether a column of some types has strings, or bytes, and no other values but missing ones at its beginning."""
    if series.dtype not in kinds:
        return False
    if series.dtype == nw.String:
        return True
    values = [value for value in series.head(SAMPLE).to_list() if not (value is None or is_missing(value))]
    return bool(values) and all(isinstance(value, str | bytes) for value in values)
