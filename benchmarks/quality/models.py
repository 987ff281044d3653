"""The compared models: estimators of this library, and peers with their default options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likely

THREADS = 2


@dataclass(frozen=True)
class Model:
    """A named estimator; `build` returns an unfitted one."""

    name: str
    package: str
    build: Callable[[], Any]

    @property
    def ours(self) -> bool:
        return self.package == "likely"

    @property
    def installed(self) -> bool:
        try:
            version(self.package)
        except PackageNotFoundError:
            return False
        return True

    @property
    def key(self) -> str:
        """Name and version: results of another version are not the same."""
        return f"{self.name} ({self.package} {version(self.package)})"


def prepared(estimator: Any) -> Any:
    """Imputation, scaling and one-hot encoding before an estimator of scikit-learn.

    Categories that occur once are pooled, and unknown ones with them.
    """
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=False),
    )
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude="number")),
    )
    return WithPlainFrame(make_pipeline(columns, estimator))


def plain(X: pd.DataFrame) -> pd.DataFrame:
    """Numbered columns, numbers for truth values, and text for everything that is no number."""
    columns = {}
    for i, name in enumerate(X.columns):
        column = X[name]
        if pd.api.types.is_bool_dtype(column):
            column = column.astype("int8")
        elif not pd.api.types.is_numeric_dtype(column):
            column = column.astype(object).where(column.isna(), column.astype(str)).where(column.notna(), np.nan)
        columns[f"x{i}"] = column
    return pd.DataFrame(columns)


@dataclass
class WithPlainFrame:
    """An estimator that receives columns as numbers or text."""

    estimator: Any

    def fit(self, X: pd.DataFrame, y: Any) -> WithPlainFrame:
        self.estimator.fit(self._converted(X, fitting=True), y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.estimator.predict_proba(self._converted(X, fitting=False))

    def _converted(self, X: pd.DataFrame, fitting: bool) -> pd.DataFrame:
        return plain(X)


@dataclass
class WithCategories(WithPlainFrame):
    """An estimator that receives text as pandas categories of the training rows; others become missing values."""

    def _converted(self, X: pd.DataFrame, fitting: bool) -> pd.DataFrame:
        X = plain(X)
        if fitting:
            text = X.select_dtypes(exclude="number")
            self.types = {name: pd.CategoricalDtype(sorted(column.dropna().unique())) for name, column in text.items()}
        return X.assign(**{name: pd.Categorical(X[name], dtype=kind) for name, kind in self.types.items()})


@dataclass
class WithText(WithPlainFrame):
    """CatBoost, which receives categorical columns as text, missing values as a category."""

    def fit(self, X: pd.DataFrame, y: Any) -> WithText:
        frame = self._converted(X, fitting=True)
        self.estimator.fit(frame, y, cat_features=list(frame.select_dtypes(exclude="number").columns))
        return self

    def _converted(self, X: pd.DataFrame, fitting: bool) -> pd.DataFrame:
        X = plain(X)
        text = X.select_dtypes(exclude="number").columns
        return X.assign(**{name: X[name].astype(object).fillna("missing") for name in text})


class RegularizedQDA(QuadraticDiscriminantAnalysis):
    """QDA with covariances (1 − r)·Σ_k + r·I, r = 0.1, on scaled columns.

    scikit-learn rejects `reg_param` if a class has fewer rows than columns: then with shrinkage 0.1 instead.
    """

    def fit(self, X: Any, y: Any) -> RegularizedQDA:
        few = np.bincount(y).min() < X.shape[1]
        self.set_params(**({"solver": "eigen", "shrinkage": 0.1} if few else {"reg_param": 0.1}))
        super().fit(X, y)
        return self


def _catboost() -> Any:
    return WithText(
        import_module("catboost").CatBoostClassifier(
            verbose=False, thread_count=THREADS, random_seed=0, allow_writing_files=False
        )
    )


def _lightgbm() -> Any:
    return WithCategories(import_module("lightgbm").LGBMClassifier(verbose=-1, n_jobs=THREADS, random_state=0))


def _xgboost() -> Any:
    return WithCategories(
        import_module("xgboost").XGBClassifier(n_jobs=THREADS, random_state=0, enable_categorical=True)
    )


OURS = [
    Model(name, "likely", getattr(likely, name))
    for name in ("EvidenceClassifier", "GenerativeClassifier", "NaiveBayes")
    if hasattr(likely, name)
]
PEERS = [
    Model(
        "LDA",
        "scikit-learn",
        lambda: prepared(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    ),
    Model("QDA", "scikit-learn", lambda: prepared(RegularizedQDA())),
    Model("GaussianNB", "scikit-learn", lambda: prepared(GaussianNB())),
    Model("LogisticRegression", "scikit-learn", lambda: prepared(LogisticRegression(max_iter=1000))),
    Model("RandomForest", "scikit-learn", lambda: prepared(RandomForestClassifier(n_jobs=THREADS, random_state=0))),
    Model("HistGradientBoosting", "scikit-learn", lambda: prepared(HistGradientBoostingClassifier(random_state=0))),
    Model("CatBoost", "catboost", _catboost),
    Model("LightGBM", "lightgbm", _lightgbm),
    Model("XGBoost", "xgboost", _xgboost),
]


def select(names: list[str] | None) -> tuple[list[Model], list[str]]:
    """Installed models, all or those named, and the names of those that are not installed."""
    models = {model.name: model for model in [*OURS, *PEERS]}
    unknown = [name for name in names or () if name not in models]
    if unknown:
        raise SystemExit(f"No model is named {', '.join(unknown)}. Choose from {', '.join(models)}.")
    chosen = [models[name] for name in names or models]
    return [model for model in chosen if model.installed], [model.name for model in chosen if not model.installed]
