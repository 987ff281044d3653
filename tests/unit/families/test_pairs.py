"""`Pairs` against a literal implementation of its formulas, and through the estimators."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import likely
from likely import Categorical, GenerativeClassifier, HybridClassifier, MixtureModel, NaiveBayes, Pairs
from likely.errors import InputError
from likely.families.base import Columns
from likely.families.estimation import Estimation
from likely.families.pair_tables import PairEstimates, contributions, count_pairs, log_densities, offsets_of, slots_of
from likely.statistics.category_counts import PairCounts
from tests.helpers import load_table

WORDS: tuple[tuple[Any, ...], ...] = (("x", "y", "z"), (1, 2), ("p", "q", "r", "s"), ("only",))
NAMES = ("a", "b", "c", "d")
CLASSES = np.array(["first", "second", "third"])
S = 2.0


def drawn(n: int = 60, missing: float = 0.15, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Codes of rows, with missing values, codes of classes and weights; two columns go together."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, len(words), n) for words in WORDS])
    X[:, 1] = np.where(rng.random(n) < 0.6, X[:, 0] > 0, X[:, 1])
    X[rng.random(X.shape) < missing] = -1
    if missing:
        X[3] = -1
    return X, rng.integers(0, 3, n), rng.choice([0.4, 1.0, 2.5], n)


def statistics(X: Any, codes: Any, weights: Any = None) -> PairCounts:
    builder = Pairs()._accumulator(CLASSES, Columns(NAMES, WORDS, True))
    builder.add(X, codes, weights)
    return builder.finish()


def literal(x: Any, X: Any, codes: Any, weights: Any, every: Any, k: int, parents: Any) -> float:
    """log p(x | k) value by value; `every` are the weights that the proportions of all classes come from."""
    mine = np.where(codes == k, weights, 0.0)

    def single(j: int) -> float:
        here, seen = X[:, j] == x[j], X[:, j] >= 0
        q = (every[here].sum() + S / len(WORDS[j])) / (every[seen].sum() + S)
        return float((mine[here].sum() + S * q) / (mine[seen].sum() + S))

    def given(j: int, i: int) -> float:
        same = X[:, i] == x[i]
        both = mine[same & (X[:, j] == x[j])].sum()
        return float((both + S * single(j)) / (mine[same & (X[:, j] >= 0)].sum() + S))

    observed = [j for j in range(len(x)) if x[j] >= 0]
    terms = [single(i) * np.prod([given(j, i) for j in observed if j != i]) for i in observed if i in parents]
    return float(np.log(np.mean(terms))) if terms else 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_densities_and_leave_one_out_follow_the_formulas(missing: float, weighted: bool) -> None:
    X, codes, weights = drawn(missing=missing)
    weights = weights if weighted else np.ones(len(X))
    found = statistics(X, codes, weights)
    fitted = Pairs().estimate(found, Estimation.BAYES, NAMES)
    held_out = np.minimum(weights, 1.0)
    left_out = Pairs()._leave_one_out(found, fitted, Estimation.BAYES, NAMES)(X, codes, held_out)
    density = fitted.log_density(X)
    for r, x in enumerate(X):
        for k in range(3):
            assert_allclose(density[k, r], literal(x, X, codes, weights, weights, k, (0, 1, 2)), rtol=1e-12, atol=1e-14)
            without = weights - held_out * (np.arange(len(X)) == r)
            expected = literal(x, X, codes, without, weights, k, (0, 1, 2))
            assert_allclose(left_out[k, r], expected, rtol=1e-12, atol=1e-14)


def test_all_combinations_have_a_probability_of_one_together() -> None:
    fitted = Pairs().estimate(statistics(*drawn()), Estimation.BAYES, NAMES)
    for observed in ((0, 1, 2, 3), (0, 1, 2), (2, 0), (1,), (3, 1)):
        part = fitted.marginal(np.array(observed))
        every = np.array(list(product(*(range(len(words)) for words in part.vocabularies))))
        assert_allclose(np.exp(part.log_density(every)).sum(axis=1), 1.0, rtol=1e-13)
        rows = np.full((len(every), 4), -1)
        rows[:, observed] = every
        assert_allclose(fitted.log_density(rows), part.log_density(every), rtol=1e-12, atol=1e-14)


def test_the_marginal_of_complete_rows_is_a_fit_to_these_columns() -> None:
    X, codes, _ = drawn(missing=0.0)
    fitted = Pairs().estimate(statistics(X, codes), Estimation.BAYES, NAMES)
    columns = np.array([2, 0])
    builder = Pairs()._accumulator(CLASSES, Columns(("c", "a"), (WORDS[2], WORDS[0]), True))
    builder.add(X[:, columns], codes)
    alone = Pairs().estimate(builder.finish(), Estimation.BAYES, ("c", "a"))
    assert_allclose(fitted.marginal(columns).log_density(X[:, columns]), alone.log_density(X[:, columns]), rtol=1e-13)


def test_a_missing_child_is_summed_out_and_a_missing_parent_left_out() -> None:
    X, codes, _ = drawn(missing=0.0)
    offsets = offsets_of([len(words) for words in WORDS])
    counts = count_pairs(slots_of(X, offsets), codes, 3, offsets)
    estimates = PairEstimates.of(counts, offsets, S)
    only_first = PairEstimates.of(counts, offsets, S).logs()
    slots = np.arange(offsets[1], offsets[-1])
    only_first[slots, slots] = -np.inf  # the first column is the only parent
    row = np.array([[1, 1, -1, 0]])
    trials = np.array([[1, 1, v, 0] for v in range(4)])
    summed = np.exp(log_densities(slots_of(trials, offsets), only_first, offsets)).sum(axis=1)
    assert_allclose(np.exp(log_densities(slots_of(row, offsets), only_first, offsets))[:, 0], summed, rtol=1e-13)
    table = estimates.logs()
    mean = np.exp(log_densities(slots_of(trials, offsets), table, offsets)).sum(axis=1)
    assert np.abs(np.exp(log_densities(slots_of(row, offsets), table, offsets))[:, 0] - mean).max() > 1e-4
    assert_allclose(contributions(slots_of(row, offsets), table, offsets)[:, :, 2:], 0.0)


def test_samples_have_the_frequencies_of_the_density() -> None:
    fitted = Pairs().estimate(statistics(*drawn()), Estimation.BAYES, NAMES)
    n, sizes = 40_000, [len(words) for words in WORDS]
    every = np.array(list(product(*(range(size) for size in sizes))))
    for k in range(3):
        rows = fitted.sample(k, n, np.random.default_rng(k)).astype(int)
        frequency = np.bincount(np.ravel_multi_index(tuple(rows.T), sizes), minlength=len(every)) / n
        p = np.exp(fitted.log_density(every)[k])
        assert np.all(np.abs(frequency - p) < 5.0 * np.sqrt(p / n))


def test_statistics_unite_classes_and_categories_and_subtract_exactly() -> None:
    X, codes, weights = drawn()
    whole = statistics(X, codes, weights)
    some = (X[:, 0] != 2) & (codes < 2)
    first, second = statistics(X[some], codes[some], weights[some]), statistics(X[~some], codes[~some], weights[~some])
    assert len(first.vocabularies[0]) == 2
    for total in (first + second, second + first):
        assert total.vocabularies == whole.vocabularies
        assert_array_equal(total.rows, whole.rows)
        assert_allclose(total.weight, whole.weight, rtol=1e-14)
    left = whole - second
    assert left.classes.tolist() == ["first", "second"]
    assert left.vocabularies == first.vocabularies
    assert_array_equal(left.rows, first.rows[:2])
    assert_array_equal(whole.observed_rows(1), ((X >= 0) & (codes == 1)[:, None]).sum(axis=0))
    assert not (whole - whole).rows.size
    twice = statistics(np.repeat(X[:1], 2, axis=0), codes[:1].repeat(2))
    with pytest.raises(InputError, match=r"More rows are to be removed.*Categories: "):
        statistics(X[:1], codes[:1]) - twice


def frame(n: int = 200, seed: int = 1) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Classes that differ only in how the columns go together."""
    rng = np.random.default_rng(seed)
    a, b = rng.choice(list("xyz"), n), rng.choice([True, False], n)
    labels = np.where((a == "x") ^ b, "same", "other")
    c = np.where(rng.random(n) < 0.8, a.astype(object), None)  # type: ignore[call-overload]
    return pd.DataFrame({"a": a, "b": b, "c": c}), np.where(rng.random(n) < 0.1, "third", labels)


