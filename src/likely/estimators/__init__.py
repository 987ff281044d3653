"""The generative estimators."""
