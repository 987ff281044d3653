"""Textbook formulas over raw rows, written with SciPy, that know nothing of the library's statistics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, multigammaln
from scipy.stats import multivariate_normal, multivariate_t

from tests.laws.registry import Case, Floats, Rows


def normal_log_density(X: Floats, mean: Floats, matrix: Floats) -> Floats:
    """SciPy's, asked in units of the deviations: its eigenvectors lose digits where units differ."""
    unit = np.sqrt(np.diag(matrix))
    standard = multivariate_normal(mean / unit, matrix / unit / unit[:, None])
    return np.asarray(standard.logpdf(X / unit) - np.log(unit).sum())


def student_log_density(X: Floats, mean: Floats, matrix: Floats, degrees: float) -> Floats:
    """SciPy's, asked in units of the deviations."""
    unit = np.sqrt(np.diag(matrix))
    standard = multivariate_t(mean / unit, matrix / unit / unit[:, None], degrees)
    return np.asarray(standard.logpdf(X / unit) - np.log(unit).sum())


def shaped(matrix: Floats, covariance: str) -> Floats:
    """The covariance matrix nearest in likelihood that has the structure."""
    if covariance == "full":
        return matrix
    if covariance == "diagonal":
        return np.diag(np.diag(matrix))
    if covariance == "spherical":
        return np.trace(matrix) / len(matrix) * np.eye(len(matrix))
    return np.eye(len(matrix))


def scatter(rows: Rows, labels: list[Any]) -> Floats:
    """Σ (x − mean of its class)(x − mean of its class)ᵀ over the rows of these classes."""
    d = rows.X.shape[1]
    total = np.zeros((d, d))
    for label in labels:
        centred = rows.of(label) - rows.of(label).mean(axis=0)
        total += centred.T @ centred
    return total


def maximum_likelihood(case: Case, rows: Rows, label: Any, unbiased: bool = False) -> tuple[Floats, Floats]:
    """Mean and covariance of a class."""
    labels = case.partners(rows.classes, label)
    weight = sum(len(rows.of(partner)) for partner in labels) - unbiased * len(labels)
    return rows.of(label).mean(axis=0), shaped(scatter(rows, labels) / weight, case.covariance)


class Prior(NamedTuple):
    """A proper normal-inverse-Wishart prior: mean, rows the mean counts for, degrees, scale matrix."""

    mean: Floats
    mean_rows: float
    degrees: float
    scale: Floats


def log_evidence(case: Case, prior: Prior, rows: Rows) -> float:
    """log p(rows | labels), means and covariances integrated out (Murphy 2007, section 9)."""
    total, done = 0.0, set()
    for label in rows.classes.tolist():
        if label not in done:
            partners = case.partners(rows.classes, label)
            done.update(partners)
            total += _group_evidence(case, prior, rows, partners)
    return total


def _group_evidence(case: Case, prior: Prior, rows: Rows, labels: list[Any]) -> float:
    d = rows.X.shape[1]
    if case.covariance == "identity":
        return _evidence_of_known_variances(prior, rows, labels)
    sums, means, n = prior.scale.astype(np.float64), 0.0, 0
    squares = scatter(rows, labels)
    for label in labels:
        size, away = len(rows.of(label)), rows.of(label).mean(axis=0) - prior.mean
        squares += prior.mean_rows * size / (prior.mean_rows + size) * np.outer(away, away)
        means += 0.5 * d * np.log(prior.mean_rows / (prior.mean_rows + size))
        n += size
    after = prior.degrees + n
    if case.covariance == "full":
        return float(
            means
            - 0.5 * n * d * np.log(np.pi)
            + multigammaln(after / 2, d)
            - multigammaln(prior.degrees / 2, d)
            + prior.degrees / 2 * np.linalg.slogdet(sums)[1]
            - after / 2 * np.linalg.slogdet(sums + squares)[1]
        )
    if case.covariance == "diagonal":
        columns = (
            gammaln(after / 2)
            - gammaln(prior.degrees / 2)
            + prior.degrees / 2 * np.log(np.diag(sums))
            - after / 2 * np.log(np.diag(sums + squares))
        )
        return float(means - 0.5 * n * d * np.log(np.pi) + columns.sum())
    assert case.covariance == "spherical"
    after = prior.degrees + n * d
    before = np.trace(sums) / d
    return float(
        means
        - 0.5 * n * d * np.log(np.pi)
        + gammaln(after / 2)
        - gammaln(prior.degrees / 2)
        + prior.degrees / 2 * np.log(before)
        - after / 2 * np.log(before + np.trace(squares))
    )


def _evidence_of_known_variances(prior: Prior, rows: Rows, labels: list[Any]) -> float:
    """With every variance 1 the values of a class in a column are jointly normal about the prior mean."""
    total = 0.0
    for label in labels:
        X = rows.of(label)
        together = np.eye(len(X)) + 1.0 / prior.mean_rows
        for column, mean in zip(X.T, prior.mean, strict=True):
            total += multivariate_normal.logpdf(column, np.full(len(X), mean), together)
    return total


def log_predictive(case: Case, prior: Prior, rows: Rows, row: Floats, label: Any) -> float:
    """log p(row | label, rows) as the ratio of the evidences with and without the row."""
    more = Rows(np.vstack([rows.X, row]), np.append(rows.y, label))
    return log_evidence(case, prior, more) - log_evidence(case, prior, rows)