MODEL = GenerativeClassifier({("a", "b", "c"): Pairs()}, calibration=None)


def fit(X: Any, y: Any, **options: Any) -> GenerativeClassifier:
    return GenerativeClassifier({("a", "b", "c"): Pairs()}, calibration=None).fit(X, y, **options)


def test_updates_sums_and_files_equal_a_fit_of_all_rows(tmp_path: Path) -> None:
    X, y = frame()
    whole = fit(X, y)
    early, late = slice(0, 120), slice(120, 200)
    added = fit(X[early], y[early]) + fit(X[late], y[late])
    batches = fit(X[early], y[early]).partial_fit(X[late], y[late])
    reduced = fit(pd.concat([X, X[late]]), np.concatenate([y, y[late]])).forget(X[late], y[late])
    whole.save(tmp_path / "model")
    for model in (added, batches, reduced, likely.load(tmp_path / "model")):
        assert_allclose(model.log_joint(X), whole.log_joint(X), rtol=1e-13)
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    index = np.repeat(np.arange(len(y)), weights)
    assert_allclose(
        fit(X, y, sample_weight=weights).log_joint(X), fit(X.iloc[index], y[index]).log_joint(X), rtol=1e-13
    )


def test_explanations_add_up_and_columns_may_be_permuted() -> None:
    X, y = frame()
    model = fit(X, y)
    found = model.explain(X)
    assert_allclose(found.evidence.sum(axis=2) + found.offset, model.log_joint(X), rtol=1e-12)
    other = GenerativeClassifier({("c", "a", "b"): Pairs()}, calibration=None).fit(X[["c", "b", "a"]], y)
    assert_allclose(other.explain(X[["c", "b", "a"]]).evidence, found.evidence[:, :, [2, 1, 0]], rtol=1e-12, atol=1e-13)
    with pytest.raises(InputError, match="missing values where the training rows have values"):
        fit(X[:150], y[:150]).forget(X[148:150].assign(a=None), y[148:150])


