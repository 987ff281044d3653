"""The hybrid: its two ends, what it maximises between them, and that there it may be best."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from scipy.stats import norm
from sklearn.compose import ColumnTransformer
from sklearn.metrics import log_loss
from sklearn.preprocessing import OneHotEncoder

from likely import (
    Bernoulli,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    HybridClassifier,
    Multinomial,
    NaiveBayes,
    Poisson,
    SoftmaxRegression,
    load,
)
from likely.data.batches import Batches
from likely.data.content_folds import RowGroups
from likely.data.validation import read_table
from likely.discriminative.hybrid import BLENDS
from likely.errors import InputError, MissingCellError, NotConvergedWarning, SeparationError
from likely.typing import AnyArray, Array
from tests.helpers import load_table

MEASURES = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def some_labels(y: Any, share: float, seed: int = 0) -> AnyArray:
    """Labels of which most are missing."""
    labels = np.array(y, dtype=object)
    labels[np.random.default_rng(seed).random(len(labels)) >= share] = None
    return labels


def penguins() -> tuple[pd.DataFrame, AnyArray]:
    table = load_table("penguins").dropna()
    return table[[*MEASURES, "island", "sex"]], table["species"].to_numpy()


FAMILIES: list[Any] = [
    Gaussian(shared=True),
    Gaussian("diagonal", shared=True),
    Gaussian("spherical", shared=True),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("estimation", ["mle", "map"])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_blend_0_is_the_generative_model(family: Any, estimation: str, share: float) -> None:
    table = load_table("iris")
    X, y = table.drop(columns="Species").to_numpy(), some_labels(table["Species"], share)
    options: Any = {"estimation": estimation, "unlabeled_weight": 1.0}
    hybrid = HybridClassifier(family, blend=0, **options).fit(X, y)
    plain = GenerativeClassifier(family, **options).fit(X, y)
    np.testing.assert_allclose(hybrid.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    near = HybridClassifier(family, blend=0.01, **options).fit(X, y)
    np.testing.assert_allclose(near.predict_proba(X), plain.predict_proba(X), atol=3e-3)  # it goes on a little further


def test_mixed_tables_have_both_ends_too() -> None:
    X, y = penguins()
    given = some_labels(y, 0.5)
    known = given != None  # noqa: E711 - elementwise
    families = {tuple(MEASURES): Gaussian(shared=True), "island": Categorical(), "sex": Categorical()}
    plain = GenerativeClassifier(families, estimation="map").fit(X, given)
    hybrid = HybridClassifier(families, blend=0).fit(X, given)
    np.testing.assert_allclose(hybrid.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    one_hot = ColumnTransformer(
        [("numbers", "passthrough", MEASURES), ("labels", OneHotEncoder(drop="first"), ["island", "sex"])]
    )
    other = SoftmaxRegression(basis=one_hot).fit(X[known], given[known])
    end = HybridClassifier(families, blend=1).fit(X, given)
    np.testing.assert_allclose(end.predict_proba(X), other.predict_proba(X), atol=1e-7)
    between = HybridClassifier(families, blend=0.6).fit(X, given)
    assert between.converged_
    assert between.score(X, y) > 0.97
    assert np.all(np.diff(between.path_) >= 0.0)
    told = between.explain(X.iloc[:2])
    assert told.columns == (*MEASURES, "island=Dream", "island=Torgersen", "sex=male")
    np.testing.assert_allclose(between.generative_.predict_proba(X).sum(axis=1), 1.0)


def test_counts_and_waiting_times_have_both_ends_too() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.column_stack([rng.poisson(2.0 + y), rng.random(300) < 0.2 + 0.3 * y, rng.exponential(1.0 + y)]).astype(float)
    families = {0: Poisson(), 1: Bernoulli(), 2: Exponential()}
    labels = some_labels(y, 0.4)
    known = labels != None  # noqa: E711 - elementwise
    hybrid = HybridClassifier(families, blend=0).fit(X, labels)
    plain = GenerativeClassifier(families, estimation="map").fit(X, labels)
    np.testing.assert_allclose(hybrid.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    end = HybridClassifier(families, blend=1).fit(X, labels)
    other = SoftmaxRegression().fit(X[known], labels[known].astype(int))
    np.testing.assert_allclose(end.predict_proba(X), other.predict_proba(X), atol=1e-8)
    between = HybridClassifier(families, blend=0.5).fit(X, labels)
    assert np.all(np.diff(between.path_) >= 0.0)
    words = rng.multinomial(20, [0.5, 0.3, 0.2], 300) + 4 * np.eye(3, dtype=int)[y]
    text = HybridClassifier(Multinomial(), blend=0).fit(words, labels)
    naive = NaiveBayes(Multinomial(), estimation="map").fit(words, labels)
    np.testing.assert_allclose(text.predict_proba(words), naive.predict_proba(words), atol=1e-9)
    between = HybridClassifier(Multinomial(), blend=0.5).fit(words, labels)
    assert between.score(words, y.tolist()) > 0.5
    sparse = HybridClassifier(Multinomial(), blend=0.5).fit(csr_array(words), labels)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(words)), between.predict_proba(words), atol=1e-4)


@pytest.mark.parametrize("blend", [0.3, 0.5, 0.7])
def test_between_the_ends_the_objective_is_the_largest_there_is(blend: float) -> None:
    """One column, two classes: all parameters of both sets by a general optimiser, from the formula."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 80)
    x = rng.gamma(2.0, 1.0, 80) + 1.5 * y
    labels = y.astype(object)
    labels[16:] = None
    penalty = 0.5
    model = HybridClassifier(
        Gaussian(shared=True),
        blend=blend,
        estimation="mle",
        penalty=penalty,
        unlabeled_weight=1.0,
        tol=1e-13,
        max_iter=20000,
    )
    model.fit(x[:, None], labels)
    variance = (blend / (1.0 - blend)) ** 4
    free = variance / (1.0 + variance)

    def objective(p: Array) -> float:
        share, means, deviation, slope, offset = p[0], p[1:3], np.exp(p[3]), p[4], p[5]
        joint = np.logaddexp(
            log_expit(-share) + norm.logpdf(x, means[0], deviation),
            log_expit(share) + norm.logpdf(x, means[1], deviation),
        )
        odds = share + norm.logpdf(x, means[1], deviation) - norm.logpdf(x, means[0], deviation)
        mine = slope * x + offset
        known = np.where(y[:16] == 1, log_expit(mine[:16]), log_expit(-mine[:16])).sum()
        tie = 0.5 * 16 / 80 / variance * 0.5 * ((mine - odds) ** 2).sum()
        return float(-(known + joint.sum() - 0.5 * free * penalty * slope**2 - tie))

    generative = model.generative_.model_
    theta = generative.blocks[0].conditionals
    start = np.array(
        [
            np.diff(generative.log_prior)[0],
            *theta.class_means()[:, 0],  # type: ignore[attr-defined]
            0.5 * np.log(theta.class_covariance(0)[0, 0]),  # type: ignore[attr-defined]
            model.coef_[0, 0],
            model.intercept_[0],
        ]
    )
    ours = objective(start)
    np.testing.assert_allclose(-ours, model.path_[-1], rtol=1e-9)
    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-8})
    assert ours - best.fun < 1e-6
    np.testing.assert_allclose(start, best.x, atol=5e-3)
    shifted = minimize(objective, start + 0.1 * rng.normal(size=6), method="BFGS", options={"gtol": 1e-8})
    assert ours - shifted.fun < 1e-6


