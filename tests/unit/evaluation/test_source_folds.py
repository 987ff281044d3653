"""Cross-validation, selection and comparison of rows from sources: folds by a hash, sums of scores, and samples."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss
from sklearn.model_selection import KFold

import likely
from likely import (
    Bernoulli,
    Categorical,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    Poisson,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.data import row_draw
from likely.data.parts import PartSource
from likely.data.row_draw import joined
from likely.data.row_hash import number_hashes
from likely.data.source_rows import RowSample
from likely.errors import InputError, MissingPatternsError, NotEstimableError, NotKeptError

FOLDS = 3
MASK = 2**64 - 1


class Chunks:
    """Parts of a table, one after another."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def chunks(self) -> Iterator[Any]:
        yield from self.parts


@dataclass
class FramePart:
    frame: Any
    start: int

    def chunks(self) -> Iterator[Any]:
        half = len(self.frame) // 2
        yield self.frame[:half]
        yield self.frame[half:]


class FrameParts(PartSource):
    """Parts of a table that are read by a stand-in of other processes: all that they exchange is pickled."""

    def __init__(self, frames: Sequence[Any], starts: bool = True) -> None:
        ends = np.cumsum([0, *map(len, frames)]).tolist()
        self._parts = [FramePart(frame, start if starts else 0) for frame, start in zip(frames, ends, strict=False)]

    def parts(self) -> Sequence[Any]:
        return self._parts

    def compute(self, work: Callable[[int, Any], Any]) -> Generator[Any]:
        for number, part in enumerate(self._parts):
            yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(work))(number, part)))


