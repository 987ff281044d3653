"""Tests of `likely.statistics`."""
