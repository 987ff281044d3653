"""Tests of `likely.discriminative`."""
