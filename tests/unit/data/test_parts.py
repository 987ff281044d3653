"""Sources in parts: the same models as from frames, in as few passes as possible, on threads or one after another."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from likely import (
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
    Text,
    TextClassifier,
)
from likely.data import row_draw
from likely.data.batches import Batches, PartWork
from likely.data.frames import FrameSchema
from likely.data.parts import PartSource
from likely.data.row_draw import RowDraw
from likely.data.sources import in_memory
from likely.data.validation import read_table
from likely.errors import InputError
from likely.numerics import threads
from likely.numerics.progress import RowProgress
from tests.helpers import load_table


class TablePart:
    def __init__(self, table: Any, start: int, chunk: int, reads: Counter[int]) -> None:
        self.table, self.start, self.chunk, self.reads = table, start, chunk, reads

    def chunks(self) -> Iterator[Any]:
        self.reads[self.start] += 1
        for i in range(0, max(len(self.table), 1), self.chunk):
            yield self.table[i : i + self.chunk] if hasattr(self.table, "iloc") else self.table.slice(i, self.chunk)


class TableSource(PartSource):
    """A frame or Arrow table in parts of so many rows, each with chunks of so many rows."""

    def __init__(self, table: Any, part: int, chunk: int = 10**9, counted: bool = True) -> None:
        self.table, self.part, self.chunk, self.counted = table, part, chunk, counted
        self.reads: Counter[int] = Counter()

    @property
    def rows(self) -> int | None:
        return len(self.table) if self.counted else None

    def parts(self) -> list[TablePart]:
        starts = range(0, len(self.table), self.part)
        cut = [
            self.table[i : i + self.part] if hasattr(self.table, "iloc") else self.table.slice(i, self.part)
            for i in starts
        ]
        return [TablePart(t, i, self.chunk, self.reads) for i, t in zip(starts, cut, strict=True)]


def table(n: int = 240, missing: float = 0.0, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n) + k,
            "b": np.exp(rng.normal(size=n) + 0.5 * k),
            "n": rng.poisson(3 + k),
            "c": np.array(["u", "v", "w"])[(k + (rng.random(n) < 0.3)) % 3],
            "w": rng.integers(0, 3, n).astype(float),
            "y": np.array(["one", "three", "two"])[k],
        }
    )
    for name in ("a", "b", "c"):
        frame.loc[rng.random(n) < missing, name] = None
    return frame


MODELS: list[Any] = [
    GenerativeClassifier(),
    NaiveBayes(),
    NaiveBayes(calibration=None),
    GenerativeClassifier(Gaussian(), estimation="map"),
    LinearDiscriminant(),
    QuadraticDiscriminant(),
]


def numeric(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["a", "b", "n", "y"]]


def rows_for(model: Any, missing: float) -> pd.DataFrame:
    frame = table(missing=missing).drop(columns="w")
    mixed = isinstance(model, GenerativeClassifier | NaiveBayes) and model.families is None
    return frame if mixed else numeric(frame)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_source_in_parts_gives_the_model_of_the_frame(model: Any, missing: float) -> None:
    frame = rows_for(model, missing)
    expected = model.fit(frame, "y").predict_proba(frame)
    for source in (TableSource(frame, 37), TableSource(pa.Table.from_pandas(frame), 50, 7, counted=False)):
        found = model.fit(source, "y").predict_proba(source)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_unlabeled_rows_of_a_source_in_parts_take_part_by_em() -> None:
    frame = table(missing=0.1).drop(columns="w")
    frame.loc[::2, "y"] = None
    model = GenerativeClassifier(unlabeled_weight=0.5, tol=1e-9)
    expected = model.fit(frame, "y").predict_proba(frame)
    found = model.fit(TableSource(frame, 50, 11), "y")
    assert found.unlabeled_weight_ == 0.5
    np.testing.assert_allclose(found.predict_proba(frame), expected, rtol=0, atol=1e-8)


def test_weights_are_a_column_that_is_no_feature() -> None:
    frame = table()
    expected = NaiveBayes().fit(frame.drop(columns=["w", "y"]), frame["y"], sample_weight=frame["w"])
    model = NaiveBayes().fit(TableSource(frame, 50), "y", sample_weight="w")
    assert model.feature_names_in_.tolist() == ["a", "b", "n", "c"]
    np.testing.assert_allclose(
        model.predict_proba(frame), expected.predict_proba(frame.drop(columns=["w", "y"])), atol=1e-12
    )
    in_frame = NaiveBayes().fit(frame, "y", sample_weight="w")
    np.testing.assert_array_equal(in_frame.predict_proba(frame), expected.predict_proba(frame.drop(columns=["w", "y"])))


def test_updates_take_sources_in_parts() -> None:
    frame = numeric(table())
    whole = LinearDiscriminant().fit(frame, "y")
    model = LinearDiscriminant().fit(frame[:100], "y").partial_fit(TableSource(frame[100:], 30), "y")
    np.testing.assert_allclose(model.predict_proba(frame), whole.predict_proba(frame), atol=1e-9)
    less = whole.forget(TableSource(frame[150:], 30), "y")
    expected = LinearDiscriminant().fit(frame[:150], "y").predict_proba(frame)
    np.testing.assert_allclose(less.predict_proba(frame), expected, atol=1e-9)


def test_other_estimators_take_sources_in_parts() -> None:
    frame = numeric(table())
    for model in (SoftmaxRegression(penalty=1.0), EvidenceClassifier(n_trees=3), HybridClassifier(blend=0.5)):
        expected = model.fit(frame, "y").predict_proba(frame)
        found = model.fit(TableSource(frame, 50), "y").predict_proba(TableSource(frame, 50))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    features = frame.drop(columns="y")
    regressor = GenerativeRegressor().fit(features, "n")
    found = GenerativeRegressor().fit(TableSource(features, 50), "n").predict(features)
    np.testing.assert_allclose(found, regressor.predict(features), atol=1e-9)


def test_a_default_fit_reads_complete_rows_twice_and_a_declared_one_once() -> None:
    source = TableSource(table().drop(columns="w"), 24)
    GenerativeClassifier().fit(source, "y")
    others = [count for start, count in source.reads.items() if start]
    assert len(others) == 9
    assert set(others) == {2}
    assert source.reads[0] == 4  # the first part is opened twice more: for the columns, and for how they are read
    source = TableSource(numeric(table()), 24)
    NaiveBayes(Gaussian("diagonal")).fit(source, "y")
    assert {count for start, count in source.reads.items() if start} == {1}


def test_the_same_parts_give_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = numeric(table(2000))
    several = LinearDiscriminant().fit(TableSource(frame, 111, 40), "y").statistics_.blocks[0]
    monkeypatch.setattr(threads, "_forked", True)  # a single thread
    one = LinearDiscriminant().fit(TableSource(frame, 111, 40), "y").statistics_.blocks[0]
    assert np.array_equal(several.scatter, one.scatter)
    assert np.array_equal(several.mean, one.mean)


def test_classes_and_categories_may_be_in_one_part_only() -> None:
    frame = table().drop(columns="w").sort_values(["y", "c"], ignore_index=True)
    expected = GenerativeClassifier().fit(frame, "y")
    model = GenerativeClassifier().fit(TableSource(frame, 20), "y")
    assert model.classes_.tolist() == ["one", "three", "two"]
    np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), atol=1e-9)


def test_empty_parts_are_skipped_and_a_sourcewithout_rows_is_an_error() -> None:
    frame = numeric(table())

    class WithEmptyParts(TableSource):
        def parts(self) -> list[TablePart]:
            empty = TablePart(self.table[:0], 0, 10, self.reads)
            return [empty, *super().parts(), empty]

    expected = LinearDiscriminant().fit(frame, "y").predict_proba(frame)
    found = LinearDiscriminant().fit(WithEmptyParts(frame, 100), "y").predict_proba(frame)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(InputError, match="no rows"):
        LinearDiscriminant().fit(WithEmptyParts(frame[:0], 100), "y")


def test_labels_and_weights_of_their_own_are_an_error() -> None:
    frame = numeric(table())
    source = TableSource(frame.drop(columns="y"), 50)
    with pytest.raises(InputError, match="y must be the name of a column"):
        NaiveBayes().fit(source, frame["y"])
    with pytest.raises(InputError, match="sample_weight must be the name of a column"):
        NaiveBayes().fit(TableSource(frame, 50), "y", sample_weight=np.ones(len(frame)))
    with pytest.raises(InputError, match="'v' is neither numbers nor the name of a column: X has the columns 'a'"):
        NaiveBayes().fit(TableSource(frame, 50), "y", sample_weight="v")


def test_errors_name_the_row_of_the_source() -> None:
    frame = numeric(table())
    frame.loc[133, "a"] = np.inf
    with pytest.raises(InputError, match="row 133"):
        LinearDiscriminant().fit(TableSource(frame, 50, 7), "y")


def test_the_work_on_a_part_can_be_pickled() -> None:
    frame = table().drop(columns="w")
    model = GenerativeClassifier().fit(frame, "y")
    source = TableSource(frame, 100)
    batches = Batches(source, "y", None, read_table, "NaiveBayes")
    summarise, progress = model.specification_.summarise, RowProgress()
    work = PartWork(batches.without_rows(), summarise, None, RowDraw.empty(None), False, progress)
    here = work(1, source.parts()[1])
    there = pickle.loads(pickle.dumps(work))(1, source.parts()[1])
    assert here.rows == there.rows == 100
    assert pickle.loads(pickle.dumps(here)).total.counts.rows.tolist() == there.total.counts.rows.tolist()
    assert np.array_equal(here.drawn.numbers[0], there.drawn.numbers[0])  # type: ignore[union-attr]


def drawn(n: int, part: int, chunk: int, rows: int | None) -> list[int]:
    """The numbers of the rows that are drawn from a source of n rows."""
    total = RowDraw.empty(rows)
    for number, start in enumerate(range(0, n, part)):
        one = total.of_part(number)
        stop = min(start + part, n)
        for i in range(start, stop, chunk):
            size = min(i + chunk, stop) - i
            one.add(pa.table({"row": np.arange(i, i + size)}), size)
        total = total + one.rows
    return total.frame()["row"].to_pylist()


def test_few_rows_are_all_drawn_in_their_order() -> None:
    assert drawn(500, 60, 7, 500) == list(range(500))
    assert drawn(500, 60, 7, None) == list(range(500))


def test_of_many_rows_as_many_are_drawn_as_wanted_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 300)
    known, unknown = drawn(20_000, 3000, 500, 20_000), drawn(20_000, 3000, 123, None)
    assert known == unknown
    assert len(set(known)) == 300
    count, _ = np.histogram(known, bins=10, range=(0, 20_000))
    assert 10 < count.min() <= count.max() < 60  # 30 expected, standard deviation 5


def test_choices_of_many_rows_are_made_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 300)
    frame = table(3000).drop(columns="w")
    model = GenerativeClassifier().fit(TableSource(frame, 400), "y")
    expected = GenerativeClassifier().fit(frame, "y")
    assert model.calibration_ is not None
    assert model.calibration_.weight <= 300
    assert model.statistics_.counts.rows.sum() == 3000
    assert np.abs(model.predict_proba(frame) - expected.predict_proba(frame)).mean() < 0.02


def test_statistics_that_were_summed_elsewhere_make_a_model() -> None:
    frame = numeric(table())
    whole = LinearDiscriminant().fit(frame, "y")
    specification = whole.specification_
    parts = [LinearDiscriminant().fit(frame[i::3], "y").statistics_ for i in range(3)]
    model = LinearDiscriminant().from_statistics(
        specification, parts[0] + parts[1] + parts[2], FrameSchema.of(frame.drop(columns="y"))
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "n"]
    X = frame.drop(columns="y")
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-12)


def test_all_rows_of_a_source_can_be_read_into_memory() -> None:
    frame = table()
    assert nw.from_native(in_memory(TableSource(frame, 50, 7)), eager_only=True).shape == frame.shape
    assert in_memory(frame) is frame


def test_results_of_threads_come_in_order_and_errors_stop_the_rest() -> None:
    started: list[int] = []

    def work(i: int) -> int:
        started.append(i)
        if i == 5:
            raise ValueError("five")
        return i * i

    assert list(threads.in_order(range(5), work)) == [0, 1, 4, 9, 16]
    with pytest.raises(ValueError, match="five"):
        list(threads.in_order(range(1000), work))
    assert max(started) < 100
    first = threads.in_order(range(1000), lambda i: i)
    assert next(first) == 0
    first.close()
    assert not threads.inside()


def test_penguins_in_parts() -> None:
    frame = load_table("penguins")
    expected = GenerativeClassifier().fit(frame, "species")
    model = GenerativeClassifier().fit(TableSource(frame, 45), "species")
    np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), atol=1e-9)


def documents(n: int = 300) -> pd.DataFrame:
    """Text, an identifier of one word, a category and a number, with the class that the words depend on."""
    rng = np.random.default_rng(3)
    k = rng.integers(0, 2, n)
    words = np.array(
        [["red", "round", "sweet", "fruit"], ["green", "long", "bitter", "root"], ["a", "the", "of", "it"]]
    )
    text = [" ".join(rng.permutation(words[np.where(rng.random(12) < 0.6, 2, c), rng.integers(0, 4, 12)])) for c in k]
    return pd.DataFrame(
        {
            "text": text,
            "id": [f"row-{i}" for i in rng.permutation(n)],
            "city": rng.choice(["x", "y", "z"], n),
            "size": rng.normal(size=n) + 0.3 * k,
            "y": np.array(["fruit", "root"])[k],
        }
    )


def test_text_and_identifiers_are_recognised_in_parts_of_any_size() -> None:
    frame = documents()
    expected = GenerativeClassifier().fit(frame, "y")
    assert list(map(type, expected.families_.values())).count(Text) == 1
    for part in (3, 40, 300):
        model = GenerativeClassifier().fit(TableSource(frame, part), "y")
        assert repr(model.families_) == repr(expected.families_)
        np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), atol=1e-9)


def test_text_classifiers_read_the_documents_of_a_source() -> None:
    frame = documents()
    expected = TextClassifier(column="text").fit(frame, "y").predict_proba(frame)
    found = TextClassifier(column="text").fit(TableSource(frame, 50), "y").predict_proba(TableSource(frame, 70))
    np.testing.assert_array_equal(found, expected)


class UnorderedSource(TableSource):
    """Rows whose order changes from pass to pass, as that of a query may."""

    has_fixed_order = False
    passes = 0

    def parts(self) -> list[TablePart]:
        self.passes += 1
        mixed = self.table.sample(frac=1.0, random_state=self.passes)
        return TableSource(mixed, self.part, self.chunk).parts()


@pytest.mark.parametrize("kind", [LinearDiscriminant, SoftmaxRegression, EvidenceClassifier])
def test_scores_do_not_depend_on_the_order_of_rows_in_a_pass(kind: Any) -> None:
    frame = table()[["a", "b", "w", "y"]]
    model = kind().fit(frame, "y", sample_weight="w")
    for weights in (None, "w"):
        rows = frame if weights else frame.drop(columns="w")
        source = UnorderedSource(rows, 90, 40)
        assert model.score(source, "y", weights) == pytest.approx(model.score(rows, "y", weights), rel=1e-12)
        assert source.passes == 1
    if kind is LinearDiscriminant:
        found = model.reliability(UnorderedSource(rows, 90, 40), "y", label="one", sample_weight="w")
        expected = model.reliability(rows, "y", label="one", sample_weight="w")
        assert found.expected_calibration_error == pytest.approx(expected.expected_calibration_error, rel=1e-12)


def test_scores_of_regressions_and_documents_do_not_depend_on_the_order_of_rows_in_a_pass() -> None:
    frame = table()[["a", "b", "n"]]
    model = GenerativeRegressor().fit(frame, ["b", "n"])
    assert model.score(UnorderedSource(frame, 90, 40), ["b", "n"]) == pytest.approx(model.score(frame, ["b", "n"]))
    texts = documents()[["text", "y"]]
    classifier = TextClassifier().fit(texts["text"], texts["y"])
    assert classifier.score(UnorderedSource(texts, 90, 40), "y") == classifier.score(texts, "y") > 0.9


@pytest.mark.parametrize("model", [NaiveBayes(Gaussian()), GenerativeClassifier(Gaussian()), LinearDiscriminant()])
def test_parts_whose_labeled_rows_have_no_weight_have_unlabeled_rows_alone(model: Any) -> None:
    rng = np.random.default_rng(0)
    label = np.where(np.arange(60) % 2, "a", "b").astype(object)
    label[::3] = None
    weight = np.where(np.arange(60) < 20, np.arange(60) % 3 == 0, rng.integers(1, 3, 60))
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60), "w": weight, "y": label})
    expected = model.fit(frame, "y", "w").predict_proba(frame[["x", "z"]])
    found = model.fit(TableSource(frame, 20), "y", "w").predict_proba(frame[["x", "z"]])
    assert np.allclose(found, expected, atol=1e-12)


def test_text_columns_without_any_value_are_numbers_beside_unlabeled_rows() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0], "n": pd.Series([None] * 6, dtype="str")})
    model = NaiveBayes(Gaussian()).fit(frame, [0, 1, 0, 1, None, 0])
    expected = NaiveBayes(Gaussian()).fit(frame.assign(n=np.nan), [0, 1, 0, 1, None, 0])
    assert np.array_equal(model.predict_proba(frame), expected.predict_proba(frame.assign(n=np.nan)))
