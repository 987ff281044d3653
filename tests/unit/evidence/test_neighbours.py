"""The view of nearest rows, against a literal implementation, refits and permutations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely.data.row_hash import row_hashes
from likely.data.validation import read_table
from likely.evidence import neighbours as module
from likely.evidence.encoding import Encoding
from likely.evidence.nearest import nearest, search_matrix
from likely.evidence.neighbours import FittedNeighbours, Kernel, NeighboursView
from likely.evidence.rows import TrainingRows
from likely.typing import AnyArray, Array


def encoded(frame: Any, labels: Any, weights: Any = None) -> tuple[TrainingRows, Encoding]:
    """Distinct rows with added weights in the order of their keys, and their encoding."""
    table = read_table(frame)
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    weight = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    keys, first, place = np.unique(row_hashes(table, codes), return_index=True, return_inverse=True)
    merged = np.bincount(place, weight).astype(np.float64)
    encoding = Encoding.of(table, weight, range(table.width))
    return TrainingRows(
        encoding.encode(table.take(first)), classes, codes[first], merged, keys, first, np.bincount(place)
    ), encoding


def mixed(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, AnyArray]:
    """Numbers and categories, some of them missing, whose distribution differs between three classes."""
    draw = np.random.default_rng(seed)
    labels = draw.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    shift = np.unique(labels, return_inverse=True)[1]
    frame = pd.DataFrame(
        {
            "first": draw.normal(size=n) + shift,
            "second": np.exp(draw.normal(size=n) - shift),
            "word": np.where(draw.random(n) < 0.6, labels, "other"),
            "side": draw.choice(["left", "right"], n),
        }
    )
    return frame.mask(draw.random(frame.shape) < 0.1), labels


def fit(rows: TrainingRows, encoding: Encoding, seed: int = 0) -> FittedNeighbours:
    view = NeighboursView().fit(rows, encoding, seed)
    assert view is not None
    return view


def points_of(rows: TrainingRows, encoding: Encoding, numbers: Array) -> Array:
    """Coordinates, row by row: numbers, and for categories indicators minus proportions."""
    columns = [np.where(np.isnan(numbers[:, j]), 0.0, numbers[:, j]) for j in range(numbers.shape[1])]
    for j, words in zip(encoding.categorical, encoding.vocabularies, strict=True):
        codes = rows.rows.cells[:, j]
        observed = codes < len(words)
        f = np.array([rows.weights[codes == c].sum() / rows.weights[observed].sum() for c in range(len(words))])
        columns += [np.where(observed, (codes == c) - f[c], 0.0) for c in range(len(words))]
    return np.stack(columns, axis=1)


def literal(x: Array, X: Array, codes: AnyArray, weights: Array, classes: int, kernel: Kernel) -> Array:
    """The evidence of one point for all classes, where all training rows are reference rows."""
    distance = np.sum((X - x) ** 2, axis=1)
    limit = np.sort(distance)[min(48, len(distance)) - 1]
    near = distance <= limit + 1e-9
    total = np.array([weights[codes == k].sum() for k in range(classes)])
    proportions = (total + 0.5) / (total.sum() + 0.5 * classes)
    decay = np.exp(-kernel.sharpness * (distance - distance.min()) / kernel.bandwidth)
    sums = np.array([(weights * decay)[near & (codes == k)].sum() for k in range(classes)])
    return np.asarray(np.log(sums + kernel.smoothing * proportions) - np.log(proportions))


def test_terms_are_those_of_the_formula() -> None:
    frame, labels = mixed()
    rows, encoding = encoded(frame, labels, np.random.default_rng(1).integers(1, 4, len(frame)))
    view = fit(rows, encoding)
    new, _ = mixed(20, seed=9)
    new_rows = encoding.encode(read_table(new))
    terms = view.terms(new_rows)
    assert terms.shape == (2, 3, 20)
    both = TrainingRows(  # all rows, so that the same literal coordinates serve both
        encoding.encode(read_table(pd.concat([frame.iloc[rows.positions], new]))),
        rows.classes,
        np.concatenate([rows.codes, np.zeros(20, dtype=np.intp)]),
        np.concatenate([rows.weights, np.zeros(20)]),
        np.zeros(len(rows) + 20, dtype=np.uint64),
        np.zeros(len(rows) + 20, dtype=np.intp),
        np.ones(len(rows) + 20, dtype=np.intp),
    )
    for term, numbers in enumerate([both.rows.numbers, both.rows.normal_scores]):
        points = points_of(both, encoding, numbers)
        expected = [
            literal(x, points[: len(rows)], rows.codes, rows.weights, 3, view.kernels[term])
            for x in points[len(rows) :]
        ]
        assert_allclose(terms[term].T, expected, atol=2e-4)  # coordinates are single precision


def test_leave_one_out_is_the_removal_of_one_copy() -> None:
    frame, labels = mixed(60)
    rows, encoding = encoded(frame, labels, np.random.default_rng(1).choice([0.5, 1.0, 3.0], 60))
    view = fit(rows, encoding)
    left_out = view.left_out(rows)
    for i in range(len(rows)):
        one = rows.take(np.array([i]))
        without = view.removed(replace(one, weights=one.held_out))
        assert_allclose(left_out[:, :, [i]], without.terms(one.rows), atol=1e-9)


def test_leave_one_out_of_a_sample_is_the_removal_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REFERENCES", 60)
    monkeypatch.setattr(module, "FEWER_REFERENCES", 60)
    frame, labels = mixed(300)
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    counts = np.bincount(view.references.codes)
    assert 60 <= len(view.references.codes) <= 80
    assert counts[2] == 20  # a tenth of the rows, but at least 20
    left_out = view.left_out(rows)
    for i in range(0, len(rows), 5):
        one = rows.take(np.array([i]))
        without = view.removed(replace(one, weights=one.held_out))
        assert_allclose(left_out[:, :, [i]], without.terms(one.rows), atol=1e-9)


def test_rare_classes_with_more_reference_rows_have_honest_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """On noise evidence is near 0 in the mean, however the classes are sampled."""
    monkeypatch.setattr(module, "MOST_REFERENCES", 200)
    monkeypatch.setattr(module, "FEWER_REFERENCES", 200)
    draw = np.random.default_rng(0)
    labels = np.repeat([0, 1], [3940, 60])
    rows, encoding = encoded(draw.normal(size=(4000, 2)), labels)
    view = fit(rows, encoding)
    assert np.bincount(view.references.codes).tolist() == [197, 20]
    view = replace(view, kernels=(Kernel(2.0, 0.5, 2.0),) * 2)
    evidence = view.terms(encoding.encode(read_table(draw.normal(size=(500, 2)))))
    ratio = np.exp(evidence[0, 1] - evidence[0, 0])
    assert 0.7 < ratio.mean() < 1.3


def test_bandwidth_sharpness_and_smoothing_are_those_of_a_search() -> None:
    frame, labels = mixed(80)
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    for term, numbers in enumerate([rows.rows.numbers, rows.rows.normal_scores]):
        points = points_of(rows, encoding, numbers)
        distances = np.sum((points[:, None] - points) ** 2, axis=2)
        np.fill_diagonal(distances, np.inf)
        assert_allclose(view.kernels[term].bandwidth, np.median(np.sort(distances, axis=1)[:, 7]), rtol=1e-5)
        losses = {}
        for sharpness in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
            for smoothing in (0.1, 0.5, 2.0):
                kernel = Kernel(view.kernels[term].bandwidth, sharpness, smoothing)
                loss = 0.0
                for i in range(len(rows)):
                    kept = np.arange(len(rows)) != i
                    e = literal(points[i], points[kept], rows.codes[kept], rows.weights[kept], 3, kernel)
                    totals = np.bincount(rows.codes[kept], minlength=3) + 0.5
                    joint = e + np.log(totals / totals.sum())
                    loss -= joint[rows.codes[i]] - np.logaddexp.reduce(joint)
                losses[kernel] = loss
        assert view.kernels[term] == min(losses, key=lambda kernel: losses[kernel])


def test_repeated_rows_are_weights_and_the_order_of_rows_does_not_matter() -> None:
    frame, labels = mixed(90)
    copies = np.random.default_rng(2).integers(1, 4, 90)
    repeated = np.random.default_rng(3).permutation(np.repeat(np.arange(90), copies))
    weighted, encoding = encoded(frame, labels, copies)
    rows, other = encoded(frame.iloc[repeated], labels[repeated])
    one, two = fit(weighted, encoding), fit(rows, other)
    assert one.kernels == two.kernels
    assert_allclose(one.left_out(weighted), two.left_out(rows), atol=1e-9)


def test_rows_are_evaluated_alike_alone_and_together() -> None:
    draw = np.random.default_rng(0)
    words = pd.DataFrame(draw.choice(list("abc"), (400, 6)), columns=list("uvwxyz"))  # many equal distances
    rows, encoding = encoded(words, draw.integers(2, size=400))
    view = fit(rows, encoding)
    assert view.term_names == ("categories",)
    together = view.terms(rows.rows)
    for i in range(0, len(rows), 20):
        assert_allclose(view.terms(rows.rows.take(np.array([i]))), together[:, :, [i]], atol=1e-9)


@pytest.mark.parametrize("cap", [50, 1000])
def test_samples_of_parts_merge_to_the_sample_of_all(cap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REFERENCES", cap)
    monkeypatch.setattr(module, "FEWER_REFERENCES", cap)
    frame, labels = mixed(400)
    rows, encoding = encoded(frame, labels)
    draw = np.random.default_rng(0).permutation(len(rows))
    first, second, third = (rows.take(np.sort(part)) for part in np.array_split(draw, 3))
    view = fit(first, encoding)
    in_steps = view + view.counted(third) + view.counted(second)
    at_once = view + view.counted(rows.take(np.sort(draw[len(first) :])))
    assert_array_equal(in_steps.references.ranks, at_once.references.ranks)
    assert_array_equal(in_steps.references.positions, at_once.references.positions)
    assert_array_equal(in_steps.references.weights, at_once.references.weights)
    assert_allclose(in_steps.references.class_weights, rows.class_weights)
    assert_allclose(in_steps.left_out(rows), at_once.left_out(rows))
    smallest = [
        np.sort(in_steps._ranks(rows)[rows.codes == k])[: view.references.quotas[k]] for k in range(len(rows.classes))
    ]
    assert_array_equal(np.sort(np.concatenate(smallest)), in_steps.references.ranks)


def test_the_sum_of_views_is_the_view_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REFERENCES", 60)
    monkeypatch.setattr(module, "FEWER_REFERENCES", 60)
    frame, labels = mixed(300)
    rows, encoding = encoded(frame, labels)
    some, others = rows.take(np.arange(150)), rows.take(np.arange(100, len(rows)))
    view = fit(some, encoding)
    both = view + view.counted(others)
    twice = np.where(np.arange(len(rows)) // 50 == 2, 2.0, 1.0)
    expected = view.counted(replace(rows, weights=twice * rows.weights))
    assert_array_equal(both.references.ranks, expected.references.ranks)
    assert_array_equal(both.references.weights, expected.references.weights)
    assert_allclose(both.terms(rows.rows), expected.terms(rows.rows))


def test_rows_that_are_added_and_removed_leave_no_trace() -> None:
    frame, labels = mixed(100)
    rows, encoding = encoded(frame, labels)
    some, others = rows.take(np.arange(60)), rows.take(np.arange(40, 100))
    view = fit(some, encoding)
    again = view + view.counted(others)
    assert len(again.references.codes) == 100
    assert again.references.weights.sum() == 120
    again = again.removed(others)
    assert_array_equal(again.references.ranks, view.references.ranks)
    assert_allclose(again.terms(rows.rows), view.terms(rows.rows), atol=1e-9)


def test_a_view_without_a_fold_has_not_seen_its_classes() -> None:
    frame, labels = mixed(100)
    rows, encoding = encoded(frame, labels)
    fold, rest = np.arange(0, 100, 4), np.setdiff1d(np.arange(100), np.arange(0, 100, 4))
    view = fit(rows, encoding)
    nested = view.without(rows.take(fold), rows.take(rest))
    assert len(nested.references.codes) == len(rest)
    turned = rows.codes.copy()
    turned[fold] = np.roll(turned[fold], 1)
    changed = replace(rows, codes=turned)
    other = fit(changed, encoding).without(changed.take(fold), rows.take(rest))
    assert nested.kernels == other.kernels
    assert_allclose(nested.terms(rows.rows.take(fold)), other.terms(rows.rows.take(fold)))


def test_similar_rows_are_the_nearest_by_standardised_columns() -> None:
    frame, labels = mixed(80)
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    places, distances = view.similar(rows.rows, 5)
    assert_array_equal(
        view.references.positions[places[:, 0]], rows.positions
    )  # a training row is most similar to itself
    assert_array_equal(view.references.codes[places[:, 0]], rows.codes)
    points = points_of(rows, encoding, rows.rows.numbers)
    expected = np.sort(np.sqrt(np.sum((points[:, None] - points) ** 2, axis=2)), axis=1)[:, :5]
    assert_allclose(distances, expected, atol=1e-5)
    assert view.similar(rows.rows, 1000)[0].shape == (80, 80)


def test_contributions_are_the_weighted_sum_of_the_terms() -> None:
    frame, labels = mixed(50)
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    terms = view.terms(rows.rows)
    found = view.contributions(rows.rows, np.array([0.3, 0.7]))
    assert found.shape == (50, 3, 1)
    assert_allclose(found[:, :, 0], (0.3 * terms[0] + 0.7 * terms[1]).T)


def test_rows_without_values_have_no_evidence() -> None:
    frame, labels = mixed(50)
    frame.iloc[3] = None
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    here = rows.positions == 3
    assert_array_equal(view.left_out(rows)[:, :, here], 0.0)
    assert_array_equal(view.terms(rows.rows)[:, :, here], 0.0)
    assert np.all(np.ptp(view.terms(rows.rows)[:, :, ~here], axis=1) > 0)


@pytest.mark.parametrize("rows_per_class", [[1, 1], [2, 1], [5], [1] * 30, [3, 60]])
def test_few_rows_and_classes(rows_per_class: list[int]) -> None:
    draw = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(rows_per_class)), rows_per_class)
    words = draw.choice(list("ab"), len(labels))
    frame = pd.DataFrame({"x": np.arange(len(labels)) % 9 + 0.5, "word": words, "nothing": np.nan})
    frame.loc[0, "word"] = "b"
    frame.loc[1, "word"] = "a"
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    for terms in (view.terms(rows.rows), view.left_out(rows)):
        assert terms.shape[1:] == (len(rows_per_class), len(rows))
        assert np.all(np.isfinite(terms))
    nothing = view.removed(rows)
    assert len(nothing.references.codes) == 0
    assert_array_equal(nothing.terms(rows.rows), 0.0)
    assert nothing.similar(rows.rows, 3)[0].shape == (len(rows), 0)


def test_tables_without_any_coordinate_have_no_view() -> None:
    rows, encoding = encoded(pd.DataFrame({"constant": [1.0, 1.0, 1.0], "x": [None, None, None]}), [0, 1, 0])
    assert NeighboursView().fit(rows, encoding, 0) is None


def test_far_rows_and_rare_categories_are_finite_and_do_not_dominate() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(2, size=300)
    x = draw.normal(size=300) + labels
    x[0] = 1e9
    frame = pd.DataFrame({"x": x, "y": draw.normal(size=300), "word": np.where(np.arange(300) == 7, "rare", "usual")})
    rows, encoding = encoded(frame, labels)
    view = fit(rows, encoding)
    frame.loc[1, "x"] = -1e140
    assert np.all(np.isfinite(view.terms(encoding.encode(read_table(frame)))))
    points = view.systems[0].points(rows.rows, slice(None))
    columns = points[:, 2:]
    apart = np.sum((columns[rows.positions == 7] - columns[rows.positions == 8]) ** 2)
    assert_allclose(apart, 2.0, rtol=1e-5)


def test_many_categories_have_few_coordinates() -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.integers(40, size=(200, 60)).astype(str))
    rows, encoding = encoded(frame.set_axis([f"c{j}" for j in range(60)], axis=1), draw.integers(2, size=200))
    view = fit(rows, encoding)
    assert view.systems[0].width == 1024
    assert np.all(np.isfinite(view.left_out(rows)))


def test_all_ties_of_the_last_neighbour_are_found() -> None:
    references = np.repeat(np.arange(5.0), [3, 40, 20, 400, 100])[:, None]
    pairs = nearest(np.array([[0.0], [4.0]]), search_matrix(references), removed=np.array([1, -1]))
    assert np.diff(pairs.begins).tolist() == [2 + 40 + 20, 100]
    assert 1 not in pairs.references[pairs.rows == 0]
    assert_array_equal(pairs.distances[pairs.rows == 0], np.repeat([0.0, 1.0, 4.0], [2, 40, 20]))
    assert_array_equal(pairs.distances[pairs.rows == 1], 0.0)


def test_terms_of_many_rows_are_those_of_each_row() -> None:
    rng = np.random.default_rng(3)
    labels = np.arange(150) % 30
    frame = pd.DataFrame(rng.normal(size=(150, 2)) + labels[:, None], columns=["a", "b"])
    rows, encoding = encoded(frame, labels)
    view = fit(replace(rows, codes=rows.codes.astype(np.int16)), encoding)  # as labels are encoded
    new = encoding.encode(read_table(pd.DataFrame(rng.normal(size=(3000, 2)) + 15.0, columns=["a", "b"])))
    found = view.terms(new)
    for i in (0, 1700, 2999):
        assert_allclose(found[:, :, [i]], view.terms(new.take(np.array([i]))), atol=1e-9)
