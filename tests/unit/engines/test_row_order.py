"""Scores of rows whose order changes between passes, and rows whose columns have different types in some parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likely import (
    EvidenceClassifier,
    GenerativeRegressor,
    Imputer,
    LinearDiscriminant,
    NaiveBayes,
    SoftmaxRegression,
    TextClassifier,
    cross_validate,
    scan,
)
from likely.errors import InputError


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    label = rng.choice(["a", "b"], 300, p=[0.7, 0.3])
    x = rng.normal(size=300) + 2.0 * (label == "b")
    return pd.DataFrame({"x": x, "z": 2 * x + rng.normal(size=300), "label": label, "weight": rng.integers(1, 4, 300)})


def shuffled(frame: pd.DataFrame) -> Any:
    """A query that returns the rows in another order at every call."""
    connection = duckdb.connect()
    connection.register("the_rows", pa.Table.from_pandas(frame, preserve_index=False))
    return scan(sql="select * from the_rows order by random()", connection=connection)


@pytest.mark.parametrize(
    "model", [NaiveBayes(), LinearDiscriminant(), SoftmaxRegression(), EvidenceClassifier(["columns"])]
)
def test_scores_do_not_depend_on_the_order_of_a_query(rows: pd.DataFrame, model: Any) -> None:
    model.fit(rows, "label", sample_weight="weight")
    for weight in ("weight", None):
        assert model.score(shuffled(rows), "label", weight) == pytest.approx(model.score(rows, "label", weight), 1e-12)
        found, wanted = (model.reliability(X, "label", sample_weight=weight) for X in (shuffled(rows), rows))
        np.testing.assert_allclose(found.observed, wanted.observed, rtol=1e-12)


def test_scores_of_regressions_and_documents_do_not_depend_on_the_order_of_a_query(rows: pd.DataFrame) -> None:
    numbers = rows.drop(columns="label")
    regressor = GenerativeRegressor().fit(numbers, "z", sample_weight="weight")
    wanted = regressor.score(numbers, "z", "weight")
    assert regressor.score(shuffled(numbers), "z", "weight") == pytest.approx(wanted, 1e-12)
    documents = pd.DataFrame({"text": ["red fruit", "bitter root", "sweet fruit"] * 40, "label": ["a", "b", "a"] * 40})
    assert TextClassifier().fit(documents, "label").score(shuffled(documents), "label") == 1.0


def test_a_score_reads_a_reader_once_and_names_the_row_of_the_source(rows: pd.DataFrame) -> None:
    model = NaiveBayes().fit(rows.drop(columns="weight"), "label")
    table = pa.Table.from_pandas(rows.drop(columns="weight"), preserve_index=False)
    assert model.score(table.to_reader(max_chunksize=64), "label") == model.score(table, "label")
    labels = rows["label"].astype(object).where(rows.index != 250, None)
    missing = table.set_column(2, "label", pa.array(labels))
    for method in (model.score, model.reliability):
        with pytest.raises(InputError, match="y, row 250: the label is missing"):
            method(missing.to_reader(max_chunksize=64), "label")


def test_projections_of_a_reader_are_those_of_its_rows(rows: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(rows, preserve_index=False)
    found = LinearDiscriminant().fit_transform(table.to_reader(max_chunksize=64), "label", "weight")
    np.testing.assert_allclose(found, LinearDiscriminant().fit_transform(rows, "label", "weight"), rtol=1e-9)


def test_files_with_few_and_with_many_values_of_a_column_are_read_together(tmp_path: Path) -> None:
    sizes = {"0": 60, "1": 3_000}  # the second file has no dictionary of the names
    for name, size in sizes.items():
        names = [f"a name with a number, {i % 7 if name == '0' else i}" for i in range(size)]
        pq.write_table(
            pa.table({"x": np.arange(float(size)) % 5, "c": names, "label": ["a", "b"] * (size // 2)}),
            tmp_path / f"{name}.parquet",
        )
    model = NaiveBayes().fit(scan(tmp_path), "label")
    assert model.statistics_.counts.rows.tolist() == [1530, 1530]
    types = {tuple(chunk.schema.types) for part in scan(tmp_path).parts() for chunk in part.chunks()}
    assert len(types) == 1


def test_a_file_without_any_label_is_read_beside_others(tmp_path: Path, rows: pd.DataFrame) -> None:
    pq.write_table(pa.table({"x": [0.5, 1.5], "label": pa.nulls(2)}), tmp_path / "0.parquet")
    pq.write_table(pa.Table.from_pandas(rows[["x", "label"]], preserve_index=False), tmp_path / "1.parquet")
    assert NaiveBayes().fit(scan(tmp_path), "label").classes_.tolist() == ["a", "b"]


def test_an_imputer_takes_labels_of_a_source_and_refuses_those_that_its_model_does_not_use(rows: pd.DataFrame) -> None:
    frame = rows.drop(columns="weight")
    frame.loc[::5, "z"] = np.nan
    table, X = pa.Table.from_pandas(frame, preserve_index=False), frame[["x", "z"]]
    found, wanted = (Imputer(NaiveBayes()).fit(source, "label").transform(X) for source in (table.to_reader(), frame))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    with pytest.raises(InputError, match="MixtureModel uses no labels"):
        Imputer().fit(table.to_reader(), "label")
    with pytest.raises(InputError, match="fit_transform needs the rows in memory"):
        Imputer().fit_transform(table.select(["x", "z"]).to_reader())


def test_labels_beside_rows_without_a_fixed_order_are_an_error_of_cross_validation(rows: pd.DataFrame) -> None:
    lazy = pl.from_pandas(rows[["x", "z"]]).lazy()
    with pytest.raises(InputError, match="y must be the name of a column of X"):
        cross_validate(NaiveBayes(), lazy, rows["label"])
    with pytest.raises(InputError, match="sample_weight must be the name of a column of X"):
        cross_validate(GenerativeRegressor(), lazy, ["z"], sample_weight=rows["weight"])


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame, pa.table, pd.DataFrame])
def test_a_target_without_any_other_column_is_an_error(frame: Any) -> None:
    with pytest.raises(InputError, match="X has no columns"):
        NaiveBayes().fit(frame({"label": ["a", "b"]}), "label")


class Chunks:
    def __init__(self, *chunks: Any) -> None:
        self._chunks = chunks

    def chunks(self) -> Any:
        return iter(self._chunks)


def test_chunks_that_cannot_be_joined_are_errors_of_the_library(rows: pd.DataFrame) -> None:
    text = rows.assign(c="k").drop(columns="weight")
    arrow, polars = pa.Table.from_pandas(text, preserve_index=False), pl.from_pandas(text)
    coded = arrow.set_column(3, "c", arrow["c"].dictionary_encode())
    assert EvidenceClassifier(["columns"]).fit(Chunks(arrow, coded), "label").classes_.tolist() == ["a", "b"]
    numbers = arrow.set_column(3, "c", pa.array([1] * 300))
    categorical, enum = (polars.with_columns(pl.col("c").cast(kind)) for kind in (pl.Categorical, pl.Enum(["k"])))
    for message, chunks in {
        "columns of different types .*c.* Convert them": (arrow, numbers),
        "columns of different types": (categorical, enum),
        "of pandas and others of pyarrow": (text, arrow),
    }.items():
        with pytest.raises(InputError, match=message):
            EvidenceClassifier(["columns"]).fit(Chunks(*chunks), "label")


def test_categories_that_are_no_text_are_found_in_late_rows(rows: pd.DataFrame) -> None:
    column = pd.Series(["k", "l"] * 148 + [1, 2, 1, 1], dtype=object)  # narwhals infers text from the first rows
    frame = rows[["label"]].assign(c=column)
    model = NaiveBayes().fit(frame, "label")
    (block,) = model.model_.blocks
    assert block.conditionals.vocabularies == ((1, 2, "k", "l"),)


def test_labels_beside_a_source_are_an_error_of_fits_and_cross_validation(rows: pd.DataFrame, tmp_path: Path) -> None:
    """Its column of labels would be a feature."""
    rows.to_parquet(tmp_path / "rows.parquet")
    source = scan(tmp_path / "rows.parquet")
    for labels in (rows["label"], rows["label"].tolist()):
        with pytest.raises(InputError, match="y must be the name of a column"):
            NaiveBayes().fit(source, labels)
        with pytest.raises(InputError, match="y must be the name of a column"):
            cross_validate(NaiveBayes(), source, labels)
