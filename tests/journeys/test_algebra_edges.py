"""Adding, forgetting, leaving out and keeping models at their edges: what cannot be is noticed, and nothing is lost."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

import likely
from likely import (
    Bernoulli,
    Beta,
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
    NormalInverseWishart,
    Poisson,
    QuadraticDiscriminant,
    VonMises,
)
from likely.errors import CellError, InputError, LikelyWarning, NotEstimableError

pytestmark = pytest.mark.usefixtures("pure_models")

RNG = np.random.default_rng(0)
X30, Y30 = RNG.normal(size=(30, 2)), np.arange(30) % 3


class Chunks:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def chunks(self) -> Iterator[Any]:
        yield from self.parts


# --------------------------------------------------------------------------------------------------------- adding


def test_any_column_tells_models_apart() -> None:
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(20, 12)), columns=[f"c{j}" for j in range(12)])
    y = np.arange(20) % 2
    other = frame.rename(columns={"c11": "weight"})
    with pytest.raises(InputError, match="columns 'c11', 'weight' of one model only"):
        NaiveBayes().fit(frame, y) + NaiveBayes().fit(other, y)
    turned = frame[[*frame.columns[:9], *reversed(frame.columns[9:])]]
    with pytest.raises(InputError, match="columns: "):
        NaiveBayes().fit(frame, y) + NaiveBayes().fit(turned, y)


def test_the_order_of_a_mapping_does_not_matter() -> None:
    frame, y = pd.DataFrame(np.exp(X30), columns=["a", "b"]), Y30
    left = NaiveBayes({"a": Gaussian("diagonal"), "b": LogNormal()}).fit(frame[:15], y[:15])
    right = NaiveBayes({"b": LogNormal(), "a": Gaussian("diagonal")}).fit(frame[15:], y[15:])
    whole = NaiveBayes({"a": Gaussian("diagonal"), "b": LogNormal()}).fit(frame, y)
    assert_allclose((left + right).predict_proba(frame), whole.predict_proba(frame), atol=1e-10)


def test_integer_labels_of_any_size_and_type_stay_apart() -> None:
    y = np.array([2**60, 2**60 + 1] * 10)
    X = np.random.default_rng(1).normal(size=(20, 2))
    model = NaiveBayes().fit(X, y).partial_fit(X, y.astype(np.uint64))
    assert_array_equal(model.classes_, [2**60, 2**60 + 1])
    assert_array_equal(model.statistics_.counts.rows, [20, 20])
    with pytest.raises(InputError, match=r"2\^53"):
        model.partial_fit(X, [1.0, 2.0] * 10)


@pytest.mark.parametrize("labels", [np.array([0, 1], dtype=object), np.array([b"a", b"b"]), np.array([True, False])])
def test_labels_of_other_kinds_cannot_be_added(labels: Any) -> None:
    X, y = X30[:20], np.arange(20) % 2
    model = NaiveBayes().fit(X, np.array(["a", "b"])[y])
    before = model.statistics_
    with pytest.raises(InputError, match="different types"):
        model.partial_fit(X, labels[y])
    assert model.statistics_ is before


def test_labels_that_may_come_are_remembered() -> None:
    X = X30[:10]
    model = NaiveBayes().partial_fit(X, np.zeros(10, dtype=int), classes=[0, 1])
    with pytest.raises(InputError, match="label 2, which is not among classes=0, 1"):
        model.partial_fit(X, np.full(10, 2))
    assert_array_equal(model.partial_fit(X, np.full(10, 2), classes=[2, 3]).classes_, [0, 1, 2, 3])
    with pytest.raises(InputError, match="mixed types"):
        NaiveBayes().partial_fit(X, np.arange(10) % 2, classes=[0, 1, "a"])


def test_a_first_batch_that_fails_leaves_nothing() -> None:
    model = NaiveBayes(class_prior={"a": 0.5, "b": 0.5})
    with pytest.raises(InputError, match="class_prior"):
        model.partial_fit(X30, Y30)
    with pytest.raises(NotFittedError):
        model.predict(X30)


def test_a_prior_that_changes_hands_changes_no_model() -> None:
    prior = [0.2, 0.3, 0.5]
    model = NaiveBayes(class_prior=prior).fit(X30, Y30)
    prior[:] = [0.8, 0.1, 0.1]
    assert_allclose(model.partial_fit(X30, Y30).class_prior_, [0.2, 0.3, 0.5])


# ----------------------------------------------------------------------------------------------------- forgetting

COUNTS = np.array([1, 2, 0, 1, 1, 5, 6, 7, 5, 4.0])[:, None]


@pytest.mark.parametrize(
    ("family", "X", "cell"),
    [
        (Poisson(), COUNTS, 100.0),
        (Poisson(), COUNTS, 4.0),
        (Bernoulli(), (COUNTS > 3).astype(float), 1.0),
        (Geometric(), COUNTS, 100.0),
        (NegativeBinomial(2.0), COUNTS, 100.0),
        (Exponential(), COUNTS, 100.0),
        (Gamma(), COUNTS + 1, 100.0),
        (Gamma(2.0), COUNTS + 1, 100.0),
        (LogNormal(), COUNTS + 1, 1e9),
        (Beta(), (COUNTS + 1) / 10, 0.999999),
        (VonMises(), COUNTS, 3.0),
        (Multinomial(), np.hstack([COUNTS, COUNTS]), 100.0),
        (Categorical(), COUNTS, 9.0),
        (Gaussian("diagonal"), COUNTS, 1e9),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float) else str(value),
)
def test_no_family_forgets_what_it_has_not_learnt(family: Any, X: Any, cell: float) -> None:
    model = NaiveBayes(family).fit(X, [0] * 5 + [1] * 5)
    before = model.statistics_
    with pytest.raises(InputError, match=r"rows as they were in the fit|not part of the fit"):
        model.forget(np.full((1, X.shape[1]), cell), [0])
    assert model.statistics_ is before
    model.forget(X[:2], [0, 0])
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_rows_are_forgotten_with_the_weight_they_had() -> None:
    model = NaiveBayes(Gaussian("diagonal")).fit(X30, Y30, np.full(30, 2.0))
    with pytest.raises(InputError, match="another weight"):
        model.forget(X30, Y30)
    assert not len(model.forget(X30, Y30, np.full(30, 2.0)).classes_)


@pytest.mark.parametrize("label", ["a", "b", "c"])
@pytest.mark.parametrize("rows", [2, 3])
def test_rows_are_forgotten_with_the_cells_they_had(label: str, rows: int) -> None:
    X, y = X30[:9], np.array(list("aaabbbccc"))
    for family in (Gaussian("diagonal"), Exponential()):
        model = NaiveBayes(family).fit(np.abs(X), y)
        with pytest.raises(InputError, match=f"Rows of class '{label}' to remove have missing values"):
            model.forget(np.full((rows, 2), np.nan), [label] * rows)


def test_dropping_a_class_beside_classes_that_are_only_declared() -> None:
    model = LinearDiscriminant(estimation="bayes", class_prior={0: 0.3, 1: 0.3, 2: 0.4}).partial_fit(X30[:5], [0] * 5)
    assert model.drop_class(0).statistics_.counts.rows.sum() == 0


def tiny(family: Any, seed: int) -> tuple[Any, Any, Any]:
    """A few rows with many equal cells, their labels, and weights that no binary fraction is."""
    rng = np.random.default_rng(seed)
    y = np.arange(int(rng.integers(6, 12))) % 2
    X = rng.integers(0, 4, (len(y), 2)) * 0.1
    if isinstance(family, Bernoulli):
        X = np.sign(X)
    elif isinstance(family, Poisson | Geometric | NegativeBinomial | Multinomial):
        X = np.round(X * 10.0)
    elif isinstance(family, LogNormal | Gamma):
        X = X + 0.1
    return X, y, np.round(rng.uniform(0.1, 1.0, len(y)), 1) if seed % 2 else np.ones(len(y))


@pytest.mark.parametrize(
    "family",
    [
        Gaussian(prior=NormalInverseWishart()),
        Gaussian(shared=True),
        Gaussian("diagonal"),
        Gaussian("diagonal", shared=True),
        Gaussian("spherical"),
        *(LogNormal(), Gamma(), Bernoulli(), Poisson(), Geometric(), NegativeBinomial(), Multinomial()),
    ],
    ids=str,
)
def test_nothing_of_rounding_is_left_when_few_rows_are(family: Any) -> None:
    for seed in range(9):
        X, y, w = tiny(family, seed)
        gone = np.random.default_rng(seed).permutation(len(y))[: len(y) - 2 - seed % 3]
        left = np.setdiff1d(np.arange(len(y)), gone)
        model = GenerativeClassifier(family).fit(X, y, w)
        for i in gone:
            model.forget(X[[i]], y[[i]], w[[i]])
        again = GenerativeClassifier(family).fit(X[left], y[left], w[left])
        assert_array_equal(model.classes_, again.classes_)
        assert_allclose(model.log_joint(X), again.log_joint(X), rtol=1e-9, atol=1e-9)


def test_a_column_that_is_constant_again_has_no_variance() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 2
    X[:, 1], X[:50, 1] = 2.3, rng.normal(size=50) * 1e3
    model = NaiveBayes(Gaussian("diagonal"), estimation="bayes").fit(X, y)
    for i in range(50):
        model.forget(X[[i]], y[[i]])
    assert_array_equal(model.statistics_.blocks[0].scatter[:, 1], 0.0)
    again = NaiveBayes(Gaussian("diagonal"), estimation="bayes").fit(X[50:], y[50:])
    assert_allclose(model.predict_proba(X), again.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("rows", [1200, pytest.param(6000, marks=pytest.mark.long)])
def test_a_window_that_moves_on_for_long_keeps_what_variance_there_is(rows: int) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(rows, 2)) * [1.0, 1e-4], np.arange(rows) % 2
    model = QuadraticDiscriminant().fit(X[:100], y[:100])
    for i in range(100, len(X)):
        model.partial_fit(X[[i]], y[[i]]).forget(X[[i - 100]], y[[i - 100]])
    assert_allclose(model.covariance_, QuadraticDiscriminant().fit(X[-100:], y[-100:]).covariance_, rtol=1e-8)
    assert np.all(model.statistics_.blocks[0].noise < 1e-9 * model.statistics_.blocks[0].squares)


def test_one_row_of_a_class_has_no_variance() -> None:
    X, y = np.array([[1.1], [0.4], [0.3], [1.0], [2.0], [4.0]]), np.array(list("aaabbb"))
    model = QuadraticDiscriminant().fit(X, y).forget(X[:1], y[:1]).forget(X[1:2], y[1:2])
    with pytest.raises(NotEstimableError, match="does not vary within class 'a'"):
        model.predict_proba(X)


@pytest.mark.parametrize("family", [Gaussian(), Gaussian(shared=True), Poisson(), Exponential(), Bernoulli()], ids=str)
def test_the_last_rows_of_a_class_are_those_it_had(family: Any) -> None:
    X, y = np.array([[0.0], [1.0], [1.0], [1.0], [1.0], [0.0]]), list("aaaabb")
    model = GenerativeClassifier(family).fit(X, y)
    before = model.statistics_
    wrong = np.zeros((2, 1)) if isinstance(family, Bernoulli) else np.array([[77.0], [78.0]])
    with pytest.raises(InputError, match="the last rows of class 'b' had other values"):
        model.forget(wrong, ["b", "b"])
    assert model.statistics_ is before
    assert model.forget(X[4:], y[4:]).classes_.tolist() == ["a"]


@pytest.mark.parametrize("unit", [1e-100, 2.0**-400, 1.0, 1e100])
def test_tails_add_up_in_any_unit(unit: float) -> None:
    X, y = X30 * unit, Y30 % 2
    for shared in (True, False):
        model = GenerativeClassifier(Gaussian(shared=shared, shrinkage="ledoit-wolf"), estimation="mle")
        whole = model.fit(X, y).predict_proba(X)
        parts = clone(model).partial_fit(X[:29], y[:29]).partial_fit(X[29:], y[29:])
        assert_allclose(parts.predict_proba(X), whole, atol=1e-9)
        assert_allclose(parts.partial_fit(X[:1], y[:1]).forget(X[:1], y[:1]).predict_proba(X), whole, atol=1e-9)


def test_scalars_of_numpy_are_the_labels_they_stand_for() -> None:
    model = QuadraticDiscriminant(estimation="bayes").partial_fit(X30[:6], [1, 3] * 3)
    model.partial_fit(X30[:6], np.array([1, np.int64(2)] * 3, dtype=object))
    assert model.classes_.tolist() == [1, 2, 3]


def test_small_mistakes_are_reported() -> None:
    model = QuadraticDiscriminant(estimation="bayes").fit(X30, Y30)
    with pytest.raises(InputError, match="classes is empty"):
        QuadraticDiscriminant().partial_fit(X30, Y30, classes=[])
    with pytest.raises(InputError, match="is not among the classes"):
        model.drop_class(np.array([0, 1]))
    with pytest.raises(AttributeError, match="it has no rows"):
        _ = model.forget(X30, Y30).log_evidence_


# -------------------------------------------------------------------------------------------------- leaving out


@pytest.mark.parametrize("model", [QuadraticDiscriminant(), QuadraticDiscriminant("spherical"), LinearDiscriminant()])
def test_too_few_rows_are_an_error_whatever_the_rounding(model: Any) -> None:
    """Class means 1e5 deviations apart, and columns of very different size."""
    X = np.array([[1.4255749847901973], [1.089069345800141], [100000.99505734895], [100000.0289110024]])
    y = np.array([0, 0, 1, 1])
    if isinstance(model, LinearDiscriminant):  # two rows of a class are left
        X, y = X[:3], y[:3]
        assert_array_equal(model.fit(X, y).left_out_proba(X, y)[:2], [[0.0, 1.0]] * 2)
        return
    assert_array_equal(model.fit(X, y).left_out_proba(X, y), [[0.0, 1.0]] * 2 + [[1.0, 0.0]] * 2)
    rng = np.random.default_rng(0)
    wide, labels = rng.normal(size=(22, 10)) * 10.0 ** rng.uniform(-3, 3, 10), np.repeat([0, 1], 11)
    if model.covariance == "full":
        assert_array_equal(model.fit(wide, labels).left_out_proba(wide, labels)[np.arange(22), labels], 0.0)


def test_too_few_rows_are_too_few_whatever_they_weigh() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y, w = rng.normal(size=(6, 4)), np.repeat([0, 1], 3), rng.choice([1e-3, 1.0, 1e3], 6)
        own = LinearDiscriminant().fit(X, y, w).left_out_proba(X, y, w)[np.arange(6), y]
        assert_array_equal(own, 0.0)
        doubled = np.full(6, 2.0)  # one of two equal rows is left: nothing has become singular
        half = LinearDiscriminant().fit(X, y, doubled).left_out_proba(X, y, np.ones(6))
        twice = LinearDiscriminant().fit(np.vstack([X, X[1:]]), np.append(y, y[1:])).predict_proba(X[:1])
        assert_allclose(half[:1], twice, rtol=1e-8)


@pytest.mark.parametrize(
    ("family", "estimation"),
    [
        (Gaussian(shared=True, shrinkage=0.1), "mle"),
        *itertools.product(
            [
                *(Gaussian(), Gaussian(shared=True), Gaussian("diagonal"), Gaussian("diagonal", shared=True)),
                *(Gaussian("spherical"), Exponential(), Poisson(), Gamma()),
            ],
            ["mle", "bayes"],
        ),
    ],
    ids=str,
)
def test_an_infinite_value_of_a_held_out_row_is_named(family: Any, estimation: str) -> None:
    X = np.random.default_rng(1).integers(1, 9, (30, 2)).astype(float)
    model = GenerativeClassifier(family, estimation=estimation).fit(X, Y30)
    X[4, 1] = np.inf
    with pytest.raises(CellError, match=r"Column 'x1', row 4: inf"):
        model.left_out_proba(X, Y30)


def test_held_out_rows_must_have_been_in_the_fit() -> None:
    counts, y = np.random.default_rng(1).poisson(2.0, (20, 2)), np.arange(20) % 2
    light = NaiveBayes(Poisson()).fit(counts, y, np.full(20, 0.05))
    with pytest.raises(InputError, match="Row 0 was not part of the fit"):
        light.left_out_proba(counts, y)
    with pytest.raises(InputError, match="Row 1 was not part of the fit"):
        NaiveBayes(Bernoulli()).fit([[0], [0], [1], [1]], [0, 0, 1, 1]).left_out_proba([[0], [1]], [0, 0])


@pytest.mark.parametrize("family", [Gaussian("diagonal"), Gamma("shared"), Exponential(), Poisson(), Categorical()])
def test_the_only_row_of_all_leaves_the_prior(family: Any) -> None:
    assert_array_equal(NaiveBayes(family, estimation="mle").fit([[2.0]], [0]).left_out_proba([[2.0]], [0]), [[1.0]])


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("shared", [True, False])
def test_under_a_proper_prior_no_row_is_impossible(covariance: str, shared: bool) -> None:
    y = np.arange(20) % 2
    X = np.random.default_rng(0).normal(size=(20, 2)) + y[:, None]
    X[0] = [1e7, -1e7 / 3]
    prior = NormalInverseWishart(mean=0.0, mean_rows=0.5, degrees=5, scale=1.0)
    answers = GenerativeClassifier(Gaussian(covariance, shared, prior=prior)).fit(X, y).left_out_proba(X, y)
    assert np.all(np.isfinite(np.log(answers[:, 0])))
    assert_allclose(answers.sum(axis=1), 1.0)


def test_every_row_has_an_answer_whatever_its_weight_and_chunk() -> None:
    X, y = np.random.default_rng(1).normal(size=(60, 2)), np.arange(60) % 2
    weight = np.zeros(60)
    weight[20:40] = 1.0
    model = NaiveBayes().fit(X, y, weight)
    told = model.left_out_proba(X, y, weight)
    assert_allclose(model.left_out_proba(Chunks(*np.split(X, 6)), y, weight), told, atol=1e-12)
    assert_allclose(told[:20], model.predict_proba(X[:20]), atol=1e-12)


def test_cells_that_cannot_have_been_learnt_are_named() -> None:
    pairs = np.array([[0, 1], [1, 0], [0, 0], [1, 1]] * 5)
    table = GenerativeClassifier({(0, 1): Categorical()}).fit(pairs, np.arange(20) % 2)
    with pytest.raises(InputError, match=r"Column 'x0', row 1.*did not occur in training"):
        table.left_out_proba([[0, 1], [7, 1]], [0, 1])
    for model in (LinearDiscriminant(), GenerativeClassifier(Gaussian())):
        with pytest.raises(InputError, match="Column 'x1', row 2"):
            model.fit(X30, Y30).left_out_proba([[0.0, 1.0], [0.0, 1.0], [1.0, np.nan]], [0, 1, 1])


# ----------------------------------------------------------------------------------------------- cross-validation


def test_a_fold_with_an_outlier_is_judged_by_what_the_others_say() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    X[0] = 1e9
    model = GenerativeClassifier(Gaussian())
    result = likely.cross_validate(model, X, y, KFold(5))
    train, test = next(KFold(5).split(X))
    assert_allclose(result.posterior[test], model.fit(X[train], y[train]).predict_proba(X[test]), atol=1e-9)


def test_rows_outside_a_training_set_choose_no_family() -> None:
    rng = np.random.default_rng(0)
    y, X = rng.integers(0, 2, 400), rng.integers(0, 5, (400, 1)).astype(float)
    X[300:] = rng.normal(size=(100, 1))
    folds = [(np.arange(100, 300), np.arange(100)), (np.arange(100), np.arange(100, 400))]
    result = likely.cross_validate(NaiveBayes(), X, y, folds)
    fitted = NaiveBayes().fit(X[100:300], y[100:300])
    assert_allclose(result.posterior[:100], fitted.predict_proba(X[:100]), atol=1e-12)
    assert len(likely.cross_validate(NaiveBayes(), X, y, [(np.arange(400), np.arange(400))]).error) == 1


@pytest.mark.parametrize("rare", ["0", "aa", "z"])
def test_a_class_in_one_fold_alone_is_judged_by_models_that_do_not_know_it(rare: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.array(["a", "bb"] * 20)
    y[0] = rare
    result = likely.cross_validate(GenerativeClassifier(), X, y, KFold(5))
    for train, test in KFold(5).split(X):
        fitted = GenerativeClassifier().fit(X[train], y[train])
        place = np.searchsorted(result.classes, fitted.classes_)
        assert_allclose(result.posterior[np.ix_(test, place)], fitted.predict_proba(X[test]), atol=1e-9)
    named = {"default": GenerativeClassifier(), "naive": NaiveBayes()}
    with pytest.warns(LikelyWarning, match="least populated"):
        assert len(likely.select(X, y, named, folds=5).ranking) == 2


def test_folds_are_checked_as_fits_are() -> None:
    words = pd.DataFrame({"a": [*list("ab") * 10, "z"]})
    with pytest.raises(InputError, match="row 20: 'z' was not seen"):
        likely.cross_validate(NaiveBayes(unseen="error"), words, np.arange(21) % 2, 3)
    with pytest.raises(InputError, match="n_components=2"):
        likely.cross_validate(LinearDiscriminant(n_components=2), X30, Y30 % 2, 3)
    declared = likely.cross_validate(NaiveBayes(class_prior={0: 0.3, 1: 0.3, 7: 0.4}), X30, Y30 % 2, 3)
    assert_array_equal(declared.classes, [0, 1, 7])
    assert_allclose(declared.posterior.sum(axis=1), 1.0)


def test_folds_come_as_lists_too_and_mistakes_are_reported() -> None:
    assert_allclose(
        likely.cross_validate(NaiveBayes(), X30, Y30, (np.arange(30) % 5).tolist()).error,
        likely.cross_validate(NaiveBayes(), X30, Y30, np.arange(30) % 5).error,
    )
    with pytest.raises(InputError, match="20 fold numbers, but X has 30 rows"):
        likely.cross_validate(NaiveBayes(), X30, Y30, np.arange(20) % 5)
    with pytest.raises(InputError, match="groups"):
        likely.cross_validate(NaiveBayes(), X30, Y30, GroupKFold(3))
    with pytest.raises(InputError, match="out of bounds"):
        likely.cross_validate(NaiveBayes(), X30, Y30, [([1, 2], [999])])
    with pytest.raises(InputError, match="a pair has no row numbers"):
        likely.cross_validate(NaiveBayes(), X30, Y30, np.c_[Y30, Y30])


# ---------------------------------------------------------------------------------------------------------- files

Proportions = namedtuple("Proportions", "a b c")


def test_models_between_two_batches_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "model"
    two = np.arange(10) % 2
    for model in (
        QuadraticDiscriminant(groups=[["a", "b"]]).partial_fit(X30[:10], ["c"] * 10),
        LinearDiscriminant(n_components=2).partial_fit(X30[:10], two),
        NaiveBayes(class_prior=[0.2, 0.3, 0.5]).partial_fit(X30[:10], two),
    ):
        model.save(path)
        assert_array_equal(likely.load(path).classes_, model.classes_)
    more = likely.load(path).partial_fit(X30, Y30)
    assert_allclose(more.class_prior_, [0.2, 0.3, 0.5])


def test_options_of_any_shape_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "model"
    rows: Any = np.longdouble(0.1)
    prior = NormalInverseWishart(mean=np.array(0.1), mean_rows=rows)
    for model in (
        GenerativeClassifier(Gaussian(prior=prior)),
        NaiveBayes(class_prior=Proportions(0.2, 0.3, 0.5)),
        NaiveBayes(class_prior=np.array([0.2, 0.3, 0.5], dtype=np.float32)),
    ):
        model.fit(X30, Y30).save(path)
        assert_array_equal(likely.load(path).predict_proba(X30), model.predict_proba(X30))
    labels = np.array([b"a", b"bc", b"d"])[Y30]
    NaiveBayes().fit(X30, labels).save(path)
    assert_array_equal(likely.load(path).predict(X30), NaiveBayes().fit(X30, labels).predict(X30))


def test_files_go_where_the_path_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = NaiveBayes().fit(X30, Y30)
    monkeypatch.chdir(tmp_path)
    model.save("x" * 250)
    (tmp_path / "real").touch()
    Path("link").symlink_to("real")
    model.save("link")
    assert Path("link").is_symlink()
    assert_array_equal(likely.load("real").classes_, [0, 1, 2])
    model.save(Path("日本 é"))
    assert_array_equal(likely.load("日本 é").classes_, [0, 1, 2])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.save("nowhere/model")
    for path in (".", ""):
        with pytest.raises(IsADirectoryError):
            model.save(path)


def test_text_that_utf8_cannot_hold_is_a_label_too() -> None:
    frame = pd.DataFrame({"c": pd.Series(["a\ud800", "b"] * 10, dtype=object)})
    assert_array_equal(NaiveBayes().fit(frame, np.arange(20) % 2).predict(frame), np.arange(20) % 2)


@pytest.mark.parametrize(("low", "high"), [(1e-200, 1e130), (1e-300, 1e139), (1e-200, 1.0)])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_classes_of_any_size_add_up(covariance: str, low: float, high: float) -> None:
    X = np.array([[low], [1.2 * low], [high], [1.2 * high], [0.8 * high], [0.9 * low]] * 3)
    y = np.array([0, 0, 1, 1, 1, 0] * 3)
    whole = GenerativeClassifier(Gaussian(covariance)).fit(X, y).predict_proba(X)
    for seed in range(6):
        model = GenerativeClassifier(Gaussian(covariance))
        for part in np.split(np.random.default_rng(seed).permutation(18), [3, 7, 8]):
            model.partial_fit(X[part], y[part])
        assert_allclose(model.predict_proba(X), whole, atol=1e-9)


@pytest.mark.parametrize("model", [GenerativeClassifier(), NaiveBayes(), LinearDiscriminant()], ids=str)
def test_models_without_rows_add_up_and_learn_again(model: Any) -> None:
    empty = clone(model).fit(X30, Y30).forget(X30, Y30)
    again = (empty + empty).partial_fit(X30, Y30)
    assert_allclose(again.log_joint(X30), (empty.partial_fit(X30, Y30)).log_joint(X30), rtol=1e-9)
