"""Tests of the view of count trees: probabilities, leave-one-out, updates, contributions, and unusual rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from likely import EvidenceClassifier
from likely.data.row_hash import row_hashes
from likely.data.validation import read_table
from likely.errors import InputError
from likely.evidence import tree_structure, trees
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.tree_structure import MISSING, STOP
from likely.evidence.trees import FittedTrees, TreesView
from likely.typing import AnyArray, Array


def assert_near(found: AnyArray, expected: AnyArray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def training_rows(X: pd.DataFrame, y: AnyArray, weights: AnyArray | None = None) -> tuple[TrainingRows, Encoding]:
    """Rows as the classifier passes them to views: distinct, with weights, in the order of their keys."""
    table, (classes, codes) = read_table(X), np.unique(y, return_inverse=True)
    weights = np.ones(len(y)) if weights is None else weights
    keys, first, place = np.unique(row_hashes(table, codes), return_index=True, return_inverse=True)
    total, table = np.bincount(place, weights).astype(float), table.take(first)
    encoding = Encoding.of(table, total, range(table.width))
    return TrainingRows(encoding.encode(table), classes, codes[first], total, keys, first, np.bincount(place)), encoding


def mixed_frame(n: int = 90, seed: int = 0, missing: float = 0.0) -> tuple[pd.DataFrame, AnyArray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    shift = {"a": 0.0, "b": 1.0, "c": 2.5}
    centre = np.array([shift[label] for label in y])
    X = pd.DataFrame({"x": rng.normal(centre), "noise": rng.normal(size=n), "b": np.round(rng.normal(centre), 1)})
    X["word"] = np.where(rng.random(n) < 0.7, y, rng.choice(["u", "v"], n))
    for name in ("x", "word"):
        X.loc[rng.random(n) < missing, name] = None
    return X, y


def fitted(
    n_trees: int = 12, missing: float = 0.0, weights: AnyArray | None = None, **options: Any
) -> tuple[FittedTrees, TrainingRows, Encoding]:
    X, y = mixed_frame(missing=missing, **options)
    rows, encoding = training_rows(X, y, weights)
    view = TreesView(n_trees).fit(rows, encoding, 7)
    assert view is not None
    return view, rows, encoding


def new_rows(encoding: Encoding, missing: float = 0.0, n: int = 40) -> EncodedRows:
    return encoding.encode(read_table(mixed_frame(n, seed=5, missing=missing)[0]))


def literal_path(view: FittedTrees, tree: int, cells: AnyArray) -> list[int]:
    """The nodes of a row from the root down, by one look-up after another."""
    structure, path = view.structure, [tree]
    absent = cells == view.missing
    while not absent[view.columns].all():
        node = path[-1]
        column, child = int(structure.column[node]), int(structure.left[node])
        if child == node or (absent[column] and not structure.with_missing[node]):
            break
        path.append(child + int(absent[column] or cells[column] > structure.cut[node]))
    return path


def literal_probabilities(
    view: FittedTrees, rows: TrainingRows, cells: AnyArray, tree_numbers: Sequence[int], weights: Array
) -> list[list[Array]]:
    """The probabilities of a row in some trees at all depths, from the paths of all training rows, [tree][depth]."""
    found = []
    K = len(rows.classes)
    for tree in tree_numbers:
        paths = [literal_path(view, tree, each) for each in rows.rows.cells]
        totals = np.bincount(rows.codes, weights, minlength=K)
        steps = [(totals + 0.5) / (totals.sum() + 0.5 * K)]
        for node in literal_path(view, tree, cells)[1:]:
            inside = np.array([node in path for path in paths])
            counts = np.bincount(rows.codes[inside], weights[inside], minlength=K)
            steps.append((counts + view.strength * steps[-1]) / (counts.sum() + view.strength))
        found.append(steps)
    return found


def literal_terms(
    view: FittedTrees, rows: TrainingRows, cells: AnyArray, tree_numbers: Sequence[int], weights: Array
) -> Array:
    steps = literal_probabilities(view, rows, cells, tree_numbers, weights)
    last = np.array([each[-1] for each in steps])
    return np.array([np.log(last).mean(axis=0), np.log(last.mean(axis=0))]) - np.log(steps[0][0])


def same_structure(a: FittedTrees, b: FittedTrees) -> bool:
    pairs = [(getattr(a.structure, each.name), getattr(b.structure, each.name)) for each in fields(a.structure)]
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_terms_are_those_of_a_literal_walk(missing: float) -> None:
    view, rows, encoding = fitted(missing=missing)
    tested = new_rows(encoding, missing=0.2, n=12)
    expected = [literal_terms(view, rows, cells, range(12), rows.weights) for cells in tested.cells]
    assert_near(view.terms(tested), np.stack(expected, axis=2))


def test_leaves_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = []
    fit = DecisionTreeClassifier.fit

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        grown.append((self.random_state, fit(self, *args, **kwargs)))
        return grown[-1][1]

    monkeypatch.setattr(DecisionTreeClassifier, "fit", recorded)
    view, rows, _ = fitted(missing=0.2)
    absent = rows.rows.cells == view.missing
    values = np.where(absent, MISSING, rows.rows.cells)[:, view.columns].astype(np.float32)
    followed = view.structure.seen(rows.keys) | ~absent.any(axis=1)[:, None]
    by_state = dict(grown)
    assert len(by_state) == 12
    for tree, salt in enumerate(view.structure.salts.tolist()):
        leaves = by_state[salt >> 33].apply(values)
        ours = np.array([literal_path(view, tree, cells)[-1] for cells in rows.rows.cells])
        pairs = set(zip(leaves[followed[:, tree]].tolist(), ours[followed[:, tree]].tolist(), strict=True))
        assert len(pairs) == len({leaf for leaf, _ in pairs}) == len({leaf for _, leaf in pairs}) > 1
        for node in set(ours.tolist()):
            if view.structure.cut[node] == STOP:
                expected = np.bincount(rows.codes[ours == node], rows.weights[ours == node], minlength=3)
                np.testing.assert_array_equal(view.counts[node], expected)


def test_missing_values_go_right_where_the_tree_has_seen_some() -> None:
    view, rows, _ = fitted(missing=0.1)
    structure, seen = view.structure, view.structure.seen(rows.keys)
    everywhere = replace(view, structure=replace(structure, with_missing=np.ones_like(structure.with_missing)))
    expected = np.zeros(structure.size, dtype=bool)
    for tree in range(12):
        for cells in rows.rows.cells[seen[:, tree]]:
            for node in literal_path(everywhere, tree, cells)[:-1]:
                expected[node] |= cells[structure.column[node]] == view.missing[structure.column[node]]
    np.testing.assert_array_equal(structure.with_missing, expected)
    assert 0.02 < expected[structure.cut < STOP].mean() < 0.8


@pytest.mark.parametrize("fractional", [False, True])
def test_leave_one_out_equals_counting_again(fractional: bool) -> None:
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.2, 2.0, 90) if fractional else rng.integers(1, 4, 90).astype(float)
    view, rows, _ = fitted(missing=0.2, weights=weights)
    unseen = ~view.structure.seen(rows.keys)
    found = view.left_out(rows)
    for i in range(0, len(rows), 9):
        left = rows.weights.copy()
        left[i] -= min(left[i], 1.0)
        expected = literal_terms(view, rows, rows.rows.cells[i], np.flatnonzero(unseen[i]).tolist(), left)
        assert_near(found[:, :, i], expected)


def test_leave_one_out_evidence_does_not_depend_on_the_label_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "STRENGTHS", (2.0,))
    X, y = mixed_frame()
    rows, encoding = training_rows(X, y)
    before = TreesView(12).fit(rows, encoding, 7)
    for i in (0, 31, 60):
        codes = rows.codes.copy()
        codes[i] = (codes[i] + 1) % 3
        other = replace(rows, codes=codes)  # the keys stay the same: each tree sees the same rows
        after = TreesView(12).fit(other, encoding, 7)
        assert before is not None
        assert after is not None
        assert_near(after.left_out(other)[:, :, i], before.left_out(rows)[:, :, i])
        assert not np.allclose(after.terms(rows.rows)[:, :, i], before.terms(rows.rows)[:, :, i])


def test_a_row_that_every_tree_has_seen_uses_all_trees() -> None:
    view, rows, _ = fitted(n_trees=1)
    seen = view.structure.seen(rows.keys)[:, 0]
    assert 0.4 < seen.mean() < 0.8
    i = int(np.flatnonzero(seen)[0])
    left = rows.weights.copy()
    left[i] -= 1.0
    expected = literal_terms(view, rows, rows.rows.cells[i], [0], left)
    assert_near(view.left_out(rows)[:, :, i], expected)


def test_the_strength_has_the_least_leave_one_out_loss() -> None:
    view, rows, _ = fitted(weights=np.random.default_rng(0).integers(1, 4, 90).astype(float))
    losses = []
    for strength in trees.STRENGTHS:
        arithmetic = replace(view, strength=strength).left_out(rows)[1]
        for i, code in enumerate(rows.codes):
            counts = rows.class_weights
            counts[code] -= 1.0
            arithmetic[:, i] += np.log((counts + 0.5) / (counts + 0.5).sum())
        np.testing.assert_allclose(np.exp(arithmetic).sum(axis=0), 1.0)
        losses.append(-(arithmetic[rows.codes, np.arange(len(rows))] @ rows.weights))
    assert view.strength == trees.STRENGTHS[int(np.argmin(losses))]
    assert len(set(losses)) == len(losses)


def test_the_order_of_rows_and_columns_does_not_matter() -> None:
    X, y = mixed_frame(missing=0.1)
    order = np.random.default_rng(1).permutation(len(y))
    tested = mixed_frame(30, seed=5)[0]
    found = []
    for frame, labels in ((X, y), (X.iloc[order], y[order]), (X[["word", "b", "noise", "x"]], y)):
        rows, encoding = training_rows(frame, labels)
        view = TreesView(10).fit(rows, encoding, 0)
        assert view is not None
        encoded = encoding.encode(read_table(tested[list(frame.columns)]))
        parts = view.contributions(encoded, np.array([0.4, 0.6]))
        columns = [list(frame.columns).index(name) for name in X.columns]
        found.append((view.terms(encoded), view.left_out(rows), parts[:, :, columns]))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_integer_weights_equal_repeated_rows() -> None:
    X, y = mixed_frame()
    repeats = np.random.default_rng(2).integers(0, 4, len(y))
    chosen = repeats > 0
    weighted = training_rows(X[chosen], y[chosen], repeats[chosen].astype(float))
    repeated = training_rows(X.loc[np.repeat(np.arange(len(y)), repeats)], np.repeat(y, repeats))
    views = [TreesView(10).fit(rows, encoding, 0) for rows, encoding in (weighted, repeated)]
    assert views[0] is not None
    assert views[1] is not None
    np.testing.assert_array_equal(views[0].left_out(weighted[0]), views[1].left_out(repeated[0]))
    np.testing.assert_array_equal(views[0].terms(weighted[0].rows), views[1].terms(repeated[0].rows))


def test_seeds_grow_other_trees() -> None:
    rows, encoding = training_rows(*mixed_frame())
    views = [TreesView(5).fit(rows, encoding, seed) for seed in (0, 1, -1, 0)]
    one, two, three, again = (view for view in views if view is not None)
    assert same_structure(one, again)
    assert not same_structure(one, two)
    assert not same_structure(one, three)
    assert len(set(one.structure.salts.tolist())) == 5


def test_updates_count_rows_in_the_same_trees() -> None:
    view, rows, encoding = fitted()
    more, y = mixed_frame(50, seed=9, missing=0.3)
    table, codes = read_table(more), np.searchsorted(rows.classes, y)
    added = TrainingRows(
        encoding.encode(table),
        rows.classes,
        codes,
        np.full(50, 0.3),
        row_hashes(table, codes),
        np.arange(50),
        np.ones(50),
    )
    larger = view + view.counted(added)
    assert_near(larger.counts[:12], np.tile(larger.counts[0], (12, 1)))
    assert_near(larger.counts[0], rows.class_weights + added.class_weights)
    cells = np.concatenate([rows.rows.cells, added.rows.cells])
    codes, weights = np.concatenate([rows.codes, codes]), np.concatenate([rows.weights, added.weights])
    both = replace(rows, rows=replace(rows.rows, cells=cells), codes=codes, weights=weights)
    expected = literal_terms(larger, both, cells[4], range(12), weights)
    assert_near(larger.terms(rows.rows)[:, :, 4], expected)
    smaller = larger.removed(added)
    assert np.all(smaller.counts[view.counts == 0.0] == 0.0)
    assert_near(smaller.counts, view.counts)


def test_counts_of_parts_add_up() -> None:
    view, rows, _ = fitted(missing=0.1)
    first, second = rows.take(np.arange(0, 90, 4)), rows.take(np.setdiff1d(np.arange(90), np.arange(0, 90, 4)))
    both = view.counted(first) + view.counted(second)
    np.testing.assert_array_equal(both.counts, view.counts)
    assert same_structure(both, view)
    np.testing.assert_array_equal(both.left_out(rows), view.left_out(rows))
    assert view.counted(first).counts[0].sum() == len(first)


def test_without_is_the_fit_to_the_remaining_rows() -> None:
    view, rows, encoding = fitted()
    held_out, remaining = rows.take(np.arange(0, 90, 3)), rows.take(np.setdiff1d(np.arange(90), np.arange(0, 90, 3)))
    direct = TreesView(6).fit(remaining, encoding, 7)
    reduced = view.without(held_out, remaining)
    assert direct is not None
    assert view.structure.n_trees == 12  # half of the trees weigh the view
    assert same_structure(direct, reduced)
    np.testing.assert_array_equal(direct.terms(held_out.rows), reduced.terms(held_out.rows))
    np.testing.assert_array_equal(direct.left_out(remaining), reduced.left_out(remaining))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_contributions_add_up_to_the_terms(missing: float) -> None:
    view, _, encoding = fitted(missing=missing)
    tested = new_rows(encoding, missing=0.3)
    for weights in np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 1.7]]):
        total = np.tensordot(weights, view.terms(tested), 1).T
        found = view.contributions(tested, weights).sum(axis=2)
        assert np.all(np.abs(found - total) <= 1e-12 * (1.0 + np.abs(total)))


def test_contributions_belong_to_the_column_that_is_cut() -> None:
    view, rows, encoding = fitted(n_trees=4)
    tested = new_rows(encoding, n=8)
    found = [view.contributions(tested, weights) for weights in np.eye(2)]
    for i, cells in enumerate(tested.cells):
        paths = [literal_path(view, tree, cells) for tree in range(4)]
        steps = literal_probabilities(view, rows, cells, range(4), rows.weights)
        expected = np.zeros((2, 3, 4))
        for depth in range(1, max(map(len, paths))):
            before, after = (np.array([each[min(d, len(each) - 1)] for each in steps]) for d in (depth - 1, depth))
            means = before.mean(axis=0), after.mean(axis=0)
            slope = np.array([_integral(*pair) for pair in zip(*means, strict=True)])
            for tree, path in enumerate(paths):
                if len(path) > depth:
                    column = view.structure.column[path[depth - 1]]
                    expected[0, :, column] += np.log(after[tree] / before[tree]) / 4
                    expected[1, :, column] += slope * (after[tree] - before[tree]) / 4
        np.testing.assert_allclose([found[0][i], found[1][i]], expected, rtol=1e-8, atol=1e-8)


def _integral(before: float, after: float) -> float:
    """The mean of 1/p between two probabilities, by the midpoint rule in log p."""
    middle = (np.arange(20_000) + 0.5) / 20_000
    p = np.exp(np.log(before) + middle * np.log(after / before))
    return float(np.sum(np.ones_like(p)) / np.sum(p))  # ∫ d log p / ∫ p d log p


def test_a_row_without_any_value_has_no_evidence() -> None:
    for missing in (0.0, 0.3):
        view, _, encoding = fitted(missing=missing)
        empty = pd.DataFrame({"x": [np.nan], "noise": [np.nan], "b": [np.nan], "word": [None]})
        tested = encoding.encode(read_table(pd.concat([mixed_frame(3)[0], empty])))
        np.testing.assert_allclose(view.terms(tested)[:, :, 3], 0.0, atol=1e-15)
        assert np.all(view.contributions(tested, np.ones(2))[3] == 0.0)
        assert np.any(view.terms(tested)[:, :, 0] != 0.0)


def test_missing_values_are_cut_off_where_they_depend_on_the_class() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})
    y = np.repeat(["absent", "present"], 100)
    X.loc[:89, "x"] = np.nan
    rows, encoding = training_rows(X, y)
    view = TreesView(20).fit(rows, encoding, 0)
    assert view is not None
    terms = view.terms(encoding.encode(read_table(pd.DataFrame({"x": [np.nan, 0.1], "z": [0.1, 0.1]}))))
    evidence = terms[:, 0] - terms[:, 1]
    assert np.all(evidence[:, 0] > 1.0)
    assert np.all(evidence[:, 1] < -1.0)


def test_a_missing_value_of_a_complete_column_ends_the_path() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    rows, encoding = training_rows(pd.DataFrame({"x": x, "z": rng.normal(size=300)}), x > 1.0)
    view = TreesView(30).fit(rows, encoding, 0)
    assert view is not None
    terms = view.terms(encoding.encode(read_table(pd.DataFrame({"x": [np.nan, 3.0], "z": [0.1, 0.1]}))))
    evidence = terms[:, 1] - terms[:, 0]
    assert np.all(evidence[:, 1] > 2.0)
    assert np.all(np.abs(evidence[:, 0]) < 1.0)  # it is not taken for a value above all others


def test_each_tree_sees_a_limited_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_structure, "MOST_ROWS", 25)
    view, rows, _ = fitted()
    seen = view.structure.seen(rows.keys)
    np.testing.assert_array_equal(seen.sum(axis=0), 25)
    assert len(np.unique(seen, axis=1).T) == 12
    np.testing.assert_allclose(view.counts[0], rows.class_weights)


def test_counts_are_limited_where_there_are_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"]), np.arange(400) % 200
    rows, encoding = training_rows(X, y)
    monkeypatch.setattr(tree_structure, "ENTRIES", 6 * 200 * 2 * 30)
    view = TreesView(6).fit(rows, encoding, 0)
    assert view is not None
    assert 1000 < view.counts.size <= 6 * 200 * 2 * 30
    assert np.isfinite(view.left_out(rows)).all()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (pd.DataFrame({"x": [1.0, np.nan]}), [0, 1]),
        (pd.DataFrame({"x": np.arange(9.0)}), np.zeros(9)),
        (pd.DataFrame({"x": np.arange(9.0)}), np.arange(9)),
        (pd.DataFrame({"x": np.arange(9.0), "all": np.nan, "same": 1.0}), np.arange(9) % 2),
        (pd.DataFrame({"x": [1e140, -1e140, 5e-324, 0.0, 1e130, -1.0, 1.0, 2.0, np.nan]}), np.arange(9) % 3),
        (pd.DataFrame(np.random.default_rng(0).normal(size=(12, 600))).rename(columns=str), np.arange(12) % 2),
        (pd.DataFrame({"x": np.arange(1200.0)}), np.arange(1200) % 1000),
    ],
    ids=["two rows", "one class", "one row per class", "constant", "extreme", "600 columns", "1,000 classes"],
)
@pytest.mark.parametrize("weight", [1e-12, 1.0, 1e12])
def test_unusual_tables(X: pd.DataFrame, y: AnyArray, weight: float) -> None:
    rows, encoding = training_rows(X, np.asarray(y), np.full(len(y), weight))
    view = TreesView(3).fit(rows, encoding, 0)
    assert view is not None
    few = rows.rows.take(np.arange(min(len(rows), 20)))
    terms, contributions = view.terms(rows.rows), view.contributions(few, np.ones(2))
    assert terms.shape == (2, len(rows.classes), len(rows))
    assert contributions.shape == (len(few), len(rows.classes), X.shape[1])
    assert np.isfinite(terms).all()
    assert np.isfinite(view.left_out(rows)).all()
    np.testing.assert_allclose(contributions.sum(axis=2), terms.sum(axis=0).T[: len(few)], rtol=1e-10, atol=1e-10)


def test_no_view_without_columns() -> None:
    rows, encoding = training_rows(pd.DataFrame({"x": [1.0, 1.0], "all": np.nan}), np.arange(2))
    assert TreesView().fit(rows, encoding, 0) is None


def test_the_number_of_trees_is_checked() -> None:
    with pytest.raises(InputError, match="n_trees=0"):
        EvidenceClassifier(["trees"], n_trees=0).fit(*mixed_frame())


def test_a_fitted_view_has_plain_arrays() -> None:
    view, rows, _ = fitted()
    view.terms(rows.rows)
    for part in (view, view.structure):
        for field in fields(part):
            value = getattr(part, field.name)
            assert isinstance(value, np.ndarray | int | float) or value is view.structure, field.name
    assert view.structure.left.dtype == np.int32
    assert np.all((view.structure.cut == STOP) == (view.structure.left == np.arange(view.structure.size)))
