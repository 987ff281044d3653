"""Joint tables of labels, counts with an exposure, and what columns tell: against sums over raw rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

from likely import Categorical, GammaPrior, Gaussian, GenerativeClassifier, Multinomial, NaiveBayes, Poisson
from likely.errors import InputError, NoDensityError, NoEvidenceError
from likely.families.base import Columns

pytestmark = pytest.mark.usefixtures("pure_models")

CELLS = pd.DataFrame([(a, b) for a in "xyz" for b in (0, 1)], columns=["a", "b"])


def labels(rows: int = 600) -> tuple[pd.DataFrame, Any]:
    """Two columns that tell little apart, and the class together."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=rows)
    a = rng.integers(3, size=rows)
    b = np.where(rng.random(rows) < 0.8, (a + y) % 2, rng.integers(2, size=rows))
    return pd.DataFrame({"a": np.array(["x", "y", "z"])[a], "b": b}), y


def counted(frame: pd.DataFrame, y: Any, label: int) -> Any:
    """Rows of a class in every cell, in the order of CELLS."""
    mine = frame[y == label]
    return np.array([int(((mine.a == a) & (mine.b == b)).sum()) for a, b in CELLS.itertuples(index=False)])


def test_tables_tell_no_likelihood_of_rows_with_other_categories() -> None:
    frame = pd.DataFrame({"a": ["u", "v", "u", "v"]})
    model = NaiveBayes(Categorical(), estimation="map").fit(frame, [0, 0, 1, 1])
    other = NaiveBayes(Categorical(), estimation="map").fit(frame.replace("v", "w"), [0, 0, 1, 1])
    with pytest.raises(NoEvidenceError, match="the rows have other categories"):
        Categorical()._log_likelihood(other.statistics_.blocks[0], model.model_.blocks[0].conditionals, ["a"])


@pytest.mark.parametrize(
    ("estimation", "smoothing"), [("mle", None), ("mle", 0.7), ("map", 1.0), ("map", 0.3), ("bayes", 0.5)]
)
def test_a_tuple_of_columns_has_the_proportions_of_all_combinations(estimation: str, smoothing: float | None) -> None:
    frame, y = labels()
    model = GenerativeClassifier({("a", "b"): Categorical(smoothing)}, estimation=estimation).fit(frame, y)
    s = smoothing or 0.0
    for label in (0, 1):
        counts = counted(frame, y, label)
        expected = np.log((counts + s) / (counts.sum() + s * len(CELLS)))
        assert_allclose(model.log_joint(CELLS)[:, label] - np.log(model.class_prior_[label]), expected, rtol=1e-12)


def test_columns_that_are_informative_only_jointly_have_a_joint_table() -> None:
    frame, y = labels()
    assert GenerativeClassifier({("a", "b"): Categorical()}).fit(frame, y).score(frame, y) > 0.85
    assert NaiveBayes().fit(frame, y).score(frame, y) < 0.7


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
def test_a_missing_label_of_a_table_is_summed_out() -> None:
    frame, y = labels()
    model = GenerativeClassifier({("a", "b"): Categorical()}).fit(frame, y)
    whole = np.exp(model.log_joint(CELLS))
    rows = pd.DataFrame({"a": ["x", None, "unheard of", None], "b": [np.nan, 1.0, 1.0, np.nan]})
    got = np.exp(model.log_joint(rows))
    assert_allclose(got[0], whole[(CELLS.a == "x").to_numpy()].sum(axis=0), rtol=1e-12)
    assert_allclose(got[1], whole[(CELLS.b == 1).to_numpy()].sum(axis=0), rtol=1e-12)
    assert_allclose(got[2], got[1], rtol=1e-12)
    assert_allclose(got[3], model.class_prior_, rtol=1e-12)
    explained = model.explain(rows)
    assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(rows), rtol=1e-12)
    assert np.all(explained.evidence[0, :, 1] == 0.0)


