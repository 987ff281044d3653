"""Frames of every library: labels and categories that are text, and predictions of single rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.timing import Line, alternate, at_most
from likely import Categorical, Gaussian, NaiveBayes

CALLS = 100  # of a prediction that is too short to be timed alone


def text(codes: Any, words: list[str]) -> dict[str, Any]:
    """A column of text in the types of several libraries."""
    objects = np.array(words, dtype=object)[codes]
    arrow = pa.array(objects)
    return {
        "pandas, objects": pd.Series(objects, dtype=object),
        "pandas, str": pd.Series(objects, dtype="str"),
        "pandas, Arrow": pd.Series(pd.arrays.ArrowExtensionArray(arrow)),
        "pandas, categorical": pd.Series(objects).astype("category"),
        "Polars": pl.Series(arrow),
        "Polars, categorical": pl.Series(arrow).cast(pl.Categorical),
        "Arrow": pa.chunked_array([arrow]),
        "Arrow, dictionary": pa.chunked_array([arrow.dictionary_encode()]),
    }


def frame_of(columns: dict[str, Any], library: str) -> Any:
    """Columns as a frame of a library."""
    if library.startswith("pandas"):
        return pd.DataFrame(columns)
    return pl.DataFrame(columns) if library.startswith("Polars") else pa.table(columns)


def labels(rows: int = 2_000_000) -> Iterator[Line]:
    """Fits with labels that are a column of text, in units of the fit with integers."""
    rng = np.random.default_rng(0)
    numbers = {f"x{j}": rng.normal(size=rows) for j in range(20)}
    codes = rng.integers(5, size=rows)
    yield f"labels of text, {rows:,} x 20 floats, 5 classes: fit / fit with labels that are integers"
    for library, y in text(codes, ["adelie", "chinstrap", "gentoo", "king", "rockhopper"]).items():
        given, plain = (frame_of(numbers | {"y": target}, library) for target in (y, codes))
        model = NaiveBayes(Gaussian("diagonal"))
        mine, bare = alternate([partial(model.fit, given, "y"), partial(model.fit, plain, "y")], repeats=3)
        yield at_most(library, mine / bare, 1.5, f"{mine:.2f} s")


def categories(rows: int = 1_000_000) -> Iterator[Line]:
    """Fits to columns of text."""
    rng = np.random.default_rng(0)
    drawn = [text(rng.integers(12, size=rows), [f"category {i}" for i in range(12)]) for _ in range(10)]
    y = rng.integers(3, size=rows)
    yield f"categories of text, {rows:,} x 10, 12 categories, in seconds"
    for library in drawn[0]:
        frame = frame_of({f"x{j}": columns[library] for j, columns in enumerate(drawn)}, library)
        (mine,) = alternate([partial(NaiveBayes(Categorical()).fit, frame, y)], repeats=3)
        yield at_most(f"{library}, fit", mine, 1.0)


def repeatedly(model: NaiveBayes, row: Any) -> None:
    for _ in range(CALLS):
        model.predict_proba(row)


def single_rows(rows: int = 500) -> Iterator[Line]:
    """Class probabilities of a frame with one row."""
    rng = np.random.default_rng(0)
    numbers = {f"x{j}": rng.normal(size=rows) for j in range(20)}
    y = rng.integers(3, size=rows)
    words = [text(rng.integers(2, size=rows), ["yes", "no"]) for _ in range(2)]
    yield "class probabilities of one row, 20 floats, in milliseconds"
    for more, name in (([], "floats"), (words, "floats and 2 columns of text")):
        for library in words[0]:
            if not more and library not in ("pandas, objects", "Polars", "Arrow"):
                continue  # the same floats again
            frame = frame_of(numbers | {f"text{j}": columns[library] for j, columns in enumerate(more)}, library)
            row = frame.slice(0, 1) if isinstance(frame, pa.Table) else frame[:1]
            model = NaiveBayes().fit(frame, y)
            (mine,) = alternate([partial(repeatedly, model, row)], repeats=5)
            yield at_most(f"{library}: {name}", 1e3 * mine / CALLS, 1.0)


def frames() -> Iterator[Line]:
    yield from labels()
    yield from categories()
    yield from single_rows()
