"""Averages over the prunings of a tree of cells, against the sum over all prunings, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from likely.families.histogram_tree import HistogramTree

Node = tuple[int, int]  # the first cell, and the one after the last


def children(node: Node, n: int, leaves: int) -> tuple[Node, Node] | None:
    """The two parts of a run of cells: cell i is leaf ⌊i·leaves/n⌋, and nodes are halved until cells are apart."""
    places = [i * leaves // n for i in range(*node)]
    for size in (leaves >> level for level in range(leaves.bit_length())):
        blocks = [place // size for place in places]
        if blocks[0] != blocks[-1]:
            return (node[0], node[0] + blocks.count(blocks[0])), (node[0] + blocks.count(blocks[0]), node[1])
    return None


def prunings(node: Node, n: int, leaves: int) -> Iterator[tuple[float, list[Node]]]:
    """All prunings below a node: their prior probability, and the nodes that are split."""
    parts = children(node, n, leaves)
    if parts is None:
        yield 1.0, []
        return
    yield 0.5, []
    for (first, left), (second, right) in (
        (a, b) for a in prunings(parts[0], n, leaves) for b in prunings(parts[1], n, leaves)
    ):
        yield 0.5 * first * second, [node, *left, *right]


def theta_of(counts: Any, parts: tuple[Node, Node]) -> float:
    left, right = (counts[:, slice(*part)].sum() for part in parts)
    return float((left + 0.5) / (left + right + 1.0))


def bayes_factor(counts: Any, parts: tuple[Node, Node]) -> float:
    """By numerical integration over the proportion of each class."""
    theta, factor = theta_of(counts, parts), 1.0
    for row in counts:
        left, right = row[slice(*parts[0])].sum(), row[slice(*parts[1])].sum()
        prior = stats.beta(2.0 * theta, 2.0 * (1.0 - theta))

        def integrand(u: float, prior: Any = prior, left: float = left, right: float = right) -> float:
            p = prior.ppf(u)
            return float((p / theta) ** left * ((1.0 - p) / (1.0 - theta)) ** right)

        factor *= integrate.quad(integrand, 0.0, 1.0, epsabs=0.0, epsrel=1e-11, limit=200)[0]
    return factor


def ratio(counts: Any, k: int, cell: int, split: list[Node], n: int, leaves: int, removed: float = 0.0) -> float:
    """p(cell | class, pruning)/p(cell): posterior means of the proportions along the path, as far as it is split."""
    node, found = (0, n), 1.0
    while node in split:
        parts = children(node, n, leaves)
        assert parts is not None
        theta = theta_of(counts, parts)
        left = parts[0][0] <= cell < parts[0][1]
        part, proportion = (parts[0], theta) if left else (parts[1], 1.0 - theta)
        inside, outside = counts[k, slice(*part)].sum() - removed, counts[k, slice(*node)].sum() - removed
        found *= (inside + 2.0 * proportion) / (outside + 2.0) / proportion
        node = part
    return found


def posterior(counts: Any, n: int, leaves: int) -> list[tuple[float, list[Node]]]:
    every = list(prunings((0, n), n, leaves))
    factors = {node: bayes_factor(counts, children(node, n, leaves) or ((0, 0), (0, 0))) for node in every[-1][1]}
    weights = np.array([prior * prod(factors[node] for node in split) for prior, split in every])
    return [(float(w), split) for w, (_, split) in zip(weights / weights.sum(), every, strict=True)]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_ratios_are_averages_over_all_prunings(n: int) -> None:
    counts = np.random.default_rng(n).integers(0, 6, (3, n)).astype(np.float64)
    counts[1, : n // 2] = 0.0
    leaves = 1 << (n - 1).bit_length()
    weights = posterior(counts, n, leaves)
    tree = HistogramTree.of(counts[None], np.array([n]))
    for removed in (0.0, 1.0):
        found = np.exp(tree.log_ratios(counts[None], removed))[0]
        for k, cell in np.argwhere(counts >= max(removed, 0.0)):
            expected = sum(w * ratio(counts, k, cell, split, n, leaves, removed) for w, split in weights)
            assert found[k, cell] == pytest.approx(expected, rel=1e-9)


def test_the_most_probable_pruning_has_no_other_weights() -> None:
    counts = np.array([[9.0, 8.0, 0.0, 1.0], [0.0, 1.0, 7.0, 9.0]])
    weights = posterior(counts, 4, 4)
    _, best = max(weights, key=lambda each: each[0])
    tree = HistogramTree.of(counts[None], np.array([4]), averaged=False)
    found = np.exp(tree.log_ratios(counts[None]))[0]
    expected = [[ratio(counts, k, cell, best, 4, 4) for cell in range(4)] for k in range(2)]
    assert 0 < len(best) < 3
    assert_allclose(found, expected, rtol=1e-12)


def random_counts(sizes: Any, classes: int = 3, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.7, 5.0, (len(sizes), classes, max(sizes)))
    return np.where(np.arange(max(sizes)) < np.array(sizes)[:, None, None], np.floor(counts), 0.0)


@pytest.mark.parametrize("averaged", [True, False])
def test_probabilities_of_the_cells_add_up_to_one(averaged: bool) -> None:
    sizes = np.array([64, 1, 2, 3, 17, 33, 40, 63])
    counts = random_counts(sizes)
    tree = HistogramTree.of(counts, sizes, averaged)
    proportions, ratios = tree.log_proportions(), tree.log_ratios(counts)
    for j, size in enumerate(sizes):
        assert_allclose(np.exp(proportions[j, :size]).sum(), 1.0, rtol=1e-12)
        assert_allclose(np.exp(proportions[j] + ratios[j])[:, :size].sum(axis=1), 1.0, rtol=1e-12)
        assert_array_equal(ratios[j, :, size:], 0.0)


def test_columns_do_not_depend_on_each_other() -> None:
    sizes = np.array([64, 5, 2, 40])
    counts = random_counts(sizes)
    together = HistogramTree.of(counts, sizes).log_ratios(counts)
    for j, size in enumerate(sizes):
        only = counts[j : j + 1, :, :size]
        alone = HistogramTree.of(only, sizes[j : j + 1]).log_ratios(only)
        assert_allclose(together[j, :, :size], alone[0], rtol=0, atol=1e-12)


def test_classes_with_equal_proportions_have_no_evidence_and_others_have() -> None:
    flat, apart = np.full((1, 2, 16), 25.0), np.full((1, 2, 16), 25.0)
    apart[0, 0, 8:], apart[0, 1, :8] = 0.0, 0.0
    size = np.array([16])
    assert np.abs(HistogramTree.of(flat, size).log_ratios(flat)).max() < 0.01
    found = HistogramTree.of(apart, size).log_ratios(apart)[0]
    assert_allclose(np.exp(found[0, :8]), 2.0, rtol=0.02)
    assert np.all(found[0, 8:] < -4.0)


@pytest.mark.parametrize("kinds", [1, 3, 50])
def test_leave_one_out_removes_the_row_along_its_path(kinds: int) -> None:
    """Tables for few distinct weights and paths for many give the same: other counts with the same θ and γ."""
    rng, sizes = np.random.default_rng(kinds), np.array([13, 2, 6])
    n = 120  # few distinct weights of so many rows are tabulated
    cells, codes = rng.integers(0, sizes[:, None] + 1, (3, n)), rng.integers(0, 4, n)
    weights = rng.choice(rng.uniform(0.1, 1.0, kinds), n) if kinds > 1 else np.ones(n)
    counts = np.zeros((3, 4, 14))
    for j in range(3):
        np.add.at(counts[j], (codes, cells[j]), weights)
        counts[j, :, sizes[j]] = 0.0
    counts = counts[:, :, :13]
    tree = HistogramTree.of(counts, sizes)
    found = tree.left_out(counts, cells, codes, weights)
    for j in range(3):
        for i in range(0, n, 7):
            if cells[j, i] == sizes[j]:
                assert found[j, i] == 0.0
                continue
            rest = counts.copy()
            rest[j, codes[i], cells[j, i]] -= weights[i]
            assert found[j, i] == pytest.approx(tree.log_ratios(rest)[j, codes[i], cells[j, i]], abs=1e-12)


def test_large_and_empty_counts() -> None:
    size = np.array([64])
    for counts in (np.zeros((1, 3, 64)), np.full((1, 1, 64), 3.0), 1e12 * np.ones((1, 2, 64)), np.eye(64)[None]):
        found = HistogramTree.of(counts, size).log_ratios(counts)
        assert np.isfinite(found).all()
    empty = np.zeros((1, 3, 64))
    assert_array_equal(HistogramTree.of(empty, size).log_ratios(empty), 0.0)
