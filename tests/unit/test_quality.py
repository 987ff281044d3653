"""The benchmark of probability quality: measures, folders of tables, classes with few rows, cached peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from benchmarks.few_rows import split
from benchmarks.quality import curves, models, report, tables, validation
from benchmarks.quality.cache import Cache
from benchmarks.quality.command import quality
from benchmarks.quality.measures import calibration_error, difference, ranks, values
from benchmarks.quality.models import Model
from benchmarks.quality.tables import Table
from benchmarks.quality.validation import Failure, Result


class Proportions:
    """Class proportions of the training rows."""

    def fit(self, X: Any, y: Any) -> Proportions:
        self.proportions = np.bincount(y) / len(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.tile(self.proportions, (len(X), 1))


PROPORTIONS = Model("Proportions", "scikit-learn", Proportions)


def result(confidence: Any, correct: Any, loss: Any = 0.0) -> Result:
    confidence = np.atleast_2d(np.asarray(confidence, dtype=float))
    return Result(np.broadcast_to(loss, confidence.shape), confidence, np.atleast_2d(correct), 0.0)


def mixed_table(rows: int = 60, seed: int = 0) -> Table:
    """Numbers, truth values and text with missing values; the labels depend on the numbers."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], rows)
    X = pd.DataFrame(
        {
            "length [mm]": (y == "a") * 2.0 + rng.normal(size=rows),
            "flag": rng.random(rows) < 0.5,
            "colour": rng.choice(["red", "green", "blue"], rows),
        }
    )
    X.loc[::7, "length [mm]"] = np.nan
    X.loc[::9, "colour"] = None
    return Table("mixed", X, y.astype(object))


def test_the_loss_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels, posterior = np.array(["a", "b", "c"], dtype=object), rng.dirichlet(np.ones(3), 50)
    y = rng.choice(labels, 50)
    expected = log_loss(y, posterior, labels=labels)
    assert validation.losses(posterior, labels, y).mean() == pytest.approx(expected, rel=1e-12)


def test_a_probability_of_zero_costs_the_logarithm_of_the_smallest_one() -> None:
    labels = np.array(["a", "b"], dtype=object)
    assert validation.losses(np.array([[1.0, 0.0]]), labels, ["b"])[0] == pytest.approx(15 * np.log(10))


def test_each_row_is_held_out_once_per_repeat() -> None:
    y = mixed_table().y
    held_out = np.zeros((2, len(y)), dtype=int)
    for repeat, train, test in validation.splits(y):
        assert not set(train) & set(test)
        held_out[repeat, test] += 1
    assert (held_out == 1).all()


def test_a_class_without_training_rows_gets_probability_zero() -> None:
    table = mixed_table()
    y = table.y.copy()
    y[0] = "rare"
    found = validation.result(PROPORTIONS, Table("rare", table.X, y), Cache(None))
    assert isinstance(found, Result)
    np.testing.assert_allclose(found.loss[:, 0], 15 * np.log(10), rtol=1e-5)
    assert found.loss[:, 1:].max() < 3


def test_the_calibration_error_of_groups_with_known_accuracy() -> None:
    """15 bins of 20 rows; bin b is correct in b of 20 rows, at confidence 0.9."""
    correct = np.concatenate([np.arange(20) < b for b in range(15)])
    confidence = np.repeat(0.9 + 1e-9 * np.arange(15), 20)
    expected = np.mean([abs(0.9 - b / 20) for b in range(15)])
    assert calibration_error(result(confidence, correct)) == pytest.approx(expected, abs=1e-6)


def test_the_order_of_rows_with_equal_confidence_does_not_change_the_calibration_error() -> None:
    correct = np.arange(300) < 240
    assert calibration_error(result(np.full(300, 0.8), correct)) == pytest.approx(0, abs=1e-12)
    assert calibration_error(result(np.full(300, 0.9), correct)) == pytest.approx(0.1)


def test_calibrated_probabilities_of_many_rows_have_a_small_calibration_error() -> None:
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.5, 1, 100_000)
    assert calibration_error(result(confidence, rng.random(100_000) < confidence)) < 0.01


