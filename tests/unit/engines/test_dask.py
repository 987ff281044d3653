"""Rows in partitions of Dask: the same models as from rows in memory, computed by other processes."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

from likely import (
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    SoftmaxRegression,
)
from likely.data import row_draw
from likely.data.parts import source_of
from likely.data.source_rows import RowSample
from likely.engines import dask as engine
from likely.engines.dask import on_dask
from likely.engines.worker import add_parts, single_thread
from likely.errors import CellError, InputError, InputTypeError, LikelyError, MissingExtraError, SourceError
from likely.numerics.threads import worker_count
from tests.unit.engines.partitions import (
    PARTITIONS,
    ROWS,
    FrameSource,
    assert_same_bits,
    assert_same_model,
    local,
    partition,
    whole,
)

MODELS = [
    NaiveBayes({"length": Gaussian(), "width": Gaussian()}),
    NaiveBayes(estimation="map"),
    GenerativeClassifier(),
]


@pytest.fixture(scope="module")
def workers() -> Iterator[Client]:
    """Two worker processes of one thread each."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def synchronous() -> Iterator[None]:
    """This thread alone computes tasks."""
    with dask.config.set(scheduler="synchronous"):
        yield


def frames(load: Any = partition, count: int = PARTITIONS) -> Any:
    return dd.from_map(load, range(count), meta=partition(0).iloc[:0])


class LoggedLoads:
    """Partitions, and a file with a line for each time that the first one is read."""

    def __init__(self, path: Path, unlabeled: bool = False) -> None:
        self.path, self.unlabeled = path, unlabeled

    def __call__(self, number: int) -> pd.DataFrame:
        if number == 0:
            with self.path.open("a") as file:
                file.write("read\n")
        frame = partition(number)
        if self.unlabeled:
            frame.loc[frame.index % 3 > 0, "label"] = None
        return frame

    def reads(self) -> int:
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0