def test_the_sequential_explanation_of_a_table_is_the_chain_of_its_conditionals() -> None:
    frame, y = labels()
    model = GenerativeClassifier({("b", "a"): Categorical()}).fit(frame, y)
    joint = np.exp(model.log_joint(CELLS)) / model.class_prior_
    first = np.array([joint[(CELLS.b == b).to_numpy()].sum(axis=0) for b in CELLS.b])
    evidence = model.explain(CELLS, method="sequential").evidence
    assert_allclose(evidence[:, :, 1], np.log(first), rtol=1e-12)
    assert_allclose(evidence[:, :, 0], np.log(joint / first), rtol=1e-12)


def test_the_explanation_of_a_table_is_the_mean_over_all_orders_of_its_columns() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 2, 300), "b": rng.integers(0, 3, 300), "c": rng.integers(0, 2, 300)})
    frame["c"] = np.where(rng.random(300) < 0.6, frame.a, frame.c)
    y = np.where(rng.random(300) < 0.3 + 0.3 * frame.c, "q", "p")
    frame = frame.astype(str).where(rng.random((300, 3)) < 0.9)
    complete = frame.notna().all(axis=1)
    model = GenerativeClassifier({("a", "b", "c"): Categorical()}, estimation="map").fit(frame[complete], y[complete])
    total = np.zeros((300, 2, 3))
    for order in itertools.permutations("abc"):
        turned = GenerativeClassifier({order: Categorical()}, estimation="map").fit(frame[complete], y[complete])
        total += turned.explain(frame, method="sequential").evidence / 6.0
        assert_allclose(turned.explain(frame).evidence, model.explain(frame).evidence, rtol=1e-10, atol=1e-12)
    assert_allclose(model.explain(frame).evidence, total, rtol=1e-10, atol=1e-12)


def test_explanations_of_impossible_combinations_add_up_to_minus_infinity() -> None:
    frame = pd.DataFrame({"a": ["x", "x", "y", "y"] * 2, "b": ["u", "v", "u", "u"] * 2})
    model = GenerativeClassifier({("a", "b"): Categorical()}, estimation="mle").fit(frame, [0, 0, 0, 0, 1, 1, 1, 1])
    explained = model.explain(pd.DataFrame({"a": ["y"], "b": ["v"]}))
    assert not np.isnan(explained.evidence).any()
    assert np.isneginf(explained.evidence.sum(axis=2)).all()
    assert_array_equal(explained.contrast(0, 1), np.zeros((1, 2)))


def test_a_table_with_too_many_columns_is_explained_sequentially_only() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (50, 11)).astype(str), columns=list("abcdefghijk"))
    model = GenerativeClassifier({tuple(X.columns): Categorical()}).fit(X, np.arange(50) % 2)
    with pytest.raises(NoDensityError, match="method='sequential'"):
        model.explain(X)
    explained = model.explain(X, method="sequential")
    assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(X), rtol=1e-10)


def test_tables_of_parts_add_up_with_combinations_that_only_one_part_has() -> None:
    frame, y = labels()
    order = np.argsort(frame.a.to_numpy(), kind="stable")  # the first part has no "z", the second no "x"
    parts = [order[:200], order[200:]]
    family = {("a", "b"): Categorical()}
    whole = GenerativeClassifier(family).fit(frame, y).statistics_
    first, second = (GenerativeClassifier(family).fit(frame.iloc[part], y[part]).statistics_ for part in parts)
    total = first + second
    assert total.blocks[0].vocabularies == whole.blocks[0].vocabularies
    assert_allclose(total.blocks[0].weight[0], whole.blocks[0].weight[0])
    rest = whole - first
    assert rest.blocks[0].vocabularies == second.blocks[0].vocabularies
    assert_allclose(rest.blocks[0].weight[0], second.blocks[0].weight[0])


def test_a_table_that_is_too_large_or_has_missing_values_is_refused() -> None:
    rng = np.random.default_rng(0)
    many = pd.DataFrame({"a": rng.permutation(2000), "b": rng.permutation(2000)})
    with pytest.raises(InputError, match=r"2000 × 2000 = 4,000,000 cells .* more than 1,000,000"):
        GenerativeClassifier({("a", "b"): Categorical()}).fit(many, np.arange(2000) % 2)
    frame, y = labels()
    frame.loc[7, "a"] = None
    with pytest.raises(InputError, match=r"Column 'a', row 7: .*missing.*Declare each column separately"):
        GenerativeClassifier({("a", "b"): Categorical()}).fit(frame, y)


