"""Tests of `likely.numerics`."""
