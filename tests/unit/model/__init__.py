"""Tests of `likely.model`."""
