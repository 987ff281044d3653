"""Weights of evidence terms, against general-purpose optimisers and the optimality conditions."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.optimize
from scipy.special import log_softmax, softmax

from likely.evidence import weights as module
from likely.evidence.weights import EvidenceProblem, EvidenceRows, Ranges, Solver, Weights, centre, choose
from likely.typing import AnyArray, Array


def solve(data: EvidenceProblem, within: float, between: float) -> Weights:
    return Solver(data).solve(within, between)


def evidence(
    terms: int, classes: int, n: int, views: int = 3, seed: int = 0, signal: float = 1.0
) -> tuple[Array, AnyArray, AnyArray]:
    """Terms that favour the class of a row, by amounts that differ between the terms; views; codes."""
    draw = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(classes), draw.integers(classes, size=n - classes)])
    out = draw.normal(scale=1.5, size=(terms, classes, n)) + 2 * draw.normal(size=(classes, n))
    out[:, codes, np.arange(n)] += signal * draw.uniform(-0.5, 1.5, size=(terms, 1))
    return out, np.arange(terms) * views // terms, codes


def problem(terms: Array, views: AnyArray, codes: AnyArray, weights: Array | None = None) -> EvidenceProblem:
    weights = np.ones(len(codes)) if weights is None else weights
    totals = np.bincount(codes, weights, minlength=terms.shape[1]).astype(np.float64)
    return EvidenceProblem(terms, codes, weights, views, totals)


def objective(x: Array, data: EvidenceProblem, within: float, between: float) -> float:
    """The objective as it is written, term by term."""
    terms, _, n = data.terms.shape
    w, b = x[:terms], x[terms:]
    value = 0.0
    for i in range(n):
        scores = b + sum(w[j] * data.terms[j, :, i] for j in range(terms))
        value -= data.weights[i] * log_softmax(scores)[data.codes[i]]
    views = np.unique(data.views)
    for view in views:
        of_view = w[data.views == view]
        target = 0.7 / (len(views) * np.sqrt(len(of_view)))
        value += within * np.sum((of_view - of_view.mean()) ** 2)
        value += between * len(of_view) * (of_view.mean() - target) ** 2
    return float(value + 0.1 * np.sum((b - np.log(data.class_weights / data.class_weights.sum())) ** 2))


def gradient(x: Array, data: EvidenceProblem, within: float, between: float) -> Array:
    return scipy.optimize.approx_fprime(x, objective, 1e-6, data, within, between)


@pytest.mark.parametrize(("within", "between"), [(10.0, 0.5), (1.0, 5.0), (1000.0, 50.0)])
@pytest.mark.parametrize("many", [0, 300])
def test_the_minimum_is_that_of_a_general_optimiser(
    within: float, between: float, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MANY_TERMS", many)  # both methods
    terms, views, codes = evidence(7, 3, 25)
    data = problem(terms, views, codes, np.random.default_rng(1).uniform(0.2, 3.0, size=25))
    found = solve(data, within, between)
    x = np.concatenate([found.w, found.b])
    reference = scipy.optimize.minimize(
        objective,
        x0=np.full(10, 0.1),
        args=(data, within, between),
        method="SLSQP",
        bounds=[(0, None)] * 7 + [(None, None)] * 3,
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert np.min(found.w) >= 0
    assert objective(x, data, within, between) <= reference.fun + 1e-8
    np.testing.assert_allclose(x, reference.x, atol=2e-4)
    slopes = gradient(x, data, within, between)
    np.testing.assert_allclose(slopes[:7][found.w > 0], 0.0, atol=2e-3)  # of the finite differences
    assert np.all(slopes[:7][found.w == 0] > -2e-3)
    np.testing.assert_allclose(slopes[7:], 0.0, atol=2e-3)


def test_some_weights_are_exactly_zero_and_warm_starts_have_the_same_solution() -> None:
    terms, views, codes = evidence(20, 3, 200)
    data = problem(terms, views, codes)
    found = solve(data, 1.0, 0.5)
    assert 0 < np.count_nonzero(found.w == 0) < 20
    solver = Solver(data)
    solver.solve(1000.0, 50.0)
    again = solver.solve(1.0, 0.5)
    np.testing.assert_allclose(again.w, found.w, atol=1e-8)
    np.testing.assert_allclose(again.b, found.b, atol=1e-7)


def test_both_methods_agree_on_terms_of_very_different_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    terms, views, codes = evidence(30, 4, 300)
    terms *= np.exp(np.random.default_rng(2).normal(scale=2.0, size=(30, 1, 300)))
    data = problem(terms, views, codes)
    newton = solve(data, 10.0, 0.5)
    monkeypatch.setattr(module, "MANY_TERMS", 0)
    limited = solve(data, 10.0, 0.5)
    np.testing.assert_allclose(newton.w, limited.w, atol=1e-6)
    np.testing.assert_allclose(newton.b, limited.b, atol=1e-5)


def test_a_number_that_all_classes_share_has_no_effect() -> None:
    terms, views, codes = evidence(6, 3, 50)
    shifted = terms + 100 * np.random.default_rng(3).normal(size=(6, 1, 50))
    one, other = solve(problem(terms, views, codes), 10.0, 5.0), solve(problem(shifted, views, codes), 10.0, 5.0)
    np.testing.assert_allclose(one.w, other.w, atol=1e-8)
    np.testing.assert_allclose(one.b, other.b, atol=1e-8)


def test_weights_are_repeats_and_the_order_of_rows_does_not_matter() -> None:
    terms, views, codes = evidence(8, 3, 60)
    copies = np.random.default_rng(4).integers(1, 4, size=60)
    rows = np.random.default_rng(5).permutation(np.repeat(np.arange(60), copies))
    weighted = solve(problem(terms, views, codes, copies.astype(float)), 10.0, 0.5)
    repeated = solve(problem(terms[:, :, rows], views, codes[rows]), 10.0, 0.5)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-9)
    np.testing.assert_allclose(weighted.b, repeated.b, atol=1e-8)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_separable_classes_have_finite_weights(size: float) -> None:
    codes = np.repeat([0, 1], 20)
    terms = np.zeros((4, 2, 40))
    terms[:, codes, np.arange(40)] = size
    found = solve(problem(terms, np.array([0, 0, 1, 1]), codes), 10.0, 0.5)
    assert np.all(np.isfinite(found.w))
    assert np.all(found.w > 0)
    assert np.all(found.w < 2)
    np.testing.assert_allclose(found.w, found.w[0])


def test_a_single_class_has_no_weights() -> None:
    found = solve(problem(np.zeros((3, 1, 5)), np.zeros(3, dtype=int), np.zeros(5, dtype=int)), 10.0, 0.5)
    np.testing.assert_array_equal(found.w, 0.0)
    np.testing.assert_array_equal(found.b, 0.0)


def test_terms_of_zeros_have_the_weight_that_the_penalty_prefers() -> None:
    codes = np.array([0, 0, 0, 1])
    found = solve(problem(np.zeros((6, 2, 4)), np.array([0, 0, 0, 0, 1, 1]), codes), 10.0, 0.5)
    np.testing.assert_allclose(found.w, [0.175] * 4 + [0.35 / np.sqrt(2)] * 2)  # 0.7 / (2 √J_v)
    np.testing.assert_allclose(found.b, np.log([0.75, 0.25]))


def test_without_terms_the_class_proportions_are_fitted() -> None:
    codes = np.array([0, 0, 0, 1])
    found = solve(problem(np.zeros((0, 2, 4)), np.zeros(0, dtype=int), codes), 10.0, 0.5)
    assert found.w.shape == (0,)
    np.testing.assert_allclose(found.b, np.log([0.75, 0.25]))


def test_a_class_without_rows_has_a_finite_intercept() -> None:
    terms, views, codes = evidence(4, 2, 30)
    data = EvidenceProblem(
        np.concatenate([terms, terms[:, :1]], axis=1), codes, np.ones(30), views, np.array([*np.bincount(codes), 0.0])
    )
    found = solve(data, 10.0, 0.5)
    assert np.all(np.isfinite(found.b))
    assert found.b[2] < found.b[:2].min()


def halves(terms: Array, views: AnyArray, codes: AnyArray) -> list[tuple[EvidenceProblem, EvidenceRows]]:
    n = len(codes)
    out = []
    for fold in range(2):
        held, kept = np.arange(n) % 2 == fold, np.arange(n) % 2 != fold
        rows = EvidenceRows(terms[:, :, held], codes[held], np.ones(held.sum()))
        out.append((problem(terms[:, :, kept], views, codes[kept]), rows))
    return out


def test_the_pool_averages_solutions_by_held_out_loss() -> None:
    terms, views, codes = evidence(10, 3, 90, signal=0.3)
    pool = choose(problem(terms, views, codes), halves(terms, views, codes))
    assert len(pool.penalties) == 12
    assert len(pool.losses) == len(pool.mixing) == 13
    losses, w, b = np.zeros(13), np.zeros(10), np.zeros(3)
    for data, held in halves(terms, views, codes):
        proportions = Weights(np.zeros(10), np.log(data.class_weights / data.class_weights.sum()))
        solutions = [solve(data, *penalty) for penalty in pool.penalties] + [proportions]
        for i, found in enumerate(solutions):
            scores = np.einsum("j,jkn->nk", found.w, held.terms) + found.b
            losses[i] -= log_softmax(scores, axis=1)[np.arange(len(held.codes)), held.codes].sum()
    np.testing.assert_allclose(pool.losses, losses, rtol=1e-7)
    mixing = np.exp(-losses) / np.exp(-losses).sum()
    np.testing.assert_allclose(pool.mixing, mixing, atol=1e-6)
    assert 0.001 < mixing.max() < 0.999
    data = problem(terms, views, codes)
    solutions = [solve(data, *penalty) for penalty in pool.penalties]
    w = np.sum([weight * found.w for weight, found in zip(mixing, solutions, strict=False)], axis=0)
    b = np.sum([weight * found.b for weight, found in zip(mixing, solutions, strict=False)], axis=0)
    np.testing.assert_allclose(pool.weights.w, pool.exponent * w, atol=1e-6)
    np.testing.assert_allclose(pool.weights.b, b + mixing[-1] * np.log(np.bincount(codes) / 90), atol=1e-6)


def test_the_exponent_has_the_least_penalised_loss_on_held_out_rows() -> None:
    terms, views, codes = evidence(10, 3, 90, signal=0.3)
    for overstated in (1.0, 3.0):  # leave-one-out evidence that is larger than that of held-out rows
        nested = [
            (problem(data.terms, views, data.codes), EvidenceRows(held.terms / overstated, held.codes, held.weights))
            for data, held in halves(terms, views, codes)
        ]
        pool = choose(problem(terms, views, codes), nested)
        losses = []
        for exponent in pool.exponent * np.array([0.98, 1.0, 1.02]):
            total = 5.0 * np.log(exponent) ** 2
            for data, held in nested:
                solutions = [solve(data, *penalty) for penalty in pool.penalties]
                solutions.append(Weights(np.zeros(10), np.log(data.class_weights / data.class_weights.sum())))
                w = np.sum([m * found.w for m, found in zip(pool.mixing, solutions, strict=True)], axis=0)
                b = np.sum([m * found.b for m, found in zip(pool.mixing, solutions, strict=True)], axis=0)
                scores = exponent * np.einsum("j,jkn->nk", w, held.terms) + b
                total -= log_softmax(scores, axis=1)[np.arange(len(held.codes)), held.codes].sum()
            losses.append(total)
        assert np.argmin(losses) == 1


def test_the_exponent_is_where_the_slope_of_the_loss_is_zero() -> None:
    """To all digits: values of the loss near its minimum differ by less than their rounding."""
    for seed in range(5):
        terms, views, codes = evidence(10, 3, 3000, seed=seed)
        data, held = problem(terms, views, codes), EvidenceRows(terms / 2.0, codes, np.ones(3000))
        weights = solve(data, 10.0, 5.0)
        t = module._exponent([(weights, held)])
        scores = np.einsum("j,jkn->kn", t * weights.w, held.terms)
        p = softmax(scores + weights.b[:, None], axis=0)
        deviation = scores - (p * scores).sum(axis=0)
        slope = 10.0 * np.log(t) - deviation[codes, np.arange(3000)].sum()
        assert abs(slope) < 1e-10 * (p * deviation**2).sum()


def test_on_noise_the_class_proportions_have_most_of_the_pool() -> None:
    draw = np.random.default_rng(0)
    terms, codes = 3 * draw.normal(size=(50, 2, 200)), np.repeat([0, 1], 100)
    views = np.arange(50) // 10
    pool = choose(problem(terms, views, codes), halves(terms, views, codes))
    assert pool.mixing[-1] > 0.5
    assert pool.weights.w.max() < 0.02


def test_many_rows_have_fewer_penalties() -> None:
    terms, views, codes = evidence(3, 2, 100)
    full = problem(terms, views, codes, np.full(100, 15.0))
    assert [between for _, between in choose(full, []).penalties] == [5.0, 0.5] * 4


def test_new_terms_are_centred_and_clipped_to_the_ranges_of_training() -> None:
    terms, _, _ = evidence(4, 3, 30)
    centred = centre(terms.copy())
    np.testing.assert_allclose(centred.sum(axis=1), 0.0, atol=1e-12)
    ranges = Ranges.of(centred)
    np.testing.assert_allclose(ranges.clip(terms + 7.0), centred, atol=1e-12)
    new = np.zeros((4, 3, 1))
    new[:, 0] = 1e9
    clipped = ranges.clip(new)[:, :, 0]
    np.testing.assert_allclose(clipped[:, 0], centred[:, 0].max(axis=1))
    np.testing.assert_allclose(clipped[:, 1:], centred[:, 1:].min(axis=2))


@pytest.mark.parametrize("exchanges", [0, 10])
@pytest.mark.parametrize("seed", range(5))
def test_the_constrained_step_is_that_of_non_negative_least_squares(
    seed: int, exchanges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXCHANGES", exchanges)  # with and without the guess
    rng = np.random.default_rng(seed)
    design, target = rng.normal(size=(40, 25)), rng.normal(size=40)
    expected, _ = scipy.optimize.nnls(design, target)
    assert 0 < np.count_nonzero(expected) < 25
    for guess in (np.zeros(25, dtype=bool), np.ones(25, dtype=bool), rng.random(25) < 0.5):
        found = module._non_negative(design.T @ design, design.T @ target, guess)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_array_equal(found > 0.0, expected > 0.0)


def test_one_nested_problem_is_in_memory_at_a_time() -> None:
    terms, views, codes = evidence(10, 3, 90, signal=0.3)
    alive: list[weakref.ref[Array]] = []

    def generated() -> Iterator[tuple[EvidenceProblem, EvidenceRows]]:
        for i in range(2):
            assert all(each() is None for each in alive)
            yield made(i)

    def made(i: int) -> tuple[EvidenceProblem, EvidenceRows]:
        data, rows = halves(terms, views, codes)[i]
        alive.append(weakref.ref(data.terms))
        return data, rows

    pool = choose(problem(terms, views, codes), generated())
    assert len(alive) == 2
    assert pool.held_out == 90.0
    np.testing.assert_array_equal(
        pool.weights.w, choose(problem(terms, views, codes), halves(terms, views, codes)).weights.w
    )
