"""DataFrames of Spark: the same models as from rows in memory. `make test-spark` runs these tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely import (
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import InputError, SourceError
from tests.pages import ROOT
from tests.unit.engines import partitions
from tests.unit.engines.partitions import PARTITIONS, assert_same_bits, assert_same_model, local, partition, whole

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SCHEMA = "length double, width double, colour string, label string, weight double, visits long"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Spark on two threads, where a task may fail twice."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    cloudpickle.register_pickle_by_value(partitions)  # executors do not find the tests
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()


class Loads:
    """Partitions, and for each time that one is read a line in a file."""

    def __init__(self, log: Path | None = None, unlabeled: bool = False, kill: int | None = None) -> None:
        self.log, self.unlabeled, self.kill = None if log is None else str(log), unlabeled, kill

    def __call__(self, number: int) -> pd.DataFrame:
        frame = partition(number)
        if self.unlabeled:
            frame.loc[frame.index % 3 > 0, "label"] = None
        if self.log is None:
            return frame
        with open(self.log, "a+") as file:  # noqa: PTH123 - in an executor
            file.seek(0)
            before = file.read().splitlines()
            file.write(f"{number}\n")
            file.flush()
        if self.kill == number and str(number) not in before:
            os.kill(os.getpid(), signal.SIGKILL)
        return frame

    def reads(self) -> int:
        return len(Path(str(self.log)).read_text().splitlines())


def rows(spark: Any, load: Any = partition, count: int = PARTITIONS) -> Any:
    """A DataFrame whose partition i is load(i)."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from pa.Table.from_pandas(load(number), preserve_index=False).to_batches()

    return spark.range(0, count, 1, count).mapInArrow(read, SCHEMA)


MODELS = [NaiveBayes({"length": Gaussian(), "width": Gaussian()}), NaiveBayes(estimation="map"), GenerativeClassifier()]


def clone(model: Any) -> Any:
    return type(model)(**model.get_params(deep=False))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.estimation}")
def test_spark_fits_the_model_of_one_frame(spark: Any, model: Any) -> None:
    table = whole()
    found = clone(model).fit(rows(spark), "label", sample_weight="weight")
    assert set(found.classes_) == {"ä b", "usual", "rare"}
    assert_same_model(clone(model).fit(table, "label", sample_weight="weight"), found, table)
    assert_same_bits(clone(model).fit(local(), "label", sample_weight="weight"), found, table)


