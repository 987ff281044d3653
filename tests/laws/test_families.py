"""Laws that every family keeps, with all its options and under every estimation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from likely import Bernoulli, Gamma, Gaussian, GenerativeClassifier, Multinomial, NaiveBayes, Poisson
from likely.errors import InputError, NoDensityError, NoEvidenceError
from likely.families.base import Columns, Conditionals, ExponentialConditionals
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns
from likely.families.point_mass import PointMassSums
from likely.statistics.category_counts import CategoryCounts, PairCounts
from likely.statistics.cell_counts import CellCounts
from likely.statistics.moments import Moments
from likely.statistics.sums import Sums
from tests.laws.families import (
    CASES,
    LETTERS,
    MEMBERS,
    WORDS,
    Case,
    Index,
    Member,
    OfBernoulli,
    OfCategorical,
    OfGaussian,
    OfHistogram,
    OfLogNormal,
    OfMultinomial,
    OfPairs,
    OfPointMass,
    OfVonMises,
    Vectors,
    every,
    log_likelihood,
    names_of,
)
from tests.laws.registry import Floats, Rows
from tests.laws.registry import assert_log_equal as assert_finite_log_equal
from tests.laws.test_additivity import assert_same_moments, random_cuts, summed_in_random_order, take

PLUGGED_IN = [case for case in CASES if case.estimation != "bayes"]
APART = [case for case in CASES if not case.member.whole]
LABELS = [case for case in CASES if isinstance(case.member, OfCategorical)]
NUMBERS = [case for case in CASES if not isinstance(case.member, OfCategorical)]
every_case = every(CASES)
WITHOUT_PRIOR_DENSITY = (Gamma,)
WITHOUT_MEANS = (OfCategorical, OfPairs, OfGaussian, OfLogNormal, OfPointMass, OfVonMises)  # or with other ones
MULTINOMIAL = OfMultinomial(Multinomial())


def cases_of(kind: type[Member], estimation: str) -> list[Case]:
    return [case for case in CASES if isinstance(case.member, kind) and case.estimation == estimation]


def assert_log_equal(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Log-densities within tolerance · (1 + |log-density|); what is impossible is so in both."""
    never = np.isneginf(expected)
    assert_array_equal(np.isneginf(actual), never)
    assert_finite_log_equal(np.where(never, 0.0, actual), np.where(never, 0.0, expected), tolerance)


def assert_same_odds(scores: Floats, density: Floats) -> None:
    """The same (classes, n), up to a term that all classes share."""
    assert_log_equal(scores - scores.max(axis=0), density - density.max(axis=0))


# ----------------------------------------------------------------------------------------------- 1. statistics pool


def assert_same_statistics(actual: Any, expected: Any) -> None:
    """The same classes, columns, rows and sums, whatever order they were added in."""
    assert type(actual) is type(expected)
    assert_array_equal(actual.classes, expected.classes)
    if isinstance(expected, PointMassSums):
        assert_same_statistics(actual.indicator, expected.indicator)
        assert_same_statistics(actual.inner, expected.inner)
        return
    if isinstance(expected, CategoryCounts):
        assert actual.vocabularies == expected.vocabularies
        for mine, theirs in zip(actual.rows + actual.weight, expected.rows + expected.weight, strict=True):
            assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        return
    if isinstance(expected, PairCounts):
        assert actual.vocabularies == expected.vocabularies
        assert_array_equal(actual.rows, expected.rows)
        assert_allclose(actual.weight, expected.weight, rtol=1e-9, atol=1e-12)
        return
    if isinstance(expected, CellCounts):
        assert_array_equal(actual.edges, expected.edges)
        assert_array_equal(actual.slot_rows, expected.slot_rows)
        assert_allclose(actual.slot_weight, expected.slot_weight, rtol=1e-9, atol=1e-12)
        return
    if actual.rows.ndim != expected.rows.ndim:
        actual, expected = actual.by_column(), expected.by_column()
    if isinstance(expected, Moments):
        assert_same_moments(actual, expected)
        return
    assert isinstance(expected, Sums)
    assert_array_equal(actual.rows, expected.rows)
    assert_allclose(actual.weight, expected.weight, rtol=1e-9)
    size = np.abs(expected.totals).sum(axis=1, keepdims=True) + 1.0
    assert_allclose(actual.totals / size, expected.totals / size, rtol=0, atol=1e-9)


