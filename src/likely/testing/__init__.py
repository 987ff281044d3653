"""Laws that a family of your own must keep: `check_family`."""

from likely.testing.families import check_family

__all__ = ["check_family"]
