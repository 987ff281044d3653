"""Families of columns that are not declared: chosen by leave-one-out log-density on one measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import likely
from likely import (
    Categorical,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LogNormal,
    NaiveBayes,
    NegativeBinomial,
    PointMass,
    Poisson,
)
from likely.choice.column_families import ColumnSample
from likely.data.row_hash import copies
from likely.data.validation import read_table
from likely.errors import InputError
from likely.model.choices import difference_error
from tests.helpers import load_table


def column(x: Any, codes: Any, weights: Any = None) -> ColumnSample:
    codes = np.asarray(codes, dtype=np.intp)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    return ColumnSample(np.asarray(x, dtype=np.float64), codes, weights, np.arange(codes.max() + 1))


def kinds(model: Any) -> dict[Any, str]:
    """The name of the family of each column, in blocks too."""
    found = {}
    for key, family in model.families_.items():
        for name in key if isinstance(key, tuple) else (key,):
            inside = isinstance(key, tuple) and isinstance(family, LogNormal) and name not in (family.log or key)
            found[name] = "Gaussian" if inside else type(family).__name__
    return found


# -- the scores


@pytest.mark.parametrize("family", [Poisson(), Geometric(), NegativeBinomial(2.0), Categorical()], ids=str)
def test_scores_of_counts_are_those_of_leave_one_out(family: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    x = rng.poisson(2 + y)
    model = NaiveBayes(family, class_prior="uniform", calibration=None).fit(x[:, None], y)
    joint = model.model_.log_joint(read_table(x[:, None]))
    held_out = model.left_out_proba(x[:, None], y)[np.arange(60), y]
    other = joint[np.arange(60), 1 - y]  # the other class does not change
    wanted = np.log(held_out) - np.log1p(-held_out) + other - np.log(0.5)
    assert_allclose(column(x, y).terms(family, whole=True), wanted, rtol=1e-7)


@pytest.mark.parametrize("family", [Gaussian("diagonal"), LogNormal(), Gamma()], ids=str)
def test_scores_of_whole_numbers_are_integrals_of_the_density(family: Any) -> None:
    """The statistics without a row do not change where it is: a grid about it has the density of its predictive."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 40)
    x = np.rint(rng.gamma(3.0, 4.0, 80)) + 1.0
    sample = column(x, y)
    got = sample.terms(family, whole=True)
    for i in (0, 5, 50, int(np.argmax(x))):
        rest = np.delete(np.arange(80), i)
        density = _predictive(family, x[rest][y[rest] == y[i]], x, y)
        grid = np.linspace(x[i] - 0.5, x[i] + 0.5, 2001)
        assert_allclose(got[i], np.log(np.trapezoid(density(grid), grid)), rtol=0, atol=2e-5)


def _predictive(family: Any, mine: Any, x: Any, y: Any) -> Any:
    """The predictive density of a class by its other rows, from the textbook, with the default priors of all rows."""
    if isinstance(family, Gamma):
        rows, total, logs = len(mine) + 1.0, mine.sum() + x.mean(), np.log(mine).sum() + np.log(x).mean()
        target = np.log(total / rows) - logs / rows
        shapes = np.exp(np.linspace(np.log(0.1), np.log(100.0), 200_001))
        from scipy.special import digamma

        shape = shapes[np.argmin(np.abs(np.log(shapes) - digamma(shapes) - target))]
        return stats.gamma(shape, scale=total / rows / shape).pdf
    log = isinstance(family, LogNormal)
    z, every = (np.log(mine), np.log(x)) if log else (mine, x)
    within = np.mean([np.mean((every[y == k] - every[y == k].mean()) ** 2) for k in (0, 1)])
    between = every.var() - within
    rows0 = min(within / between, 0.01)
    n, centre = len(z), (rows0 * every.mean() + z.sum()) / (rows0 + len(z))
    scale = within + ((z - z.mean()) ** 2).sum() + rows0 * n / (rows0 + n) * (z.mean() - every.mean()) ** 2
    degrees = 3.0 + n
    t = stats.t(degrees, centre, np.sqrt(scale / degrees * (1.0 + 1.0 / (rows0 + n))))
    return (lambda v: t.pdf(np.log(v)) / v) if log else t.pdf


