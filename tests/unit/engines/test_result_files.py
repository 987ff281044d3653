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
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from likely import EvidenceClassifier, GenerativeRegressor, NaiveBayes, SoftmaxRegression, TextClassifier, scan
from likely.errors import InputError, InputTypeError, LikelyError, LikelyWarning
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
    both = clash.assign(probability_setosa=iris.iloc[:, 0])
    with pytest.raises(
        InputError, match=r"columns 'predicted', 'probability_.*have the names of results.*the columns out"
    ):
        SoftmaxRegression(penalty=1.0).fit(both, target).predict_to(both, path)


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


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, 'b"c'], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 3], ["a", "b"]),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_any_layout_are_written(tmp_path: Path, iris: pd.DataFrame, suffix: str, column: pa.Array) -> None:
    rows = pa.Table.from_pandas(iris[:3], preserve_index=False).append_column("odd", column)
    path = tmp_path / f"out{suffix}"
    NaiveBayes().fit(iris, iris.columns[-1]).predict_to(rows, path, keep=["odd"])
    found = pd.read_csv(path) if suffix == ".csv" else pq.read_table(path).to_pandas()
    wanted = [text.decode() if isinstance(text, bytes) and suffix == ".csv" else text for text in column.to_pylist()]
    assert [None if pd.isna(text) else text for text in found["odd"]] == wanted


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1], [2]]), r"'odd' of type list<item: int64> cannot be written to a \.csv file.* \.parquet"),
        (pa.array([b"\xff", b""]), r"'odd' of type binary cannot be written to a \.csv file"),
        (pd.Series([1, "a"]), "'odd' has values of several types.*keep="),
        (pd.Series([1j, 2]), "'odd' has values of several types, or of a type that no file has"),
        (pl.Series([iter(()), 2], dtype=pl.Object), "'odd' has Python objects"),
    ],
)
def test_a_column_that_no_file_has_is_named_and_can_be_left_out(
    tmp_path: Path, iris: pd.DataFrame, column: Any, message: str
) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    if isinstance(column, pa.Array):
        rows: Any = pa.Table.from_pandas(iris[:2], preserve_index=False).append_column("odd", column)
    else:
        rows = (
            iris[:2].assign(odd=column)
            if isinstance(column, pd.Series)
            else pl.from_pandas(iris[:2]).with_columns(column.alias("odd"))
        )
    with pytest.raises(InputError, match=message):
        model.predict_to(rows, tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())
    assert model.predict_to(rows, tmp_path / "out.csv", keep=[]) == 2


