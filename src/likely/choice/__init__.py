"""Choices by the rows: families of columns, joint blocks, covariances, calibration, weights of unlabeled rows."""
