"""Rows that come in chunks: the same model and the same answers as from one table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from likely import (
    Categorical,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    Multinomial,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
)
from likely.errors import ImpossibleRowsWarning, InputError
from tests.helpers import load_table


class Chunks:
    """Parts of a table, as often as asked."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts, self.runs = parts, 0

    def chunks(self) -> Iterator[Any]:
        yield from self.parts
        self.runs += 1


class Once:
    """A generator that pretends to start again."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.left = iter(parts)

    def chunks(self) -> Iterator[Any]:
        yield from self.left


def cut(X: Any, sizes: Sequence[int]) -> list[Any]:
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == (X.shape[0] if hasattr(X, "shape") else len(X))
    pieces = [slice(a, b) for a, b in pairwise(ends)]
    return [X.iloc[piece] if isinstance(X, pd.DataFrame) else X[piece] for piece in pieces]


def same_answers(whole: Any, parts: Any, X: Any, chunked: Any) -> None:
    assert_array_equal(whole.classes_, parts.classes_)
    assert {k: repr(v) for k, v in whole.families_.items()} == {k: repr(v) for k, v in parts.families_.items()}
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-10)
    assert_allclose(parts.log_joint(X), whole.log_joint(X), rtol=1e-10, atol=1e-10)
    assert_array_equal(whole.predict(chunked), whole.predict(X))
    for ask in ("predict_proba", "predict_log_proba", "log_joint", "log_density", "decision_function"):
        assert_allclose(getattr(whole, ask)(chunked), getattr(whole, ask)(X), rtol=1e-12, atol=1e-12)
    one, many = whole.explain(X), whole.explain(chunked)
    assert_allclose(many.evidence, one.evidence, rtol=1e-12, atol=1e-12)
    assert_allclose(many.offset, one.offset, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("model", [GenerativeClassifier(), NaiveBayes(), NaiveBayes(estimation="map")])
@pytest.mark.parametrize("table", ["penguins", "german_credit"])
def test_chunks_of_a_mixed_table_teach_what_the_whole_teaches(table: str, model: Any, library: str) -> None:
    frame = load_table(table)[::3]
    target = "species" if table == "penguins" else "class"
    frame = frame[frame[target].notna()].reset_index(drop=True)
    sizes = [0, 1, len(frame) // 2, 0, len(frame) - len(frame) // 2 - 1]
    turn: Any = {
        "pandas": lambda f: f,
        "polars": pl.from_pandas,
        "arrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    }
    parts = [turn[library](part) for part in cut(frame, sizes)]
    whole = model.fit(turn[library](frame), target)
    answers = clone(model).fit(Chunks(parts), target)
    X = turn[library](frame.drop(columns=target))
    bare = Chunks([turn[library](part.drop(columns=target)) for part in cut(frame, sizes)])
    same_answers(whole, answers, X, bare)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminant(),
        LinearDiscriminant(shrinkage="ledoit-wolf"),
        QuadraticDiscriminant(estimation="bayes"),
        QuadraticDiscriminant(groups=[[0, 2]]),
        NearestPrototype(),
        GenerativeClassifier(),
        NaiveBayes(Gaussian("diagonal"), class_prior={0: 0.2, 1: 0.3, 2: 0.4, 3: 0.1}),
    ],
)
def test_chunks_of_an_array_with_labels_and_weights_beside_it(model: Any) -> None:
    rng = np.random.default_rng(3)
    y = np.sort(rng.integers(0, 3, 400))  # the first chunk has one class only
    X = rng.normal(size=(400, 4)) + y[:, None]
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], 400)
    weight[100:150] = 0.0  # a chunk without any
    whole = model.fit(X, y, weight)
    sizes = [100, 50, 7, 243]
    parts = clone(model).fit(Chunks(cut(X, sizes)), y.tolist(), weight)
    same_answers(whole, parts, X, Chunks(cut(X, sizes)))


def test_sparse_chunks() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = scipy.sparse.csr_array(rng.poisson(0.3 + 0.4 * y[:, None], (60, 30)))
    for model in (NaiveBayes(), NaiveBayes(Multinomial())):
        whole = model.fit(X, y)
        parts = clone(model).fit(Chunks(cut(X, [20, 40])), y)
        same_answers(whole, parts, X, Chunks(cut(X, [20, 40])))


def test_kinds_of_a_column_may_differ_between_chunks() -> None:
    """Integers without missing values and floats with; a column without any value; text here and numbers there."""
    first = pd.DataFrame({"n": [1, 2, 3, 4] * 5, "t": ["a", "b"] * 10, "m": [None] * 20, "o": ["x", "y"] * 10})
    second = pd.DataFrame({"n": [1.0, np.nan] * 10, "t": [None] * 20, "m": [1.5, 2.5] * 10, "o": [7, 8] * 10})
    y = ["u", "v"] * 20
    whole = pd.concat([first.astype({"n": float, "m": float}), second], ignore_index=True)
    one = NaiveBayes().fit(whole, y)
    many = NaiveBayes().fit(Chunks([first, second]), y)
    assert {k: type(v).__name__ for k, v in many.families_.items()} == {
        "n": "Categorical",
        "t": "Categorical",
        "m": "Gaussian",
        "o": "Categorical",
    }
    assert_allclose(many.predict_proba(whole), one.predict_proba(whole), atol=1e-12)
    assert_allclose(many.predict_proba(Chunks([first, second])), one.predict_proba(whole), atol=1e-12)


def test_families_are_chosen_by_the_values_of_all_chunks() -> None:
    """Each chunk alone would choose otherwise."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "few, then many": np.concatenate([np.arange(100) % 4, rng.poisson(9, 100)]),
            "whole, then not": np.concatenate([np.arange(100) % 4, rng.normal(size=100)]),
            "large, then small": np.concatenate([rng.poisson(30, 100), rng.poisson(5, 100)]),
            "missing values at the end": np.concatenate([rng.normal(size=199), [np.nan]]),
            "wide": np.rint(rng.normal(scale=1e12, size=200)).astype(np.int64),
        }
    )
    y = np.arange(200) % 2
    whole = GenerativeClassifier().fit(frame, y)
    parts = GenerativeClassifier().fit(Chunks(cut(frame, [100, 100])), y)
    same_answers(whole, parts, frame, Chunks(cut(frame, [100, 100])))
    naive = NaiveBayes().fit(Chunks(cut(frame, [100, 100])), y)
    assert str(naive.families_) == str(NaiveBayes().fit(frame, y).families_)
    assert type(naive.families_["few, then many"]).__name__ == "NegativeBinomial"
    (joint,) = [key for key in parts.families_ if isinstance(key, tuple)]
    assert {"whole, then not", "missing values at the end", "wide"} <= set(joint)
    assert parts.families_[joint].covariance == "full"