def test_a_weight_is_that_many_rows_in_every_score() -> None:
    rng = np.random.default_rng(2)
    y, x = rng.integers(0, 2, 40), rng.poisson(4.0, 40) + 1.0
    weights = rng.integers(1, 5, 40)
    index = np.repeat(np.arange(40), weights)
    for family in (Poisson(), NegativeBinomial(2.0), Categorical(), Gaussian("diagonal"), LogNormal(), Gamma()):
        for whole in (True, False):
            weighted = column(x, y, weights).terms(family, whole)
            assert_allclose(np.repeat(weighted, weights), column(x[index], y[index]).terms(family, whole), rtol=1e-9)
            merged = column(x, y, weights).merged()
            total = (merged.weights * merged.terms(family, whole)).sum()
            assert_allclose(total, weights @ weighted, rtol=1e-9)


# -- the choice


def drawn(rows: int = 3000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Columns of every kind that has a candidate, whose distribution is known."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    zero = rng.random(rows)
    frame = pd.DataFrame(
        {
            "Gaussian": rng.normal(10 + y, 1.5),
            "LogNormal": np.exp(rng.normal(1 + y, 0.8)),
            "Gamma": rng.gamma(1.5, 2 + y),
            "Poisson": rng.poisson(6 + y, rows),
            "Geometric": rng.geometric(0.15 - 0.05 * y) - 1,
            "NegativeBinomial": rng.poisson(rng.gamma(4.0, 3 + y)),
            "Categorical": rng.choice([1, 5, 9], rows, p=[0.3, 0.1, 0.6]),
            "PointMass": np.where(zero < 0.6 + 0.2 * y, 0.0, np.exp(rng.normal(5, 1.0, rows))),
        }
    )
    return frame, y


def test_naive_bayes_chooses_the_family_that_a_column_came_from() -> None:
    X, y = drawn()
    found = NaiveBayes().fit(X, y).families_
    assert {name: type(family).__name__ for name, family in found.items()} == {name: name for name in X}
    assert found["NegativeBinomial"].dispersion == 4.0
    assert found["PointMass"].value == 0.0
    assert isinstance(found["PointMass"].family, LogNormal)


def test_generative_classifier_chooses_by_the_same_scores() -> None:
    X, y = drawn()
    model = GenerativeClassifier().fit(X, y)
    found = kinds(model)
    assert {name: found[name] for name in X if name not in ("Gaussian", "LogNormal")} == {
        name: name for name in X if name not in ("Gaussian", "LogNormal")
    }
    assert model.families_["Gaussian", "LogNormal"].log == ("LogNormal",)


@pytest.mark.parametrize("name", ["german_credit", "pima_missing", "penguins", "wine", "iris"])
@pytest.mark.parametrize("factor", [1e-3, 0.4536, 25.4])
def test_the_unit_of_a_column_changes_no_choice(name: str, factor: float) -> None:
    frame = load_table(name)
    y = frame.iloc[:, -1 if name != "penguins" else 0].astype(str)
    X = frame.drop(columns=y.name).select_dtypes("number")
    X = X[[c for c in X if (X[c].dropna() % 1 != 0).any()]]
    if X.empty:
        X = pd.DataFrame({"amount": frame["credit_amount"] * 0.37, "age": frame["age"] / 365.25})
    one, two = (NaiveBayes().fit(part, y) for part in (X, X * factor))
    assert kinds(one) == kinds(two)
    one, two = (GenerativeClassifier().fit(part, y) for part in (X, X * factor))
    assert kinds(one) == kinds(two)


def test_weights_are_repeats_in_every_choice() -> None:
    """The codes are categorical by the weight of their rows; also where only some of the rows are judged."""
    X = pd.DataFrame({"code": [0, 1, 2, 0, 1, 2]})
    y, weights = list("aaabbb"), [900, 10, 900, 10, 900, 10]
    index = np.repeat(np.arange(6), weights)
    for Model in (NaiveBayes, GenerativeClassifier):
        weighted = Model().fit(X, y, weights)
        repeated = Model().fit(X.iloc[index], np.array(y)[index])
        assert isinstance(weighted.families_["code"], Categorical)
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_twice_the_weight_is_every_row_twice(seed: int) -> None:
    X, y = drawn([40, 90, 300, 2500][seed % 4], seed)
    X.loc[X.index % 7 == 3, ["Gamma", "Poisson"]] = np.nan
    for Model in (NaiveBayes, GenerativeClassifier):
        weighted = Model().fit(X, y, np.full(len(y), 2.0))
        repeated = Model().fit(pd.concat([X, X]), np.r_[y, y])
        assert kinds(weighted) == kinds(repeated)
        for mine, yours in zip(weighted.choices_, repeated.choices_, strict=True):
            pairs: Any = [(score, yours.log_density[name]) for name, score in mine.log_density.items()]
            for one, two in pairs:
                assert_allclose(one, two, rtol=1e-9)


def test_rows_are_drawn_by_content_and_weights_as_repeats() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 30, 20_000), rng.integers(0, 3, 20_000)]).astype(float)
    codes, weights = rng.integers(0, 2, 20_000), rng.integers(0, 4, 20_000).astype(float)
    drawn_weights = copies(read_table(X), codes, weights, 0.1)
    assert abs(drawn_weights.sum() - 0.1 * weights.sum()) < 300
    index = rng.permutation(np.repeat(np.arange(20_000), weights.astype(int)))
    again = copies(read_table(X[index]), codes[index], np.ones(len(index)), 0.1)
    mine = pd.Series(drawn_weights).groupby([X[:, 0], X[:, 1], codes]).sum()
    theirs = pd.Series(again).groupby([X[index, 0], X[index, 1], codes[index]]).sum()
    pd.testing.assert_series_equal(mine[mine > 0].sort_index(), theirs[theirs > 0].sort_index())


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_order_and_library_change_no_choice(convert: Any) -> None:
    X, y = drawn(6000, 3)
    X.loc[X.index % 11 == 5, ["Gamma", "Poisson"]] = np.nan
    order = np.random.default_rng(0).permutation(len(y))
    for Model in (NaiveBayes, GenerativeClassifier):
        plain = Model().fit(X, y)
        for other in (
            Model().fit(X.iloc[order], y[order]),
            Model().fit(X[X.columns[::-1]], y),
            Model().fit(convert(X), y),
        ):
            assert kinds(other) == kinds(plain)


