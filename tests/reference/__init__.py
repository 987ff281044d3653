"""Comparisons with numbers that other software computed."""