def test_the_bootstrap_interval_is_that_of_the_normal_approximation() -> None:
    rng = np.random.default_rng(2)
    losses = {name: [rng.gamma(2, scale, (2, n)) for n in (400, 900)] for name, scale in (("a", 0.2), ("b", 0.3))}
    results: Any = {
        f"table {i}": {
            name: result(np.ones_like(loss[i]), np.ones_like(loss[i]), loss[i]) for name, loss in losses.items()
        }
        for i in range(2)
    }
    rows = [(a - b).mean(axis=0) for a, b in zip(*losses.values(), strict=True)]
    error = np.sqrt(sum(each.var() / len(each) for each in rows)) / 2
    found = difference(results, "a", "b")
    assert found is not None
    assert found.mean == pytest.approx(np.mean([each.mean() for each in rows]))
    assert found.relative == pytest.approx(found.mean / np.mean([loss.mean() for loss in losses["b"]]))
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.1)


def test_a_failure_has_the_last_rank() -> None:
    results: Any = {
        "t": {"a": result(1, 1, 0.5), "b": Failure("ValueError"), "c": result(1, 1, 0.2), "d": result(1, 1, 0.5)}
    }
    losses = values(results, list("abcd"), lambda each: each.mean_loss)
    np.testing.assert_array_equal(ranks(losses), [[2.5, 4, 1, 2.5]])
    assert difference(results, "a", "b") is None


@pytest.mark.parametrize("model", [each for each in models.PEERS if each.installed], ids=lambda each: each.name)
def test_peers_take_mixed_tables_with_missing_values_and_unseen_categories(model: Model) -> None:
    table = mixed_table()
    table.X.loc[59, "colour"] = "unseen"
    posterior, _ = validation.probabilities(model, table, np.arange(50), np.arange(50, 60))
    np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-5)


def test_qda_takes_classes_with_fewer_rows_than_columns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 8)), np.repeat([0, 1, 2], 4)
    assert np.isfinite(models.RegularizedQDA().fit(X, y).predict_proba(X)).all()


def write(folder: Path, name: str, frame: pd.DataFrame) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    frame.to_csv(folder / name, index=False)


def test_the_tables_of_a_folder(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(6), "x": [1, 2, None, 4, 5, 6], "kind": list("ababab"), "z": list("uuuvvv")})
    write(tmp_path, "last.csv", frame.drop(columns="id"))
    write(tmp_path, "named.csv", frame)
    write(tmp_path, "digits-train.csv", frame)
    write(tmp_path, "digits-test.csv", frame)
    write(tmp_path, "sub/data.csv", frame)
    (tmp_path / "tables.json").write_text(json.dumps({"named": {"class": "kind", "drop": ["id"]}, "sub": "kind"}))
    found = {table.name: table for table in tables.load(tmp_path)[0]}
    assert {name: list(table.X.columns) for name, table in found.items()} == {
        "digits": ["id", "x", "kind"],
        "last": ["x", "kind"],
        "named": ["x", "z"],
        "sub": ["id", "x", "z"],
    }
    assert list(found["last"].y) == list("uuuvvv")
    assert found["named"].X["x"].isna().sum() == 1


def test_tables_without_classes_are_skipped_and_named(tmp_path: Path) -> None:
    write(tmp_path, "numbers.csv", pd.DataFrame({"x": range(9), "y": np.arange(9) / 7}))
    message = r"numbers is skipped: its class column 'y' has 9 distinct values in 9 rows.*tables\.json"
    with pytest.raises(SystemExit, match=message):
        tables.load(tmp_path)
    with pytest.raises(SystemExit, match=r"No table is named words\. Choose from numbers"):
        tables.load(tmp_path, ["words"])
    write(tmp_path, "classes.csv", pd.DataFrame({"x": range(9), "y": [0, 1, 1] * 3}))
    found, skipped = tables.load(tmp_path)
    assert [table.name for table in found] == ["classes"]
    assert len(skipped) == 1


