"""Tests of `likely.evaluation`."""