def test_with_few_labels_the_best_blend_lies_between_the_ends() -> None:
    """Classes are stretched and the generative model is round, as in the experiment of Lasserre, Bishop and Minka."""
    losses = []
    blends = (0.0, 0.5, 0.6, 0.7, 1.0)
    for seed in range(6):
        rng = np.random.default_rng(seed)

        def draw(n: int, rng: np.random.Generator = rng) -> tuple[Array, AnyArray]:
            y = rng.integers(0, 2, n)
            return rng.normal(size=(n, 2)) * [1.6, 0.7] + np.where(y[:, None] == 1, [1.0, 0.8], [-1.0, -0.8]), y

        X, y = draw(150)
        few = np.concatenate([np.flatnonzero(y == k)[:5] for k in (0, 1)])
        labels = np.full(150, None, dtype=object)
        labels[few] = y[few]
        Z, z = draw(2000)
        family = Gaussian("spherical", shared=True)
        models = [HybridClassifier(family, b, penalty=0.1, unlabeled_weight=1.0).fit(X, labels) for b in blends]
        losses.append([log_loss(z, model.predict_proba(Z)) for model in models])
    mean = np.mean(losses, axis=0)
    inside = mean[1:-1].min()
    assert inside < mean[-1] - 0.01
    assert inside < mean[0] - 0.2