def test_the_twelve_tables_of_the_project() -> None:
    shapes = {table.name: (*table.drawn().X.shape, len(set(table.y))) for table in tables.load(None)[0]}
    assert len(shapes) == 12
    assert shapes["satellite"] == (5_000, 36, 6)
    assert shapes["breastcancer_wisconsin"] == (699, 9, 2)
    assert shapes["optdigits"] == (3_823, 64, 10)


def test_the_cache_keeps_peers_and_not_the_estimators_of_this_library(tmp_path: Path) -> None:
    table, path = mixed_table(), tmp_path / "cache.json"
    first = validation.result(PROPORTIONS, table, Cache(path))
    broken = Model("Proportions", "scikit-learn", lambda: 1 / 0)
    stored = validation.result(broken, table, Cache(path))
    assert isinstance(first, Result)
    assert isinstance(stored, Result)
    np.testing.assert_array_equal(stored.loss, first.loss)
    changed = Table("mixed", table.X.assign(flag=True), table.y)
    assert isinstance(validation.result(broken, changed, Cache(path)), Failure)
    ours = Model("Proportions", "likely", lambda: 1 / 0)
    assert isinstance(validation.result(ours, table, Cache(path)), Failure)


def test_a_model_that_raises_is_named_with_its_error() -> None:
    results: Any = {"t": {"a": Failure("ValueError: no"), "b": result(1, 1, 0.2)}}
    lines = list(report.overview(results, ["a", "b"]))
    assert "- a cannot be fitted to t: ValueError: no" in lines
    assert [line.split()[1:6] for line in lines if line.startswith("| b")] == [["b", "|", "1.00", "|", "1"]]
    assert [line.split()[5:8] for line in lines if line.startswith("| a")] == [["0", "|", "–"]]


def test_learning_curves_use_sizes_with_two_rows_of_each_class() -> None:
    y = np.repeat(np.arange(20).astype(str), 20).astype(object)
    assert curves.sizes(Table("t", pd.DataFrame({"x": np.arange(400)}), y)) == [100, 300]
    large = Table("t", pd.DataFrame({"x": np.zeros(20_000)}), np.tile(["a", "b"], 10_000).astype(object))
    assert curves.sizes(large) == [30, 100, 300, 1_000, 2_000, 3_000, 15_000]


def test_the_command_prints_markdown_and_draws(tmp_path: Path) -> None:
    table = mixed_table()
    write(tmp_path, "mixed.csv", table.X.assign(label=table.y))
    options = ["--models", "NaiveBayes,LDA,GaussianNB", "--diagram", str(tmp_path / "diagram.png")]
    text = "\n".join(quality([str(tmp_path), *options]))
    for heading in ("Summary", "Log-loss", "Accuracy", "Expected calibration error", "Fit time", "Calibration"):
        assert f"### {heading}" in text
    assert "### Log-loss of NaiveBayes minus that of each peer" in text
    assert (tmp_path / "diagram.png").stat().st_size > 10_000


def test_the_command_prints_learning_curves(tmp_path: Path) -> None:
    table = mixed_table(rows=90)
    write(tmp_path, "mixed.csv", table.X.assign(label=table.y))
    lines = list(quality([str(tmp_path), "--curves", "--models", "LDA"]))
    draws = [
        validation.probabilities(models.select(["LDA"])[0][0], table, *split(table.y, 30, seed)) for seed in range(4)
    ]
    losses = [
        log_loss(table.y[split(table.y, 30, seed)[1]], posterior, labels=np.unique(table.y))
        for seed, (posterior, _) in enumerate(draws)
    ]
    assert [line for line in lines if line.startswith("| mixed, 30 ")] == [
        f"| mixed, 30            | {np.mean(losses):.4f} ({np.std(losses, ddof=1) / 2:.4f}) |"
    ]


def test_peers_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PEERS", [Model("Absent", "a-package-that-is-not-there", Proportions)])
    assert models.select(["Absent"]) == ([], ["Absent"])
    with pytest.raises(SystemExit, match="No model is named LDA"):
        models.select(["LDA"])
    lines = quality(["--models", "Absent"])
    assert next(lines).startswith("Not installed, and not compared: Absent.")
    with pytest.raises(SystemExit, match="None of these models is installed"):
        list(lines)
