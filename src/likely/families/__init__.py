"""Families of class-conditional distributions, one file each."""

from likely.families.base import Columns, Conditionals, ExponentialConditionals, Family
from likely.families.bernoulli import Bernoulli
from likely.families.beta import Beta
from likely.families.categorical import Categorical
from likely.families.exponential import Exponential
from likely.families.gamma import Gamma
from likely.families.gaussian.family import Gaussian
from likely.families.geometric import Geometric
from likely.families.histogram import Histogram
from likely.families.log_normal import LogNormal
from likely.families.multinomial import Multinomial
from likely.families.negative_binomial import NegativeBinomial
from likely.families.pairs import Pairs
from likely.families.point_mass import PointMass
from likely.families.poisson import Poisson
from likely.families.text.family import Text
from likely.families.von_mises import VonMises

MEMBERS = (
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

__all__ = [
    "MEMBERS",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Columns",
    "Conditionals",
    "Exponential",
    "ExponentialConditionals",
    "Family",
    "Gamma",
    "Gaussian",
    "Geometric",
    "Histogram",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Pairs",
    "PointMass",
    "Poisson",
    "Text",
    "VonMises",
]