def test_calendar_columns_are_not_geometric_and_day_60_is_novel() -> None:
    rng = np.random.default_rng(0)
    rows = 3000
    X = pd.DataFrame(
        {
            "month": rng.integers(1, 13, rows),
            "day": rng.integers(1, 32, rows),
            "hour": rng.integers(0, 24, rows),
            "minute": rng.choice(np.r_[np.arange(0, 60, 5), np.arange(60)], rows),
            "education_num": rng.binomial(15, 0.6, rows) + 1,
        }
    )
    y = rng.integers(0, 2, rows)
    for Model in (NaiveBayes, GenerativeClassifier):
        model = Model().fit(X, y)
        assert not {"Geometric", "NegativeBinomial"} & set(kinds(model).values())
        ordinary, strange = X[:200], X[:200].assign(day=60)
        assert np.quantile(model.log_density(strange), 0.9) < np.quantile(model.log_density(ordinary), 0.01)


@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier])
@pytest.mark.parametrize(
    ("name", "target", "positive"),
    [
        ("german_credit", "class", ["duration_months", "credit_amount", "age"]),
        (
            "pima_missing",
            "diabetes",
            ["pregnant", "glucose", "pressure", "triceps", "insulin", "mass", "pedigree", "age"],
        ),
        ("penguins", "species", ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]),
    ],
)
def test_samples_look_like_the_data(Model: Any, name: str, target: str, positive: list[str]) -> None:
    frame = load_table(name)
    model = Model().fit(frame, target)
    X, _ = model.sample(4000, random_state=0)
    assert (X[positive] >= 0).all().all()
    for column_name in frame.drop(columns=target).select_dtypes("number"):
        x, drawn_x = frame[column_name].dropna().to_numpy(float), np.asarray(X[column_name], dtype=float)
        assert stats.ks_2samp(x, drawn_x).statistic < 0.15, column_name
        if (x % 1 == 0).all():
            assert (drawn_x % 1 == 0).all()


