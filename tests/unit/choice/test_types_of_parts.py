"""Columns that have numbers in some parts of a source and text in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import Categorical, GenerativeClassifier, LinearDiscriminant, NaiveBayes
from likely.errors import InputError
from tests.unit.engines.partitions import FrameSource


class Chunks:
    """Frames as chunks of one part."""

    def __init__(self, frames: Sequence[Any]) -> None:
        self.frames = frames

    def chunks(self) -> Iterator[Any]:
        return iter(self.frames)


def frames(texts: Any, place: int) -> list[pd.DataFrame]:
    """Three parts of rows, one of which has texts(numbers) in the column x."""
    rng = np.random.default_rng(0)
    found = []
    for part in range(3):
        label = rng.choice(["a", "b"], 200)
        x = rng.normal(size=200) + 2.0 * (label == "a")
        found.append(pd.DataFrame({"x": texts(x) if part == place else x, "z": rng.normal(size=200), "label": label}))
    return found


def words(x: Any) -> Any:
    return np.where(x > 0.0, "red", "green").astype(object)


SOURCES: dict[str, Callable[[Any], Any]] = {
    "chunks": Chunks,
    "parts": FrameSource,
    "polars": lambda parts: FrameSource([pl.DataFrame(part.to_dict("list")) for part in parts]),
    "dask": lambda parts: dd.from_map(lambda i: parts[i], range(3)),
}


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("model", [NaiveBayes(), GenerativeClassifier(), LinearDiscriminant()])
def test_text_in_one_part_of_a_column_of_numbers_is_an_error(model: Any, source: str, place: int) -> None:
    with pytest.raises(InputError, match=r"Column 'x', row \d+: "):
        model.fit(SOURCES[source](frames(words, place)), "label")


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("model", [NaiveBayes(), GenerativeClassifier(), LinearDiscriminant()])
def test_numbers_that_one_part_stores_as_text_are_never_categories(model: Any, source: str, place: int) -> None:
    with suppress(InputError):  # which names the column
        model.fit(SOURCES[source](frames(lambda x: x.astype(str).astype(object), place)), "label")
        rows = pd.concat(frames(lambda x: x, 0))
        assert np.mean(model.predict(rows[["x", "z"]]) == rows["label"]) > 0.8


def test_parts_without_values_and_declared_columns_may_have_other_types() -> None:
    empty = frames(lambda x: np.full(len(x), None, dtype=object), 1)
    assert "Gaussian" in str(NaiveBayes().fit(Chunks(empty), "label").families_["x"])
    mixed = [part.assign(x=words(part["x"]) if i else part["x"].round()) for i, part in enumerate(frames(words, 3))]
    model = NaiveBayes({"x": Categorical()}).fit(Chunks(mixed), "label")
    assert isinstance(model.families_["x"], Categorical)