def visits(rows: int = 500) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=rows)
    days = rng.uniform(0.5, 9.0, size=rows)
    return pd.DataFrame({"visits": rng.poisson(days * (1.0 + y)), "calls": rng.poisson(days * 0.5), "days": days}), y


def test_rates_are_events_per_exposure() -> None:
    frame, y = visits()
    declared = {"visits": Poisson("days"), "calls": Poisson("days")}
    model = NaiveBayes(declared, estimation="mle").fit(frame, y)
    densities = np.zeros((len(frame), 2))
    for label in (0, 1):
        mine = frame[y == label]
        for name in ("visits", "calls"):
            rate = mine[name].sum() / mine.days.sum()
            densities[:, label] += scipy.stats.poisson.logpmf(frame[name], rate * frame.days)
    assert_allclose(model.log_joint(frame) - np.log(model.class_prior_), densities, rtol=1e-9)
    explained = model.explain(frame)
    assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(frame), rtol=1e-10)
    assert np.all(explained.evidence[:, :, 2] == 0.0)  # the exposure itself is not modelled


def test_the_predictive_of_an_exposed_count_is_a_negative_binomial() -> None:
    frame, y = visits()
    prior = GammaPrior(events=2.0, exposure=3.0)
    model = NaiveBayes({"visits": Poisson("days", prior), "calls": Poisson("days", prior)}).fit(frame, y)
    for label in (0, 1):
        mine = frame[y == label]
        expected = np.zeros(len(frame))
        for name in ("visits", "calls"):
            events, during = 2.0 + mine[name].sum(), 3.0 + mine.days.sum()
            expected += scipy.stats.nbinom.logpmf(frame[name], events, during / (during + frame.days))
        assert_allclose(model.log_joint(frame)[:, label] - np.log(model.class_prior_[label]), expected, rtol=1e-9)