def test_classes_that_differ_in_pairs_alone_are_distinguished() -> None:
    X, y = frame(400)
    loss = {
        name: float(np.mean(likely.cross_validate(model, X, y, 5).log_loss))
        for name, model in {"pairs": MODEL, "naive": NaiveBayes(), "table": GenerativeClassifier(Categorical())}.items()
    }
    assert loss["pairs"] < 0.6 * min(loss["naive"], loss["table"])


def test_votes_are_predicted_better_than_by_independent_columns() -> None:
    table = load_table("housevotes84")
    y = table.pop("Class").to_numpy()
    pairs = likely.cross_validate(GenerativeClassifier(Pairs(), calibration=None), table, y, 5)
    naive = likely.cross_validate(NaiveBayes(Categorical(), calibration=None), table, y, 5)
    assert np.mean(pairs.log_loss) < 0.5 * np.mean(naive.log_loss)


def test_unlabeled_rows_and_imputation() -> None:
    X, y = frame(300)
    unlabeled = y.astype(object)
    unlabeled[::3] = None
    model = GenerativeClassifier({("a", "b", "c"): Pairs()}).fit(X, unlabeled)
    assert model.score(X, y) > 0.85
    filled = fit(X, y).impute(X)
    missing = X["c"].isna()
    assert np.mean(filled["c"][missing] == X["a"][missing]) > 0.95  # c is a wherever it is known


