"""Life among scikit-learn's tools and data frames: pipelines, searches, calibration, frames in and out."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from likely import (
    Dirichlet,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NearestPrototype,
    NormalInverseWishart,
    QuadraticDiscriminant,
    Regularized,
)
from tests.helpers import load_table
from tests.laws.registry import Rows, random_rows

COLUMNS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]

ESTIMATORS = [
    GenerativeClassifier(),
    GenerativeClassifier({"bill_length_mm": Gaussian("diagonal"), ("body_mass_g", "bill_depth_mm"): Gaussian()}),
    LinearDiscriminant(shrinkage="ledoit-wolf"),
    LinearDiscriminant(estimation="bayes", prior=NormalInverseWishart(mean_rows=0.1)),
    QuadraticDiscriminant(groups=[["Adelie", "Gentoo"]], class_prior="uniform"),
    QuadraticDiscriminant(shrinkage=Regularized(pooling=0.2)),
    NearestPrototype("full"),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


@pytest.fixture(scope="module")
def birds() -> pd.DataFrame:
    """The penguins without missing measurements."""
    frame = load_table("penguins").dropna(subset=COLUMNS)
    return frame[["species", *COLUMNS]].reset_index(drop=True)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def folds(n: int = 5) -> StratifiedKFold:
    return StratifiedKFold(n, shuffle=True, random_state=0)


# Model selection.


def test_a_pipeline_with_scaling_gives_the_posteriors_of_the_bare_model(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS], birds["species"]
    for model in (LinearDiscriminant(), GenerativeClassifier(Gaussian())):
        scaled = make_pipeline(StandardScaler(), model).fit(X, y)
        bare = clone(model).fit(X, y)
        assert_allclose(scaled.predict_proba(X), bare.predict_proba(X), rtol=0, atol=1e-9)
        assert scaled.score(X, y) == bare.score(X, y) > 0.97


def test_a_linear_discriminant_reduces_dimensions_inside_a_pipeline(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS], birds["species"]
    pipeline = make_pipeline(LinearDiscriminant(n_components=2), KNeighborsClassifier())
    assert cross_val_score(pipeline, X, y, cv=folds()).mean() > 0.97
    together = make_column_transformer((LinearDiscriminant(), COLUMNS)).fit_transform(X, y)
    assert_allclose(together, LinearDiscriminant().fit(X, y).transform(X))


def test_a_grid_search_reaches_into_families_and_their_priors(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS], birds["species"]
    shrunk = GridSearchCV(
        GenerativeClassifier(Gaussian(), estimation="mle"),
        {
            "families__shrinkage": [None, 0.5, "ledoit-wolf", Regularized(0.5, 0.5)],
            "families__shared": [True, False],
        },
        scoring="neg_log_loss",
        cv=folds(3),
    ).fit(X, y)
    scores = shrunk.cv_results_["mean_test_score"]
    assert np.all(np.isfinite(scores))
    assert len(np.unique(scores.round(12))) == 7  # with one covariance there is nothing to pool
    best = shrunk.best_estimator_
    assert best.families.shrinkage == shrunk.best_params_["families__shrinkage"]
    weighed = GridSearchCV(
        GenerativeClassifier(Gaussian(prior=NormalInverseWishart())),
        {"families__prior__mean_rows": [0.01, 10.0, 1e4], "families__prior__degrees": [None, 200.0]},
        scoring="neg_log_loss",
        cv=folds(3),
    ).fit(X, y)
    assert len(np.unique(weighed.cv_results_["mean_test_score"])) == 6
    assert weighed.best_params_["families__prior__mean_rows"] == 0.01
    assert weighed.best_estimator_.families.prior.mean_rows == 0.01


def test_a_grid_search_over_a_mixture_of_covariances_is_a_plain_loop(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS].to_numpy(), birds["species"].to_numpy()
    search = GridSearchCV(
        QuadraticDiscriminant(shrinkage=Regularized()),
        {"shrinkage__pooling": [0.0, 0.5], "shrinkage__sphering": [0.0, 1e-3]},
        scoring="neg_log_loss",
        cv=folds(3),
    ).fit(X, y)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        losses = []
        for train, test in folds(3).split(X, y):
            shrinkage = Regularized(params["shrinkage__pooling"], params["shrinkage__sphering"])
            model = QuadraticDiscriminant(shrinkage=shrinkage).fit(X[train], y[train])
            losses.append(log_loss(y[test], model.predict_proba(X[test]), labels=model.classes_))
        assert score == pytest.approx(-np.mean(losses), rel=1e-12)


def test_a_grid_search_nested_in_parallel_cross_validation_gives_what_one_process_gives(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS].to_numpy(), birds["species"].to_numpy()

    def scores(jobs: int | None) -> Any:
        inner = GridSearchCV(
            GenerativeClassifier(Gaussian(shared=True), estimation="mle"),
            {"families__shrinkage": [None, 0.1]},
            cv=3,
            n_jobs=jobs,
        )
        return cross_val_score(inner, X, y, cv=KFold(2, shuffle=True, random_state=0), n_jobs=jobs)

    assert_array_equal(scores(2), scores(None))


def test_cross_validated_posteriors_are_those_of_the_folds(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS].to_numpy(), birds["species"].to_numpy()
    posteriors = cross_val_predict(GenerativeClassifier(), X, y, cv=folds(), method="predict_proba")
    for train, test in folds().split(X, y):
        model = GenerativeClassifier().fit(X[train], y[train])
        assert_allclose(posteriors[test], model.predict_proba(X[test]), rtol=0, atol=1e-12)
    assert cross_val_score(GenerativeClassifier(), X, y, cv=folds()).mean() > 0.97


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminant(),
        NearestPrototype("full"),
        QuadraticDiscriminant(),
        GenerativeClassifier(Gaussian("diagonal")),
    ],
    ids=repr,
)
def test_calibration_costs_next_to_no_accuracy(model: Any, method: str, birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS], birds["species"]
    calibrated = CalibratedClassifierCV(model, method=method, cv=folds(3)).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert calibrated.score(X, y) > clone(model).fit(X, y).score(X, y) - 0.02


def test_bags_of_models_vote() -> None:
    X, y = random_rows(1, sizes=(30, 30, 30))
    bag = BaggingClassifier(GenerativeClassifier(), n_estimators=5, random_state=0).fit(X, y)
    assert bag.score(X, y) > 0.7


# Parameters, copies, storage.


@every_estimator
def test_a_clone_has_the_parameters_and_nothing_learnt(estimator: Any, birds: pd.DataFrame) -> None:
    fitted = clone(estimator).fit(birds[COLUMNS], birds["species"])
    copy = clone(fitted)
    assert repr(copy) == repr(fitted) == repr(estimator)
    assert not hasattr(copy, "classes_")
    with pytest.raises(NotFittedError):
        copy.predict(birds[COLUMNS])


def test_parameters_can_be_read_and_set_through_families_and_priors() -> None:
    model = GenerativeClassifier(Gaussian(prior=NormalInverseWishart(degrees=9.0)), class_prior=Dirichlet(1.0))
    params = model.get_params()
    assert params["families__prior__degrees"] == 9.0
    assert params["class_prior__alpha"] == 1.0
    model.set_params(families__covariance="diagonal", families__prior__scale=2.0, class_prior__alpha=3.0)
    assert isinstance(model.families, Gaussian)
    assert model.families.covariance == "diagonal"
    assert model.families.prior is not None
    assert model.families.prior.scale == 2.0
    assert model.class_prior.alpha == 3.0


def test_fitting_changes_no_parameter(birds: pd.DataFrame) -> None:
    family = Gaussian(prior=NormalInverseWishart())
    model = GenerativeClassifier(family).fit(birds[COLUMNS], birds["species"])
    assert model.families is family
    assert vars(family.prior) == vars(NormalInverseWishart())
    family.set_params(covariance="diagonal")
    assert next(iter(model.families_.values())).get_params()["covariance"] == "full"


@every_estimator
def test_a_pickled_model_gives_the_same_answers(estimator: Any, birds: pd.DataFrame) -> None:
    X = birds[COLUMNS]
    fitted = clone(estimator).fit(X, birds["species"])
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(again.log_density(X), fitted.log_density(X))
    assert_array_equal(again.explain(X).evidence, fitted.explain(X).evidence)
    assert str(again.summary()) == str(fitted.summary())
    assert again.sample(3, random_state=0)[0].equals(fitted.sample(3, random_state=0)[0])


# Weights, routed.


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_search_and_a_pipeline(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS].to_numpy(), birds["species"].to_numpy()
    weights = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    model = LinearDiscriminant().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
    search = GridSearchCV(pipeline, {"lineardiscriminant__shrinkage": [None, 0.2]}, cv=folds(3))
    search.fit(X, y, sample_weight=weights)
    shrinkage = search.best_params_["lineardiscriminant__shrinkage"]
    scaled = StandardScaler().fit(X).transform(X)
    direct = LinearDiscriminant(shrinkage=shrinkage).fit(scaled, y, sample_weight=weights)
    assert_allclose(search.predict_proba(X), direct.predict_proba(scaled), rtol=0, atol=1e-12)
    unweighted = LinearDiscriminant(shrinkage=shrinkage).fit(scaled, y)
    assert np.abs(unweighted.predict_proba(scaled) - direct.predict_proba(scaled)).max() > 1e-3


@pytest.mark.usefixtures("routing")
def test_weights_that_were_not_asked_for_are_not_routed(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS].to_numpy(), birds["species"].to_numpy()
    model = LinearDiscriminant().set_fit_request(sample_weight=False).set_score_request(sample_weight=False)
    search = GridSearchCV(model, {"shrinkage": [None]}, cv=folds(3))
    with pytest.raises(TypeError, match="sample_weight"):
        search.fit(X, y, sample_weight=np.ones(len(y)))


# Frames.

FRAMES: list[tuple[str, Callable[[pd.DataFrame], Any]]] = [
    ("pandas", lambda frame: frame),
    ("pandas with an index", lambda frame: frame.set_index(np.arange(len(frame))[::-1] * 7)),
    ("pandas with pyarrow", lambda frame: frame.convert_dtypes(dtype_backend="pyarrow")),
    ("polars", pl.from_pandas),
    ("pyarrow", lambda frame: pl.from_pandas(frame).to_arrow()),
]
every_frame = pytest.mark.parametrize("make", [make for _, make in FRAMES], ids=[name for name, _ in FRAMES])


@every_frame
@every_estimator
def test_a_frame_gives_the_model_of_its_array(
    estimator: Any, make: Callable[[pd.DataFrame], Any], birds: pd.DataFrame
) -> None:
    if isinstance(getattr(estimator, "families", None), dict):
        of_array = clone(estimator).set_params(families={0: Gaussian("diagonal"), (3, 1): Gaussian()})
    else:
        of_array = clone(estimator)
    X, y = birds[COLUMNS].to_numpy(dtype=np.float64), birds["species"].to_numpy(dtype=str)
    of_array.fit(X, y)
    frame = make(birds[COLUMNS])
    of_frame = clone(estimator).fit(frame, y)
    assert_allclose(of_frame.predict_proba(frame), of_array.predict_proba(X), rtol=0, atol=1e-12)
    assert_allclose(of_frame.log_density(frame), of_array.log_density(X), rtol=1e-12)
    assert of_frame.feature_names_in_.tolist() == COLUMNS
    assert of_frame.n_features_in_ == 4
    assert of_frame.explain(frame).columns == tuple(COLUMNS)
    assert not hasattr(of_array, "feature_names_in_")


@every_frame
def test_y_may_be_the_name_of_a_column(make: Callable[[pd.DataFrame], Any], birds: pd.DataFrame) -> None:
    apart = GenerativeClassifier().fit(birds[COLUMNS], birds["species"].to_numpy())
    frame, features = make(birds), make(birds[COLUMNS])
    model = GenerativeClassifier().fit(frame, "species")
    assert model.feature_names_in_.tolist() == COLUMNS
    assert model.classes_.tolist() == ["Adelie", "Chinstrap", "Gentoo"]
    assert_allclose(model.predict_proba(features), apart.predict_proba(birds[COLUMNS]), rtol=0, atol=1e-12)


def test_y_must_name_a_column_that_is_there(birds: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="y='kind' is not a column of X: 'species', 'bill_length_mm'"):
        GenerativeClassifier().fit(birds, "kind")


@every_frame
def test_labels_may_be_a_series_of_the_same_library(make: Callable[[pd.DataFrame], Any], birds: pd.DataFrame) -> None:
    frame = make(birds)
    model = LinearDiscriminant().fit(make(birds[COLUMNS]), frame["species"])
    assert model.classes_.tolist() == ["Adelie", "Chinstrap", "Gentoo"]
    plain = LinearDiscriminant().fit(birds[COLUMNS].to_numpy(), birds["species"].to_numpy(dtype=str))
    assert_allclose(model.coef_, plain.coef_, rtol=1e-12)


@every_frame
def test_a_sample_is_a_frame_of_the_library_that_was_fitted(
    make: Callable[[pd.DataFrame], Any], birds: pd.DataFrame
) -> None:
    frame = make(birds[COLUMNS])
    model = GenerativeClassifier().fit(frame, birds["species"].to_numpy())
    X, y = model.sample(6, random_state=0)
    assert type(X) is type(frame)
    names = X.column_names if hasattr(X, "column_names") else list(X.columns)
    assert names == COLUMNS
    assert len(y) == 6
    assert model.predict_proba(X).shape == (6, 3)


def test_a_sample_of_a_model_of_arrays_is_an_array(birds: pd.DataFrame) -> None:
    X, _ = GenerativeClassifier().fit(birds[COLUMNS].to_numpy(), birds["species"]).sample(6)
    assert isinstance(X, np.ndarray)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_in_another_order_are_found_by_name(make: Callable[[pd.DataFrame], Any], birds: pd.DataFrame) -> None:
    model = GenerativeClassifier().fit(make(birds[COLUMNS]), birds["species"].to_numpy())
    assert_array_equal(model.predict(make(birds[COLUMNS[::-1]])), model.predict(make(birds[COLUMNS])))


@pytest.mark.parametrize("n_components", [None, 1])
def test_discriminants_come_as_a_pandas_frame_when_asked_for(birds: pd.DataFrame, n_components: int | None) -> None:
    X, y = birds[COLUMNS], birds["species"]
    model = LinearDiscriminant(n_components=n_components)
    plain = clone(model).fit(X, y).transform(X)
    framed = model.set_output(transform="pandas").fit(X, y).transform(X)
    assert isinstance(plain, np.ndarray)
    assert isinstance(framed, pd.DataFrame)
    count = n_components or 2
    assert framed.columns.tolist() == [f"lineardiscriminant{i}" for i in range(count)]
    assert framed.columns.tolist() == model.get_feature_names_out().tolist()
    assert_array_equal(framed.index, X.index)
    assert_allclose(framed.to_numpy(), plain, rtol=1e-14)


def test_discriminants_come_as_a_polars_frame_when_asked_for(birds: pd.DataFrame) -> None:
    frame = pl.from_pandas(birds[COLUMNS])
    model = LinearDiscriminant().set_output(transform="polars").fit(frame, birds["species"].to_numpy())
    assert isinstance(model.transform(frame), pl.DataFrame)


# Imports.


OPTIONAL = ("pandas", "polars", "pyarrow", "matplotlib", "duckdb", "dask", "pyspark", "rich", "jinja2", "click")
FIT = "likely.GenerativeClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1]).predict_proba([[1.0]])"


def run_fresh(code: str) -> list[str]:
    """What a fresh interpreter prints, as words."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_importing_likely_loads_nothing_optional_beyond_what_scikit_learn_loads_itself() -> None:
    theirs = "import sys, sklearn.feature_extraction.text, sklearn.utils.validation; before = set(sys.modules)"
    show = "print(','.join(sys.modules), ','.join(set(sys.modules) - before))"
    words = run_fresh(f"{theirs}; import likely; {FIT}; {show}")
    loaded, added = (set(word.split(",")) for word in words)
    assert "likely" in added
    assert not added & set(OPTIONAL)
    assert not loaded & {"polars", "matplotlib", "duckdb", "onnx", "onnxruntime"}


