"""The histogram view: leave-one-out, updates, and tables of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely.data.validation import read_table
from likely.evidence.encoding import Encoding
from likely.evidence.histogram import FittedHistograms, HistogramView
from likely.evidence.rows import TrainingRows


def training_rows(frame: Any, y: Any, weights: Any = None) -> tuple[TrainingRows, Encoding]:
    table = read_table(frame)
    classes, codes = np.unique(y, return_inverse=True)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    encoding = Encoding.of(table, weights, range(table.width))
    index = np.arange(len(y))
    return TrainingRows(
        encoding.encode(table), classes, codes, weights, index.astype(np.uint64), index, np.ones_like(index)
    ), encoding


def fitted(rows: TrainingRows, encoding: Encoding) -> FittedHistograms:
    view = HistogramView().fit(rows, encoding, 0)
    assert view is not None
    return view


def mixed(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    code = np.searchsorted(["a", "b", "c"], y)
    frame = pd.DataFrame(
        {
            "shift": rng.normal(code, 1.0),
            "scale": rng.normal(0.0, 0.5 + code),
            "count": rng.poisson(1.0 + code),
            "word": rng.choice(list("pqrstuv"), n),
            "constant": 1.0,
            "empty": np.nan,
        }
    )
    frame.loc[rng.random(n) < 0.2, ["shift", "word"]] = None
    frame.loc[5] = np.nan
    return frame, y


def test_terms_are_those_of_columns_that_vary() -> None:
    frame, y = mixed()
    rows, encoding = training_rows(frame, y)
    view = fitted(rows, encoding)
    assert [frame.columns[j] for j in view.term_columns if j is not None] == ["shift", "scale", "count", "word"]
    terms = view.terms(rows.rows)
    assert terms.shape == (4, 3, len(y))
    assert_array_equal(terms[:, :, 5], 0.0)
    missing = frame[["shift", "scale", "count", "word"]].isna().to_numpy().T
    assert_array_equal(terms.transpose(0, 2, 1)[missing], 0.0)
    assert np.isfinite(terms).all()
    assert np.abs(terms[0]).max() > 0.5  # a column that differs between the classes
    assert np.abs(terms[3]).max() < 0.2  # one that does not


def test_evidence_finds_the_class() -> None:
    frame, y = mixed(3000)
    rows, encoding = training_rows(frame, y)
    view = fitted(rows, encoding)
    other, truth = mixed(2000, seed=1)
    scores = view.terms(encoding.encode(read_table(other))).sum(axis=0) + np.log(rows.class_weights)[:, None]
    accuracy = np.mean(rows.classes[scores.argmax(axis=0)] == truth)
    assert accuracy > 0.62  # 0.5 by class proportions alone


@pytest.mark.parametrize("weights", [None, [1.0, 3.0], [0.5, 2.0], "many"], ids=str)
def test_leave_one_out_changes_the_class_of_the_row_alone(weights: Any) -> None:
    frame, y = mixed(120)
    rng = np.random.default_rng(3)
    if weights is not None:
        weights = rng.uniform(0.2, 1.5, len(y)) if weights == "many" else rng.choice(weights, len(y))
    rows, encoding = training_rows(frame, y, weights)
    view = fitted(rows, encoding)
    found, plain = view.left_out(rows), view.terms(rows.rows)
    every = np.arange(len(y))
    others = np.ones(found.shape, dtype=bool)
    others[:, rows.codes, every] = False
    assert_array_equal(found[others], plain[others])
    for i in range(0, len(y), 11):
        code, cells = rows.codes[i], rows.rows.cells[i, :4]
        for j, cell in enumerate(cells):
            rest = view.counts.copy()
            if cell < view.n_cells[j]:
                rest[j, code, cell] -= min(rows.weights[i], 1.0)
                expected = view._tree.log_ratios(rest)[j, code, cell]
                assert found[j, code, i] == pytest.approx(expected, abs=1e-12)
                assert found[j, code, i] < plain[j, code, i] + 1e-12


def test_rows_are_added_and_removed() -> None:
    frame, y = mixed()
    rows, encoding = training_rows(frame, y)
    view, index = fitted(rows, encoding), np.arange(len(y))
    some, rest = rows.take(index[::4]), rows.take(np.setdiff1d(index, index[::4]))
    alone = fitted(rest, encoding)
    for made in (view.without(some, rest), view.removed(some)):
        assert_allclose(made.terms(rows.rows), alone.terms(rows.rows), rtol=0, atol=1e-12)
        assert_allclose((made + view.counted(some)).left_out(rows), view.left_out(rows), rtol=0, atol=1e-12)
    first = rows.take(np.flatnonzero(rows.codes == 0))
    others = view.removed(first)
    assert_array_equal(others.terms(rows.rows)[:, 0], 0.0)  # a class without rows has no evidence


def test_weights_are_repeats_and_the_order_of_rows_does_not_matter() -> None:
    frame, y = mixed()
    times = np.random.default_rng(2).integers(1, 4, len(y))
    rows, encoding = training_rows(frame, y, times)
    order = np.random.default_rng(4).permutation(np.repeat(np.arange(len(y)), times))
    repeated, same = training_rows(frame.iloc[order].reset_index(drop=True), y[order])
    assert_array_equal(encoding.n_cells, same.n_cells)
    view, other = fitted(rows, encoding), fitted(repeated, same)
    assert_allclose(other.terms(repeated.rows), view.terms(rows.rows)[:, :, order], rtol=0, atol=1e-12)
    assert_allclose(other.left_out(repeated), view.left_out(rows)[:, :, order], rtol=0, atol=1e-12)


def test_contributions_are_weighted_terms_of_the_columns() -> None:
    frame, y = mixed()
    rows, encoding = training_rows(frame, y)
    view = fitted(rows, encoding)
    weights = np.array([0.3, 0.0, 2.0, 1.0])
    found = view.contributions(rows.rows, weights)
    assert found.shape == (len(y), 3, 6)
    assert_allclose(found.sum(axis=2).T, np.einsum("j,jkn->kn", weights, view.terms(rows.rows)), atol=1e-12)
    assert_array_equal(found[:, :, 4:], 0.0)


@pytest.mark.parametrize(
    ("n", "columns", "classes"),
    [(1, 3, 1), (2, 3, 2), (40, 3, 1), (1500, 2, 1000), (60, 2000, 3)],
    ids=["row", "two rows", "class", "many classes", "many columns"],
)
def test_extreme_shapes(n: int, columns: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(min(classes, n)), rng.integers(0, classes, n - min(classes, n))]
    rows, encoding = training_rows(rng.normal(size=(n, columns)), y)
    view = HistogramView().fit(rows, encoding, 0)
    if view is None:
        assert n == 1
        return
    for found in (view.terms(rows.rows), view.left_out(rows)):
        assert np.isfinite(found).all()
        assert classes > 1 or np.abs(found).max() < 0.5


def test_no_column_that_varies_is_no_view() -> None:
    rows, encoding = training_rows(np.full((5, 2), np.nan), np.arange(5))
    assert HistogramView().fit(rows, encoding, 0) is None