def mixed(rows: int = 900, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    k = draw.choice(3, size=rows, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {
            "length": draw.normal(size=rows) + k,
            "width": draw.normal(size=rows) * (1 + k),
            "colour": np.where(
                draw.random(rows) < 0.3, draw.choice(["red", "green"], rows), np.array(["r", "g", "b"])[k]
            ),
            "visits": draw.poisson(1 + k),
            "weight": draw.integers(0, 4, rows) / 2.0,
            "species": np.array(["one", "three", "two"])[k],
        }
    )


def pieces(frame: Any, size: int = 170) -> list[Any]:
    return [frame[start : start + size] for start in range(0, frame.shape[0], size)]


def mixed_bits(bits: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), on Python's integers."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def hashed(row: int, seed: int, part: int = 0) -> int:
    start = mixed_bits((mixed_bits(seed) + part) & MASK)
    return mixed_bits((start + row * 0x9E3779B97F4A7C15) & MASK)


def folds_of(rows: int, random_state: int = 0, size: int | None = None) -> Any:
    """The fold of each row; with a size, of rows in parts of that size whose numbers begin again."""
    seed = int(np.random.RandomState(random_state).randint(2**32, dtype=np.uint64))
    places = [(row, 0) if size is None else (row % size, row // size) for row in range(rows)]
    return np.array([hashed(row, seed, part) % FOLDS for row, part in places])


SOURCES: dict[str, Callable[[Any], Any]] = {
    "chunks": lambda frame: Chunks(pieces(frame)),
    "parts": lambda frame: FrameParts(pieces(frame)),
    "parts of unknown starts": lambda frame: FrameParts(pieces(frame), starts=False),
}
FAMILIES = {
    ("length", "width"): Gaussian(),
    "colour": Categorical(),
    "visits": Poisson(),
}
MODELS: dict[str, tuple[Any, list[str]]] = {
    "linear": (LinearDiscriminant(), ["length", "width", "visits"]),
    "quadratic, Bayes": (QuadraticDiscriminant(estimation="bayes"), ["length", "width"]),
    "naive Bayes": (
        NaiveBayes({"length": Gaussian("diagonal"), "colour": Categorical()}, calibration=None),
        ["length", "colour"],
    ),
    "mixed": (GenerativeClassifier(FAMILIES, calibration=None), ["length", "width", "colour", "visits"]),
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 200)


def test_hashes_of_row_numbers_are_those_of_splitmix() -> None:
    for seed, part in ((0, 0), (2**32 - 1, 0), (7, 5)):
        expected = [hashed(row, seed, part) for row in range(50)]
        assert number_hashes(np.arange(50), seed, part).tolist() == expected
    fold = number_hashes(np.arange(30_000), 1) % np.uint64(10)
    counts = np.bincount(fold.astype(int))
    assert np.abs(counts - 3000).max() < 4 * np.sqrt(3000)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing values"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("few")
def test_scores_are_those_of_models_that_are_fitted_to_the_other_folds(
    name: str, missing: bool, weighted: bool, source: str
) -> None:
    model, columns = MODELS[name]
    frame = mixed()
    if missing:
        frame.loc[np.random.default_rng(1).random(len(frame)) < 0.1, "length"] = np.nan
    frame = frame[[*columns, "species", *(["weight"] if weighted else [])]]
    weights = frame["weight"].to_numpy() if weighted else np.ones(len(frame))
    fold = folds_of(len(frame), 3, 170 if "unknown" in source else None)
    found = likely.cross_validate(
        model, SOURCES[source](frame), "species", FOLDS, "weight" if weighted else None, random_state=3, copies="apart"
    )
    y, classes = frame["species"].to_numpy(), np.array(["one", "three", "two"])
    confusion = np.zeros((3, 3))
    assert_array_equal(found.classes, classes)
    assert_array_equal(found.rows, np.bincount(fold))
    for i in range(FOLDS):
        train, test = frame[fold != i], frame[fold == i]
        fitted = clone(model).fit(train[columns], train["species"], weights[fold != i])
        proba, mine = fitted.predict_proba(test[columns]), weights[fold == i]
        true = y[fold == i]
        wrong = fitted.predict(test[columns]) != true
        joint = fitted.log_joint(test[columns])[np.arange(len(test)), np.searchsorted(classes, true)]
        proportions = np.array([weights[(fold != i) & (y == label)].sum() for label in classes])
        proportions = np.tile(proportions / proportions.sum(), (len(test), 1))
        assert_allclose(found.log_loss[i], log_loss(true, proba, sample_weight=mine), rtol=1e-9)
        assert_allclose(found.error[i], np.average(wrong, weights=mine), rtol=1e-9)
        assert_allclose(found.brier[i], brier_score_loss(true, proba, sample_weight=mine), rtol=1e-9)
        assert_allclose(found.log_likelihood[i], np.average(joint, weights=mine), rtol=1e-9)
        assert_allclose(found.baseline_log_loss[i], log_loss(true, proportions, sample_weight=mine), rtol=1e-9)
        assert_allclose(found.baseline_error[i], np.average(true != "one", weights=mine), rtol=1e-9)
        assert_allclose(found.baseline_brier[i], brier_score_loss(true, proportions, sample_weight=mine), rtol=1e-9)
        confusion += confusion_matrix(true, fitted.predict(test[columns]), labels=classes, sample_weight=mine)
    assert_allclose(found.confusion, confusion, rtol=1e-12)
    assert found.confusion.dtype.kind == ("f" if weighted else "i")


@pytest.mark.usefixtures("few")
def test_choices_and_calibration_are_those_of_all_rows() -> None:
    frame = mixed().drop(columns="weight")
    fold, source = folds_of(len(frame)), FrameParts(pieces(frame))
    found = likely.cross_validate(GenerativeClassifier(), source, "species", FOLDS, copies="apart")
    for i in range(FOLDS):
        fitted = GenerativeClassifier().fit(source, "species")
        assert fitted.calibration_ is not None
        test = frame[fold == i]
        fitted.forget(test, "species")
        proba = fitted.predict_proba(test.drop(columns="species"))
        assert_allclose(found.log_loss[i], log_loss(test["species"], proba), rtol=1e-7)
    assert "calibration are those of all rows" in str(found)


@pytest.mark.usefixtures("few")
def test_folds_do_not_depend_on_how_numbered_rows_are_divided() -> None:
    frame = mixed()[["length", "width", "species"]]
    model = LinearDiscriminant()
    sources = (Chunks([frame]), Chunks(pieces(frame, 40)), FrameParts(pieces(frame, 250)))
    results = [likely.cross_validate(model, source, "species", 4, random_state=5) for source in sources]
    for other in results[1:]:
        assert_allclose(other.log_loss, results[0].log_loss, rtol=1e-12)
        assert_array_equal(other.confusion, results[0].confusion)
    again = likely.cross_validate(model, Chunks([frame]), "species", 4, random_state=6)
    assert not np.array_equal(again.rows, results[0].rows)


@pytest.mark.usefixtures("few")
def test_chunks_of_arrays_have_labels_and_weights_in_arrays() -> None:
    frame = mixed()
    X, y, weights = frame[["length", "width"]].to_numpy(), frame["species"].to_numpy(), frame["weight"].to_numpy()
    found = likely.cross_validate(LinearDiscriminant(), Chunks(pieces(X)), y.tolist(), FOLDS, weights, copies="apart")
    named = frame[["length", "width", "species", "weight"]]
    expected = likely.cross_validate(
        LinearDiscriminant(), Chunks(pieces(named)), "species", FOLDS, "weight", copies="apart"
    )
    assert_array_equal(found.log_loss, expected.log_loss)
    assert found.library is None
    assert expected.library == "pandas"


@pytest.mark.usefixtures("few")
@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_a_class_that_is_in_one_fold_alone_has_probability_0_there() -> None:
    frame = mixed()[["length", "width", "species"]]
    frame.loc[17, "species"] = "rare"
    fold = folds_of(len(frame))[17]
    model, source = NaiveBayes(Gaussian("diagonal")), Chunks(pieces(frame))
    found = likely.cross_validate(model, source, "species", FOLDS, copies="apart")
    place = found.classes.tolist().index("rare")
    assert found.confusion[place, place] == 0
    assert found.confusion[place].sum() == 1
    assert found.log_likelihood[fold] == -np.inf
    assert np.isfinite(np.delete(found.log_likelihood, fold)).all()


@pytest.mark.usefixtures("few")
def test_a_result_without_single_rows_says_so_and_can_be_printed_and_pickled() -> None:
    frame = mixed()[["length", "width", "species"]]
    found = likely.cross_validate(LinearDiscriminant(), FrameParts(pieces(frame)), "species", FOLDS)
    for name in ("posterior", "fold", "codes", "sample_weight"):
        with pytest.raises(NotKeptError, match=f"{name} is not kept for sources of more than 200 rows"):
            getattr(found, name)
        assert not hasattr(found, name)
    with pytest.raises(NotKeptError, match="reliability is not kept"):
        found.reliability()
    text = str(found)
    assert "LinearDiscriminant(): 3 folds, 900 held-out rows, 3 classes" in text
    assert "predictions of single rows are not kept" in text
    assert "<table>" in found._repr_html_()
    assert found.to_frame()["rows"].sum() == 900
    assert found.confusion_frame().shape == (3, 4)
    assert str(pickle.loads(pickle.dumps(found))) == text


@pytest.mark.parametrize("source", ["chunks", "parts"])
def test_a_source_of_few_rows_is_cross_validated_as_its_frame(source: str) -> None:
    frame = mixed(180)
    make = SOURCES[source]
    named = frame.drop(columns=["weight", "visits"])
    model = NaiveBayes()
    found = likely.cross_validate(model, make(named), "species", KFold(2))
    expected = likely.cross_validate(model, named, "species", KFold(2))
    assert_array_equal(found.posterior, expected.posterior)
    assert_array_equal(found.log_loss, expected.log_loss)
    assert str(found) == str(expected)
    numbers = frame.drop(columns="colour")
    plain = numbers.drop(columns="weight")
    refitted = likely.cross_validate(LogisticRegression(), make(numbers), "species", KFold(4), "weight")
    expected = likely.cross_validate(LogisticRegression(), plain, "species", KFold(4), frame["weight"])
    assert_array_equal(refitted.posterior, expected.posterior)
    regression = likely.cross_validate(LinearRegression(), make(plain.drop(columns="species")), "width", 4)
    direct = likely.cross_validate(LinearRegression(), plain.drop(columns="species"), "width", 4)
    assert_array_equal(regression.prediction, direct.prediction)


def refused(model: Any, X: Any, y: Any, message: str, **options: Any) -> None:
    with pytest.raises(InputError, match=message):
        likely.cross_validate(model, X, y, **options)


@pytest.mark.usefixtures("few")
@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_what_needs_all_rows_at_a_time_is_an_error_that_names_the_remedy() -> None:
    frame = mixed()[["length", "width", "species"]]
    source = FrameParts(pieces(frame))
    model = LinearDiscriminant()
    remedy = "pass some of the rows as a frame"
    for folds in (KFold(3), np.zeros(900, dtype=int), [([0], [1])], True, 2.0):
        refused(model, source, "species", f"folds must be a number of folds.*{remedy}", folds=folds)
    refused(model, source, "species", "folds=1 is below 2", folds=1)
    refused(model, source, "species", r"folds=2000: fold \d+ has none of the 900 rows", folds=2000)
    refused(model, source, frame["species"], "y must be the name of a column of X")
    more = "SoftmaxRegression is fitted again for every fold.*more than 200 rows. Pass some of the rows as a frame"
    refused(SoftmaxRegression(), source, "species", more)
    components = GenerativeClassifier(Gaussian(components=2))
    refused(components, source, "species", "several components.*Pass some of the rows")
    frame.loc[[400, 600], "species"] = None
    unlabeled = "y, row 400: the label is missing.*Pass some of the rows as a frame"
    for make in (SOURCES["chunks"], SOURCES["parts"]):
        refused(model, make(frame), "species", unlabeled)
    frame["species"] = "one"
    frame.loc[5, "species"] = "two"
    with pytest.raises(NotEstimableError, match=r"Fold \d: "):
        likely.cross_validate(QuadraticDiscriminant(), Chunks(pieces(frame)), "species", FOLDS)


@pytest.mark.usefixtures("few")
def test_too_many_missingness_patterns_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likely.statistics.pattern_moments.MOST_BYTES", 20_000)
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(600, 5)), draw.integers(0, 2, 600)
    X[draw.random(X.shape) < 0.3] = np.nan
    with pytest.raises(MissingPatternsError, match="For cross_validate: Pass some of the rows as a frame"):
        likely.cross_validate(LinearDiscriminant(), Chunks(pieces(X)), y, FOLDS)


@pytest.mark.usefixtures("few")
def test_training_rows_without_weight_are_an_error() -> None:
    frame = mixed()[["length", "width", "species"]]
    weights = (folds_of(len(frame)) == 1).astype(float)
    refused(
        LinearDiscriminant(),
        Chunks(pieces(frame)),
        "species",
        "Fold 1: all training rows have weight 0",
        folds=FOLDS,
        sample_weight=weights,
        copies="apart",
    )


@pytest.mark.usefixtures("few")
def test_categories_outside_the_training_rows_are_refused_if_wanted() -> None:
    frame = mixed()[["colour", "species"]]
    frame.loc[5, "colour"] = "purple"
    model = NaiveBayes(Categorical(), unseen="error")
    refused(model, FrameParts(pieces(frame)), "species", "'purple' was not seen in training", folds=FOLDS)


# ------------------------------------------------------------------------------------------------- select and compare


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.usefixtures("few")
def test_candidates_are_ranked_by_a_sample_and_the_best_is_fitted_to_all_rows(source: str) -> None:
    frame = mixed()[["length", "width", "species"]]
    models = {"linear": LinearDiscriminant(), "quadratic": QuadraticDiscriminant()}
    found = likely.select(SOURCES[source](frame), "species", models)
    assert found.notes == ("judged on a sample of 200 of 900 rows; the best candidate is fitted to all rows",)
    assert "note: judged on a sample of 200 of 900 rows" in str(found)
    best = clone(models[found.ranking[0].name]).fit(frame, "species")
    assert_allclose(found.best.means_, best.means_, rtol=1e-12)
    drawn = RowSample.of(SOURCES[source](frame), "species", None).X
    assert len(drawn) == 200
    assert found.ranking[0].log_loss == likely.select(drawn, "species", models).ranking[0].log_loss
    with pytest.raises(InputError, match="folds must be a number of folds"):
        likely.select(SOURCES[source](frame), "species", models, folds=KFold(3))


@pytest.mark.usefixtures("few")
def test_labels_and_weights_in_arrays_are_drawn_with_their_rows() -> None:
    X = np.arange(1800.0).reshape(900, 2)
    sample = RowSample.of(Chunks(pieces(X, 130)), np.arange(900), np.arange(900) / 2.0)
    assert_array_equal(sample.X[:, 0], 2.0 * sample.y)
    assert_array_equal(sample.sample_weight, sample.y / 2.0)
    assert len(np.unique(sample.y)) == 200
    assert np.all(np.diff(sample.y) > 0)
    assert np.bincount(sample.y // 90, minlength=10).min() >= 8
    with pytest.raises(InputError, match="X has 900 rows or more and y has 899"):
        RowSample.of(Chunks(pieces(X)), np.arange(899), None)
    with pytest.raises(InputError, match="X has no rows"):
        RowSample.of(Chunks([]), np.arange(9), None)
    with pytest.raises(InputError, match="sample_weight must be the name of a column"):
        RowSample.of(FrameParts(pieces(mixed())), "species", np.ones(900))


@pytest.mark.usefixtures("few")
def test_learning_curves_of_a_source_are_those_of_a_sample() -> None:
    frame = mixed()[["length", "width", "species"]]
    models = {"linear": LinearDiscriminant(), "softmax": SoftmaxRegression()}
    options: dict[str, Any] = {"sizes": [30, 100], "repeats": 2, "random_state": 0}
    found = likely.compare(FrameParts(pieces(frame)), "species", models, **options)
    assert found.notes[0] == "judged on a sample of 200 of 900 rows"
    assert "note: judged on a sample of 200 of 900 rows" in str(found)
    drawn = RowSample.of(FrameParts(pieces(frame)), "species", None).X
    assert found.points == likely.compare(drawn, "species", models, **options).points


def test_a_source_of_few_rows_is_selected_and_compared_as_its_frame() -> None:
    frame = mixed(120)[["length", "width", "species"]]
    models = {"linear": LinearDiscriminant(), "quadratic": QuadraticDiscriminant()}
    for make in SOURCES.values():
        source = make(frame)
        assert likely.select(source, "species", models).ranking == likely.select(frame, "species", models).ranking
        options: dict[str, Any] = {"sizes": [40], "repeats": 1, "random_state": 0}
        found = likely.compare(source, "species", models, **options)
        assert found == likely.compare(frame, "species", models, **options)
        assert found.notes == ()


def test_chunks_of_every_kind_are_joined() -> None:
    sparse = scipy.sparse.random_array((6, 4), density=0.5, rng=np.random.default_rng(0), format="csr")
    assert_array_equal(joined([sparse[:2], sparse[2:]]).toarray(), sparse.toarray())
    assert joined([[[1, "a"]], [[2.5, None]]]) == [[1, "a"], [2.5, None]]
    first, second = {"x": [1, 2], "t": [None, None]}, {"x": [0.5], "t": ["a"]}
    for library in (pd.DataFrame, pl.DataFrame, pa.table):
        whole = joined([library(first), library(second)])
        assert list(whole["x"].to_numpy() if library is not pa.table else whole["x"].to_pylist()) == [1.0, 2.0, 0.5]
    with pytest.raises(InputError, match=r"A chunk has the columns 'x', but the first one has 'x', 't'"):
        joined([pl.DataFrame(first), pl.DataFrame({"x": [1]})])


@pytest.mark.usefixtures("few")
def test_sparse_chunks_are_cross_validated() -> None:
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, 600)
    X = (draw.random((600, 5)) < 0.2 + 0.3 * y[:, None]).astype(float)
    model = NaiveBayes(Bernoulli())
    found = likely.cross_validate(model, Chunks(pieces(scipy.sparse.csr_array(X))), y, FOLDS)
    expected = likely.cross_validate(model, Chunks(pieces(X)), y, FOLDS)
    assert_allclose(found.log_loss, expected.log_loss, rtol=1e-12)
    assert likely.select(Chunks(pieces(scipy.sparse.csr_array(X))), y, {"b": model}).notes


class ShuffledParts(FrameParts):
    """Rows whose order changes in every pass, as those of a query may."""

    has_fixed_order = False

    def __init__(self, frames: Sequence[Any]) -> None:
        super().__init__(frames)
        self._rng = np.random.default_rng(0)

    def parts(self) -> Sequence[Any]:
        order = self._rng.permutation(sum(len(part.frame) for part in self._parts))
        shuffled = pd.concat([part.frame for part in self._parts]).iloc[order]
        return [FramePart(shuffled[p.start : p.start + len(p.frame)], p.start) for p in self._parts]

    def compute(self, work: Callable[[int, Any], Any]) -> Generator[Any]:
        for number, part in enumerate(self.parts()):
            yield work(number, part)


def test_rows_stay_in_their_folds_where_their_order_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 200)
    frame, model = mixed().drop(columns="weight"), NaiveBayes({"length": Gaussian("diagonal")}, calibration=None)
    changing = ShuffledParts(pieces(frame))
    assert not changing.parts()[0].frame.equals(changing.parts()[0].frame)
    one = likely.cross_validate(model, changing, "species", FOLDS)
    other = likely.cross_validate(model, changing, "species", FOLDS)
    assert_allclose(one.log_loss, other.log_loss, rtol=1e-12)
    assert_array_equal(one.confusion, other.confusion)
    assert "equal rows are in the same fold" in str(one)
    assert "equal rows" not in str(likely.cross_validate(model, FrameParts(pieces(frame)), "species", FOLDS))