def test_row_totals_as_exposure_give_the_probabilities_of_a_multinomial() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=300)
    X = rng.multinomial(30, [[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]][0], size=300)
    X[y == 1] = rng.multinomial(30, [0.4, 0.4, 0.2], size=int(y.sum()))
    exposed = NaiveBayes(Poisson("row totals"), estimation="mle").fit(X, y)
    multinomial = NaiveBayes(Multinomial(), estimation="mle").fit(X, y)
    assert_allclose(exposed.predict_proba(X), multinomial.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_rows_without_any_counts_have_no_evidence_where_the_exposure_is_their_total(estimation: str) -> None:
    """A Poisson count with exposure 0 is 0 with probability 1, whatever the rate."""
    X, y = np.array([[1, 2], [3, 1], [2, 4], [5, 1], [0, 0]]), np.array([0, 0, 1, 1, 1])
    model = NaiveBayes(Poisson("row totals"), estimation=estimation).fit(X, y)
    assert_allclose(model.log_joint(np.zeros((1, 2))), np.log(model.class_prior_)[None], rtol=1e-14)
    assert_array_equal(model.explain(np.zeros((1, 2))).evidence, np.zeros((1, 2, 2)))


def test_a_missing_count_has_no_exposure() -> None:
    frame, y = visits(40)
    frame = frame.astype(float)
    frame.loc[::3, "visits"] = np.nan
    declared = {"visits": Poisson("days"), "calls": Poisson("days")}
    model = NaiveBayes(declared, estimation="mle").fit(frame, y)
    for label in (0, 1):
        mine = frame[y == label]
        expected = np.zeros(len(frame))
        for name in ("visits", "calls"):
            seen = mine[mine[name].notna()]
            terms = scipy.stats.poisson.logpmf(frame[name], seen[name].sum() / seen.days.sum() * frame.days)
            expected += np.where(frame[name].isna(), 0.0, terms)
        assert_allclose(model.log_joint(frame)[:, label] - np.log(model.class_prior_[label]), expected, rtol=1e-9)


def test_an_integer_weight_repeats_a_row_with_its_exposure() -> None:
    frame, y = visits(40)
    weights = np.random.default_rng(5).integers(0, 4, 40)
    declared = {"visits": Poisson("days"), "calls": Poisson("days")}
    rows = np.repeat(np.arange(40), weights)
    weighted = NaiveBayes(declared).fit(frame, y, weights)
    assert_allclose(weighted.log_joint(frame), NaiveBayes(declared).fit(frame.iloc[rows], y[rows]).log_joint(frame))


@pytest.mark.parametrize("row", [[5.0, 0.0], [0.5, 2.0]], ids=["exposure", "count"])
def test_rows_of_weight_0_are_not_checked(row: list[float]) -> None:
    X, y = [[2.0, 4.0], [1.0, 1.0], [6.0, 1.0], [40.0, 10.0]], ["quiet", "quiet", "busy", "busy"]
    model, expected = (GenerativeClassifier({0: Poisson(exposure=1)}, calibration=None) for _ in range(2))
    model.fit([*X, row], [*y, "busy"], sample_weight=[1.0, 1.0, 1.0, 1.0, 0.0])
    assert_allclose(model.predict_proba(X), expected.fit(X, y).predict_proba(X), rtol=1e-12)


def test_the_expected_count_is_the_rate_times_the_exposure() -> None:
    frame, y = visits(40)
    model = NaiveBayes({"visits": Poisson("days")}, estimation="mle").fit(frame[["visits", "days"]], y)
    rows = np.array([[np.nan, 4.0], [np.nan, np.nan]])  # a missing exposure counts as 1
    for label in (0, 1):
        mine = frame[y == label]
        rate = mine.visits.sum() / mine.days.sum()
        found = model.model_.blocks[0].conditionals.expectation(rows, label)
        assert_allclose(found, [[4.0 * rate], [rate]], rtol=1e-13)


def test_samples_have_the_mean_row_total_of_their_class_as_exposure() -> None:
    X, y = np.array([[10, 30], [20, 20], [300, 100], [100, 500]]), np.array([0, 0, 1, 1])
    fitted: Any = NaiveBayes(Poisson("row totals"), estimation="mle").fit(X, y).model_.blocks[0].conditionals
    for label, expected in ((0, [15.0, 25.0]), (1, [200.0, 300.0])):
        drawn = fitted.sample(label, 4000, np.random.default_rng(label))
        assert drawn.shape == (4000, 2)
        assert_allclose(drawn.mean(axis=0), expected, rtol=0.03)


def test_exposures_of_blocks_of_rows_add_up() -> None:
    frame, y = visits(60)
    accumulator = Poisson("days")._accumulator(np.array([0, 1]), Columns(("visits", "calls")))
    for start in (0, 20, 40):
        accumulator.add(frame.to_numpy()[start : start + 20], y[start : start + 20])
    days = [frame.days[y == label].sum() for label in (0, 1)]
    assert_allclose(accumulator.finish().totals[-1], np.tile(days, (2, 1)).T, rtol=1e-13)


def test_row_totals_are_not_known_where_a_count_is_missing() -> None:
    X = np.array([[1.0, 2.0], [3.0, np.nan], [2.0, 4.0], [5.0, np.nan]])
    with pytest.raises(InputError, match=r"row 1: .* the total of the row, which is its exposure, is not known"):
        NaiveBayes(Poisson("row totals")).fit(X, [0, 0, 1, 1])


def test_some_columns_of_counts_have_their_share_of_the_total() -> None:
    X = np.array([[1, 2, 5], [3, 1, 4], [2, 4, 0], [6, 1, 1]])
    for estimation in ("map", "bayes"):
        model = NaiveBayes(Multinomial(1.0), estimation=estimation).fit(X, [0, 0, 1, 1])
        whole: Any = model.model_.blocks[0].conditionals
        part = whole.marginal(np.array([0, 2]))
        share = whole.probability[:, [0, 2]]
        assert_allclose(part.probability, share / share.sum(axis=1, keepdims=True), rtol=1e-12)
        assert_allclose(part.length, whole.length * share.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_a_class_without_any_counts_has_samples_without_counts(estimation: str) -> None:
    model = NaiveBayes(Multinomial(1.0), estimation=estimation).fit([[0, 0], [0, 0], [2, 1], [1, 3]], [0, 0, 1, 1])
    X, y = model.sample(40, random_state=0)
    assert_array_equal(np.asarray(X)[y == 0], 0.0)
    assert np.all(np.asarray(X)[y == 1].sum(axis=1) == 4.0)


def test_counts_of_a_column_with_equal_probabilities_cost_the_log_odds_no_digits() -> None:
    model = NaiveBayes(Multinomial(), {0: 0.5, 1: 0.5}, estimation="mle").fit([[50, 30, 20], [50, 20, 30]], [0, 1])
    log_proba = model.predict_log_proba([[31234, 3, 1], [22223, 1, 3], [33331, 4, 2]])
    assert_allclose(log_proba[:, 0] - log_proba[:, 1], 2.0 * np.log(1.5) * np.array([1.0, -1.0, 1.0]), rtol=1e-13)


def test_rows_are_forgotten_where_nothing_was_counted_in_a_column() -> None:
    X, y = np.array([[1, 2, 0], [3, 1, 0], [2, 4, 0], [6, 1, 0]]), np.array([0, 0, 1, 1])
    model = NaiveBayes(Multinomial(1.0)).fit(X, y).forget(X[:1], y[:1])
    other = NaiveBayes(Multinomial(1.0)).fit(X[1:], y[1:])
    assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-12)


def test_exposures_must_be_positive_and_may_be_missing() -> None:
    frame, y = visits()
    model = NaiveBayes({"visits": Poisson("days"), "calls": Poisson("days")}).fit(frame, y)
    frame.loc[3, "days"] = np.nan
    assert_allclose(model.predict_proba(frame)[3], model.class_prior_)
    frame.loc[5, "days"] = 0.0
    with pytest.raises(InputError, match=r"Column 'days', row 5: 0.0 is not an exposure"):
        model.predict_proba(frame)


def test_the_summary_ranks_columns_by_their_mutual_information_with_the_class() -> None:
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat([0, 1], 2000))
    frame = pd.DataFrame(
        {
            "noise": rng.choice(["u", "v"], size=4000),
            "strong": rng.normal(3.0 * y, 1.0),
            "weak": np.where(rng.random(4000) < 0.3 + 0.4 * y, "yes", "no"),
        }
    )
    model = NaiveBayes(estimation="mle").fit(frame, y)
    columns = {column.name: column.evidence for column in model.summary().columns}
    assert list(columns) == ["strong", "weak", "noise"]
    p = np.array([(frame.weak[y == k] == "yes").mean() for k in (0, 1)])
    each = np.array([p, 1.0 - p])
    weak = 0.5 * (each * np.log(each / each.mean(axis=1, keepdims=True))).sum()
    assert columns["weak"] == pytest.approx(weak, rel=0.15)
    normals = [scipy.stats.norm(frame.strong[y == k].mean(), frame.strong[y == k].std(ddof=0)) for k in (0, 1)]

    def divergence(x: float) -> float:
        densities = np.array([normal.pdf(x) for normal in normals])
        return float(0.5 * (densities * np.log(densities / densities.mean())).sum())

    assert columns["strong"] == pytest.approx(scipy.integrate.quad(divergence, -6.0, 10.0)[0], rel=0.05)


def test_blocks_that_cannot_be_drawn_from_are_not_ranked() -> None:
    X, y = np.random.default_rng(4).poisson(3.0, size=(40, 3)), np.arange(40) % 2
    model = GenerativeClassifier({(0, 1): Multinomial(complement=True), 2: Gaussian()}).fit(X, y)
    evidence = {column.name: column.evidence for column in model.summary().columns}
    assert evidence["x0"] is None
    assert evidence["x2"] is not None
    with pytest.raises(InputError, match="scores, not densities"):
        model.sample(3)