def test_chunks_may_have_their_columns_in_another_order() -> None:
    frame = load_table("penguins").dropna().reset_index(drop=True)
    turned = frame[frame.columns[::-1]]
    whole = NaiveBayes().fit(frame, "species")
    parts = NaiveBayes().fit(Chunks([frame.iloc[:100], turned.iloc[100:]]), "species")
    X = frame.drop(columns="species")
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-10)


def test_errors_count_rows_from_the_first_chunk() -> None:
    X = np.arange(20.0).reshape(10, 2)
    y = np.arange(10) % 2
    bad = X.copy()
    bad[7, 1] = np.inf
    with pytest.raises(InputError, match="Column 'x1', row 7: inf"):
        LinearDiscriminant().fit(Chunks(cut(bad, [4, 6])), y)
    model = LinearDiscriminant(shrinkage=0.1).fit(X, y)
    with pytest.raises(InputError, match="Column 'x1', row 7: inf"):
        model.predict(Chunks(cut(bad, [4, 6])))
    with pytest.raises(InputError, match=r"y, row 8: 0\.5 is not a whole number"):
        model.fit(Chunks(cut(X, [4, 6])), [0, 1, 0, 1, 0, 1, 0, 1, 0.5, 1])
    frame = pd.DataFrame({"a": X[:, 0], "y": [*y[:8].astype(float), np.nan, 1.0]})
    with pytest.raises(InputError, match="y, row 8: the label is missing"):
        LinearDiscriminant().partial_fit(Chunks(cut(frame, [4, 6])), "y")
    with pytest.raises(InputError, match="sample_weight, row 5"):
        model.fit(Chunks(cut(X, [4, 6])), y, [1, 1, 1, 1, 1, -1, 1, 1, 1, 1])
    words = pd.DataFrame({"a": list("ababababab")})
    strict = NaiveBayes(unseen="error").fit(words, y)
    other = pd.DataFrame({"a": list("abababaxab")})
    with pytest.raises(InputError, match="row 7: 'x' was not seen"):
        strict.predict(Chunks(cut(other, [4, 6])))
    seen = pd.DataFrame({"a": list("ababab"), "b": [0, 1] * 3})
    new = pd.DataFrame({"a": list("abababab"), "b": [0, 1, 0, 1, 0, 1, 1, 0]})
    certain = NaiveBayes(estimation="mle").fit(seen, [0, 1] * 3)
    with pytest.warns(ImpossibleRowsWarning, match=r"probability 0 under every class \(first: row 6\)"):
        certain.predict(Chunks(cut(new, [4, 4])))


