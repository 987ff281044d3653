"""Measurements of the source tree and of what it computes."""
