"""Probabilistic generative classifiers: models of how rows and classes come about together."""

from likely.classifiers import (
    GenerativeClassifier,
    LinearDiscriminant,
    NearestPrototype,
    QuadraticDiscriminant,
)
from likely.families import Gaussian
from likely.priors import Dirichlet, NormalInverseWishart
from likely.shrinkage import Regularized

__version__ = "0.1.0"

__all__ = [
    "Dirichlet",
    "Gaussian",
    "GenerativeClassifier",
    "LinearDiscriminant",
    "NearestPrototype",
    "NormalInverseWishart",
    "QuadraticDiscriminant",
    "Regularized",
]
