"""Laws that a family of your own must keep: `check_family`."""

from likely.testing.families import FamilyLawError, check_family

__all__ = ["FamilyLawError", "check_family"]
