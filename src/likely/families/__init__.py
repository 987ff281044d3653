"""Families of class-conditional distributions, one file each."""

from likely.families.base import Conditionals, ExponentialConditionals, Family
from likely.families.gaussian import Gaussian

__all__ = ["Conditionals", "ExponentialConditionals", "Family", "Gaussian"]