def test_likely_works_where_nothing_optional_is_installed() -> None:
    hide = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))"  # None in sys.modules: not to be found
    assert run_fresh(f"{hide}; import likely; print({FIT}.shape)") == ["(1,", "2)"]


def test_rows_of_a_frame_keep_no_reference_to_the_frame(birds: pd.DataFrame) -> None:
    frame = birds[COLUMNS].copy()
    model = GenerativeClassifier().fit(frame, birds["species"])
    before = model.predict_proba(birds[COLUMNS])
    frame.iloc[:, :] = 0.0
    assert_array_equal(model.predict_proba(birds[COLUMNS]), before)


def test_rows_may_be_plain_lists() -> None:
    X, y = Rows(*random_rows(3))
    plain, listed = LinearDiscriminant().fit(X, y), LinearDiscriminant().fit(X.tolist(), y.tolist())
    assert_array_equal(listed.predict_proba(X.tolist()), plain.predict_proba(X))


def test_a_grid_search_reaches_into_the_families_of_single_columns(birds: pd.DataFrame) -> None:
    X, y = birds[COLUMNS], birds["species"]
    families = {"bill_length_mm": Gaussian("diagonal"), ("body_mass_g", "bill_depth_mm"): Gaussian()}
    model = GenerativeClassifier(families, estimation="mle")
    search = GridSearchCV(
        model,
        {
            "families__bill_length_mm__shared": [True, False],
            "families__body_mass_g,bill_depth_mm__shared": [True, False],
        },
        scoring="neg_log_loss",
        cv=folds(3),
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(np.unique(scores.round(12))) == 4
    for params, score in zip(search.cv_results_["params"], scores, strict=True):
        one = GenerativeClassifier(
            {
                "bill_length_mm": Gaussian("diagonal", shared=params["families__bill_length_mm__shared"]),
                ("body_mass_g", "bill_depth_mm"): Gaussian(
                    shared=params["families__body_mass_g,bill_depth_mm__shared"]
                ),
            },
            estimation="mle",
        )
        assert cross_val_score(one, X, y, scoring="neg_log_loss", cv=folds(3)).mean() == pytest.approx(score)
    assert families["bill_length_mm"].shared is False  # the families of the user are as they were
    assert families["body_mass_g", "bill_depth_mm"].shared is False


def test_parameters_of_families_in_a_mapping_are_set_and_cloned() -> None:
    model = GenerativeClassifier({"a": Gaussian(), "a__b": Gaussian(), 3: Gaussian(prior=NormalInverseWishart())})
    names = model.get_params()
    assert {"families", "families__a", "families__a__shrinkage", "families__a__b__shared"} <= set(names)
    assert names["families__3__prior__mean_rows"] == NormalInverseWishart().mean_rows
    assert "families__a" not in model.get_params(deep=False)
    copied = clone(model).set_params(families__a__shrinkage=0.5, families__a__b__shared=True)
    copied.set_params(families__3__prior__mean_rows=7.0)
    assert copied.families["a"].shrinkage == 0.5
    assert copied.families["a__b"].shared is True
    assert copied.families[3].prior.mean_rows == 7.0
    assert model.families["a"].shrinkage is None
    replaced = clone(model).set_params(families__a=Gaussian("diagonal"))
    assert replaced.families["a"].covariance == "diagonal"
    assert list(replaced.families) == ["a", "a__b", 3]
    both = GenerativeClassifier().set_params(families={"z": Gaussian()}, families__z__shared=True)
    assert both.families["z"].shared is True
    for wrong in ("families__q__shrinkage", "families__a__colour"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            model.set_params(**{wrong: 1})
    assert GenerativeClassifier(Gaussian()).set_params(families__shared=True).families.shared is True
