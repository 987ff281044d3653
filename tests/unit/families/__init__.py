"""Tests of what each family has of its own."""
