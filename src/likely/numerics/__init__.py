"""Numerical building blocks: arrays, special functions, linear algebra, threads. They know nothing of models."""
