"""Probabilistic generative classification on tables: joint models p(x, y) with the scikit-learn API.

Estimators: EvidenceClassifier, GenerativeClassifier, NaiveBayes, LinearDiscriminant, QuadraticDiscriminant,
NearestPrototype, MixtureModel, GenerativeRegressor, SoftmaxRegression, HybridClassifier, TextClassifier and Imputer;
`load` reads saved ones, and `scan` reads rows from files, databases and lazy frames.

Families of columns: Gaussian, LogNormal, Gamma, Exponential, Beta, VonMises, Poisson, NegativeBinomial, Geometric,
Multinomial, Bernoulli, Categorical, Pairs, Histogram, PointMass and Text.

Evaluation: cross_validate, select, compare and reliability. `datasets.penguins` is a table for examples.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from likely import GenerativeClassifier
>>> X, y = load_iris(return_X_y=True)
>>> model = GenerativeClassifier().fit(X, y)
>>> model.predict_proba(X[[70]]).shape
(1, 3)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likely import datasets as datasets
    from likely.discriminative.hybrid import HybridClassifier
    from likely.discriminative.softmax import SoftmaxRegression
    from likely.engines.scan import scan
    from likely.estimators.base import load
    from likely.estimators.classifiers import GenerativeClassifier, NaiveBayes
    from likely.estimators.discriminants import LinearDiscriminant, NearestPrototype, QuadraticDiscriminant
    from likely.estimators.imputer import Imputer
    from likely.estimators.mixture import MixtureModel
    from likely.estimators.regression import GenerativeRegressor
    from likely.evaluation.comparison import compare
    from likely.evaluation.cross_validation import cross_validate
    from likely.evaluation.selection import select
    from likely.evidence.classifier import EvidenceClassifier
    from likely.families import (
        Bernoulli,
        Beta,
        Categorical,
        Exponential,
        Gamma,
        Gaussian,
        Geometric,
        Histogram,
        LogNormal,
        Multinomial,
        NegativeBinomial,
        Pairs,
        PointMass,
        Poisson,
        Text,
        VonMises,
    )
    from likely.families.gaussian.prior import NormalInverseWishart
    from likely.families.gaussian.shrinkage import Regularized
    from likely.families.priors import BetaPrior, Dirichlet, GammaPrior, PseudoRows
    from likely.model.reliability import reliability
    from likely.text.classifier import TextClassifier

__version__ = "0.1.0"
_MODULES = {  # of the public names, which are imported when they are used first; other names are those of families
    "BetaPrior": "likely.families.priors",
    "Dirichlet": "likely.families.priors",
    "EvidenceClassifier": "likely.evidence.classifier",
    "GammaPrior": "likely.families.priors",
    "GenerativeClassifier": "likely.estimators.classifiers",
    "GenerativeRegressor": "likely.estimators.regression",
    "HybridClassifier": "likely.discriminative.hybrid",
    "Imputer": "likely.estimators.imputer",
    "LinearDiscriminant": "likely.estimators.discriminants",
    "MixtureModel": "likely.estimators.mixture",
    "NaiveBayes": "likely.estimators.classifiers",
    "NearestPrototype": "likely.estimators.discriminants",
    "NormalInverseWishart": "likely.families.gaussian.prior",
    "PseudoRows": "likely.families.priors",
    "QuadraticDiscriminant": "likely.estimators.discriminants",
    "Regularized": "likely.families.gaussian.shrinkage",
    "SoftmaxRegression": "likely.discriminative.softmax",
    "TextClassifier": "likely.text.classifier",
    "columns": "likely.estimators.column_table",
    "compare": "likely.evaluation.comparison",
    "cross_validate": "likely.evaluation.cross_validation",
    "load": "likely.estimators.base",
    "reliability": "likely.model.reliability",
    "scan": "likely.engines.scan",
    "select": "likely.evaluation.selection",
}


def __getattr__(name: str) -> Any:
    """Import a public name or module."""
    if name in ("datasets", "errors", "functions"):
        return import_module(f"likely.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'likely' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES.get(name, "likely.families")), name)
    return found


def __dir__() -> list[str]:
    """The public names, without the packages behind them."""
    return [*__all__, "__all__", "__doc__", "__version__", "datasets", "errors", "functions"]


__all__ = [
    "Bernoulli",
    "Beta",
    "BetaPrior",
    "Categorical",
    "Dirichlet",
    "EvidenceClassifier",
    "Exponential",
    "Gamma",
    "GammaPrior",
    "Gaussian",
    "GenerativeClassifier",
    "GenerativeRegressor",
    "Geometric",
    "Histogram",
    "HybridClassifier",
    "Imputer",
    "LinearDiscriminant",
    "LogNormal",
    "MixtureModel",
    "Multinomial",
    "NaiveBayes",
    "NearestPrototype",
    "NegativeBinomial",
    "NormalInverseWishart",
    "Pairs",
    "PointMass",
    "Poisson",
    "PseudoRows",
    "QuadraticDiscriminant",
    "Regularized",
    "SoftmaxRegression",
    "Text",
    "TextClassifier",
    "VonMises",
    "columns",
    "compare",
    "cross_validate",
    "load",
    "reliability",
    "scan",
    "select",
]