def known_alone(member: Member, rows: Rows, weights: Floats | None = None) -> Any:
    """Statistics of rows that know only the classes, and of labels only the categories, that the rows have."""
    if not isinstance(member, OfCategorical):
        return member.statistics(rows, weights)
    seen = [np.unique(column[column >= 0]) for column in rows.X.T]
    words = tuple(tuple(all_words[i] for i in codes) for all_words, codes in zip(WORDS, seen, strict=True))
    X = np.column_stack(
        [
            np.where(column < 0, -1, np.searchsorted(codes, column)).astype(np.int32)
            for column, codes in zip(rows.X.T, seen, strict=True)
        ]
    )
    builder = member.family._accumulator(rows.classes, Columns(names_of(X.shape[1]), words))
    builder.add(X, rows.codes, weights)
    return builder.finish()


@every_case
def test_statistics_of_any_split_in_any_order_are_those_of_all_rows(case: Case) -> None:
    member, rng = case.member, np.random.default_rng(1)
    rows = member.incomplete(member.table())
    weights = rng.choice([0.25, 1.0, 3.0], len(rows.y))
    whole = member.statistics(rows, weights)
    expected = member.estimate(whole, case.estimation).log_density(rows.X)
    for _ in range(3):
        cuts = random_cuts(len(rows.y), rng)
        blocks = [member.statistics(take(rows, index), weights[index], LETTERS) for index in cuts]
        alone = [known_alone(member, take(rows, index), weights[index]) for index in cuts]
        for parts in (blocks, alone):
            total = summed_in_random_order(parts, rng)
            assert_same_statistics(total, whole)
            assert_log_equal(member.estimate(total, case.estimation).log_density(rows.X), expected, 1e-9)


@every_case
def test_blocks_added_to_one_builder_are_all_rows(case: Case) -> None:
    member, rng = case.member, np.random.default_rng(2)
    rows = member.incomplete(member.table())
    whole = member.statistics(rows)
    builder = member.family._accumulator(LETTERS, member.columns(rows))
    for index in random_cuts(len(rows.y), rng):
        builder.add(rows.X[index], rows.codes[index])
    assert_same_statistics(builder.finish(), whole)


@every_case
def test_all_rows_less_a_part_are_the_other_part(case: Case) -> None:
    member, rows = case.member, case.member.table()
    every_row = known_alone(member, rows)
    some = np.random.default_rng(3).random(len(rows.y)) < 0.4
    for part in (some, rows.y == "b", np.isin(rows.y, ["a", "c"])):
        less = every_row - known_alone(member, take(rows, part))
        assert_same_statistics(less, known_alone(member, take(rows, ~part)))
        assert_same_statistics(less + known_alone(member, take(rows, part)), every_row)


@every_case
def test_a_fit_less_all_rows_of_a_class_is_a_fit_without_that_class(case: Case) -> None:
    rows = case.member.table()
    whole, part, rest = (
        classifier(case).fit(frame_of(case, take(rows, which)), rows.y[which]).statistics_
        for which in (rows.y != "", rows.y == "c", rows.y != "c")
    )
    less = whole - part
    assert less.counts.classes.tolist() == ["a", "b"]
    assert_same_statistics(less.blocks[0], rest.blocks[0])


