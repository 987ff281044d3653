"""The encoding of columns: cells, categories, standardised numbers and normal scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

from likely.data.validation import read_table
from likely.errors import CellError
from likely.evidence.encoding import CATEGORIES, CELLS, FARTHEST, Encoding
from likely.statistics.cell_counts import cell_edges
from likely.typing import Array
from tests.helpers import fits
from tests.unit.evidence.tables import mixed


def encoding_of(frame: Any, weights: Array | None = None) -> Encoding:
    table = read_table(frame)
    return Encoding.of(table, np.ones(table.rows) if weights is None else weights, range(table.width))


def column(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": values})


def test_few_values_have_a_cell_each_with_edges_about_halfway() -> None:
    values = np.repeat([1.0, 2.0, 4.0, 7.0, 11.0, 16.0, 22.0], 3)
    encoding = encoding_of(column(values))
    gaps = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert np.all(np.abs(encoding.numbers[0].edges - [1.5, 3.0, 5.5, 9.0, 13.5, 19.0]) <= 0.1 * gaps)
    cells = encoding.encode(read_table(column([-9.0, 1.61, 1.39, 22.0, np.nan]))).cells[:, 0]
    assert_array_equal(cells, [0, 1, 0, 6, 7])
    assert_array_equal(encoding.n_cells, [7])


def test_many_values_have_cells_of_about_equal_weight() -> None:
    rng = np.random.default_rng(0)
    values = rng.exponential(size=5000)
    encoding = encoding_of(column(values))
    counts = np.bincount(encoding.encode(read_table(column(values))).cells[:, 0], minlength=CELLS)
    assert len(counts) == CELLS
    assert counts.max() - counts.min() <= 2
    assert_array_equal(np.searchsorted(np.sort(values), encoding.numbers[0].edges), edge_places(values))


def edge_places(values: Array) -> Any:
    """How many of the values are below each of the edges halfway between values."""
    return np.searchsorted(np.sort(values), cell_edges(values, np.ones(len(values)), CELLS))


@pytest.mark.parametrize("values", [np.arange(90.0) ** 2 % 31, np.random.default_rng(0).normal(1e8, 1.0, 3000)])
def test_an_encoding_has_no_number_of_any_row_and_only_some_digits_of_the_gaps(values: Array) -> None:
    (encoding,) = encoding_of(column(values)).numbers
    for points in (encoding.edges, encoding.lows, encoding.highs):
        assert not np.isin(points, values).any()
        assert not np.isin(points.astype(np.float32), values.astype(np.float32)).any() or values.min() > 1e7
    distinct = np.unique(values)
    if len(distinct) == 31:
        halfway = distinct[:-1] / 2 + distinct[1:] / 2
        assert not np.isin(encoding.edges, halfway).any()
    middle = (scipy.stats.rankdata(values) - 0.5) / len(values)
    known = np.isin(values, np.sort(values)[[0, -1]]) if len(distinct) > 1000 else np.ones(len(values), dtype=bool)
    assert_allclose(encoding.normal_scores(values)[known], scipy.stats.norm.ppf(middle)[known], rtol=1e-9)


@pytest.mark.parametrize("values", [np.nextafter(1.0, 2.0) - 1.0, 5e-324])
def test_numbers_that_are_as_close_as_rounding_are_one(values: float) -> None:
    close = column(np.concatenate([np.arange(8.0), np.arange(8.0) * values + 1.0]))
    (encoding,) = encoding_of(close).numbers
    assert not np.isin(encoding.edges, close).any()
    assert np.all(np.diff(encoding.lows) > 0.0)


def test_categories_without_rows_are_removed_and_the_codes_of_others_stay() -> None:
    frame = column(["a", "a", "b", "b", "c"])
    encoding = encoding_of(frame)
    rows = encoding.encode(read_table(frame))
    assert_array_equal(encoding.category_weights(rows, np.array([1.0, 2.0, 3.0, 4.0, 5.0])), [3.0, 7.0, 5.0])
    without = encoding.without_categories(np.array([True, False, False]))
    assert without.vocabularies == ((None, "b", "c"),)
    assert_array_equal(without.encode(read_table(frame)).cells[:, 0], [3, 3, 1, 1, 2])
    assert (without + encoding).vocabularies == (("a", "b", "c"),)


def test_six_numbers_are_categories_and_seven_are_numbers() -> None:
    six, seven = encoding_of(column(np.arange(60.0) % 6)), encoding_of(column(np.arange(60.0) % 7))
    assert_array_equal(six.categorical, [0])
    assert_array_equal(seven.numeric, [0])


def test_normal_scores_are_those_of_ranks_and_limited_to_the_range() -> None:
    rng = np.random.default_rng(1)
    values = rng.lognormal(sigma=3.0, size=200)
    encoding = encoding_of(column(values))
    expected = scipy.stats.norm.ppf((scipy.stats.rankdata(values) - 0.5) / 200)
    scores = encoding.encode(read_table(column(values))).normal_scores[:, 0]
    assert_allclose(scores, expected, rtol=1e-12)
    outside = encoding.encode(read_table(column([-1e9, 1e9, np.nan]))).normal_scores[:, 0]
    assert_allclose(outside, [expected.min(), expected.max(), np.nan], rtol=1e-12)


def test_numbers_are_standardised_and_far_ones_limited() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(5.0, 3.0, size=100)
    encoding = encoding_of(column(values))
    found = encoding.encode(read_table(column(values))).numbers[:, 0]
    assert_allclose(found, scipy.stats.zscore(values), rtol=1e-12)
    assert_array_equal(encoding.encode(read_table(column([1e140, -1e140]))).numbers[:, 0], [FARTHEST, -FARTHEST])


@pytest.mark.parametrize("unit", [1e135, 1e-300])
def test_units_do_not_matter(unit: float) -> None:
    values = np.random.default_rng(3).normal(size=100)
    plain, other = (encoding_of(column(each)).encode(read_table(column(each))) for each in (values, values * unit))
    assert_array_equal(other.cells, plain.cells)
    assert_allclose(other.numbers, plain.numbers, rtol=1e-9)
    assert_allclose(other.normal_scores, plain.normal_scores, rtol=1e-12)


def test_an_integer_weight_is_that_many_rows() -> None:
    rng = np.random.default_rng(4)
    values, weights = rng.normal(size=150), rng.integers(1, 5, 150)
    weighted, repeated = (
        encoding_of(column(values), weights.astype(np.float64)),
        encoding_of(column(np.repeat(values, weights))),
    )
    one, two = weighted.numbers[0], repeated.numbers[0]
    assert_allclose(one.edges, two.edges, rtol=1e-14)
    assert_allclose([one.centre, one.unit], [two.centre, two.unit], rtol=1e-12)
    assert_allclose(one.scores, two.scores, rtol=1e-12)


def test_the_most_frequent_categories_have_codes_and_others_count_as_missing() -> None:
    words = [f"w{i:03}" for i in range(100) for _ in range(1 + (i == 50))]
    encoding = encoding_of(column(words))
    assert encoding.vocabularies[0][0] == "w050"
    assert len(encoding.vocabularies[0]) == CATEGORIES
    cells = encoding.encode(read_table(column(["w050", "w000", "w099", "new", None]))).cells[:, 0]
    assert_array_equal(cells, [0, 1, CATEGORIES, CATEGORIES, CATEGORIES])


def test_columns_without_variation_are_not_used_but_a_missing_value_is_variation() -> None:
    frame = pd.DataFrame(
        {
            "one": ["a"] * 9,
            "number": [2.0] * 9,
            "empty": [np.nan] * 9,
            "some": ["a"] * 8 + [None],
            "n": [1.0] * 8 + [np.nan],
        }
    )
    assert_array_equal(encoding_of(frame).used, [False, False, False, True, True])


@pytest.mark.parametrize("distinct", [3, 50])
@pytest.mark.parametrize("fitted", [False, True])
def test_infinite_values_are_named(distinct: int, fitted: bool) -> None:
    good = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0) % distinct})
    bad = good.copy()
    bad.loc[41, "b"] = -np.inf
    encoding = encoding_of(good)
    with pytest.raises(CellError, match=r"Column 'b', row 41: -inf is not a finite number"):
        encoding.encode(read_table(bad)) if fitted else encoding_of(bad)


def test_an_encoding_of_a_file_is_checked() -> None:
    encoding = encoding_of(mixed()[0])
    assert fits(encoding)
    wrong = [
        replace(encoding, numeric=encoding.numeric + 1),
        replace(encoding, numbers=encoding.numbers[:-1]),
        replace(encoding, categorical=encoding.categorical + 9),
        replace(encoding, vocabularies=((), *encoding.vocabularies[1:])),
        replace(encoding, numbers=(replace(encoding.numbers[0], unit=0.0), *encoding.numbers[1:])),
        replace(encoding, numbers=(replace(encoding.numbers[0], edges=np.zeros(3)), *encoding.numbers[1:])),
    ]
    assert not any(fits(each) for each in wrong)