class KillsOnce:
    """Partitions; the process that first reads number 13 is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, number: int) -> pd.DataFrame:
        if number == 13 and not self.path.exists():
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return partition(number)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.estimation}")
def test_two_worker_processes_fit_the_model_of_one_frame(model: Any) -> None:
    table = whole()
    one = clone(model).fit(table, "label", sample_weight="weight")
    cluster = clone(model).fit(frames(), "label", sample_weight="weight")
    assert set(one.classes_) == {"ä b", "usual", "rare"}
    assert_same_model(one, cluster, table)
    assert_same_bits(clone(model).fit(local(), "label", sample_weight="weight"), cluster, table)


def clone(model: Any) -> Any:
    return type(model)(**model.get_params(deep=False))


@pytest.mark.usefixtures("workers")
def test_a_thousand_batches_and_two_worker_processes_fit_the_same_model() -> None:
    table = pd.concat([whole()] * 2, ignore_index=True)[["length", "visits", "label"]]
    batches = FrameSource([table.iloc[rows] for rows in np.array_split(np.arange(len(table)), 1000)])
    model = NaiveBayes(Gaussian("diagonal"), calibration=None)
    one = clone(model).fit(table, "label")
    assert_same_model(one, clone(model).fit(batches, "label"), table)
    assert_same_model(one, clone(model).fit(dd.from_pandas(table, npartitions=9), "label"), table)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 66, 73])
@pytest.mark.usefixtures("synchronous")
def test_tasks_add_parts_in_the_tree_of_threads(count: int) -> None:
    model = NaiveBayes(Gaussian("diagonal"), calibration=None)
    rows = ["length", "label"]
    parts = local(count)
    parts.frames = [frame[rows] for frame in parts.frames]
    ours = clone(model).fit(parts, "label")
    theirs = clone(model).fit(frames(count=count)[rows], "label")
    assert_same_bits(ours, theirs, whole(count)[["length"]])


def test_a_killed_worker_does_not_change_a_bit(workers: Client, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    before = set(workers.scheduler_info()["workers"])
    model = GenerativeClassifier().fit(frames(KillsOnce(killed)), "label")
    assert killed.exists()
    workers.wait_for_workers(2)
    assert set(workers.scheduler_info()["workers"]) != before
    assert_same_bits(GenerativeClassifier().fit(local(), "label"), model, whole())


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.usefixtures("workers")
def test_unlabeled_rows_take_one_pass_for_each_iteration(tmp_path: Path) -> None:
    families, columns = {"length": Gaussian(), "width": Gaussian()}, ["length", "width", "label"]
    reads = []
    for i, iterations in enumerate((1, 4)):
        log = LoggedLoads(tmp_path / str(i), unlabeled=True)
        model = GenerativeClassifier(families, calibration=None, unlabeled_weight=1.0, max_iter=iterations, tol=0.0)
        model.fit(frames(log, 3)[columns], "label")
        assert model.n_iter_ == iterations
        reads.append(log.reads())
    assert reads[1] - reads[0] == 3
    frame = pd.concat([log(i) for i in range(3)], ignore_index=True)[columns]
    assert_same_model(clone(model).fit(frame, "label"), model, frame)


@pytest.mark.usefixtures("synchronous")
def test_rows_are_added_and_removed() -> None:
    table, model = whole(), NaiveBayes(estimation="map", calibration=None)
    for _ in range(2):
        model.partial_fit(frames(), "label")
    twice = NaiveBayes(model.families_, estimation="map", calibration=None).fit(pd.concat([table, table]), "label")
    assert_allclose(model.log_joint(table), twice.log_joint(table), rtol=1e-9)
    model.forget(frames(), "label")
    once = NaiveBayes(model.families_, estimation="map", calibration=None).fit(table, "label")
    assert_allclose(model.log_joint(table), once.log_joint(table), rtol=1e-9)


@pytest.mark.usefixtures("synchronous")
def test_predictions_are_lazy(tmp_path: Path) -> None:
    table, log = whole(), LoggedLoads(tmp_path / "log")
    model = GenerativeClassifier().fit(table, "label", sample_weight="weight")
    rows = frames(log)
    results = [getattr(model, method)(rows) for method in ("predict", "predict_proba", "predict_log_proba")]
    assert log.reads() == 0
    for result, method in zip(results, ("predict", "predict_proba", "predict_log_proba"), strict=True):
        assert isinstance(result, da.Array)
        expected = getattr(model, method)(table)
        assert result.dtype == expected.dtype
        assert result.ndim == expected.ndim
        assert len(result.chunks[0]) == PARTITIONS
        found = result.compute()
        assert (assert_array_equal if method == "predict" else assert_allclose)(found, expected) is None
    assert log.reads() == 3


@pytest.mark.usefixtures("synchronous")
@pytest.mark.parametrize("kind", [LinearDiscriminant, SoftmaxRegression, EvidenceClassifier])
def test_results_of_predictions_are_those_of_rows_in_memory(kind: Any) -> None:
    table, rows = whole(4)[["length", "weight", "label"]], frames(count=4)[["length", "weight", "label"]]
    model: Any = kind().fit(table, "label")
    found, expected = model.decide(rows, reject=0.1), model.decide(table, reject=0.1)
    assert_array_equal(found.action, expected.action)
    assert_allclose(found.expected_loss, expected.expected_loss)
    assert model.score(rows, "label") == model.score(table, "label")
    array = rows[["length", "weight"]].to_dask_array()  # of unknown sizes
    other: Any = kind().fit(table[["length", "weight"]].to_numpy(), table["label"])
    assert other.score(array, table["label"].to_numpy()) == model.score(table, "label")
    if kind is not SoftmaxRegression:
        assert_allclose(model.adapt_prior(rows).class_prior_, model.adapt_prior(table).class_prior_)
    decision = model.decision_function(rows)
    assert isinstance(decision, np.ndarray)
    assert_allclose(decision, model.decision_function(table))


@pytest.mark.usefixtures("workers")
def test_arrays_with_labels_and_weights_beside_them() -> None:
    table = whole()
    X, y = table[["length", "visits"]].to_numpy(), table["label"].to_numpy(dtype=object)
    w = table["weight"].to_numpy()
    rows = da.from_array(X, chunks=(100, 1))
    labels, weights = da.from_array(y, chunks=100), da.from_array(w, chunks=64)  # other chunks of the weights
    one: Any = LinearDiscriminant().fit(X, y, w)
    model: Any = LinearDiscriminant().fit(rows, labels, weights)
    assert not hasattr(model, "feature_names_in_")
    assert_allclose(model.log_joint(X), one.log_joint(X), rtol=1e-9)
    found = model.predict_proba(rows)
    assert found.chunks == ((100, 100, 100, 90), (3,))
    assert_allclose(found.compute(), one.predict_proba(X), rtol=1e-9)
    assert_array_equal(model.predict(rows).compute(), one.predict(X))
    chosen = GenerativeClassifier().fit(rows, labels, weights)
    assert_same_model(GenerativeClassifier().fit(X, y, w), chosen, X)


@pytest.mark.usefixtures("synchronous")
def test_chunks_of_unknown_size() -> None:
    table = whole()
    rows = frames()
    X, y = rows[["length", "visits"]].to_dask_array(), rows["visits"].to_dask_array()
    model: Any = NaiveBayes().fit(X, y)
    expected: Any = NaiveBayes().fit(table[["length", "visits"]].to_numpy(), table["visits"].to_numpy())
    assert_allclose(model.predict_proba(X).compute(), expected.predict_proba(table[["length", "visits"]].to_numpy()))
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        NaiveBayes().fit(X, da.ones(len(table), chunks=-1))
    with pytest.raises(InputError, match="chunk of X has 30 rows, and that of y has 29"):
        NaiveBayes().fit(X, rows.partitions[:].map_partitions(lambda part: part.iloc[1:])["visits"].to_dask_array())


@pytest.mark.usefixtures("synchronous")
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_chunks_of_sparse_rows(kind: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.poisson(0.5, (90, 4)).astype(float), np.arange(90) % 2
    rows, labels = da.from_array(X, chunks=(40, 4)).map_blocks(kind), da.from_array(y, chunks=40)
    for model in (NaiveBayes(), GenerativeClassifier(), SoftmaxRegression()):
        expected: Any = clone(model).fit(scipy.sparse.csr_array(X), y)
        found: Any = clone(model).fit(rows, labels)
        assert_allclose(found.predict_proba(rows).compute(), expected.predict_proba(X), rtol=1e-9)


@pytest.mark.usefixtures("synchronous")
def test_masked_values_are_missing_in_every_chunk() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = rng.normal(size=(90, 2)) + y[:, None]
    X[rng.random(90) < 0.2, 0] = 1e6
    plain = np.where(X > 1e5, np.nan, X)
    rows = da.ma.masked_greater(da.from_array(X, chunks=(40, 2)), 1e5)
    expected = GenerativeClassifier().fit(plain, y)
    assert_same_model(expected, GenerativeClassifier().fit(rows, da.from_array(y, chunks=40)), plain)


@pytest.mark.usefixtures("synchronous")
def test_weights_beside_arrays_without_labels() -> None:
    table = whole(4)
    X, w = table[["length", "visits"]].to_numpy(), table["weight"].to_numpy()
    rows, weights = da.from_array(X, chunks=(40, 2)), da.from_array(w, chunks=40)
    expected = MixtureModel(2, random_state=0).fit(X, sample_weight=w)
    found = MixtureModel(2, random_state=0).fit(rows, sample_weight=weights)
    assert_allclose(found.log_density(X), expected.log_density(X), rtol=1e-9)
    nothing: Any = None
    with pytest.raises(InputError, match="requires y to be passed"):
        NaiveBayes().fit(rows, nothing, weights)


@pytest.mark.usefixtures("synchronous")
def test_another_number_of_rows_in_a_later_pass_is_an_error() -> None:
    sizes = iter(range(20, 1000))

    def load(number: int) -> pd.DataFrame:
        return partition(number).iloc[: next(sizes)]

    with pytest.raises(SourceError, match=r"a DataFrame of Dask, had \d+ rows in one pass and \d+ .*persist"):
        GenerativeClassifier().fit(frames(load, 3), "label")
    X = da.from_delayed(dask.delayed(np.ones)((30, 2)), (20, 2), float)  # which has other rows than it says
    with pytest.raises(SourceError, match="an array of Dask, had 20 rows in one pass and 30"):
        MixtureModel(2).fit(X)


@pytest.mark.usefixtures("workers")
def test_parts_of_other_sources_are_computed_by_workers() -> None:
    source, table = local(), whole()
    model: Any = GenerativeClassifier().fit(on_dask(source), "label")
    assert_same_bits(GenerativeClassifier().fit(local(), "label"), model, table)
    found = model.predict_proba(on_dask(source))
    assert isinstance(found, da.Array)
    assert_allclose(found.compute(), model.predict_proba(table))
    twice = on_dask(source)
    assert on_dask(twice) is twice
    with pytest.raises(InputTypeError, match=r"on_dask needs a source in parts, such as likely\.scan"):
        on_dask(table)


@pytest.mark.usefixtures("workers")
def test_softmax_regression_regressions_and_mixtures_take_partitions() -> None:
    table = whole(4)[["length", "visits", "label"]]
    rows = frames(count=4)[["length", "visits", "label"]]
    softmax: Any = SoftmaxRegression().fit(rows, "label")
    assert_allclose(
        softmax.predict_proba(rows).compute(),
        SoftmaxRegression().fit(table, "label").predict_proba(table),
        atol=1e-9,
    )
    regressor = GenerativeRegressor().fit(rows[["length", "visits"]], "visits")
    expected = GenerativeRegressor().fit(table[["length", "visits"]], "visits")
    assert_allclose(regressor.predict(rows[["length"]]), expected.predict(table[["length"]]), rtol=1e-9)
    X = table[["length", "visits"]].to_numpy()
    mixture = MixtureModel(2, random_state=0).fit(da.from_array(X, chunks=(40, 2)))
    assert mixture.predict(X).shape == (len(X),)


def threads_of(number: int) -> Any:
    with single_thread():
        return worker_count(100), pa.cpu_count()


def test_a_worker_uses_one_thread(workers: Client) -> None:
    assert workers.gather(workers.map(threads_of, range(4), pure=False)) == [(1, 1)] * 4
    before = pa.cpu_count()
    with single_thread(), single_thread():
        assert (worker_count(100), pa.cpu_count()) == (1, 1)
    assert pa.cpu_count() == before


def with_infinity(number: int) -> pd.DataFrame:
    frame = partition(number)
    if number == 3:
        frame.loc[7, "length"] = np.inf
    return frame


@pytest.mark.usefixtures("workers")
def test_an_error_of_a_worker_names_the_cell_and_its_partition() -> None:
    with pytest.raises(InputError, match="Column 'length', row 7: inf") as error:
        NaiveBayes().fit(frames(with_infinity), "label")
    assert error.value.__notes__ == ["Rows are counted from the first row of partition 3."]


def test_errors_are_pickled_as_a_whole() -> None:
    error = CellError(3, 1, -2.0, "is not a count", "use {column}", "visits")
    error.add_note("where")
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.row, other.__notes__) == (str(error), 3, ["where"])
    assert isinstance(other, CellError)
    for kind in (MissingExtraError("dask"), LikelyError("text", 2)):
        assert pickle.loads(pickle.dumps(kind)).args == kind.args


@pytest.mark.usefixtures("synchronous")
def test_labels_and_weights_are_of_dask_too() -> None:
    rows, table = frames(), whole()
    with pytest.raises(InputError, match="y must be the name of a column of X"):
        NaiveBayes().fit(rows, rows["label"])
    with pytest.raises(InputError, match="sample_weight must be the name of a column of X"):
        NaiveBayes().fit(rows, "label", np.ones(len(table)))
    with pytest.raises(InputError, match="'species' is not a column of X"):
        NaiveBayes().fit(rows, "species")
    X = da.ones((40, 2), chunks=10)
    with pytest.raises(InputTypeError, match=r"y must be a Dask array of one dimension.*from_array\(y"):
        NaiveBayes().fit(X, np.arange(40) % 2)
    with pytest.raises(InputError, match="X has 40 rows and y has 30"):
        NaiveBayes().fit(X, da.ones(30, chunks=10))
    with pytest.raises(InputError, match="3 dimensions"):
        NaiveBayes().fit(da.ones((4, 2, 2)), da.ones(4))
    with pytest.raises(InputError, match="X has no rows"):
        NaiveBayes().fit(rows.partitions[4], "label")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "likely.engines.dask")
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(MissingExtraError, match=r'pip install "likely\[dask\]"'):
        import likely.engines.dask  # noqa: F401


def test_frames_in_memory_are_no_objects_of_dask() -> None:
    frame = partition(0)
    assert source_of(frame) is frame
    assert len(frame) == ROWS


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("penalty", [1.0, 0.0])
def test_softmax_regression_sums_where_the_partitions_are(penalty: float, tmp_path: Path) -> None:
    columns = ["length", "visits", "label", "weight"]
    table, log = whole(3)[columns], LoggedLoads(tmp_path / "log")
    table = table[table["label"] != "rare"]

    def load(number: int) -> pd.DataFrame:
        frame = log(number)[columns]
        return frame[frame["label"] != "rare"]

    if not penalty:
        table, drop = table.drop(columns="visits"), ["visits"]  # which separates the classes
    else:
        drop = []
    rows = dd.from_map(load, range(3), meta=load(1).iloc[:0]).drop(columns=drop)
    started = log.reads()
    model: Any = SoftmaxRegression(penalty=penalty, tol=1e-12).fit(rows, "label", sample_weight="weight")
    one: Any = SoftmaxRegression(penalty=penalty, tol=1e-12).fit(table, "label", sample_weight="weight")
    assert_allclose(model.coef_, one.coef_, rtol=1e-9)
    assert model.n_iter_ == one.n_iter_
    # the head, the first pass, the sum of squares where there is a penalty, and at most three passes for each step
    assert log.reads() - started <= 4 + 3 * (model.n_iter_ + 1)


def test_a_draw_of_rows_from_many_partitions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 20)
    sent = []

    def counted(values: Any) -> Any:
        total = add_parts(values)
        sent.append(sum(map(len, total.drawn.numbers)))
        return total

    monkeypatch.setattr(engine, "add_parts", counted)
    with dask.config.set(scheduler="synchronous"):
        sample = RowSample.of(frames(), "label", None)
    assert len(sample.X) == 20
    assert max(sent) <= 20


def test_objects_without_rows_are_named() -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0], "y": ["a"]}), npartitions=1)
    with pytest.raises(InputError, match="X has no rows: a DataFrame of Dask is empty"):
        NaiveBayes().fit(frame[frame["x"] > 1.0], "y")
    with pytest.raises(InputError, match="X has no rows: an array of Dask is empty"):
        LinearDiscriminant().fit(da.zeros((0, 2)), da.zeros(0))


def test_pandas_on_spark_is_an_error_with_its_remedy() -> None:
    kind = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})
    with pytest.raises(InputTypeError, match=r"X\.to_spark\(\)"):
        NaiveBayes().fit(kind(), "y")


def test_a_delayed_object_is_an_error_with_its_remedy() -> None:
    with pytest.raises(InputTypeError, match="from_delayed"):
        NaiveBayes().fit(dask.delayed(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]})), "y")