def test_constant_and_empty_columns_change_nothing() -> None:
    X, y = frame()
    more = X.assign(constant="k", empty=pd.Series([None] * len(X), dtype=object))
    model = GenerativeClassifier({("a", "empty", "b", "constant", "c"): Pairs()}, calibration=None).fit(more, y)
    assert_allclose(model.log_joint(more), fit(X, y).log_joint(X), rtol=1e-13)
    assert "set aside: 'constant' (constant), 'empty' (no values)" in str(model.summary())
    drawn_rows, _ = model.sample(20, random_state=0)
    assert (drawn_rows["constant"] == "k").all()
    none = GenerativeClassifier({("constant", "empty"): Pairs()}, calibration=None).fit(more[["constant", "empty"]], y)
    assert_allclose(none.predict_proba(more[["constant", "empty"]])[0], none.class_prior_)
    one = GenerativeClassifier({"a": Pairs()}, calibration=None).fit(X[["a"]], y)
    assert_allclose(np.exp(one.log_joint(pd.DataFrame({"a": list("xyz")}))).sum(), 1.0)


@pytest.mark.parametrize("smoothing", [0, -1.0, np.nan, np.inf, True, "2", None])
def test_smoothing_is_checked(smoothing: Any) -> None:
    with pytest.raises(InputError, match=r"smoothing=.* must be a number from 1e-06 to 1e\+06"):
        GenerativeClassifier(Pairs(smoothing)).fit([["a", "b"], ["c", "d"]], [0, 1])


@pytest.mark.parametrize("smoothing", [1e-6, 1e6])
def test_extreme_smoothing_stays_finite(smoothing: float) -> None:
    X, y = frame()
    model = GenerativeClassifier(Pairs(smoothing), calibration=None).fit(X, y)
    assert np.isfinite(model.log_joint(X)).all()
    assert np.isfinite(model.left_out_proba(X, y)).all()
    assert np.isfinite(model.explain(X).evidence).all()


def test_errors_name_the_remedy() -> None:
    X, y = frame()
    for estimation in ("mle", "map"):
        with pytest.raises(InputError, match=f"not estimation='{estimation}'. Use estimation='bayes'"):
            GenerativeClassifier(Pairs(), estimation=estimation).fit(X, y)
    with pytest.raises(InputError, match=r"Pairs\(\) is a joint density. Use GenerativeClassifier"):
        NaiveBayes({("a", "b"): Pairs()}).fit(X, y)
    many = pd.DataFrame({"i": np.arange(3000), "j": np.arange(3000)}).astype(str)
    with pytest.raises(InputError, match=r"'i', 'j' have 6,000 categories.*Declare fewer columns"):
        GenerativeClassifier({("i", "j"): Pairs()}).fit(many, np.arange(3000) % 2)
    for model in (HybridClassifier(Pairs()), MixtureModel(2, Pairs())):
        with pytest.raises(InputError, match="Pairs has posterior means only"):
            model.fit(X, y)


def test_parameters_are_posterior_means_of_single_columns() -> None:
    X, y = frame()
    table = fit(X, y).parameters()
    found = table[(table["column"] == "a") & (table["class"] == "third")]
    mine = X["a"][y == "third"]
    counts, every = (part.value_counts().reindex(list("xyz"), fill_value=0) for part in (mine, X["a"]))
    alpha = counts + S * (every + S / 3.0) / (len(X) + S)
    p = alpha / alpha.sum()
    assert_allclose(found["value"], p, rtol=1e-13)
    assert_allclose(found["standard_error"], np.sqrt(p * (1.0 - p) / (alpha.sum() + 1.0)), rtol=1e-13)