def test_columns_whose_names_are_numbers_keep_their_order(tmp_path: Path, iris: pd.DataFrame) -> None:
    X = pd.DataFrame({7: iris.iloc[:, 0], 0: iris.iloc[:, 1]})
    model = NaiveBayes().fit(X, iris.iloc[:, -1])
    model.predict_to(X, tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert found.columns.tolist()[:2] == ["7", "0"]
    assert_array_equal(found[["7", "0"]], X)
    model.predict_to(X, tmp_path / "out.csv", keep=[0])
    assert pd.read_csv(tmp_path / "out.csv").columns.tolist()[:2] == ["0", "predicted"]


def test_later_chunks_have_the_columns_of_the_first_in_any_order(tmp_path: Path, iris: pd.DataFrame) -> None:
    class Two:
        def __init__(self, *chunks: pd.DataFrame) -> None:
            self._chunks = chunks

        def chunks(self) -> Any:
            return iter(self._chunks)

    model, path = NaiveBayes().fit(iris, iris.columns[-1]), tmp_path / "out.csv"
    model.predict_to(Two(iris[:9], iris[9:][iris.columns[::-1]]), path)
    pd.testing.assert_frame_equal(pd.read_csv(path)[iris.columns], iris)
    model.predict_to(Two(iris[:9], iris[9:]), path, keep=iter(["Species"]))
    assert pd.read_csv(path)["Species"].tolist() == iris["Species"].tolist()
    with pytest.raises(InputError, match="chunk from row 9 on has no column 'Species'"):
        model.predict_to(Two(iris[:9], iris[9:].drop(columns="Species")), path)
    with pytest.raises(InputError, match="'id' has the type double in later rows, and int64"):
        model.predict_to(Two(iris[:9].assign(id=1), iris[9:].assign(id=0.5)), path)
    with pytest.raises(InputError, match="chunk from row 9 on has the column 'id', and the first chunk has not"):
        model.predict_to(Two(iris[:9], iris[9:].assign(id=1)), path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_do_not_replace_the_rows_that_they_are_of(tmp_path: Path, iris: pd.DataFrame, suffix: str) -> None:
    model = NaiveBayes().fit(iris, iris.columns[-1])
    for i, part in enumerate((iris[:50], iris[50:])):
        write = pd.DataFrame.to_csv if suffix == "csv" else pd.DataFrame.to_parquet
        write(part, tmp_path / f"{i}.{suffix}", index=False)
    rows, path = scan(tmp_path), tmp_path / f"0.{suffix}"
    before = path.read_bytes()
    for source in (rows, scan(path)):
        with pytest.raises(InputError, match=f"0.{suffix}' is a file that X reads"):
            model.predict_to(source, tmp_path / "." / f"0.{suffix}")
    assert path.read_bytes() == before
    assert model.predict_to(rows, tmp_path / f"new.{suffix}") == 150


def test_labels_beyond_64_bits_are_an_error_and_unsigned_labels_are_not(tmp_path: Path) -> None:
    X, path = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]}), tmp_path / "out.csv"
    large = np.array([0, 0, 2**64 - 1, 2**64 - 1], dtype=np.uint64)
    NaiveBayes().fit(X, large).predict_to(X, path, keep=[])
    assert pd.read_csv(path)["predicted"].tolist() == large.tolist()
    with pytest.raises(InputError, match="Use text labels"):
        NaiveBayes().fit(X, np.array([0, 0, 2**70, 2**70], dtype=object)).predict_to(X, path)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("source", [lambda f: f, Chunks, pl.from_pandas])
def test_predictions_of_a_regressor_are_those_of_its_methods(
    tmp_path: Path, iris: pd.DataFrame, outputs: int, source: Any
) -> None:
    names = list(iris.columns[:-1])
    targets = names[2:] if outputs == 2 else names[3]
    model = GenerativeRegressor().fit(iris[names], targets)
    path = tmp_path / "out.parquet"
    assert model.predict_to(source(iris), path, keep=[iris.columns[-1]], std=True, level=0.8, prefix="m_") == len(iris)
    found = pd.read_parquet(path)
    mean, deviation = model.predict(iris, return_std=True)
    interval = model.predict_interval(iris, level=0.8)
    ends = [f"_{name}" for name in targets] if outputs == 2 else [""]
    expected = {"predicted": mean, "std": deviation, "lower": interval[..., 0], "upper": interval[..., 1]}
    assert found.columns.tolist() == [iris.columns[-1], *(f"m_{part}{end}" for part in expected for end in ends)]
    for part, values in expected.items():
        columns = [f"m_{part}{end}" for end in ends]
        np.testing.assert_allclose(found[columns].to_numpy(), values.reshape(len(iris), -1), rtol=1e-12)
    assert model.predict_to(iris, path, keep=[]) == len(iris)
    assert pd.read_parquet(path).columns.tolist() == [f"predicted{end}" for end in ends]


def test_rows_beyond_the_limit_of_numbers_have_no_predictions_by_a_regressor(
    tmp_path: Path, iris: pd.DataFrame
) -> None:
    names = list(iris.columns[:-1])
    model = GenerativeRegressor().fit(iris[names], names[0])
    far = iris.assign(**{names[1]: iris[names[1]].where(iris.index != 7, 1e300)})
    with pytest.warns(LikelyWarning, match="1 row has no prediction"):
        model.predict_to(far, tmp_path / "out.parquet", keep=[])
    found = pd.read_parquet(tmp_path / "out.parquet")["predicted"]
    assert found.isna().to_numpy().nonzero()[0].tolist() == [7]
    for options in ({"level": 1.0}, {"prefix": 3}):
        with pytest.raises(LikelyError, match=next(iter(options))):
            model.predict_to(iris, tmp_path / "out.csv", **options)
