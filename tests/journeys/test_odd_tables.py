"""Tables that are odd, but not wrong: what people hand over after all."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from likely import (
    Bernoulli,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NegativeBinomial,
    Poisson,
)
from likely.errors import InputError, InputTypeError
from tests.helpers import explained_scores

ALTERNATING = np.arange(30) % 2


class Chunks:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def chunks(self) -> Iterator[Any]:
        yield from self.parts


def vocabularies(model: Any) -> Any:
    return model.model_.blocks[0].conditionals.vocabularies


# ---------------------------------------------------------------------------------------------------- large counts


@pytest.mark.parametrize("size", [1e8, 1e10, 1e12, 1e15])
def test_vectors_of_huge_counts_have_the_posterior_of_their_proportions(size: float) -> None:
    """A Dirichlet-multinomial of endless counts is the Dirichlet density of their proportions."""
    model = NaiveBayes(Multinomial(), class_prior="uniform").fit([[5, 5], [6, 5]], [0, 1])
    densities = [stats.beta.pdf(1 / 3, 5.5, 5.5), stats.beta.pdf(1 / 3, 6.5, 5.5)]
    rows = [[size, 2 * size]]
    assert_allclose(model.predict_proba(rows)[0, 0], densities[0] / sum(densities), rtol=30 / size + 1e-11)
    assert_allclose(model.predict_proba(scipy.sparse.csr_array(np.array(rows))), model.predict_proba(rows), rtol=1e-12)
    told, joint = model.explain(rows), explained_scores(model, rows)
    assert_allclose(told.evidence.sum(axis=2) + told.offset, joint, rtol=1e-10)


@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_exact_and_quick_vectors_of_counts_agree_where_both_hold(estimation: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, (60, 7)), np.arange(60) % 3
    model = NaiveBayes(Multinomial(), estimation=estimation).fit(X, y)
    rows = rng.poisson(2e4, (5, 7)) * np.array([0, 1, 1, 0, 1, 1, 1])
    assert np.all(rows.sum(axis=1) < 2e5)
    exact = model.explain(rows)
    for part in (rows, rows // 2):  # beyond and below the limit of the quick way
        exact = model.explain(part)
        assert_allclose(explained_scores(model, part), exact.evidence.sum(axis=2) + exact.offset, rtol=1e-10)


def test_columns_of_enormous_counts() -> None:
    model = NaiveBayes(Poisson()).fit([[9e139], [1.0], [1e140], [2.0]], [0, 1, 0, 1])
    assert_allclose(model.predict_proba([[1.0], [9e139]]), [[0, 1], [1, 0]], atol=1e-12)
    assert "expected log-evidence" in str(
        NaiveBayes(Poisson()).fit([[1e20], [1.0], [1e20], [2.0]], [0, 1] * 2).summary()
    )


UNBOUNDED = [
    Exponential(),
    Gamma(),
    Gamma(1e5),
    LogNormal(),
    Gaussian("diagonal", shared=True),
    Poisson(),
    Geometric(),
    NegativeBinomial(2.0),
]


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("family", UNBOUNDED, ids=str)
def test_rows_at_the_limit_have_an_answer(family: Any, estimation: str) -> None:
    model = NaiveBayes(family, estimation=estimation).fit(
        [[1.0], [2.0], [3.0], [4.0], [6.0], [9.0]], [0, 0, 0, 1, 1, 1]
    )
    rows = [[1e130], [1e140], [1.0]]
    assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert_allclose(np.exp(model.predict_log_proba(rows)), model.predict_proba(rows), atol=1e-12)


# --------------------------------------------------------------------------------------------------------- labels


def test_gaps_between_whole_numbers_are_not_unseen_categories() -> None:
    X, y = np.array([[1], [5], [9]] * 20), [0, 1, 1] * 20
    model = NaiveBayes(unseen="error").fit(X, y)
    assert_array_equal(model.predict(X)[:3], [0, 1, 1])
    with pytest.raises(InputError, match="row 1: 3 was not seen"):
        model.predict([[1], [3]])


def test_a_joint_table_has_cells_for_what_occurs() -> None:
    X, y = np.array([[0, 1000], [1000, 0], [0, 0], [1000, 1000]] * 20), np.arange(80) % 2
    array = GenerativeClassifier({(0, 1): Categorical()}).fit(X, y)
    frame = GenerativeClassifier({("a", "b"): Categorical()}).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert_allclose(array.predict_proba(X), frame.predict_proba(pd.DataFrame(X, columns=["a", "b"])))


def test_categories_may_be_intervals_numbers_beside_text_or_tuples() -> None:
    ages = pd.DataFrame({"age": pd.cut(np.arange(30), 3)})
    model = NaiveBayes().fit(ages, np.arange(30) // 10)
    assert len(vocabularies(model)[0]) == 3
    assert_array_equal(model.predict(ages), np.arange(30) // 10)
    assert vocabularies(NaiveBayes().fit(pd.DataFrame({"c": pd.Categorical([1, "a", 2.5] * 10)}), ALTERNATING)) == (
        (1, 2.5, "a"),
    )
    pairs = pd.Categorical.from_codes([0, 1] * 15, categories=pd.Index([(1, 2), (3, 4)], tupleize_cols=False))
    assert vocabularies(NaiveBayes().fit(pd.DataFrame({"c": pairs}), ALTERNATING)) == (((1, 2), (3, 4)),)


def test_bytes_and_text_are_different_labels() -> None:
    frame = pd.DataFrame({"c": pd.Series([b"a", "a", "b"] * 10, dtype=object)})
    assert vocabularies(NaiveBayes().fit(frame, ALTERNATING)) == ((b"a", "a", "b"),)


@pytest.mark.parametrize("categories", [[None, "a"], [["a"], ["b"]], "ab", {"s": "ab"}, 3])
def test_categories_that_are_no_labels_are_refused(categories: Any) -> None:
    with pytest.raises(InputError, match="categories="):
        NaiveBayes({"s": Categorical(categories=categories)}).fit(pd.DataFrame({"s": list("abab")}), [0, 1, 0, 1])


@pytest.mark.parametrize("categories", [pd.Index(["a", "z"]), {"a", "z"}, ("z",), {"s": ["z"]}, np.array(["z"])])
def test_categories_come_in_any_collection(categories: Any) -> None:
    model = NaiveBayes({"s": Categorical(categories=categories)}).fit(pd.DataFrame({"s": list("abab")}), [0, 1, 0, 1])
    assert vocabularies(model) == (("a", "b", "z"),)


# ----------------------------------------------------------------------------------------------------- containers


def test_a_list_of_rows_keeps_its_numbers_beside_text() -> None:
    rows = [["a", 1.5], ["b", 2.5], ["a", float("nan")], ["b", 1.0]] * 5
    model = NaiveBayes().fit(rows, [0, 1] * 10)
    assert [type(family).__name__ for family in model.families_.values()] == ["Categorical", "Gaussian"]
    objects = NaiveBayes().fit(np.array(rows, dtype=object), [0, 1] * 10)
    assert_array_equal(model.predict_proba([["a", 1.5]]), objects.predict_proba([["a", 1.5]]))


def test_columns_with_numbers_for_names_are_found_by_name() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 2)) * [1, 100])
    model = NaiveBayes().fit(frame, (frame[1] > 0).astype(int))
    assert_array_equal(model.predict_proba(frame[[1, 0]]), model.predict_proba(frame))
    with pytest.raises(
        InputError, match=r"unseen at fit time:\n- 5\n- 6\n.*missing:\n- 0\n- 1\n.*to those of the fit: '0', '1'"
    ):
        model.predict(frame.rename(columns={0: 5, 1: 6}))
    drawn, _ = model.sample(3)
    assert list(drawn.columns) == [0, 1]
    assert len(model.predict(drawn)) == 3
    with pytest.raises(InputTypeError, match="some names are text"):
        NaiveBayes().fit(frame.assign(c=1.0), np.arange(50) % 2)


def test_sparse_rows_are_left_as_they_are() -> None:
    data, indices, ends = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])
    X = scipy.sparse.csr_array((data, indices, ends), shape=(2, 3))
    NaiveBayes(Poisson()).fit(X, [0, 1]).predict(X)
    assert_array_equal(X.data, [1, 2, 3, 4])
    assert_array_equal(X.indices, [2, 0, 1, 1])
    X.data.flags.writeable = X.indices.flags.writeable = False
    dense = NaiveBayes(Poisson()).fit(X.toarray(), [0, 1])
    assert_allclose(NaiveBayes(Poisson()).fit(X, [0, 1]).predict_proba(X), dense.predict_proba(X.toarray()))


@pytest.mark.parametrize("family", [Bernoulli(), Poisson(), Geometric(), Multinomial()], ids=str)
@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_sparse_rows_are_not_modified(family: Any, estimation: str) -> None:
    rng = np.random.default_rng(0)
    dense, y = (rng.random((60, 8)) < 0.3).astype(float), np.arange(60) % 3
    X = scipy.sparse.csr_array(dense)
    for cells in (X.data, X.indices, X.indptr):  # blocks share them
        cells.flags.writeable = False
    model = NaiveBayes(family, estimation=estimation).fit(X, y, sample_weight=1.0 + y)
    plain = NaiveBayes(family, estimation=estimation).fit(dense, y, sample_weight=1.0 + y)
    assert_allclose(model.log_joint(X), plain.log_joint(dense), rtol=1e-10)
    assert_allclose(model.predict_proba(X), plain.predict_proba(dense), rtol=1e-10)
    left = model.left_out_proba(X, y, sample_weight=1.0 + y)
    assert_allclose(left, plain.left_out_proba(dense, y, sample_weight=1.0 + y), rtol=1e-9)


@pytest.mark.parametrize("kind", [NaiveBayes, GenerativeClassifier])
def test_sparse_rows_of_very_many_columns_of_numbers_are_learnt_and_judged_a_few_at_a_time(kind: Any) -> None:
    rng = np.random.default_rng(0)
    width, y = 400_000, np.arange(12) % 2
    cells = rng.normal(size=240), (np.repeat(np.arange(12), 20), rng.integers(width, size=240))
    X = scipy.sparse.csr_array(cells, shape=(12, width))
    used = np.unique(X.indices)
    model = kind().fit(X, y)
    posterior = model.predict_proba(X)
    assert np.all(np.isfinite(model.log_density(X)))
    few = X[:, used].toarray()  # empty columns say nothing
    assert_allclose(posterior, kind(model.families_["x0"]).fit(few, y).predict_proba(few), rtol=1e-6)


def test_full_covariances_of_very_many_columns_are_refused() -> None:
    X = scipy.sparse.csr_array((4, 200_000))
    with pytest.raises(InputError, match=r"200,000 columns: a full covariance .* Use covariance='diagonal'"):
        GenerativeClassifier(Gaussian()).fit(X, [0, 1, 0, 1])


def test_a_column_without_any_value_is_missing_in_every_library() -> None:
    numbers = np.random.default_rng(0).normal(size=30)
    train = {"x": numbers, "s": ["a", "b", None] * 10}
    alone = NaiveBayes().fit(numbers[:, None], ALTERNATING).predict_proba([[0.5]])
    row = {"x": [0.5], "s": [None]}
    answers = []
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        model = NaiveBayes().fit(make(train), ALTERNATING)
        answers += [model.predict_proba(other(row)) for other in (pd.DataFrame, pl.DataFrame, pa.table)]
        empty = NaiveBayes().fit(make({"x": numbers, "s": [None] * 30}), ALTERNATING)
        assert_allclose(empty.predict_proba(make(row)), alone)
    for answer in answers:
        assert_allclose(answer, answers[0], rtol=1e-12)


def test_integers_that_floats_round_may_have_missing_values() -> None:
    values = [17 * 10**17 + 10**15 * i if i % 3 else None for i in range(30)]
    tables = (
        pa.table({"t": values}),
        pl.DataFrame({"t": values}),
        pd.DataFrame({"t": pd.array(values, dtype="Int64")}),
    )
    models = [NaiveBayes().fit(table, ALTERNATING) for table in tables]
    for model, table in zip(models, tables, strict=True):
        assert_allclose(model.predict_proba(table), models[0].predict_proba(tables[0]), rtol=1e-12)


def test_sparse_and_long_columns_of_pandas() -> None:
    words = pd.Series(list("ab") * 15)
    thin, thick = pd.get_dummies(words, sparse=True), pd.get_dummies(words)
    model = NaiveBayes().fit(thin, ALTERNATING)
    assert all(isinstance(family, Bernoulli) for family in model.families_.values())
    assert_array_equal(model.predict_proba(thin), NaiveBayes().fit(thick, ALTERNATING).predict_proba(thick))
    long = pd.DataFrame({"l": np.arange(30).astype(np.longdouble) / 7})
    assert_allclose(
        NaiveBayes().fit(long, ALTERNATING).predict_proba(long),
        NaiveBayes().fit(long.astype(float), ALTERNATING).predict_proba(long.astype(float)),
    )


@pytest.mark.parametrize("cell", [10**400, Decimal("sNaN")])
def test_objects_that_are_no_numbers_are_named(cell: Any) -> None:
    frame = pd.DataFrame({"c": pd.Series([1, None, cell] * 10, dtype=object)})
    with pytest.raises(InputTypeError, match=r"Column 'c', row 2: .* is not a number"):
        NaiveBayes().fit(frame, ALTERNATING)
    with pytest.raises(InputTypeError, match="Column 'c', row 32"):
        NaiveBayes().fit(Chunks(pd.DataFrame({"c": [1.0] * 30}), frame), np.arange(60) % 2)


def test_record_batches_are_tables() -> None:
    batch = pa.record_batch({"a": [1.5, 2.0, 3.0, 4.0], "t": [0, 1, 0, 1]})
    model = NaiveBayes().fit(batch, "t")
    assert_array_equal(model.feature_names_in_, ["a"])
    assert_array_equal(NaiveBayes().fit(Chunks(batch, batch), "t").statistics_.counts.rows, [4, 4])


@pytest.mark.parametrize("X", [(row for row in np.eye(2)), {"a": [1, 2]}])
def test_what_is_no_table_is_refused_with_a_remedy(X: Any) -> None:
    with pytest.raises(InputTypeError, match=r"chunks|pandas\.DataFrame"):
        NaiveBayes().fit(X, [0, 1])


def test_the_name_of_a_target_needs_a_frame() -> None:
    with pytest.raises(InputError, match="y='name' is the name of a column"):
        NaiveBayes().fit(np.eye(4), "name")


def test_chunks_of_different_kinds_are_refused() -> None:
    dense = np.eye(4)
    for parts in ((scipy.sparse.csr_array(dense), dense), (dense, scipy.sparse.csr_array(dense))):
        with pytest.raises(InputError, match="from row 4 on: either all chunks must be sparse"):
            NaiveBayes().fit(Chunks(*parts), np.arange(8) % 2)
    with pytest.raises(InputTypeError, match="yielded a NoneType"):
        NaiveBayes().fit(Chunks(dense, None), np.arange(8) % 2)
    with pytest.raises(InputError, match="X has 8 rows or more and y has 7"):
        NaiveBayes().fit(Chunks(dense, dense), np.arange(7) % 2)


# ------------------------------------------------------------------------------------------------------- families


def test_one_column_on_its_own_may_miss_cells_whatever_its_covariance_is_called() -> None:
    frame = pd.DataFrame({"a": [1.5, None, 2.5, 3.0]})
    for families in ({"a": Gaussian()}, Gaussian()):
        model = GenerativeClassifier(families).fit(frame, [0, 1, 0, 1])
        assert_allclose(model.predict_proba(pd.DataFrame({"a": [None]}, dtype=float)), [[0.5, 0.5]])


def test_an_exposure_is_not_modelled() -> None:
    X = np.array([[1, 2, 5.5], [3, 1, 4.2], [0, 1, 2.1], [2, 2, 3.3]])
    model = NaiveBayes(Poisson(exposure=2)).fit(X, [0, 1, 0, 1])
    assert list(model.families_) == ["x0", "x1"]
    other = NaiveBayes({0: Poisson(exposure=2), 1: Poisson(exposure=2)}).fit(X, [0, 1, 0, 1])
    assert_allclose(model.predict_proba(X), other.predict_proba(X))
    with pytest.raises(InputError, match="does not model"):
        NaiveBayes(Poisson(exposure=0)).fit(X[:, :1], [0, 1, 0, 1])


def test_naive_bayes_takes_totals_of_some_columns() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [2, 0, 1, 1], "c": list("uvuv")})
    model = NaiveBayes({("a", "b"): Poisson("row totals")}).fit(frame, [0, 1, 0, 1])
    joint = GenerativeClassifier({("a", "b"): Poisson("row totals")}).fit(frame, [0, 1, 0, 1])
    assert_allclose(model.predict_proba(frame), joint.predict_proba(frame))
    with pytest.raises(InputError, match="models columns as independent"):
        NaiveBayes({("a", "b"): Categorical()}).fit(frame, [0, 1, 0, 1])


def test_a_constant_column_of_weighted_rows_contributes_nothing() -> None:
    for seed in range(30):
        weight = np.random.default_rng(seed).random(90)
        model = NaiveBayes(Bernoulli()).fit(np.ones((90, 1)), np.arange(90) % 3, weight)
        assert not model.explain(np.ones((2, 1))).evidence.any()


def test_columns_of_a_frame_may_lie_anywhere_in_memory() -> None:
    rng = np.random.default_rng(0)
    far = rng.standard_normal(4_000_000)  # large arrays and small ones are kept apart
    X = rng.standard_normal((3000, 6))
    y = np.arange(3000) % 2
    side_by_side = np.asfortranarray(X)
    far[:3000], far[3010:6010], far[-3000:] = X[:, 0], X[:, 1], X[:, 2]
    columns = [far[:3000], far[3010:6010], far[-3000:], X[:, 3].copy(), X[:, 4], side_by_side[:, 5]]
    for rows in (7, 3000):
        lying = [[column[:rows] for column in columns], list(side_by_side[:rows].T), list(side_by_side[:rows].T)[::-1]]
        for some in lying:
            frame = pl.DataFrame({f"c{j}": column for j, column in enumerate(some)})
            model = LinearDiscriminant(estimation="bayes").fit(frame, y[:rows])
            plain = LinearDiscriminant(estimation="bayes").fit(np.column_stack(some), y[:rows])
            assert_allclose(model.predict_proba(frame), plain.predict_proba(np.column_stack(some)), rtol=0, atol=1e-12)