def test_bad_sources_are_refused() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(InputError, match="no rows"):
        NaiveBayes().fit(Chunks([]), y)
    with pytest.raises(InputError, match="start again"):
        NaiveBayes().fit(Once(cut(X, [10, 10])), y)
    with pytest.raises(InputError, match="X has 20 rows and y has 30"):
        NaiveBayes().fit(Chunks(cut(X, [10, 10])), np.arange(30) % 2)
    with pytest.raises(InputError, match="inconsistent"):
        NaiveBayes().fit(Chunks(cut(X, [10, 10])), y[:15])
    with pytest.raises(InputError, match="sample_weight"):
        NaiveBayes().fit(Chunks(cut(X, [10, 10])), y, np.ones(30))
    with pytest.raises(InputError, match="zero"):
        NaiveBayes().fit(Chunks(cut(X, [10, 10])), y, np.zeros(20))
    with pytest.raises(InputError, match="from row 10 on has the columns"):
        NaiveBayes().fit(Chunks([pd.DataFrame({"a": X[:10, 0]}), pd.DataFrame({"b": X[:10, 0]})]), y)


def test_a_joint_table_of_all_chunks_has_a_limit_too() -> None:
    rows = np.arange(1200)
    frame = pd.DataFrame({"a": rows % 1100, "b": rows // 1, "y": rows % 2})
    model = GenerativeClassifier({("a", "b"): Categorical()})
    with pytest.raises(InputError, match="cells"):
        model.fit(frame, "y")
    with pytest.raises(InputError, match="cells"):
        model.fit(Chunks(cut(frame, [600, 600])), "y")


def test_the_documented_source_reads_a_parquet_file(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "updating.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "class ParquetRows" in block)
    found: dict[str, Any] = {}
    exec(code.replace("100_000", "50"), found)
    frame = load_table("penguins")
    frame.to_parquet(tmp_path / "penguins.parquet")
    parts = NaiveBayes().fit(found["ParquetRows"](tmp_path / "penguins.parquet"), "species")
    X = frame.drop(columns="species")
    assert_allclose(parts.predict_proba(X), NaiveBayes().fit(frame, "species").predict_proba(X), atol=1e-10)


def test_declared_families_need_one_run_over_all_rows() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    source = Chunks(cut(X, [20, 20]))
    QuadraticDiscriminant().fit(source, y)
    assert source.runs == 1
