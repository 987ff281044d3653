"""Tests of `likely.engines`."""
