"""Additive sufficient statistics: frozen values with + and -."""