def test_the_blend_is_that_of_least_loss_and_repeatable() -> None:
    table = load_table("wine")
    X, y = table.drop(columns="class").to_numpy(), some_labels(table["class"], 0.4)
    model = HybridClassifier(Gaussian("diagonal", shared=True), random_state=0).fit(X, y)
    blends, losses = zip(*model.blend_path_, strict=True)
    assert blends == BLENDS
    assert model.blend_ == blends[int(np.argmin(losses))]
    assert (
        HybridClassifier(Gaussian("diagonal", shared=True), random_state=0).fit(X, y).blend_path_ == model.blend_path_
    )
    alone = HybridClassifier(Gaussian("diagonal", shared=True), blend=model.blend_).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X))
    assert model.score(X, table["class"]) > 0.93


def test_weights_count_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(object)
    y[40:] = None
    counts = rng.integers(1, 4, 60)
    options: dict[str, Any] = {"families": Gaussian(shared=True), "blend": 0.5, "tol": 1e-12, "max_iter": 5000}
    weighted = HybridClassifier(**options).fit(X, y, sample_weight=counts)
    repeated = HybridClassifier(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_chosen_blend_counts_weights_as_repeats_in_any_order(seed: int) -> None:
    """With a row of weight 0, and with more equal rows than folds."""
    rng = np.random.default_rng(seed)
    y = np.arange(24) % 3
    X = rng.normal(size=(24, 3)) + y[:, None]
    counts = rng.integers(0, 4, 24)
    counts[:6] = [9, 1, 1, 0, 1, 1]
    order = rng.permutation(counts.sum())
    weighted = HybridClassifier(Gaussian(shared=True)).fit(X, y, sample_weight=counts)
    repeated = HybridClassifier(Gaussian(shared=True)).fit(
        np.repeat(X, counts, axis=0)[order], np.repeat(y, counts)[order]
    )
    assert_allclose(weighted.blend_path_, repeated.blend_path_, rtol=1e-9)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)
    frame = pd.DataFrame(X, columns=["long", "short", "wide"])
    named = HybridClassifier(Gaussian(shared=True)).fit(frame, y, sample_weight=counts)
    assert_allclose(named.blend_path_, weighted.blend_path_, rtol=1e-6)


def test_classes_with_one_row_are_not_scored_in_the_choice_of_the_blend(tmp_path: Any) -> None:
    """Each fold trains on all rows but those of its part of the other classes."""
    X, y = penguins()
    rows = np.r_[0:5, 200:205, 300]
    numbers, labels = X[MEASURES].to_numpy()[rows], y[rows]
    model = HybridClassifier(Gaussian("diagonal", shared=True), folds=2).fit(numbers, labels)
    alone = labels[-1]
    assert model.blend_note_ == f"Blends were not compared on class {alone!r}: one labeled row."
    assert len(model.blend_path_) == len(BLENDS)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").blend_note_ == model.blend_note_
    batch = Batches(numbers, labels, None, read_table, "", allow_unlabeled=True).first
    groups = RowGroups.of([batch.table], batch.codes, batch.row_weights)
    random = np.random.RandomState(0)
    groups = replace(groups, keys=random.permutation(11)[groups.keys])
    loss = 0.0
    for held_out in groups.held_out_weights(2):
        test = (held_out > 0.0) & (labels != alone)
        end = HybridClassifier(Gaussian("diagonal", shared=True), blend=0).fit(numbers[~test], labels[~test])
        probabilities = end.predict_proba(numbers[test])
        loss -= np.log(probabilities[np.arange(test.sum()), batch.codes[test]]).sum()
    assert_allclose(model.blend_path_[0][1], loss / 10, rtol=1e-6)


