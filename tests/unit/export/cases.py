"""Models and rows that every target is compared with `predict_proba` on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from likely import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    Histogram,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NearestPrototype,
    NegativeBinomial,
    PointMass,
    Poisson,
    QuadraticDiscriminant,
    SoftmaxRegression,
    VonMises,
)
from likely.errors import ImpossibleRowsWarning

EVIL = {  # names of columns that must be quoted
    "gauss": 'length "mm"; DROP TABLE x',
    "other": "it's",
    "text": "Ünïcode -- comment",
    "count": "SELECT",
}
LABELS = ("it's", 'say "no";', "back\\slash")
WORDS = ("a'b", 'c"d', "e;f", "g\\h", "")


@dataclass(frozen=True)
class Case:
    """A fitted model, and rows to score: an identifier, and the columns of the model."""

    model: Any
    rows: pd.DataFrame

    @property
    def probabilities(self) -> np.ndarray[Any, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImpossibleRowsWarning)
            return np.asarray(self.model.predict_proba(self.rows))

    @property
    def predicted(self) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImpossibleRowsWarning)
            return list(self.model.predict(self.rows).tolist())


def mixed_table(n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Columns of all types with missing values, and names and categories that must be quoted."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            EVIL["gauss"]: rng.normal(3.0 * k, 1.0),
            EVIL["other"]: rng.normal(k, 0.5 + k),
            EVIL["text"]: [WORDS[i] for i in (rng.integers(0, 3, n) + k) % 5],
            EVIL["count"]: rng.poisson(1.0 + 2.0 * k).astype(float),
            "flag": (rng.random(n) < 0.2 + 0.3 * k).astype(float),
            "money": np.where(rng.random(n) < 0.3, 0.0, np.exp(rng.normal(k, 0.7))),
            "hour": (rng.normal(4.0 + 5.0 * k, 2.0)) % 24.0,
            "part": rng.beta(1.0 + k, 2.0),
            "wait": rng.gamma(1.5, 1.0 + k),
        }
    )
    y = np.array(LABELS)[k]
    missing = rng.random(frame.shape) < 0.12
    missing[5] = True
    return frame.mask(missing), y


DECLARED = {
    EVIL["gauss"]: Gaussian("diagonal"),
    EVIL["other"]: Gaussian("diagonal", shared=True),
    EVIL["text"]: Categorical(),
    EVIL["count"]: Poisson(),
    "flag": Bernoulli(),
    "money": PointMass(0.0, LogNormal()),
    "hour": VonMises(24),
    "part": Beta(),
    "wait": Gamma(),
}
OTHERS = {
    EVIL["gauss"]: Histogram(),
    EVIL["other"]: Gaussian("diagonal"),
    EVIL["text"]: Categorical(smoothing=0.5),
    EVIL["count"]: NegativeBinomial(2.0),
    "flag": Geometric(),
    "money": PointMass(0.0, Exponential()),
    "hour": Histogram(),
    "part": Gaussian("spherical"),
    "wait": Gamma("shared"),
}
JOINT = {(EVIL["gauss"], EVIL["other"], "hour"): Gaussian(), (EVIL["text"]): Categorical(), "wait": LogNormal()}


def mixed(families: Any, **options: Any) -> Callable[[], Case]:
    def build() -> Case:
        frame, y = mixed_table()
        names = [c for name in families or frame for c in ([name] if isinstance(name, str) else name)]
        used = frame[names]
        model = GenerativeClassifier(families, **options).fit(used, y)
        fresh = mixed_table(120, seed=1)[0][names]
        fresh.loc[7, EVIL["text"]] = "never seen; '"
        return Case(model, fresh)

    return build


def numeric(model: Any, missing: bool = True, scale: float = 1.0) -> Callable[[], Case]:
    def build() -> Case:
        rng = np.random.default_rng(3)
        k = np.repeat([0, 1, 2], 40)
        X = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 4)) + k[:, None] * np.array([1.0, -2.0, 0.5, 0.0])
        frame = pd.DataFrame(X, columns=["x0", "x1", "it's", 'x "3"'])
        model.fit(frame, k * 10 - 10)
        rows = frame.sample(60, random_state=0).reset_index(drop=True) * scale
        if missing:
            rows = rows.mask(rng.random(rows.shape) < 0.3)
            rows.loc[0] = np.nan
        return Case(model, rows)

    return build


def class_without_prior() -> Case:
    case = numeric(QuadraticDiscriminant())()
    return Case(case.model.with_prior({-10: 0.4, 0: 0.0, 10: 0.6}), case.rows)


def impossible() -> Case:
    """Under maximum likelihood some categories and counts are impossible, in some or in all classes."""
    frame = pd.DataFrame(
        {"c": ["u", "v", "u", "w"] * 10, "n": [0.0, 1.0, 0.0, 3.0] * 10, "b": [0.0, 1.0, 1.0, 1.0] * 10}
    )
    y = np.array(["p", "q", "p", "q"] * 10)
    families = {"c": Categorical(), "n": Poisson(), "b": Bernoulli()}
    model = GenerativeClassifier(
        families,
        estimation="mle",
        class_prior={
            "p": 0.75,
            "q": 0.25,
        },
    ).fit(frame, y)
    rows = pd.DataFrame(
        {"c": ["u", "v", "u", None, "w"], "n": [0.0, 1.0, 2.0, np.nan, 0.0], "b": [1.0, 0.0, np.nan, 0.0, 0.0]}
    )
    return Case(model, rows)


def tiny() -> Case:
    """Posteriors that underflow."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.r_[rng.normal(0, 1, 50), rng.normal(30, 1, 50)], "b": rng.normal(size=100)})
    model = QuadraticDiscriminant().fit(X, np.repeat(["near", "far"], 50))
    return Case(model, pd.DataFrame({"a": np.linspace(-60.0, 90.0, 31), "b": np.where(np.arange(31) % 5, 0.3, np.nan)}))


