"""What a model draws has the types of what it has learnt."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likely
from likely import Gaussian, GenerativeClassifier, NaiveBayes
from likely.data.frames import FrameSchema

Y = np.arange(120) % 2


def frames() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    words = rng.choice(["u", "v"], 120)
    table: dict[str, Any] = {
        "yes": rng.random(120) < 0.3 + 0.3 * Y,
        "count": rng.poisson(4 * (1 + Y)),
        "word": words,
        "size": rng.normal(size=120),
    }
    own = pd.DataFrame(table).assign(kind=pd.Categorical(words), small=table["count"].astype(np.int8))
    own = own.assign(maybe=pd.array(table["yes"], "boolean"), whole=pd.array(table["count"], "Int64"))
    counts = table["count"]
    arrow = own.assign(
        word=pd.Series(words, dtype=pd.ArrowDtype(pa.string())),
        kind=pd.Series(words.tolist(), dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        yes=pd.Series(table["yes"], dtype="bool[pyarrow]"),
        text=pd.Series(words, dtype=pd.StringDtype("python")),
        level=pd.Categorical(counts % 3, [2, 1, 0, 5], ordered=True),
        size=pd.Series(table["size"], dtype="double[pyarrow]"),
        height=pd.array(table["size"], "Float64"),
    )
    word = pl.col("word")
    polars = pl.DataFrame(table).with_columns(
        kind=word.cast(pl.Categorical),
        listed=word.cast(pl.Enum(["u", "v", "w"])),
        small=pl.col("count").cast(pl.Int8),
        wide=pl.col("count").cast(pl.Int128),
    )
    dictionary = pa.array(words.tolist()).dictionary_encode()
    return {
        "pandas": own,
        "intervals": own.assign(age=pd.cut(table["size"], 3)),
        "numbers for names": pd.DataFrame({0: table["count"], 1: table["size"], 2: table["yes"]}),
        "polars": polars,
        "arrow in pandas": arrow,
        "arrow": pa.table({**table, "kind": dictionary, "large": pa.array(words, pa.large_string())}),
    }


def types(frame: Any) -> list[str]:
    """Types in words; how wide Arrow's codes of categories are is left out."""
    found = frame.schema.types if isinstance(frame, pa.Table) else frame.dtypes
    return [f"{kind!r}, {getattr(kind, 'categories', None)!r}".replace("uint32", "int32") for kind in found]


@pytest.mark.parametrize("name", frames())
@pytest.mark.parametrize("kind", [NaiveBayes, GenerativeClassifier])
def test_samples_have_the_types_of_the_columns_and_can_be_learnt_and_judged(name: str, kind: Any) -> None:
    frame = frames()[name]
    model = kind().fit(frame, Y)
    X, y = model.sample(300, random_state=0)
    assert type(X) is type(frame)
    if kind is NaiveBayes:
        assert types(X) == types(frame)
        again = NaiveBayes().fit(X, y)
        assert {key: type(family) for key, family in again.families_.items()} == {
            key: type(family) for key, family in model.families_.items()
        }
    assert np.all(np.isfinite(model.predict_proba(X)))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_draws_that_are_no_whole_numbers_are_floats(library: Any) -> None:
    frame = library({"count": np.arange(120), "other": np.arange(120) % 7})
    model = NaiveBayes(Gaussian("diagonal")).fit(frame, Y)
    X, _ = model.sample(50, random_state=0)
    assert all("float" in kind.lower() or "double" in kind for kind in types(X))
    assert np.all(np.isfinite(model.predict_proba(X)))


@pytest.mark.parametrize("name", frames())
def test_a_schema_is_a_value_without_a_frame(name: str) -> None:
    frame = frames()[name]
    schema = FrameSchema.of(frame)
    assert schema.backend == type(frame).__module__.split(".")[0]
    assert pickle.loads(pickle.dumps(schema)) == schema == FrameSchema.of(frame[:3])
    assert b"DataFrame" not in pickle.dumps(schema)
    assert "Table" not in repr(schema)
    plain = FrameSchema.from_file(schema.to_file(), schema.names)
    if name == "intervals":  # files do not hold them
        assert plain.kinds is not None
        assert plain.kinds[-1] is None
    else:
        assert plain == schema


@pytest.mark.parametrize("name", ["pandas", "numbers for names", "arrow in pandas", "polars", "arrow"])
def test_samples_of_a_model_from_a_file_have_the_types_of_the_columns(name: str, tmp_path: Any) -> None:
    frame = frames()[name]
    NaiveBayes().fit(frame, Y).save(tmp_path / "model")
    X, _ = likely.load(tmp_path / "model").sample(20, random_state=0)
    assert type(X) is type(frame)
    assert types(X) == types(frame)


@pytest.mark.parametrize("name", ["pandas", "polars", "arrow"])
def test_a_model_from_a_file_can_be_drawn_from_and_judges_what_it_draws(name: str, tmp_path: Any) -> None:
    model = NaiveBayes().fit(frames()[name], Y)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    X, _ = again.sample(20, random_state=0)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(model.sample(20, random_state=0)[0]))
