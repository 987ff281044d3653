"""Tests of `likely.estimators`."""
