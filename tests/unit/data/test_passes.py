"""The pass over the rows: many blocks, groups and threads, and every layout, give what one product gives."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
import threadpoolctl
from numpy.testing import assert_allclose

from likely import GenerativeClassifier, LinearDiscriminant, QuadraticDiscriminant, cross_validate
from likely.data import row_blocks
from likely.data.row_blocks import GATHERED, BlockTask, evaluate, rows_per_block, summarise
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError
from likely.families import Gaussian
from likely.families.gaussian import covariance
from likely.families.gaussian import mahalanobis as distances
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.numerics import threads
from likely.numerics.threads import inside, run, single_threaded_blas_for
from likely.statistics.moments import Moments, Sharing

Floats = np.ndarray[Any, np.dtype[np.float64]]
ROWS = 6000

LAYOUTS: dict[str, Callable[[Floats], Any]] = {
    "rows": lambda X: X,
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "float32": lambda X: X.astype(np.float32),
    "float32, Fortran order": lambda X: np.asfortranarray(X.astype(np.float32)),
    "frame": lambda X: pl.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])}),
    "frame of two types": lambda X: pl.DataFrame(
        {f"c{j}": X[:, j].astype(np.float32 if j % 2 else np.float64) for j in range(X.shape[1])}
    ),
}


def rows_and_codes(seed: int = 0) -> tuple[Floats, Any]:
    """Rows that float32 holds exactly; one class has nearly all of them, and one has a single row."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, size=ROWS, p=[0.02, 0.9, 0.05, 0.03])
    codes[codes == 3] = 0
    codes[ROWS // 2] = 3
    X = np.round(64 * (rng.standard_normal((ROWS, 5)) + codes[:, None])) / 64
    return X, codes.astype(np.int16)


def brute_force(X: Floats, codes: Any, weights: Floats, sharing: Sharing) -> tuple[Floats, Floats]:
    """Means and scatters, class by class."""
    group = sharing.assign(np.arange(4))
    means, scatter = np.zeros((4, X.shape[1])), np.zeros((group.max() + 1, X.shape[1], X.shape[1]))
    for k in range(4):
        mine, share = X[codes == k], weights[codes == k]
        means[k] = np.average(mine, axis=0, weights=share)
        centred = mine - means[k]
        scatter[group[k]] += centred.T @ (share[:, None] * centred)
    return means, scatter


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "sharing", [Sharing(), Sharing(groups=((1, 3),)), Sharing(True)], ids=["own", "grouped", "all"]
)
def test_blocks_groups_and_threads_add_up_to_the_moments_of_all_rows(
    layout: str, weighted: bool, sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MomentsAccumulator, "block_rows", property(lambda self: 100))
    X, codes = rows_and_codes()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, ROWS) if weighted else None
    table = read_table(LAYOUTS[layout](X))
    monkeypatch.setattr(row_blocks, "_rows_per_copy", lambda _: 1500)

    def make() -> MomentsAccumulator:
        return MomentsAccumulator(np.arange(4), 5, sharing, full=True)

    (moments,) = summarise(table, codes, weights, [BlockTask(None, table.numbers(None, False), make)])
    assert isinstance(moments, Moments)
    means, scatter = brute_force(X, codes, np.ones(ROWS) if weights is None else weights, sharing)
    assert_allclose(moments.mean, means, rtol=1e-12)
    assert_allclose(moments.scatter, scatter, rtol=1e-10, atol=1e-9)
    assert moments.rows.tolist() == np.bincount(codes).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_of_some_columns_are_read_from_every_layout(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MomentsAccumulator, "block_rows", property(lambda self: 100))
    X, codes = rows_and_codes()
    codes[ROWS // 2] = 0
    table = read_table(LAYOUTS[layout](X))
    names = table.names
    families = {(names[3], names[1]): Gaussian(), (names[0], names[2]): Gaussian(shared=True), names[4]: Gaussian()}
    model = GenerativeClassifier(families, estimation="mle").fit(LAYOUTS[layout](X), codes)
    own = model.model_.blocks[0].conditionals.quadratic()
    assert own is not None
    assert own.square is not None
    for k in range(3):
        mine = X[codes == k][:, [3, 1]]
        precision = np.linalg.inv(np.cov(mine.T, bias=True))
        assert_allclose(own.square[k], -0.5 * precision, rtol=1e-9)


def test_no_piece_is_much_larger_than_two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MomentsAccumulator, "block_rows", property(lambda self: 100))
    sizes = []
    add = MomentsAccumulator.add

    def watched(self: MomentsAccumulator, block: Any, codes: Any, weights: Any = None) -> None:
        sizes.append(len(block))
        assert len(np.unique(codes)) == 1
        add(self, block, codes, weights)

    monkeypatch.setattr(MomentsAccumulator, "add", watched)
    X, codes = rows_and_codes()
    table = read_table(X)

    def make() -> MomentsAccumulator:
        return MomentsAccumulator(np.arange(4), 5, Sharing(), full=True)

    summarise(table, codes, None, [BlockTask(None, table.numbers(None, False), make)])
    assert max(sizes) <= 300
    assert sum(sizes) == ROWS


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "two types" not in name])
def test_a_bad_cell_is_named_wherever_it_stands(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MomentsAccumulator, "block_rows", property(lambda self: 100))
    X, codes = rows_and_codes()
    codes[ROWS // 2] = 0
    model = QuadraticDiscriminant().fit(LAYOUTS[layout](X), codes)
    X[4321, 2] = np.inf
    bad = LAYOUTS[layout](X)
    name = read_table(LAYOUTS[layout](X)).names[2]
    with pytest.raises(InputError, match=rf"Column '{name}', row 4321: inf"):
        QuadraticDiscriminant().fit(bad, codes)
    with pytest.raises(InputError, match=rf"Column '{name}', row 4321: inf"):
        model.predict_proba(bad)


def test_pieces_of_a_table_are_its_rows() -> None:
    X, _ = rows_and_codes()
    index = [np.array([5, 3, 3]), np.array([0]), np.arange(100, 130)]
    for layout, make in LAYOUTS.items():
        table: Table = read_table(make(X))
        for columns in (None, np.array([4, 0])):
            for rows, piece in zip(index, table.pieces(index, columns), strict=True):
                expected = X[rows] if columns is None else X[rows][:, columns]
                assert np.array_equal(piece, expected), layout


def test_explanations_take_little_memory_beyond_their_result() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40_000, 100)), np.arange(40_000) % 2
    for model in (LinearDiscriminant(), QuadraticDiscriminant()):
        model.fit(X, y)
        tracemalloc.start()
        try:
            told = model.explain(X)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak - told.evidence.nbytes < 64e6