def test_without_two_rows_of_any_class_the_generative_model_is_used() -> None:
    X, y = penguins()
    rows = [0, 200, 300]
    numbers = X[MEASURES].to_numpy()[rows]
    model = HybridClassifier(Gaussian("diagonal", shared=True)).fit(numbers, y[rows], sample_weight=[1.0, 0.5, 1.5])
    assert (model.blend_, model.blend_path_) == (0.0, ())
    assert "No class has two labeled rows" in model.blend_note_
    end = HybridClassifier(Gaussian("diagonal", shared=True), blend=0).fit(numbers, y[rows], [1.0, 0.5, 1.5])
    assert end.blend_note_ == ""
    np.testing.assert_array_equal(model.predict_proba(numbers), end.predict_proba(numbers))


def test_units_do_not_matter_without_a_penalty() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 2))
    y = some_labels((expit(2.0 * X[:, 0]) > rng.random(100)).astype(int), 0.5)
    options: dict[str, Any] = {"families": Gaussian(shared=True), "blend": 0.6, "penalty": 0.0, "estimation": "mle"}
    plain = HybridClassifier(**options).fit(X, y)
    moved = HybridClassifier(**options).fit(X * [1e3, 1e-3] + [1e5, 7.0], y)
    np.testing.assert_allclose(moved.predict_proba(X * [1e3, 1e-3] + [1e5, 7.0]), plain.predict_proba(X), atol=1e-5)


def test_a_saved_hybrid_answers_alike(tmp_path: Any) -> None:
    X, y = penguins()
    model = HybridClassifier(blend=0.5).fit(X, y)
    model.save(tmp_path / "model.likely")
    again = load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.blend_ == 0.5
    np.testing.assert_array_equal(again.generative_.predict_proba(X), model.generative_.predict_proba(X))
    with pytest.raises(InputError, match="expectations, not sums"):
        again.generative_.partial_fit(X, y)


def test_bad_input_is_reported() -> None:
    X, y = penguins()
    numbers = X[MEASURES].to_numpy()
    with pytest.raises(InputError, match=r"no linear log-odds.*Gaussian\(shared=True\)"):
        HybridClassifier(Gaussian()).fit(numbers, y)
    with pytest.raises(InputError, match="'body_mass_g': the family has no linear log-odds"):
        HybridClassifier({"body_mass_g": Gamma()}).fit(X, y)
    with pytest.raises(InputError, match="no linear log-odds"):
        HybridClassifier(Gaussian(shared=True), estimation="bayes").fit(numbers, y)
    for blend in (-0.1, 1.1, "much", True, None):
        with pytest.raises(InputError, match="blend="):
            HybridClassifier(blend=blend).fit(numbers, y)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one class"):
        HybridClassifier(blend=0.5).fit(numbers, np.zeros(len(numbers)))
    incomplete = numbers.copy()
    incomplete[4, 1] = np.nan
    with pytest.raises(MissingCellError, match="row 4"):
        HybridClassifier(Gaussian("diagonal", shared=True), blend=0.5).fit(incomplete, y)
    model = HybridClassifier(blend=0.5).fit(X, y)
    with pytest.raises(MissingCellError, match=r"Column 'sex', row 1"):
        model.predict(X.iloc[:2].assign(sex=["male", None]))
    with pytest.warns(NotConvergedWarning):
        HybridClassifier(Gaussian(shared=True), blend=0.5, max_iter=1).fit(numbers, y)