def frame_of(case: Case, rows: Rows) -> pd.DataFrame:
    """Rows as a user has them, labels as themselves."""
    if not isinstance(case.member, OfCategorical):
        return pd.DataFrame(rows.X, columns=list(names_of(rows.X.shape[1])))
    columns: dict[str, Any] = {}
    for j, name in enumerate(names_of(rows.X.shape[1])):
        cells = [None if code < 0 else WORDS[j][code] for code in rows.X[:, j].tolist()]
        columns[name] = pd.Series(cells, dtype=object)
    return pd.DataFrame(columns)


def classifier(case: Case) -> GenerativeClassifier:
    joint = isinstance(case.member, OfPairs)
    return (GenerativeClassifier if joint else NaiveBayes)(case.member.family, estimation=case.estimation)


# ------------------------------------------------------------------------------------------ 2. densities add up to one


@every_case
def test_densities_add_up_to_one(case: Case) -> None:
    member = case.member
    for _, part in member.parts(case.fit(member.table())):

        def density(x: NDArray[Any], part: Conditionals = part) -> Floats:
            return np.exp(part.log_density(x))

        total = member.measure.total(part, density)
        assert_allclose(total, 1.0, rtol=0, atol=1e-8)


# ------------------------------------------------------------------------------------ 3 and 4. maxima and modes


def assert_is_a_maximum(member: Member, fitted: Any, height: Any) -> None:
    """No slope in any of many directions, and nothing higher nearby."""
    top, step = height(fitted), 1e-4
    for seed in range(50):
        ahead, behind = (height(member.moved(fitted, np.random.default_rng(seed), size)) for size in (step, -step))
        bend = (2.0 * top - ahead - behind) / step**2
        assert bend > 0.0
        assert abs(ahead - behind) / (2.0 * step) < 1e-5 * (1.0 + bend)
        for size in (-0.1, 0.1):
            assert height(member.moved(fitted, np.random.default_rng(seed), size)) < top


SMOOTHED = [case for case in PLUGGED_IN if case.member.family._smooths(Estimation(case.estimation))]


@every([case for case in PLUGGED_IN if case not in SMOOTHED])
def test_maximum_likelihood_is_a_maximum(case: Case) -> None:
    rows = case.member.table()
    assert_is_a_maximum(case.member, case.fit(rows), lambda fitted: log_likelihood(fitted, rows))


@every([case for case in SMOOTHED if case.member.has_log_prior])
def test_pseudo_data_give_the_mode_of_the_posterior(case: Case) -> None:
    member, rows = case.member, case.member.table()
    assert_is_a_maximum(
        member, case.fit(rows), lambda fitted: log_likelihood(fitted, rows) + member.log_prior(fitted, rows)
    )


