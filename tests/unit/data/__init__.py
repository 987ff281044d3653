"""Tests of `likely.data`."""
