"""Tests: the mirror of the package, and its laws, references and journeys."""
