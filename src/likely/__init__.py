"""Probabilistic generative classifiers: models of how rows and classes come about together."""

from likely.classifiers import (
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
)
from likely.comparison import compare
from likely.families import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    Poisson,
    VonMises,
)
from likely.hybrid import HybridClassifier
from likely.imputer import Imputer
from likely.learning import load
from likely.mixture import MixtureModel
from likely.priors import BetaPrior, Dirichlet, GammaPrior, NormalInverseWishart, PseudoRows
from likely.regression import GenerativeRegressor
from likely.selection import cross_validate, select
from likely.shrinkage import Regularized
from likely.softmax import SoftmaxRegression

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Beta",
    "BetaPrior",
    "Categorical",
    "Dirichlet",
    "Exponential",
    "Gamma",
    "GammaPrior",
    "Gaussian",
    "GenerativeClassifier",
    "GenerativeRegressor",
    "Geometric",
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
    "Poisson",
    "PseudoRows",
    "QuadraticDiscriminant",
    "Regularized",
    "SoftmaxRegression",
    "VonMises",
    "compare",
    "cross_validate",
    "load",
    "select",
]