def test_executors_add_the_parts_in_the_tree_of_threads(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from likely.engines import spark as engine

    monkeypatch.setattr(engine, "MOST_COLLECTED", 1)  # 14 parts in 2 sums, and these in one
    found = clone(MODELS[0]).fit(rows(spark), "label")
    assert_same_bits(clone(MODELS[0]).fit(local(), "label"), found, whole())


def test_a_task_that_is_run_again_does_not_change_a_bit(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    model = NaiveBayes(estimation="map").fit(rows(spark, Loads(log, kill=13)), "label")
    reads = log.read_text().splitlines()
    assert reads.count("13") > reads.count("12")
    assert_same_bits(NaiveBayes(estimation="map").fit(local(), "label"), model, whole())


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_unlabeled_rows_take_one_pass_for_each_iteration(spark: Any, tmp_path: Path) -> None:
    families, columns = {"length": Gaussian(), "width": Gaussian()}, ["length", "width", "label"]
    reads = []
    for i, iterations in enumerate((1, 4)):
        load = Loads(tmp_path / str(i), unlabeled=True)
        model = GenerativeClassifier(families, calibration=None, unlabeled_weight=1.0, max_iter=iterations, tol=0.0)
        model.fit(rows(spark, load, 3).select(columns), "label")
        assert model.n_iter_ == iterations
        reads.append((tmp_path / str(i)).read_text().splitlines().count("2"))
    assert reads[1] - reads[0] == 3
    frame = pd.concat([Loads(unlabeled=True)(i) for i in range(3)], ignore_index=True)[columns]
    assert_same_model(clone(model).fit(frame, "label"), model, frame)


def test_predictions_are_columns_beside_those_of_the_rows(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    table = whole().drop(columns="weight")
    model: Any = GenerativeClassifier().fit(table, "label")
    log = tmp_path / "log"
    frame = rows(spark, Loads(log)).withColumn("id", functions.spark_partition_id())
    found, labels = model.predict_proba(frame), model.predict(frame)
    assert not log.exists()
    names = [f"probability_{label}" for label in model.classes_]
    assert found.columns == [*frame.columns, "predicted", *names]
    assert labels.columns == [*frame.columns, "predicted"]
    result = found.toArrow().to_pandas()
    assert_array_equal(result["id"], np.repeat([i for i in range(PARTITIONS) if i != 4], partitions.ROWS))
    assert_array_equal(result["length"], table["length"])
    assert_allclose(result[names], model.predict_proba(table), rtol=1e-12)
    for each in (result, labels.toArrow().to_pandas()):
        assert_array_equal(each["predicted"], model.predict(table))


@pytest.mark.parametrize("kind", [int, float, bool])
def test_labels_keep_their_type(spark: Any, kind: Any) -> None:
    table = whole()[["length", "visits"]]
    table["visits"] = (table["visits"] - 1).astype(kind)
    frame = spark.createDataFrame(pa.Table.from_pandas(table, preserve_index=False))
    model: Any = LinearDiscriminant().fit(frame, "visits")
    expected = LinearDiscriminant().fit(table, "visits")
    assert_array_equal(model.classes_, expected.classes_)
    assert model.classes_.dtype == expected.classes_.dtype
    predicted = model.predict(frame).toArrow().to_pandas()["predicted"]
    assert predicted.dtype == expected.classes_.dtype
    assert_array_equal(predicted, expected.predict(table))


def test_other_methods_read_the_rows_by_the_driver(spark: Any) -> None:
    table = whole()
    model = QuadraticDiscriminant().fit(table[["length", "label"]], "label")
    frame = rows(spark).select("length")
    assert_allclose(model.log_density(frame), model.log_density(table[["length"]]), rtol=1e-12)
    assert_array_equal(model.decide(frame, reject=0.1).action, model.decide(table[["length"]], reject=0.1).action)
    assert_allclose(model.adapt_prior(frame).class_prior_, model.adapt_prior(table[["length"]]).class_prior_)
    assert model.score(rows(spark).select("length", "label"), "label") == model.score(
        table[["length", "label"]], "label"
    )


def test_names_of_columns_may_have_dots_and_differ_by_case(spark: Any) -> None:
    names = {"length": "a.b`c", "width": "A.b`C", "label": "the label", "visits": "n; '"}
    table = whole(3)[list(names)].rename(columns=names)
    frame = rows(spark, count=3).select(*names).toDF(*names.values())
    model: Any = GenerativeClassifier().fit(frame, "the label")
    assert_same_model(GenerativeClassifier().fit(table, "the label"), model, table)
    found = model.predict_proba(frame)
    assert found.columns[:4] == list(names.values())
    assert_allclose([row[-2] for row in found.collect()], model.predict_proba(table)[:, 0], rtol=1e-12)


def test_errors_of_spark_are_errors_of_the_library(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    frame = rows(spark, count=2)
    with pytest.raises(SourceError, match=r"Spark could not compute the DataFrame.*CAST_INVALID_INPUT"):
        NaiveBayes().fit(frame.withColumn("number", functions.expr("cast(colour as int)")), "label")
    twice = frame.select("length", functions.lit(1).alias("q"), functions.lit(2).alias("q"))
    with pytest.raises(SourceError, match="a DataFrame of Spark has duplicate column names: 'q'"):
        NaiveBayes().fit(whole(2)[["length", "label"]], "label").predict(twice)
    log = Loads(tmp_path / "log")
    with pytest.raises(SourceError, match=r"a DataFrame of Spark, had \d+ rows in one pass and \d+ .*persist"):
        NaiveBayes().fit(rows(spark, lambda number: log(number).iloc[: log.reads()], 1), "label")


def with_infinity(number: int) -> pd.DataFrame:
    frame = partition(number)
    if number == 3:
        frame.loc[7, "length"] = np.inf
    return frame


def test_bad_input_is_an_error_of_the_library(spark: Any) -> None:
    frame, table = rows(spark), whole()
    with pytest.raises(InputError, match="Column 'length', row 7: inf") as error:
        NaiveBayes().fit(rows(spark, with_infinity), "label")
    assert error.value.__notes__ == ["Rows are counted from the first row of partition 3."]
    with pytest.raises(InputError, match="y must be the name of a column of X"):
        NaiveBayes().fit(frame, table["label"])
    with pytest.raises(InputError, match="'species' is not a column of X"):
        NaiveBayes().fit(frame, "species")
    with pytest.raises(InputError, match="X has no rows"):
        NaiveBayes().fit(frame.where("visits > 9"), "label")
    model = NaiveBayes().fit(table[["length", "label"]], "label")
    with pytest.raises(InputError, match="Use predict_proba"):
        model.predict_log_proba(frame)
    with pytest.raises(InputError, match=r"'predicted' of the rows has the name of a result\. Rename"):
        model.predict(frame.withColumnRenamed("visits", "predicted"))
    with pytest.raises(InputError, match="no column 'length'"):
        model.predict(frame.drop("length"))
    with pytest.raises(InputError, match="Fit it to a frame"):
        NaiveBayes().fit(table[["length"]].to_numpy(), table["label"]).predict(frame)


MISSING = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from likely import NaiveBayes
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.executorEnv.PYTHONPATH", sys.argv[1]).getOrCreate())
try:
    NaiveBayes().fit(spark.createDataFrame([(1.0, "a"), (2.0, "b")], "x double, y string"), "y")
except Exception as error:
    print(type(error).__name__, error)
"""
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "likely":
            raise ModuleNotFoundError("No module named 'likely'", name=name)
sys.meta_path.insert(0, Hidden())
"""


def test_executors_without_likely_are_an_error_that_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MISSING, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert re.search(r"InputError The Python of the Spark executors has no package 'likely'\. Install", run.stdout), (
        run.stdout + run.stderr[-3000:]
    )
    assert sys.executable in run.stdout


@pytest.mark.usefixtures("spark")
def test_the_examples_for_spark_in_the_guide_run() -> None:
    page = (ROOT / "docs" / "dask-and-spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```$\n\n^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    import io
    from contextlib import chdir, redirect_stdout

    names: dict[str, Any] = {}
    for code, shown in blocks:
        with chdir(ROOT), redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        assert out.getvalue() == shown


def test_softmax_regression_sums_on_the_executors(spark: Any) -> None:
    table = whole()[["length", "visits", "label"]]
    frame = rows(spark).select("length", "visits", "label")
    model: Any = SoftmaxRegression(tol=1e-12).fit(frame, "label")
    one: Any = SoftmaxRegression(tol=1e-12).fit(table, "label")
    assert_allclose(model.coef_, one.coef_, rtol=1e-8)
    assert model.n_iter_ == one.n_iter_
