"""Typicality and novelty: how probable rows of at most the density of a row are under its class.

The p-value of a row in class k is P(p(X_o | k) <= p(x_o | k)), with X drawn from the class and o the observed columns.
It has a closed form for one Gaussian block, and is a proportion of simulated rows elsewhere. Typicality is its maximum
over the classes. For a row of the model, the p-value under its class is at most α with a probability of at most α, and
so is the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.special

from likely.data.table import Table
from likely.errors import NoDensityError, listed
from likely.families.base import Conditionals
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.student import StudentConditionals
from likely.model.joint import JointModel
from likely.numerics.block_sizes import KEPT
from likely.numerics.missingness import patterns
from likely.typing import AnyArray, Array, Index

Mask = npt.NDArray[np.bool_]
DrawnDensities = Callable[[Mask], Array]  # from patterns (p, d) of observed columns to log-densities of draws, (p, n)

ALL_DRAWS = 200_000  # rows that are simulated by default, over all classes
CLASS_DRAWS = (1_000, 10_000)  # at least and at most from each class
FEW = 16  # rows for which draws are compared one by one instead of sorted
TIE = 1e-9  # relative difference up to which log-densities are equal: rounding must not make a row less typical
SMALLEST = 1e-300  # p-value below which novelty is extrapolated
LARGEST = 1e300  # log-densities below −LARGEST count as −LARGEST


class Typicality(NamedTuple):
    """Typicality and novelty of rows, (rows,)."""

    p_value: Array
    novelty: Array  # −log10 of the p-value


def typicality(model: JointModel, table: Table, n_samples: int | None, seed: int) -> Typicality:
    """The typicality and novelty of rows; simulated rows depend on the seed alone, not on the table."""
    if n_samples is None:
        n_samples = int(np.clip(ALL_DRAWS // len(model.classes), *CLASS_DRAWS))
    for block in model.blocks:
        if block.conditionals.given is not None:
            columns = listed([model.names[j] for j in block.index])
            raise NoDensityError(
                f"Column{'s' if len(block.index) > 1 else ''} {columns}: {block.conditionals.given} has no density, so "
                f"rows have no novelty score. {block.conditionals.remedy}"
            )
    parts = [block.reader(table)(0, table.rows) for block in model.blocks]
    parts = [rows.toarray() if scipy.sparse.issparse(rows) else rows for rows in parts]
    only = model.blocks[0].conditionals
    labels = np.flatnonzero(model.log_prior > -np.inf)
    if len(model.blocks) == 1 and isinstance(only, GaussianConditionals | StudentConditionals):
        return _closed_form(only, np.asarray(parts[0], dtype=np.float64), labels)
    return _simulated(model, table, parts, labels, n_samples, seed)


# One Gaussian block.


def _closed_form(fitted: GaussianConditionals | StudentConditionals, rows: Array, labels: Index) -> Typicality:
    """By squared Mahalanobis distances in the observed columns: χ², or F for the Student t of a predictive."""
    parts = fitted.observed(rows)
    if parts is not None:
        squared, count = parts[0], parts[2]
    else:  # singular covariances: one pattern of missing values after another
        squared, count = np.zeros((fitted.n_classes, len(rows))), np.zeros(len(rows))
        for index, observed in patterns(rows):
            part = fitted.marginal(observed)
            count[index] = part.covariance.rank
            some = rows[np.ix_(index, observed)]
            squared[:, index] = [(part.white(some, k) ** 2).sum(axis=1) for k in range(fitted.n_classes)]
    squared, d = squared[labels], np.maximum(count, 1.0)
    if isinstance(fitted, StudentConditionals):
        nu = fitted.degrees[labels, None]
        p_value = scipy.special.fdtrc(d, nu, squared / d)
        with np.errstate(divide="ignore"):
            beyond = 0.5 * nu * (np.log(squared) - _log_last(nu, d))
    else:
        p_value = scipy.special.chdtrc(d, squared)
        beyond = 0.5 * (squared - scipy.special.chdtri(d, SMALLEST))
    with np.errstate(divide="ignore"):
        novelty = -np.log10(np.maximum(p_value, SMALLEST)) + np.maximum(beyond, 0.0) / np.log(10.0)
    return Typicality(np.where(count > 0.0, p_value.max(axis=0), 1.0), np.where(count > 0.0, novelty.min(axis=0), 0.0))


def _log_last(nu: Array, d: Array) -> Array:
    """The logarithm of the squared distance beyond which a Student t in d columns has a probability of `SMALLEST`.

    x = 1/(1 + squared/ν) has a beta distribution: P(X <= x) = x^a / (a·B(a, b))·(1 + O(b·x)), a = ν/2, b = d/2.
    """
    a, b = 0.5 * nu, 0.5 * d
    log_x = (np.log(SMALLEST) + np.log(a) + scipy.special.betaln(a, b)) / a
    small = log_x + np.log1p(b) < np.log(1e-8)
    log_x = np.where(small, log_x, np.log(scipy.special.betaincinv(a, b, SMALLEST)))
    return np.asarray(np.log(nu) + np.log1p(-np.exp(log_x)) - log_x)


# Simulation.


def _simulated(
    model: JointModel, table: Table, parts: list[AnyArray], labels: Index, n_samples: int, seed: int
) -> Typicality:
    """By rows drawn from every class: proportions of them with at most the density of a row."""
    missing = np.hstack([_missing(block.conditionals, rows) for block, rows in zip(model.blocks, parts, strict=True)])
    density = model.log_joint(table)[:, labels] - model.log_prior[labels]
    density = np.maximum(density, -LARGEST)
    density += TIE * (1.0 + np.abs(density))
    groups = [index for index, _ in patterns(np.where(missing, np.nan, 0.0))]
    present = np.array([~missing[index[0]] for index in groups])
    found = Typicality(np.zeros(len(missing)), np.full(len(missing), np.inf))
    step = max(KEPT // n_samples, 1)
    for place, k in enumerate(labels.tolist()):
        for start in range(0, len(groups), step):
            rng = np.random.default_rng([seed, k])  # the same draws for all patterns
            drawn = _densities(model, k, n_samples, rng, present[start : start + step])
            for logs, index in zip(drawn, groups[start : start + step], strict=True):
                _update(found, index, density[index, place], logs)
    empty, impossible = missing.all(axis=1), density.max(axis=1) < -0.5 * LARGEST
    novelty = np.where(impossible, np.inf, found.novelty)
    return Typicality(np.where(empty, 1.0, found.p_value), np.where(empty, 0.0, novelty))


def _update(found: Typicality, index: Index, density: Array, drawn: Array) -> None:
    """Typicality with one class more, given the log-densities of draws from it.

    A row counts as one of the draws: its p-value is never 0. Below all draws, novelty assumes that the p-value falls as
    the density does.
    """
    if len(density) < FEW:
        count = (drawn <= density[:, None]).sum(axis=1)
    else:
        count = np.searchsorted(np.sort(drawn), density, side="right")
    p_value = (count + 1.0) / (len(drawn) + 1.0)
    novelty = -np.log10(p_value) + np.maximum(drawn.min() - density, 0.0) / np.log(10.0)
    found.p_value[index] = np.maximum(found.p_value[index], p_value)
    found.novelty[index] = np.minimum(found.novelty[index], novelty)


def _missing(conditionals: Conditionals, rows: AnyArray) -> Mask:
    values = rows[:, : conditionals.dimension]
    return np.asarray(values < 0 if conditionals.vocabularies is not None else np.isnan(values))


def _densities(model: JointModel, label: int, n: int, rng: np.random.Generator, present: Mask) -> Array:
    """Log-densities of n draws from a class in the observed columns, (patterns, n): the sum over the blocks.

    As many rows are drawn at a time as fit into `KEPT` numbers.
    """
    ends = np.cumsum([block.conditionals.dimension for block in model.blocks])
    patterns_of = [np.unique(part, axis=0, return_inverse=True) for part in np.split(present, ends[:-1], axis=1)]
    total, step = np.zeros((len(present), n)), max(KEPT // int(ends[-1]), 1)
    for start in range(0, n, step):
        rows = min(step, n - start)
        for block, (mine, place) in zip(model.blocks, patterns_of, strict=True):
            total[:, start : start + rows] += drawn_densities(block.conditionals, label, rows, rng)(mine)[place.ravel()]
    return total


def drawn_densities(fitted: Conditionals, label: int, n: int, rng: np.random.Generator) -> DrawnDensities:
    """Log-densities of n rows drawn from a class, as a function of the columns that are observed."""
    if isinstance(fitted, GaussianConditionals | StudentConditionals) and fitted.has_full_rank:
        return _elliptical(fitted, label, n, rng)
    rows = fitted.sample(label, n, rng)
    codes = fitted.vocabularies is not None
    terms = fitted.class_terms(rows.astype(np.intp) if codes else rows, label)
    if terms is not None:
        return lambda present: np.asarray(present.astype(np.float64) @ np.maximum(terms, -LARGEST).T)

    def masked(present: Mask) -> Array:
        found = np.empty((len(present), n))
        for i, observed in enumerate(present):
            some = np.where(observed, rows, -1).astype(np.intp) if codes else np.where(observed, rows, np.nan)
            found[i] = fitted.class_log_density(some, np.full(n, label))
        return found

    return masked


def _elliptical(
    fitted: GaussianConditionals | StudentConditionals, label: int, n: int, rng: np.random.Generator
) -> DrawnDensities:
    """Of a Gaussian or Student t: the squared distance in m observed columns is a sum of m squares of white noise."""
    owner = fitted.covariance.owner
    noise = rng.standard_normal((n, len(owner)))
    squares = np.hstack([np.zeros((n, 1)), np.cumsum(noise * noise, axis=1)])
    student = isinstance(fitted, StudentConditionals)
    nu = float(fitted.degrees[label]) if isinstance(fitted, StudentConditionals) else np.inf
    scale = rng.chisquare(nu, size=n) if student else np.ones(n)
    mean = fitted.class_means()[label]

    def densities(present: Mask) -> Array:
        count = present[:, owner].sum(axis=1)
        peak = fitted.class_log_density(np.where(present, mean, np.nan), np.full(len(present), label))
        distance = squares[:, count].T
        if student:
            return np.asarray(peak[:, None] - 0.5 * (nu + count)[:, None] * np.log1p(distance / scale))
        return np.asarray(peak[:, None] - 0.5 * distance)

    return densities