@every([case for case in SMOOTHED if case.member.has_log_prior])
def test_the_prior_in_the_objective_of_em_is_that_of_the_estimate(case: Case) -> None:
    member, rows = case.member, case.member.table()
    statistics, fitted = member.statistics(rows), case.fit(rows)
    others = [member.moved(fitted, np.random.default_rng(seed), 0.3) for seed in range(5)]
    try:
        heights = [member.family._log_prior(statistics, each) for each in (fitted, *others)]
    except NoEvidenceError:  # `Family._log_prior` says so, and EM leaves the prior out
        assert type(member.family) in WITHOUT_PRIOR_DENSITY
        return
    expected = [member.log_prior(each, rows) for each in (fitted, *others)]
    assert type(member.family) not in WITHOUT_PRIOR_DENSITY
    assert_allclose(np.diff(heights), np.diff(expected), rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------- 5. the natural form


@every([case for case in PLUGGED_IN if not isinstance(case.member, OfPointMass | OfHistogram)])
def test_the_natural_form_is_the_density(case: Case) -> None:
    rows = case.member.table()
    fitted = case.fit(rows)
    assert isinstance(fitted, ExponentialConditionals)
    assert_log_equal(fitted.natural_log_density(rows.X), fitted.log_density(rows.X))


# ------------------------------------------------------------------------------------------ 6. missing is marginal


@every(APART)
def test_a_missing_cell_is_one_that_is_summed_out(case: Case) -> None:
    member, rows = case.member, case.member.table()
    incomplete = member.incomplete(rows, seed=4)
    absent = (incomplete.X < 0) if isinstance(member, OfCategorical) else np.isnan(incomplete.X)
    for learnt_from in (rows, incomplete):
        fitted = case.fit(learnt_from)
        density, evidence = fitted.log_density(incomplete.X), fitted.explain(incomplete.X)
        for i, here in enumerate(~absent):
            seen = np.flatnonzero(here)
            if not len(seen):
                assert_array_equal(density[:, i], 0.0)
                continue
            expected = fitted.marginal(seen).log_density(incomplete.X[i : i + 1, seen])
            assert_log_equal(density[:, i : i + 1], expected, 1e-12)
        assert_array_equal(evidence.transpose(0, 2, 1)[absent], 0.0)


@every(cases_of(OfMultinomial, "bayes") + cases_of(OfMultinomial, "mle"))
def test_a_vector_of_counts_misses_no_cell(case: Case) -> None:
    rows = case.member.table()
    X = rows.X.copy()
    X[5, 1] = np.nan
    fitted = case.fit(rows)
    for refuse in (fitted.log_density, fitted.scores, fitted.explain, lambda x: case.fit(Rows(x, rows.y))):
        with pytest.raises(InputError, match=r"row 5.*missing"):
            refuse(X)


# ------------------------------------------------------------------------------------------- 7. weights are repeats


@every_case
def test_a_whole_weight_is_that_many_rows(case: Case) -> None:
    member = case.member
    rows = member.incomplete(member.table())
    times = np.random.default_rng(5).integers(1, 4, len(rows.y))
    weighted = case.fit(rows, times.astype(np.float64))
    repeated = case.fit(Rows(np.repeat(rows.X, times, axis=0), np.repeat(rows.y, times)))
    assert_log_equal(weighted.log_density(rows.X), repeated.log_density(rows.X))


def with_strange_rows(case: Case, rows: Rows) -> Rows:
    """The same rows, but for every fourth, which holds what no other row does."""
    X = rows.X.copy()
    if isinstance(case.member, OfCategorical):
        last = np.array([len(words) - 1 for words in WORDS])
        X = np.minimum(X, last - 1)
        X[::4] = last
    else:
        X[::4] = case.member.outside
    return Rows(X, rows.y)


@every_case
def test_a_row_of_weight_0_is_absent_whatever_it_holds(case: Case) -> None:
    rows = with_strange_rows(case, case.member.table(sizes=(17, 16, 16)))
    weights = np.where(np.arange(len(rows.y)) % 4 == 0, 0.0, 1.0)
    kept = take(rows, weights > 0.0)
    without = classifier(case).fit(frame_of(case, kept), kept.y)
    among = classifier(case).fit(frame_of(case, rows), rows.y, sample_weight=weights)
    X = frame_of(case, kept)
    assert_log_equal(among.log_joint(X), without.log_joint(X), 1e-12)


# ------------------------------------------------------------------------------------------- 8. explanations add up


@every_case
def test_explanations_add_up_to_the_density(case: Case) -> None:
    member = case.member
    rows = member.incomplete(member.table())
    fitted = case.fit(rows)
    rest = fitted.unattributed(rows.X)
    for terms in (fitted.explain(rows.X), fitted.explain_sequential(rows.X)):
        assert terms.shape == (len(rows.y), 3, rows.X.shape[1])
        assert_log_equal(terms.sum(axis=2).T + (0.0 if rest is None else rest), fitted.log_density(rows.X))


@every_case
def test_terms_of_single_columns_and_classes_are_densities(case: Case) -> None:
    """`class_terms` and `column_log_densities` are what the density of one class, or of one column, is."""
    rows = case.member.table()
    fitted = case.fit(rows)
    for k in range(3):
        terms = fitted.class_terms(rows.X, k)
        if terms is not None:
            assert_log_equal(terms.sum(axis=1), fitted.log_density(rows.X)[k])
        mine = fitted.class_log_density(rows.X, np.full(len(rows.X), k))
        assert_log_equal(mine, fitted.log_density(rows.X)[k])
    if fitted.given is None:
        found = fitted.column_log_densities(rows.X)
        for j in range(rows.X.shape[1]):
            alone = fitted.marginal(np.array([j])).log_density(rows.X[:, [j]])
            assert_log_equal(found[:, :, j].T, alone)


@every([case for case in CASES if case.member.outside == -2.0])
@pytest.mark.parametrize("size", [1e6, 1e12])
def test_explanations_of_large_counts_add_up_to_the_density(case: Case, size: float) -> None:
    rows = case.member.table()
    rows = Rows(np.floor(size * rows.X * (1.0 + np.arange(len(rows.y))[:, None] / 1e3)) + 1.0, rows.y)
    fitted = case.fit(rows)
    rest = fitted.unattributed(rows.X)
    told = fitted.explain(rows.X).sum(axis=2).T + (0.0 if rest is None else rest)
    assert_log_equal(told, fitted.log_density(rows.X), 1e-11)


@every_case
def test_scores_are_densities_up_to_a_term_that_all_classes_share(case: Case) -> None:
    member = case.member
    rows = member.incomplete(member.table())
    fitted = case.fit(rows)
    assert_same_odds(fitted.scores(rows.X), fitted.log_density(rows.X))


# ------------------------------------------------------------------------------------------------------ 9. samples


@every(PLUGGED_IN)
def test_a_fit_to_samples_has_the_density_they_were_drawn_from(case: Case) -> None:
    rows, n = case.member.table(), 20_000
    truth = case.fit(rows)
    drawn = [truth.sample(k, n, np.random.default_rng(k)) for k in range(3)]
    X = np.vstack(drawn).astype(rows.X.dtype)
    again = case.fit(Rows(X, np.repeat(LETTERS, n)))
    for (columns, before), (_, after) in zip(case.member.parts(truth), case.member.parts(again), strict=True):
        grid = points(case.member, rows, columns)
        assert_log_equal(after.log_density(grid), before.log_density(grid), 0.04)


def bounded(x: NDArray[Any]) -> Floats:
    """Three functions of cells (n,) that no tail can blow up, (3, n)."""
    return np.array([np.tanh(x), 1.0 / (1.0 + x * x), 1.0 / np.hypot(1.0, x)])


@every([case for case in APART if not isinstance(case.member, OfPairs)])  # its marginals leave parents out
def test_averages_over_samples_are_expectations(case: Case) -> None:
    member, n = case.member, 20_000
    fitted = case.fit(member.table())
    drawn = [fitted.sample(k, n, np.random.default_rng(10 + k)) for k in range(3)]
    for (j,), part in member.parts(fitted):
        unit = np.median([np.abs(x[:, j]).mean() for x in drawn]) + 0.1

        def weighted(x: NDArray[Any], part: Any = part, unit: Any = unit) -> Floats:
            products = np.exp(part.log_density(x)) * bounded(x[:, 0] / unit)[:, None]
            return np.asarray(products.reshape(-1, len(x)))

        expected = member.measure.total(part, weighted).reshape(3, 3)
        values = np.array([bounded(x[:, j] / unit) for x in drawn]).transpose(1, 0, 2)
        error = values.std(axis=2) / np.sqrt(n) + 1e-9
        np.testing.assert_array_less(np.abs(values.mean(axis=2) - expected) / error, 5.0)


@every([case for case in APART if not isinstance(case.member, WITHOUT_MEANS)])
def test_means_are_expectations(case: Case) -> None:
    member = case.member
    for _, part in member.parts(case.fit(member.table())):
        assert isinstance(part, IndependentColumns)
        means = part.means()

        def weighted(x: NDArray[Any], part: Conditionals = part) -> Floats:
            return np.exp(part.log_density(x)) * x[:, 0]

        assert_allclose(means[:, 0], member.measure.total(part, weighted), rtol=1e-6)


@every([case for case in CASES if isinstance(case.member, OfMultinomial)])
def test_vectors_are_drawn_with_the_mean_total_of_their_class(case: Case) -> None:
    member, n = case.member, 20_000
    rows = member.table()
    fitted = case.fit(rows)
    for k, label in enumerate(LETTERS):
        drawn = fitted.sample(k, n, np.random.default_rng(20 + k))
        total = np.rint(rows.of(label).sum() / len(rows.of(label)))
        assert_array_equal(drawn.sum(axis=1), total)
        own = slice(k, k + 1)

        def weighted(x: NDArray[Any], own: Any = own) -> Floats:
            return np.exp(fitted.log_density(x)[own]) * np.vstack([x.T, (x * x).T, x[:, 0] * x[:, 1]])

        expected = Vectors(int(total)).total(fitted, weighted)
        values = np.vstack([drawn.T, (drawn * drawn).T, drawn[:, 0] * drawn[:, 1]])
        error = values.std(axis=1) / np.sqrt(n) + 1e-9
        np.testing.assert_array_less(np.abs(values.mean(axis=1) - expected) / error, 5.0)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("family", [Multinomial(), Poisson("row totals")], ids=str)
def test_totals_that_are_given_are_drawn_as_they_were_and_make_no_row_novel(family: Any, estimation: str) -> None:
    rows = MULTINOMIAL.table()
    model = NaiveBayes(family, estimation=estimation).fit(rows.X, rows.y)
    for label in LETTERS:
        drawn, _ = model.sample(2000, label=label, random_state=0)
        assert_allclose(drawn.sum(axis=1).mean(), rows.of(label).sum(axis=1).mean(), atol=0.5)
    assert all(column.evidence is not None for column in model.summary().columns)
    with pytest.raises(NoDensityError, match="has no density, so rows have no novelty score"):
        model.novelty(rows.X)


# ------------------------------------------------------------------------------------- 10. the posterior predictive


def points(member: Member, rows: Rows, columns: Index) -> NDArray[Any]:
    """Some cells of a column, or some rows of a vector."""
    if member.whole:
        return rows.X[:5]
    return np.quantile(rows.X[:, columns], [0.1, 0.35, 0.65, 0.9], axis=0, method="nearest")


@every([case for case in CASES if case.estimation == "bayes" and case.member.has_predictive])
def test_the_predictive_is_the_average_of_the_density_over_the_posterior(case: Case) -> None:
    member, draws = case.member, 200_000
    rows, rng = member.table(), np.random.default_rng(6)
    for columns, part in list(member.parts(case.fit(rows)))[:2]:
        x = points(member, rows, columns)
        actual = np.exp(part.log_density(x))
        for k in range(3):
            densities = member.plugged_in(rows, k, columns, x, draws, rng)
            error = densities.std(axis=0) / np.sqrt(draws)
            assert np.all(np.abs(actual[k] - densities.mean(axis=0)) < 5.0 * error + 1e-12)


# --------------------------------------------------------------------------------------------------- 11. the support


@every(NUMBERS)
def test_a_cell_outside_the_support_is_named(case: Case) -> None:
    rows, outside = case.member.table(), case.member.outside
    assert outside is not None
    good = pd.DataFrame(rows.X, columns=["visits", "others", "more"][: rows.X.shape[1]])
    bad = good.copy()
    bad.loc[17, "visits"] = outside
    key: Any = tuple(good.columns) if case.member.whole else "visits"
    model = NaiveBayes({key: case.member.family}, estimation=case.estimation)
    words = rf"Column 'visits', row 17: {outside!r} is not .*\. (Declare|Drop) "
    with pytest.raises(InputError, match=words):
        model.fit(bad, rows.y)
    model.fit(good, rows.y)
    for question in (model.predict, model.predict_proba, model.log_joint, model.explain):
        with pytest.raises(InputError, match=words):
            question(bad)


@pytest.mark.parametrize("member", [m for m in MEMBERS if m.outside == -2.0 and m.family.prior is None], ids=str)
def test_a_count_outside_the_support_is_reported_as_it_stands(member: Member) -> None:
    rows = member.table()
    good = pd.DataFrame(rows.X, columns=["visits", "others", "more"][: rows.X.shape[1]]).astype(int)
    bad = good.copy()
    bad.loc[17, "visits"] = -2
    key: Any = tuple(good.columns) if member.whole else "visits"
    model = NaiveBayes({key: member.family})
    words = r"Column 'visits', row 17: -2 is not a count.*\. Declare .*'visits'"
    with pytest.raises(InputError, match=words):
        model.fit(bad, rows.y)
    with pytest.raises(InputError, match=words):
        model.fit(good, rows.y).predict(bad)


# ------------------------------------------------------------------------------------- 12. columns without spread


@every([case for case in APART if case.member.outside == -2.0])
def test_counts_that_differ_by_one_are_distinguished_however_large(case: Case) -> None:
    y = np.arange(2000) % 2
    model = classifier(case).fit((1_000_000.0 + y)[:, None], y)
    (block,) = model.model_.blocks
    conditionals: Any = block.conditionals
    assert conditionals.informative.all()
    flat: Any = case.fit(Rows(np.full((2000, 1), 1_000_001.0), LETTERS[y]))
    assert flat.informative.all() == (not silent(case))


@every([case for case in APART if case.member.outside == -2.0])
def test_counts_whose_variance_is_lost_in_sums_are_still_counts(case: Case) -> None:
    y = np.arange(100) % 2
    X = np.round(1e8 + 10.0 * y + np.random.default_rng(0).normal(size=100))[:, None]
    model = classifier(case).fit(X, y)
    assert str(model.summary())
    assert np.all(np.isfinite(model.novelty(X)))
    drawn, _ = model.sample(50, random_state=0)
    assert_array_equal(drawn, np.floor(drawn))


def silent(case: Case) -> bool:
    """Whether a column with one value says nothing; outside "bayes" some follow their formulas, as elsewhere."""
    return case.estimation == "bayes" or not isinstance(case.member.family, Bernoulli | Poisson)


@every([case for case in APART if case.member.steady is not None and silent(case)])
def test_a_column_with_one_value_adds_nothing_and_changes_no_posterior(case: Case) -> None:
    rows = case.member.table()
    assert case.member.steady is not None
    flat = Rows(np.insert(rows.X, 1, case.member.steady, axis=1), rows.y)
    without, fitted = case.fit(rows), case.fit(flat)
    assert_array_equal(fitted.explain(flat.X)[:, :, 1], 0.0)
    assert_log_equal(fitted.log_density(flat.X), without.log_density(rows.X), 1e-13)
    bare = classifier(case).fit(rows.X, rows.y).predict_proba(rows.X)
    assert_allclose(classifier(case).fit(flat.X, flat.y).predict_proba(flat.X), bare, rtol=0, atol=1e-13)


@every(LABELS)
def test_a_column_with_one_category_adds_nothing_and_changes_no_posterior(case: Case) -> None:
    rows = case.member.table()
    frame = frame_of(case, rows)
    flat = frame.assign(same="always")
    without, model = (classifier(case).fit(X, rows.y) for X in (frame, flat))
    assert_array_equal(model.explain(flat).evidence[:, :, 3], 0.0)
    assert_allclose(model.predict_proba(flat), without.predict_proba(frame), rtol=0, atol=1e-13)


# -------------------------------------------------------------------------------------------- 13. linear log-odds


@every([case for case in PLUGGED_IN if case.member.log_odds_are_linear and not isinstance(case.member, OfBernoulli)])
def test_log_odds_are_linear_where_classes_share_their_dispersion(case: Case) -> None:
    rows, rng = case.member.table(), np.random.default_rng(8)
    fitted, steps = case.fit(rows), np.arange(12.0)[:, None]
    for _ in range(10):
        start, along = rng.integers(20, 60, rows.X.shape[1]), rng.integers(-2, 4, rows.X.shape[1])
        density = fitted.log_density(start + along * steps * (case.member.step or 0.37))
        odds = density[1:] - density[0]
        assert_allclose(np.diff(odds, 2, axis=1), 0.0, rtol=0, atol=1e-9 * (1.0 + np.abs(odds).max()))


@every(cases_of(OfBernoulli, "mle") + cases_of(OfBernoulli, "map"))
def test_log_odds_of_zeros_and_ones_are_linear(case: Case) -> None:
    fitted = case.fit(case.member.table())
    density = fitted.log_density(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    odds = density[1:] - density[0]
    assert_allclose(odds[:, 3] - odds[:, 2], odds[:, 1] - odds[:, 0], rtol=0, atol=1e-9)


def test_the_gaussian_is_its_scaled_form() -> None:
    """p(x | k) = (1/s)·h(x/s)·g(λ_k)·exp(λ_k·x/s), s = σ, λ_k = μ_k/σ, h the standard normal, g(λ) = exp(−λ²/2)."""
    member = OfGaussian(Gaussian("diagonal", shared=True))
    rows = member.table()
    fitted = member.fit(rows, "mle")
    means = np.array([rows.of(label).mean(axis=0) for label in LETTERS])
    s = np.sqrt(((rows.X - means[rows.codes]) ** 2).mean(axis=0))
    for k, natural in enumerate(means / s):
        standard = np.exp(-0.5 * (rows.X / s) ** 2) / np.sqrt(2.0 * np.pi)
        density = standard * np.exp(-0.5 * natural**2) * np.exp(natural * rows.X / s) / s
        assert_allclose(np.exp(fitted.log_density(rows.X)[k]), density.prod(axis=1), rtol=1e-10)


# ----------------------------------------------------------------------------------------------- 14. sparse rows


@every([case for case in CASES if case.member.family._reads_sparse])
def test_sparse_rows_are_dense_rows(case: Case) -> None:
    member = case.member
    rows = member.incomplete(member.table())
    weights = np.random.default_rng(9).choice([0.5, 1.0, 2.0], len(rows.y))
    mostly_zero = np.insert(rows.X, 1, (np.arange(len(rows.y)) == 4).astype(np.float64), axis=1)
    for dense in (rows.X, mostly_zero):
        sparse = scipy.sparse.csr_array(dense)
        assert sparse.nnz < dense.size or member.whole
        plain, packed = (member.statistics(Rows(X, rows.y), weights) for X in (dense, sparse))
        assert_same_statistics(packed, plain)
        fitted, again = (member.estimate(statistics, case.estimation) for statistics in (plain, packed))
        expected = fitted.log_density(dense)
        for answer in (again.log_density(sparse), fitted.log_density(sparse)):
            assert_log_equal(answer, expected)
        assert_same_odds(again.scores(sparse), expected)
        assert_log_equal(again.explain(sparse), fitted.explain(dense))


@every([case for case in CASES if case.member.family._reads_sparse])
def test_zeros_that_are_stored_are_zeros(case: Case) -> None:
    rows = case.member.table()
    packed = scipy.sparse.csr_array(rows.X)
    n, d = rows.X.shape
    stored = scipy.sparse.csr_array((rows.X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)))
    assert stored.nnz > packed.nnz
    assert_log_equal(case.fit(Rows(stored, rows.y)).log_density(stored), case.fit(rows).log_density(rows.X))
