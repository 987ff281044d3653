"""`register`: allows custom families, priors and statistics in model files."""

from likely.model.persistence import register

__all__ = ["register"]
