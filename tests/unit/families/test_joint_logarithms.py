"""LogNormal with a full covariance: one Gaussian of x and log x."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import softmax

from likely import Gaussian, GenerativeClassifier, GenerativeRegressor, LogNormal, NaiveBayes, NormalInverseWishart
from likely.errors import InputError


def rows(n: int = 80, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    z = rng.multivariate_normal(np.zeros(3), [[1, 0.7, 0.2], [0.7, 1, 0.1], [0.2, 0.1, 1]], n) + y[:, None]
    return pd.DataFrame({"a": z[:, 0], "b": np.exp(z[:, 1]), "c": np.exp(0.3 * z[:, 2])}), y


def model(*, calibration: Any = "auto", estimation: str = "bayes", **options: Any) -> Any:
    family = LogNormal(covariance="full", log=["b", "c"], **options)
    return GenerativeClassifier({("a", "b", "c"): family}, estimation=estimation, calibration=calibration)


def logarithms(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(b=np.log(X["b"]), c=np.log(X["c"]))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_it_is_the_gaussian_of_the_logarithms_with_the_jacobian(shared: bool, estimation: str) -> None:
    X, y = rows()
    joint = model(shared=shared, estimation=estimation).fit(X, y)
    plain = GenerativeClassifier(Gaussian(shared=shared), estimation=estimation).fit(logarithms(X), y)
    jacobian = np.log(X["b"] * X["c"])
    assert_allclose(joint.log_density(X), plain.log_density(logarithms(X)) - jacobian, rtol=1e-10)
    assert_allclose(joint.predict_proba(X), plain.predict_proba(logarithms(X)), rtol=1e-9, atol=1e-14)
    assert_allclose(joint.left_out_proba(X, y), plain.left_out_proba(logarithms(X), y), rtol=1e-9, atol=1e-14)
    scores = joint.explain(X)
    assert_allclose(softmax(scores.evidence.sum(axis=2) + scores.offset, axis=1), joint.predict_proba(X), rtol=1e-9)
    pure = joint.set_params(calibration=None).fit(X, y)
    explained = pure.explain(X)
    assert_allclose(explained.evidence.sum(axis=2) + explained.offset, pure.log_joint(X), rtol=1e-9)
    if estimation == "mle":
        mine = logarithms(X)[y == 0]
        density = stats.multivariate_normal(mine.mean(), np.cov(mine.T, bias=True)) if not shared else None
        if density is not None:
            wanted = density.logpdf(logarithms(X)) - jacobian + np.log(0.5)
            assert_allclose(pure.log_joint(X)[:, 0], wanted, rtol=1e-9)


def test_leave_one_out_is_a_refit() -> None:
    X, y = rows(20)
    prior = NormalInverseWishart(mean=[0.0, 0.0, 0.0], mean_rows=0.3, degrees=6.0, scale=1.0)
    options = {"class_prior": [0.5, 0.5], "calibration": None}
    whole = model(prior=prior).set_params(**options).fit(X, y)
    held_out = whole.left_out_proba(X, y)
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        again = model(prior=prior).set_params(**options).fit(X.iloc[rest], y[rest])
        assert_allclose(held_out[i], again.predict_proba(X.iloc[[i]])[0], rtol=1e-7)


def test_rows_are_added_and_forgotten_and_saved(tmp_path: Any) -> None:
    import likely

    def pure() -> Any:
        return model(shared=True, calibration=None)

    X, y = rows()
    whole = pure().fit(X, y)
    parts = pure().fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-8)
    both = pure().fit(X[:30], y[:30]) + pure().fit(X[30:], y[30:])
    assert_allclose(both.predict_proba(X), whole.predict_proba(X), rtol=1e-8)
    parts.forget(X[30:], y[30:])
    assert_allclose(parts.predict_proba(X), pure().fit(X[:30], y[:30]).predict_proba(X), rtol=1e-7)
    whole.save(tmp_path / "model")
    assert_allclose(likely.load(tmp_path / "model").predict_proba(X), whole.predict_proba(X), rtol=1e-12)


def test_missing_values_are_integrated_out() -> None:
    X, y = rows(400)
    fitted = model(estimation="map").fit(X, y)
    hidden = X.copy()
    hidden.loc[::2, "b"] = np.nan
    hidden.loc[1::4, ["a", "c"]] = np.nan
    plain = GenerativeClassifier(Gaussian(), estimation="map").fit(logarithms(X), y)
    assert_allclose(fitted.predict_proba(hidden), plain.predict_proba(logarithms(hidden)), rtol=1e-9)
    learnt = model(estimation="map").fit(hidden, y)
    plain = GenerativeClassifier(Gaussian(), estimation="map").fit(logarithms(hidden), y)
    assert_allclose(learnt.predict_proba(hidden), plain.predict_proba(logarithms(hidden)), rtol=1e-6)


def test_imputation_is_the_conditional_mean() -> None:
    X, y = rows(3000)
    fitted = model(estimation="mle").fit(X, y)
    hidden = X[:6].assign(b=np.nan)
    filled = fitted.impute(hidden, y[:6])
    for k in (0, 1):
        mine = logarithms(X)[y == k]
        centre, matrix = mine.mean().to_numpy(), np.cov(mine.T, bias=True)
        weights = np.linalg.solve(matrix[np.ix_([0, 2], [0, 2])], matrix[[0, 2], 1])
        rest = matrix[1, 1] - weights @ matrix[[0, 2], 1]
        others = logarithms(X[:6])[["a", "c"]].to_numpy()[y[:6] == k] - centre[[0, 2]]
        assert_allclose(filled["b"][y[:6] == k], np.exp(centre[1] + others @ weights + rest / 2), rtol=1e-8)


def test_samples_have_the_moments_of_the_rows() -> None:
    X, y = rows(2000)
    drawn, _ = model().fit(X, y).sample(20_000, random_state=0)
    assert (drawn[["b", "c"]] > 0).all().all()
    assert_allclose(np.corrcoef(logarithms(drawn).T), np.corrcoef(logarithms(X).T), atol=0.05)


def test_misuse() -> None:
    X, y = rows()
    with pytest.raises(
        InputError, match=r"LogNormal\(log=...\) names 'd', which is not a column of the block: 'a', 'b', 'c'"
    ):
        GenerativeClassifier({("a", "b", "c"): LogNormal(covariance="full", log=["d"])}).fit(X, y)
    with pytest.raises(InputError, match="covariance='spherical'"):
        GenerativeClassifier(LogNormal(covariance="spherical")).fit(X[["b", "c"]], y)
    with pytest.raises(InputError, match="log='b'"):
        GenerativeClassifier(LogNormal(log="b")).fit(X, y)
    with pytest.raises(InputError, match="Column 'c', row 3: -1"):
        model().fit(X.assign(c=np.where(np.arange(80) == 3, -1.0, X["c"])), y)
    with pytest.raises(AttributeError, match="no linear or quadratic form"):
        model(estimation="map").fit(X, y).boundary(0, 1)
    with pytest.raises((InputError, TypeError)):
        GenerativeRegressor(LogNormal(covariance="full")).fit(X[["b"]], X["c"])
    naive = NaiveBayes(LogNormal(covariance="full")).fit(X[["b", "c"]], y)
    assert_allclose(
        naive.predict_proba(X[["b", "c"]]), NaiveBayes(LogNormal()).fit(X[["b", "c"]], y).predict_proba(X[["b", "c"]])
    )
