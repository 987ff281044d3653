"""Tests of `likely.text`."""