def test_a_skewed_column_keeps_its_correlations() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    z = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 2000)
    X = pd.DataFrame({"plain": z[:, 0] + y, "skewed": np.exp(z[:, 1] + 3)})
    model = GenerativeClassifier().fit(X, y)
    (family,) = model.families_.values()
    assert (family.log, family.covariance) == (("skewed",), "full")
    given = pd.DataFrame({"plain": [2.0, -2.0], "skewed": [np.nan, np.nan]})
    filled = model.impute(given, [1, 0])["skewed"]
    logs = np.log(X["skewed"])
    for value, plain, k in zip(filled, given["plain"], (1, 0), strict=True):
        mine = X["plain"][y == k], logs[y == k]
        slope, start = np.polyfit(*mine, 1)
        rest = np.var(mine[1] - slope * mine[0] - start)
        assert_allclose(value, np.exp(start + slope * plain + rest / 2), rtol=0.03)
    drawn_rows, _ = model.sample(4000, random_state=0)
    assert np.corrcoef(drawn_rows["plain"], np.log(drawn_rows["skewed"]))[0, 1] > 0.75


def test_a_column_leaves_the_block_where_another_family_is_clearly_better() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    a, b = rng.normal(size=(2, 1500))
    alone = GenerativeClassifier().fit(pd.DataFrame({"a": a + y, "b": b, "g": rng.gamma(1.0, 1.0, 1500)}), y)
    assert isinstance(alone.families_["g"], Gamma)
    tied = np.exp(a * 0.1) * rng.gamma(1.0, 1.0, 1500)
    noise = rng.normal(size=1500) * 0.02
    inside = GenerativeClassifier().fit(pd.DataFrame({"a": a + y, "g": tied, "h": tied + noise}), y)
    assert isinstance(next(iter(inside.families_)), tuple)
    assert "g" in next(key for key in inside.families_ if isinstance(key, tuple))


def test_few_rows_have_the_simplest_family() -> None:
    rng = np.random.default_rng(0)
    model = NaiveBayes(calibration=None).fit(np.exp(3 * rng.normal(size=(20, 2))), np.arange(20) % 2)
    assert all(isinstance(family, Gaussian) for family in model.families_.values())
    assert model.choices_ == ()


def test_a_wide_table_has_independent_columns_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 1200)), np.arange(100) % 2
    model = GenerativeClassifier().fit(X, y)
    assert all(family.covariance == "diagonal" for family in model.families_.values())
    assert "more than 1,000 continuous columns" in str(model.summary())
    joint = GenerativeClassifier().fit(X[:, :50], y)
    assert next(iter(joint.families_.values())).covariance == "full"


