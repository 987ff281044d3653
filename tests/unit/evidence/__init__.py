"""Tests of `likely.evidence`."""