def test_folds_know_the_categories_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=100), "s": ["rare", *(["u", "v"] * 49), "u"]})
    model = HybridClassifier(random_state=0).fit(frame, (frame["a"] + rng.normal(size=100) > 0).to_numpy())
    assert np.all(np.isfinite([loss for _, loss in model.blend_path_]))


def test_the_ends_have_the_edges_of_their_models() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0.0).astype(int)
    with pytest.raises(SeparationError, match="'x0' separates"):
        HybridClassifier(Gaussian(shared=True), blend=1, penalty=0).fit(X, y)
    tiny = HybridClassifier(Gaussian(shared=True), blend=1e-300).fit(X, y)
    none = HybridClassifier(Gaussian(shared=True), blend=0).fit(X, y)
    np.testing.assert_array_equal(tiny.predict_proba(X), none.predict_proba(X))
    with pytest.raises(InputError, match="All columns are constant"):
        HybridClassifier(blend=0.5).fit(np.ones((6, 1)), [0, 1] * 3)


def mixed(rows: int = 60, seed: int = 0) -> tuple[pd.DataFrame, AnyArray]:
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    X = pd.DataFrame({"size": rng.normal(size=rows) + y, "word": rng.choice(["u", "v", "w"], rows)})
    return X, y


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
def test_unseen_categories_contribute_nothing(tmp_path: Any) -> None:
    X, y = mixed()
    model = HybridClassifier(blend=0.5).fit(X, y)
    new = pd.DataFrame({"size": [0.3], "word": ["never seen"]})
    log_odds = model.decision_function(new)
    rows = pd.DataFrame({"size": [0.3] * 60, "word": X["word"]})
    assert_allclose(log_odds, model.decision_function(rows).mean(), rtol=1e-9)  # the mean over the training rows
    model.save(tmp_path / "model")
    assert_allclose(load(tmp_path / "model").decision_function(new), log_odds)
    with pytest.raises(MissingCellError, match="word"):
        model.predict(pd.DataFrame({"size": [0.3], "word": [None]}))


@pytest.mark.parametrize("blend", [0.0, 0.5, 1.0, "auto"])
@pytest.mark.parametrize("seed", [43, 105])
def test_the_order_of_rows_does_not_matter(blend: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 24
    y = np.arange(rows) % 3
    X = pd.DataFrame(rng.normal(size=(rows, 5)) + y[:, None] * rng.normal(size=5), columns=list("abcde"))
    X["word"] = rng.choice(["u", "v"], rows)
    labels: Any = y.astype(object)
    labels[rng.random(rows) < 0.5] = None
    labels[:6] = y[:6]
    order = rng.permutation(rows)
    one = HybridClassifier(blend=blend, unlabeled_weight=1.0).fit(X, labels)
    two = HybridClassifier(blend=blend, unlabeled_weight=1.0).fit(X.iloc[order], labels[order])
    assert one.converged_
    assert one.blend_ == two.blend_
    assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-12)


def test_short_steps_are_not_taken_for_convergence() -> None:
    """A tighter tolerance changes nothing that matters."""
    X, y = mixed(rows=40, seed=1)
    labels: Any = y.astype(object)
    labels[12:] = None
    probabilities = [
        HybridClassifier(blend=0.5, unlabeled_weight=1.0, tol=tol, max_iter=5000).fit(X, labels).predict_proba(X)
        for tol in (1e-6, 1e-12)
    ]
    assert_allclose(probabilities[0], probabilities[1], atol=0.01)


def test_the_generative_end_has_one_iteration() -> None:
    X, y = mixed()
    model = HybridClassifier(blend=0.0).fit(X, y)
    assert model.n_iter_ == 1
    assert model.converged_


def test_blends_are_chosen_in_a_few_seconds_of_cpu() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(299) % 2
    X = rng.normal(size=(299, 21)) + 0.3 * y[:, None]
    begin = time.process_time()
    HybridClassifier().fit(X, y)
    assert time.process_time() - begin < 6.0  # about 2 seconds without other load