def test_wide_sparse_rows_are_written_out_a_few_at_a_time() -> None:
    table = read_table(scipy.sparse.csr_array((50, 1_000_000)))
    assert rows_per_block(table, table.width) * table.width <= GATHERED
    assert rows_per_block(table.take(np.arange(20)), table.width) * table.width <= GATHERED
    seen: list[tuple[int, int]] = []
    evaluate(table, lambda start, stop: seen.append((start, stop)), 2 * table.width)
    assert sorted(row for start, stop in seen for row in range(start, stop)) == list(range(50))
    assert max(stop - start for start, stop in seen) * table.width <= GATHERED
    seen.clear()
    evaluate(table, lambda start, stop: seen.append((start, stop)), table.cells(table.width, sparse=True))
    assert seen == [(0, 50)]  # as they are, they are few numbers


@pytest.mark.parametrize("slow", [0, 1])
def test_of_several_tasks_that_fail_the_first_is_reported(slow: int) -> None:
    begun: list[int] = []

    def work(task: int) -> int:
        begun.append(task)
        if task == slow:
            time.sleep(0.05)
        if task in (0, 1):
            raise ValueError(f"task {task}")
        return task

    with pytest.raises(ValueError, match="task 0"):
        run(range(100), work)
    assert len(begun) < 10  # the others would be in vain
    assert run(range(5), lambda task: task**2) == [0, 1, 4, 9, 16]


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}


def test_matrices_of_moderate_size_leave_no_blas_thread_behind() -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        for columns, threads in ((8, {2}), (100, {1}), (4000, {2})):
            with single_threaded_blas_for(columns):
                assert blas_threads() == threads
        assert blas_threads() == {2}


@pytest.mark.parametrize("model", [LinearDiscriminant(), QuadraticDiscriminant()])
def test_models_are_estimated_and_prepared_with_one_blas_thread(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    X = rng.standard_normal((len(y), 40)) + y[:, None]
    seen: list[set[int]] = []
    for owner, name in ((covariance, "whitener_of"), (distances, "shared_bases")):
        plain = getattr(owner, name)

        def told(*given: Any, plain: Callable[..., Any] = plain) -> Any:
            seen.append(blas_threads())
            return plain(*given)

        monkeypatch.setattr(owner, name, told)
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        model.fit(X, y).predict_proba(X)
        model.left_out_proba(X, y)
        cross_validate(model, X, y, folds=3)
    assert len(seen) > 3
    assert set.union(*seen) == {1}


@pytest.mark.parametrize("cores", [1, 2])
def test_a_task_among_several_is_inside_whatever_the_number_of_threads(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "cpu_count", lambda: cores)
    assert run(range(3), lambda _: inside()) == [True] * 3
    assert run(range(1), lambda _: inside()) == [False]
    assert not inside()
