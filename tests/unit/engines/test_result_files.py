"""Predictions in files: the numbers of predict_proba, in the order of the rows, and a file that is whole or absent."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from likely import EvidenceClassifier, NaiveBayes, SoftmaxRegression, TextClassifier
from likely.errors import InputError, InputTypeError, LikelyError
from tests.helpers import load_table


@pytest.fixture(scope="module")
def iris() -> pd.DataFrame:
    return load_table("iris")


class Chunks:
    """A frame in chunks; the last one may fail."""

    def __init__(self, frame: Any, fails: bool = False) -> None:
        self.frame, self.fails = frame, fails

    def chunks(self) -> Any:
        for i in range(0, len(self.frame), 40):
            if self.fails and i:
                raise KeyboardInterrupt
            yield self.frame[i : i + 40]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("source", [lambda f: f, Chunks, pl.from_pandas, pa.Table.from_pandas])
def test_a_file_has_the_rows_and_their_probabilities(
    tmp_path: Path, iris: pd.DataFrame, suffix: str, source: Any
) -> None:
    target = iris.columns[-1]
    model = NaiveBayes().fit(iris, target)
    path = tmp_path / f"out{suffix}"
    assert model.predict_to(source(iris), path, log_density=True, typicality=True) == len(iris)
    found = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    labels = [f"probability_{label}" for label in model.classes_]
    assert found.columns.tolist() == [*iris.columns, "predicted", *labels, "log_density", "typicality"]
    np.testing.assert_allclose(found[labels], model.predict_proba(iris), rtol=1e-14)
    assert found["predicted"].tolist() == model.predict(iris).tolist()
    np.testing.assert_allclose(found["log_density"], model.log_density(iris), rtol=1e-14)
    np.testing.assert_allclose(found["typicality"], model.typicality(iris), rtol=1e-14)
    pd.testing.assert_frame_equal(found[iris.columns], iris, check_dtype=False)


def test_columns_to_keep_and_a_prefix(tmp_path: Path, iris: pd.DataFrame) -> None:
    target = iris.columns[-1]
    model = SoftmaxRegression(penalty=1.0).fit(iris, target)
    path = tmp_path / "out.parquet"
    model.predict_to(iris, path, keep=[target], prefix="m_")
    assert pd.read_parquet(path).columns.tolist()[:2] == [target, "m_predicted"]
    model.predict_to(iris, path, keep=[])
    assert pd.read_parquet(path).columns.tolist()[0] == "predicted"
    clash = iris.assign(predicted=0)
    with pytest.raises(InputError, match=r"'predicted' of the rows has the name of a result\. Set prefix="):
        SoftmaxRegression(penalty=1.0).fit(clash, target).predict_to(clash, path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "x.json"}, r"files end with \.csv or \.parquet"),
        ({"keep": ["nothing"]}, "keep names the column 'nothing'.* There are: "),
        ({"keep": ["Sepal.length"]}, "'Sepal.length', which is not in X. Did you mean 'Sepal.Length'"),
        ({"keep": "some"}, "neither 'all' nor a list"),
    ],
)
def test_wrong_options_leave_no_file(tmp_path: Path, iris: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    name = options.pop("path", "x.csv")
    with pytest.raises(InputError, match=message):
        model.predict_to(iris, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_wrong_types_are_named(tmp_path: Path, iris: pd.DataFrame) -> None:
    model = EvidenceClassifier(n_trees=2).fit(iris, iris.columns[-1])
    with pytest.raises(InputTypeError, match="path=3"):
        model.predict_to(iris, 3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="prefix=1"):
        model.predict_to(iris, tmp_path / "a.csv", prefix=1)  # type: ignore[arg-type]


def test_an_interrupt_leaves_the_old_file(tmp_path: Path, iris: pd.DataFrame) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        model.predict_to(Chunks(iris, fails=True), path)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


def test_documents_of_a_list_are_written(tmp_path: Path) -> None:
    model = TextClassifier().fit(["win a free prize", "see you at home"] * 3, ["spam", "ham"] * 3)
    model.predict_to(["a prize", "home"], tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["predicted"].tolist() == ["spam", "ham"]


SLOW = """
import sys, time
import pandas as pd
from likely import NaiveBayes
frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0, 0, 1, 1]})
class Slow:
    def chunks(self):
        while True:
            yield frame
            print("read", flush=True)
            time.sleep(0.01)
