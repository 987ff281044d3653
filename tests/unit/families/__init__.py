"""Tests of single families, beyond the laws that all of them obey."""