def test_files_and_sums_keep_the_scores(tmp_path: Any) -> None:
    X, y = drawn(2000)
    model = NaiveBayes().fit(X, y)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert again.choices_ == model.choices_
    assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    half, rest = (NaiveBayes(calibration=None).fit(X[part], y[part]) for part in (slice(1000), slice(1000, 2000)))
    assert kinds(half) == kinds(rest)
    total = half + rest
    for mine, one, two in zip(total.choices_, half.choices_, rest.choices_, strict=True):
        scores: list[Any] = [choice.log_density[mine.family] for choice in (mine, one, two)]
        assert_allclose(scores[0], (scores[1] + scores[2]) / 2, rtol=1e-9)


def test_point_masses_at_any_value_and_by_weight() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    x = np.where(rng.random(500) < 0.15, 99.5, rng.normal(size=500))
    (family,) = NaiveBayes().fit(x[:, None], y).families_.values()
    assert isinstance(family, PointMass)
    assert family.value == 99.5
    weights = np.r_[1.0, np.ones(499)]
    weights[0] = 200.0
    (family,) = NaiveBayes().fit(rng.normal(size=(500, 1)), y, weights).families_.values()
    assert isinstance(family, PointMass)


@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier])
def test_values_that_a_chosen_family_excludes_are_missing(Model: Any) -> None:
    """As categories that did not occur in training: no evidence for any class, or an error if that is asked for."""
    X, y = drawn()
    model = Model().fit(X, y)
    strange = X[:5].assign(LogNormal=-1.0, Gamma=0.0, Poisson=-2, PointMass=-0.5)
    missing = X[:5].assign(LogNormal=np.nan, Gamma=np.nan, Poisson=np.nan, PointMass=np.nan)
    assert_allclose(model.predict_proba(strange), model.predict_proba(missing), rtol=1e-12)
    assert_allclose(model.log_density(strange), model.log_density(missing), rtol=1e-12)
    assert_allclose(model.explain(strange).evidence, model.explain(missing).evidence, rtol=1e-12)
    pd.testing.assert_frame_equal(model.impute(strange), strange)
    strict = Model(unseen="error").fit(X, y)
    strict.predict(X)
    with pytest.raises(likely.errors.InputError, match=r"row 0: .* is outside the support of the family"):
        strict.predict(strange)
    declared = Model({"Gamma": Gamma()}).fit(X, y)
    with pytest.raises(likely.errors.InputError, match=r"Column 'Gamma', row 0: 0\.0 is not a finite number > 0"):
        declared.predict(strange)
    with pytest.raises(likely.errors.InputError, match="is not a"):
        model.partial_fit(strange, y[:5])


def test_logarithms_in_a_block_are_chosen_given_the_other_columns() -> None:
    """The logarithm of each column is better by itself, and x where one is a line in the other."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    a = np.exp(rng.normal(2.0, 0.5, 1500))
    together = GenerativeClassifier().fit(pd.DataFrame({"a": a, "b": 3 * a + rng.normal(0, 0.05, 1500) + 20}), y)
    (family,) = together.families_.values()
    assert isinstance(family, Gaussian)
    apart = GenerativeClassifier().fit(pd.DataFrame({"a": a, "c": rng.normal(size=1500)}), y)
    (family,) = apart.families_.values()
    assert isinstance(family, LogNormal)
    assert family.log == ("a",)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("kind", [GenerativeClassifier, NaiveBayes])
def test_an_infinite_value_in_many_rows_is_no_point_mass(kind: Any, value: float) -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    X[::5, 1] = value
    with pytest.raises(InputError, match=r"Column 'x1', row 0: -?inf is not a finite number"):
        kind().fit(X, y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_standard_errors_of_very_small_densities_are_numbers() -> None:
    rng = np.random.default_rng(0)
    one, two, weights = rng.normal(size=30), rng.normal(size=30), rng.random(30)
    expected = difference_error(one, two, weights)
    for unit in (1e200, 1e-200):
        assert_allclose(difference_error(unit * one, unit * two, weights), unit * expected, rtol=1e-12)
    assert difference_error(one, one, weights) == 0.0
