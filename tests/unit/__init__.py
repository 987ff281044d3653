"""Tests of one package at a time, in the folders of `src/likely`."""
