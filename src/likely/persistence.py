"""`register`: families and priors of your own in model files."""

from likely.model.persistence import register

__all__ = ["register"]
