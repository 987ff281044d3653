"""Numerical building blocks: arrays, special functions, linear algebra, threads. They do not depend on models."""