def words() -> Case:
    X = pd.DataFrame(np.random.default_rng(0).poisson(1.0, (60, 4)).astype(float), columns=list("wxyz"))
    X.iloc[::3, 0] += 3.0
    return Case(GenerativeClassifier(Multinomial()).fit(X, np.arange(60) % 3 == 0), X)


def rates() -> Case:
    rng = np.random.default_rng(0)
    days = rng.uniform(0.5, 5.0, 90)
    X = pd.DataFrame({"calls": rng.poisson(days * np.repeat([1.0, 3.0, 5.0], 30)).astype(float), "days": days})
    X.loc[3, "calls"], X.loc[4, "days"] = np.nan, np.nan
    return Case(GenerativeClassifier({"calls": Poisson("days")}).fit(X, np.repeat([-1.0, 2.0, 3.0], 30)), X)


def numbers_as_categories() -> Case:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"grade": rng.integers(1, 6, 90).astype(float), "z": rng.normal(size=90)})
    X.loc[::9, "grade"] = np.nan
    model = GenerativeClassifier({"grade": Categorical(), "z": Gaussian("diagonal")}).fit(X, (X["grade"] > 2).map(str))
    rows = X.copy()
    rows.loc[1, "grade"] = 17.0
    return Case(model, rows)


CASES: dict[str, Callable[[], Case]] = {
    "declared-bayes": mixed(DECLARED),
    "declared-map": mixed(DECLARED, estimation="map"),
    "others-bayes": mixed(OTHERS),
    "automatic": mixed(None),
    "joint-bayes": mixed(JOINT),
    "joint-mle": mixed(JOINT, estimation="mle"),
    "lda": numeric(LinearDiscriminant()),
    "lda-bayes": numeric(LinearDiscriminant(estimation="bayes")),
    "qda": numeric(QuadraticDiscriminant()),
    "qda-bayes": numeric(QuadraticDiscriminant(estimation="bayes"), scale=3.0),
    "naive-bayes": numeric(NaiveBayes()),
    "prototype": numeric(NearestPrototype()),
    "prototype-full": numeric(NearestPrototype(covariance="full")),
    "spherical-bayes": numeric(QuadraticDiscriminant("spherical", estimation="bayes")),
    "softmax": numeric(SoftmaxRegression(), missing=False),
    "softmax-bayes": numeric(SoftmaxRegression(estimation="bayes"), missing=False, scale=2.0),
    "class-without-prior": class_without_prior,
    "impossible": impossible,
    "tiny": tiny,
    "words": words,
    "rates": rates,
    "numbers-as-categories": numbers_as_categories,
}


@cache
def case_of(name: str) -> Case:
    return CASES[name]()


every_case = pytest.mark.parametrize("name", list(CASES))
