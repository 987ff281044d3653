"""The expected log-evidence of each column for the class, by which summaries rank the columns."""

from __future__ import annotations

import numpy as np

from likely.errors import NoDensityError
from likely.model.block import Block
from likely.model.joint import JointModel
from likely.numerics.special import LARGEST_ODDS
from likely.typing import AnyArray, Array

ROWS = 1000  # drawn from each class, at most
TERMS = 4 * 10**6  # of drawn rows, classes and columns, at most
FEWEST = 500  # rows of all classes together, where one of each class would be too many
TERMS_IN_MEMORY = 2**20


def expected_evidence(model: JointModel, seed: int = 0) -> Array:
    """The mutual information of each column and the class, in nats: E log p(x_j | class) / Σ_k π_k·p(x_j | k).

    The expectation is a mean over rows drawn from the model: fewer of each class where there are many classes, so that
    the cost is proportional to the number of classes. NaN where a block cannot be sampled.
    """
    found, rng = np.full(len(model.names), np.nan), np.random.default_rng(seed)
    prior = np.exp(model.log_prior)
    classes, weights = _drawn_classes(prior, min(ROWS, TERMS // (len(model.names) * len(prior) ** 2)), rng)
    for block in model.blocks:
        try:
            found[block.index] = _block_evidence(block, prior, classes, weights, rng)
        except NoDensityError:
            continue
    return found


def _drawn_classes(prior: Array, each: int, rng: np.random.Generator) -> tuple[AnyArray, Array]:
    """The class of every row to draw, sorted, and the weight of the row.

    Every possible class has `each` rows, whose weights sum to its prior. Where that would be none, the classes are
    drawn from the prior, with equal weights.
    """
    if each > 0:
        possible = np.flatnonzero(prior)
        return np.repeat(possible, each), np.repeat(prior[possible] / each, each)
    return np.sort(rng.choice(len(prior), size=FEWEST, p=prior / prior.sum())), np.full(FEWEST, 1.0 / FEWEST)


def _block_evidence(block: Block, prior: Array, classes: AnyArray, weights: Array, rng: np.random.Generator) -> Array:
    """The expected log-evidence of the columns of one block."""
    conditionals = block.conditionals
    labels, counts = np.unique(classes, return_counts=True)
    pairs = zip(labels.tolist(), counts.tolist(), strict=True)
    drawn = np.concatenate([conditionals.sample(k, count, rng) for k, count in pairs])
    if conditionals.vocabularies is not None:
        drawn = drawn.astype(np.intp)
    if block.extra is not None:
        drawn = np.column_stack([drawn, np.ones((len(drawn), len(block.extra)))])
    size = max(TERMS_IN_MEMORY // (len(prior) * conditionals.dimension), 1)
    total = np.zeros(conditionals.dimension)
    for start in range(0, len(drawn), size):
        part = slice(start, start + size)
        terms = conditionals.column_log_densities(drawn[part])
        observed = terms[np.arange(len(terms)), classes[part]]
        odds = np.minimum(terms - observed[:, None], LARGEST_ODDS)
        total -= weights[part] @ np.log(np.einsum("nkd,k->nd", np.exp(odds), prior))
    return total