NaiveBayes().fit(frame, "y").predict_to(Slow(), sys.argv[1])
"""


def test_a_killed_process_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    with subprocess.Popen([sys.executable, "-c", SLOW, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"read\n"
        process.send_signal(signal.SIGKILL)
    assert not path.exists()
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0, 0, 1, 1]})
    NaiveBayes().fit(frame, "y").predict_to(frame, path)  # removes the draft
    assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]


def test_a_full_disk_is_an_error_that_leaves_no_file(
    tmp_path: Path, iris: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    opened = Path.open

    def full(self: Path, mode: str = "r", **options: Any) -> Any:
        if mode == "xb":
            self.touch()  # the draft, whose writes fail
            return opened(Path("/dev/full"), "wb")
        return opened(self, mode, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"):
        model.predict_to(Chunks(pd.concat([iris] * 50)), tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_the_model_does_not_know_are_kept_and_not_used(
    tmp_path: Path, iris: pd.DataFrame, suffix: str
) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    more = iris.assign(id=range(len(iris)), predicted="by hand").iloc[::2]  # with an index that is not 0, 1, ...
    path = tmp_path / f"out{suffix}"
    model.predict_to(more, path, keep=["id"])
    found = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert found.columns.tolist()[:2] == ["id", "predicted"]
    assert found["id"].tolist() == more["id"].tolist()
    assert_array_equal(found["predicted"], model.predict(iris.iloc[::2]))
    model.predict_to(more, path, prefix="model_")
    found = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert found.columns.tolist()[: iris.shape[1] + 3] == [*iris.columns, "id", "predicted", "model_predicted"]


def test_rows_and_columns_that_cannot_be_written_are_errors_of_the_library(tmp_path: Path, iris: pd.DataFrame) -> None:
    model, path = NaiveBayes().fit(iris, iris.columns[-1]), tmp_path / "out.parquet"
    rows: list[Any] = [None, "rows.csv", iter([iris])]
    for X in rows:
        with pytest.raises(LikelyError, match=r"scan|X"):
            model.predict_to(X, path)
    wrong: list[Any] = [None, ["Species", "Species"], 3]
    for keep in wrong:
        with pytest.raises(InputError, match="keep="):
            model.predict_to(iris, path, keep=keep)
    with pytest.raises(InputError, match="several types"):
        model.predict_to(iris.assign(mixed=["a", 1] * 75), path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_error_in_a_later_chunk_leaves_no_writer_behind(tmp_path: Path, iris: pd.DataFrame, suffix: str) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    with pytest.raises(KeyboardInterrupt):
        model.predict_to(Chunks(iris, fails=True), tmp_path / f"out{suffix}")
    gc.collect()  # warnings of finalisers are errors
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("Model", [NaiveBayes, SoftmaxRegression, EvidenceClassifier])
def test_errors_name_the_row_of_the_source(tmp_path: Path, iris: pd.DataFrame, Model: Any) -> None:
    features = iris.columns[0]
    model = Model().fit(iris, iris.columns[-1])
    bad = iris.copy()
    bad.loc[101, features] = np.inf
    with pytest.raises(InputError, match=f"'{features}', row 101: inf"):
        model.predict_to(Chunks(bad), tmp_path / "out.csv")


def test_documents_in_chunks_of_lists_are_written(tmp_path: Path) -> None:
    documents = ["red sweet fruit", "green bitter root", "sweet red", "bitter green"] * 30
    model = TextClassifier().fit(documents, [0, 1, 0, 1] * 30)
    assert model.predict_to(Chunks(documents), tmp_path / "out.csv") == 120
    assert pd.read_csv(tmp_path / "out.csv")["predicted"].tolist() == [0, 1, 0, 1] * 30
