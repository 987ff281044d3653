"""Models in files: the same answers after loading, more learning, and nothing but clear errors from damaged files."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, get_type_hints

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import likely
from likely import (
    Categorical,
    Dirichlet,
    EvidenceClassifier,
    Exponential,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    Histogram,
    HybridClassifier,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    NormalInverseWishart,
    Pairs,
    PointMass,
    Poisson,
    QuadraticDiscriminant,
    Regularized,
    SoftmaxRegression,
    Text,
    TextClassifier,
)
from likely.errors import InputError, LikelyError, ModelFileError, NotEstimableError
from likely.model import persistence
from likely.model.persistence import register
from tests.helpers import load_table
from tests.laws.families import CASES, every
from tests.laws.registry import PLAIN, SHRUNK
from tests.laws.test_algebra import agree


def kept(model: Any, path: Path) -> Any:
    model.save(path)
    return likely.load(path)


def same(loaded: Any, model: Any, X: Any) -> None:
    """Bit for bit."""
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert [type(label) for label in loaded.classes_.tolist()] == [type(label) for label in model.classes_.tolist()]
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_array_equal(loaded.class_prior_, model.class_prior_)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert str(loaded.summary()) == str(model.summary())


def birds() -> tuple[pd.DataFrame, Any]:
    frame = load_table("penguins")
    return frame.drop(columns="species"), frame["species"].to_numpy(dtype=object)


# -------------------------------------------------------------------------------------------------- there and back


@every(CASES)
def test_every_family_comes_back_bit_for_bit(case: Any, tmp_path: Path) -> None:
    rows = case.member.table(seed=1)
    model = GenerativeClassifier(case.member.family, estimation=case.estimation).fit(rows.X, rows.y)
    same(kept(model, tmp_path / "model"), model, rows.X)


@pytest.mark.parametrize("case", [*PLAIN, *SHRUNK], ids=str)
def test_every_covariance_comes_back_bit_for_bit(case: Any, tmp_path: Path) -> None:
    frame = load_table("penguins").dropna()
    X, y = frame[["bill_length_mm", "bill_depth_mm", "body_mass_g"]].to_numpy(), frame["species"].to_numpy()
    model = case.classifier(np.unique(y)).fit(X, y)
    same(kept(model, tmp_path / "model"), model, X)


MODELS = [
    LinearDiscriminant(n_components=1),
    LinearDiscriminant(shrinkage="ledoit-wolf", class_prior=[0.2, 0.3, 0.5]),
    QuadraticDiscriminant(
        groups=[["Adelie", "Gentoo"]], class_prior={"Adelie": 0.5, "Chinstrap": 0.25, "Gentoo": 0.25}
    ),
    QuadraticDiscriminant(shrinkage=Regularized(pooling=0.2, sphering=0.1)),
    QuadraticDiscriminant(
        estimation="bayes", prior=NormalInverseWishart(mean=np.zeros(3), mean_rows=0.1), class_prior=Dirichlet(2.0)
    ),
    NearestPrototype("full"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_discriminants_come_back_with_all_their_options(model: Any, tmp_path: Path) -> None:
    frame = load_table("penguins").dropna()
    X, y = frame[["bill_length_mm", "bill_depth_mm", "body_mass_g"]], frame["species"]
    model.fit(X, y)
    loaded = kept(model, tmp_path / "model")
    same(loaded, model, X)
    assert_array_equal(loaded.feature_names_in_, X.columns)
    assert loaded.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X.rename(columns={"body_mass_g": "mass"}))


@pytest.mark.parametrize("model", [GenerativeClassifier(), NaiveBayes(unseen="error"), NaiveBayes(estimation="map")])
def test_a_mixed_table_comes_back_and_goes_on_learning(model: Any, tmp_path: Path) -> None:
    X, y = birds()
    model.fit(X[:250], y[:250])
    loaded = kept(model, tmp_path / "model")
    same(loaded, model, X[:250])
    drawn, _ = loaded.sample(3, random_state=0)
    pd.testing.assert_frame_equal(drawn, model.sample(3, random_state=0)[0])
    loaded.partial_fit(X[250:], y[250:])
    agree(loaded, model.partial_fit(X[250:], y[250:]), X[:250], 1e-12)
    agree(loaded.forget(X[:50], y[:50]), model.forget(X[:50], y[:50]), X[:250], 1e-12)
    agree(loaded + model, model + loaded, X[:250], 1e-12)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -1, 2**40]),
        np.array([1.0, 2.0, 3.0], dtype=np.float32),
        np.array([True, False, True]),
        np.array(["a", "b\u00e9", "日本"]),
        np.array(["a", 'b\n"', "\ud83d"[:0] + "c"], dtype=object),
        np.array([1, 2, 3], dtype=object),
        np.array([2, 3, 250], dtype=np.uint8),
    ],
)
def test_labels_keep_their_types(labels: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = labels[np.arange(30) % 3]
    X = rng.normal(size=(30, 2))
    model = LinearDiscriminant().fit(X, y)
    same(kept(model, tmp_path / "model"), model, X)


def test_categories_keep_their_types(tmp_path: Path) -> None:
    values = pd.Series([1, "1", b"1", 2.5, True, "x"] * 5, dtype=object)
    frame = pd.DataFrame({"c": values})
    model = NaiveBayes().fit(frame, np.arange(30) % 2)
    loaded = kept(model, tmp_path / "model")
    same(loaded, model, frame)
    (words,), (before,) = (m.statistics_.blocks[0].vocabularies for m in (loaded, model))
    assert [type(word) for word in words] == [type(word) for word in before]


def test_frames_numbered_columns_and_a_new_prior_come_back(tmp_path: Path) -> None:
    X, y = birds()
    polars = NaiveBayes().fit(pl.from_pandas(X), y)
    assert isinstance(kept(polars, tmp_path / "a").sample(2)[0], pl.DataFrame)
    numbered = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)))
    model = NaiveBayes().fit(numbered, np.arange(20) % 2).with_prior([0.9, 0.1])
    loaded = kept(model, tmp_path / "b")
    same(loaded, model, numbered[[1, 0]])
    assert loaded.class_prior == [0.9, 0.1]


def test_a_model_that_is_not_determined_yet_is_kept_too(tmp_path: Path) -> None:
    model = QuadraticDiscriminant().partial_fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], classes=[0, 1, 2])
    loaded = kept(model, tmp_path / "model")
    with pytest.raises(NotEstimableError):
        loaded.predict([[1.0, 2.0]])
    X = np.random.default_rng(0).normal(size=(40, 2))
    agree(loaded.partial_fit(X, np.arange(40) % 2), model.partial_fit(X, np.arange(40) % 2), X)


def test_what_was_forgotten_leaves_no_trace_in_the_file(tmp_path: Path) -> None:
    X, y = birds()
    model = NaiveBayes().fit(X, y)
    gone = (y == "Gentoo") | (X["island"] == "Torgersen").to_numpy()
    model.save(tmp_path / "before")
    model.forget(X[gone], y[gone]).save(tmp_path / "after")
    for name, there in (("before", True), ("after", False)):
        content = (tmp_path / name).read_bytes()
        assert (b"Gentoo" in content) is there
        assert (b"Torgersen" in content) is there


@pytest.mark.parametrize("way", [lambda m: pickle.loads(pickle.dumps(m)), "joblib"], ids=["pickle", "joblib"])
def test_pickle_and_joblib_work_too(way: Any, tmp_path: Path) -> None:
    X, y = birds()
    model = NaiveBayes().fit(X, y)
    if way == "joblib":
        joblib.dump(model, tmp_path / "model")
        other = joblib.load(tmp_path / "model")
    else:
        other = way(model)
    same(other, model, X)
    agree(other.partial_fit(X, y), model.partial_fit(X, y), X)


class Waiting(Exponential):
    """A family of a user's own."""


def test_a_family_of_ones_own_is_registered_first(tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).exponential(size=(30, 1)), np.arange(30) % 2
    model = NaiveBayes(Waiting()).fit(X, y)
    with pytest.raises(InputError, match=r"Waiting.*register"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    register(Waiting)
    same(kept(model, tmp_path / "model"), model, X)

    class Impostor(Exponential):
        pass

    Impostor.__name__ = "Poisson"
    with pytest.raises(InputError, match=r"Another class.*poisson\.Poisson.*register\(Poisson, name='mylab.Poisson'\)"):
        register(Impostor)
    assert register(Impostor, name="mylab.Poisson") is Impostor
    assert type(kept(NaiveBayes(Impostor()).fit(X, y), tmp_path / "model").families) is Impostor
    assert b"mylab.Poisson" in (tmp_path / "model").read_bytes()
    with pytest.raises(InputError, match="neither a BaseEstimator nor a dataclass"):
        register(int)


def test_a_class_that_is_defined_again_replaces_the_former_one(tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).exponential(size=(30, 1)), np.arange(30) % 2

    def cell() -> Any:
        class Again(Exponential):
            pass

        return register(Again)

    first, second = cell(), cell()
    assert first is not second
    for family in (first, second):
        NaiveBayes(family()).fit(X, y).save(tmp_path / "model")
        assert type(likely.load(tmp_path / "model").families) is second


def test_labels_that_no_file_can_hold_are_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": pd.cut(np.arange(30), 3)})
    model = NaiveBayes().fit(frame, np.arange(30) % 2)
    with pytest.raises(InputError, match=r"Interval.*Use text or numbers"):
        model.save(tmp_path / "model")


# ------------------------------------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "model"
    NaiveBayes({"n": Poisson(), "s": Categorical()}).fit(pd.DataFrame({"n": [1, 2], "s": ["a", "b"]}), [0, 1]).save(
        path
    )
    return path.read_bytes()


def refused(data: bytes, path: Path) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        likely.load(path)
    return str(caught.value)


def test_a_changed_byte_is_noticed_wherever_it_is(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for i in range(len(small)):
        changed = bytearray(small)
        changed[i] ^= (0x01, 0x20, 0x80)[i % 3]
        refused(bytes(changed), path)


def test_a_file_that_is_cut_short_or_goes_on_is_noticed(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for length in range(len(small)):
        refused(small[:length], path)
    refused(small + b"\0", path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a model",
        b"\xff" * 8 + b"{}",
        (2**62).to_bytes(8, "little") + b'{"__metadata__":{"likely":""}}',
        pickle.dumps(print),
        save_arrays({"a": np.zeros(3)}),
        save_arrays({"a": np.zeros(3)}, metadata={"likely": "{}"}),
    ],
)
def test_foreign_files_are_refused(data: bytes, tmp_path: Path) -> None:
    assert str(tmp_path / "model") in refused(data, tmp_path / "model")


def forged(small: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """A file with another content, under a checksum that is right."""
    length = int.from_bytes(small[:8], "little")
    tree = json.loads(json.loads(small[8 : 8 + length])["__metadata__"]["likely"])
    arrays = load_arrays(small)
    change(tree, arrays)
    blank = save_arrays(arrays, metadata={"likely": json.dumps(tree), "sha256": "0" * 64})
    digest = hashlib.sha256(blank).hexdigest().encode()
    return blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest)


def test_a_forged_file_with_the_right_checksum_is_read(small: bytes, tmp_path: Path) -> None:
    """So that the next test refuses for the right reason."""
    (tmp_path / "model").write_bytes(forged(small, lambda tree, arrays: None))
    assert isinstance(likely.load(tmp_path / "model"), NaiveBayes)


class Forgery:
    """Contents that no model has."""

    cases: ClassVar[dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]]] = {
        "another format": lambda tree, _: tree.update(format=99),
        "no format": lambda tree, _: tree.pop("format"),
        "a class that is not registered": lambda tree, _: tree["estimator"].update(object="Popen"),
        "an option that is not known": lambda tree, _: tree["estimator"]["fields"].update(shell=True),
        "something else as estimator": lambda tree, _: tree.update(estimator={"object": "Poisson", "fields": {}}),
        "text as estimator": lambda tree, _: tree.update(estimator="NaiveBayes"),
        "no statistics": lambda tree, _: tree.pop("statistics"),
        "other statistics": lambda tree, _: tree.update(statistics={"list": []}),
        "too few blocks": lambda tree, _: tree["statistics"]["fields"].update(blocks={"tuple": []}),
        "an array that is missing": lambda tree, arrays: arrays.pop("0"),
        "an array of another shape": lambda tree, arrays: arrays.update({k: np.zeros(7) for k in arrays}),
        "an unknown kind of value": lambda tree, _: tree.update(columns={"code": "import os"}),
        "a list": lambda tree, _: tree.update(columns=[1]),
        "endless nesting": lambda tree, _: tree.update(columns=json.loads("[" * 500 + "]" * 500)),
        "negative counts": lambda tree, arrays: arrays.update({k: -values for k, values in arrays.items()}),
        "other types of numbers": lambda tree, arrays: arrays.update(
            {k: values.astype(np.float32 if values.dtype == np.float64 else np.int32) for k, values in arrays.items()}
        ),
        "weights that are no numbers": lambda tree, arrays: arrays.update(
            {k: values * np.nan for k, values in arrays.items() if values.dtype == np.float64}
        ),
        "the same column twice": lambda tree, _: [
            plan["fields"].update(columns={"tuple": [0]}) for plan in tree["specification"]["fields"]["plans"]["tuple"]
        ],
        "a column that is not there": lambda tree, _: [
            plan["fields"].update(columns={"tuple": [-1 - i]})
            for i, plan in enumerate(tree["specification"]["fields"]["plans"]["tuple"])
        ],
        "two columns of one name": lambda tree, _: tree["specification"]["fields"].update(names={"tuple": ["n", "n"]}),
    }

    moments: ClassVar[dict[str, Callable[[dict[str, Any]], Any]]] = {
        "a scatter below 0": lambda fields: {fields["scatter"]["array"]: -np.eye(2)[None]},
        "an infinite mean": lambda fields: {fields["mean"]["array"]: np.full((2, 2), np.inf)},
        "means of another shape": lambda fields: {fields["mean"]["array"]: np.zeros((2, 3))},
        "units of 0": lambda fields: {fields["coordinates"]["fields"]["unit"]["array"]: np.zeros(2)},
        "weights of 0": lambda fields: {fields["weight"]["array"]: np.zeros(2)},
        "weights too small for a variance": lambda fields: {fields["weight"]["array"]: np.full(2, 1e-310)},
        "rows of one class more": lambda fields: {fields["rows"]["array"]: np.ones(3, dtype=np.int64)},
    }


@pytest.mark.parametrize("name", Forgery.moments)
def test_moments_that_no_rows_have_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    LinearDiscriminant().fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2).save(path)

    def change(tree: dict[str, Any], arrays: dict[str, Any]) -> None:
        (block,) = tree["statistics"]["fields"]["blocks"]["tuple"]
        arrays.update(Forgery.moments[name](block["fields"]))

    assert "no model has such a " in refused(forged(path.read_bytes(), change), path)


NUMBERS = np.random.default_rng(0).normal(size=(40, 2))
CLASSES = np.arange(40) % 2
MIXED = pd.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "c": ["x", "y", "z", "w"] * 10})
GAPS = MIXED.assign(a=MIXED["a"].where(np.arange(40) % 5 > 0))
TEXTS = [f"word{i % 3} w{i % 5} z{i % 7}" for i in range(40)]
SHARED = NormalInverseWishart(mean=np.zeros(2), scale=np.eye(2))
WITH_ARRAYS: dict[str, tuple[Any, Any]] = {
    "mixed": (GenerativeClassifier(), GAPS),
    "joint": (GenerativeClassifier(Gaussian(prior=SHARED)), GAPS[["a", "b"]]),
    "components": (GenerativeClassifier({(0, 1): Gaussian(components=2)}), NUMBERS),
    "tails": (LinearDiscriminant(shrinkage="ledoit-wolf"), NUMBERS),
    "pairs": (GenerativeClassifier(Pairs()), MIXED[["c"]].assign(d=MIXED["c"].to_numpy()[::-1])),
    "cells": (NaiveBayes(Histogram()), NUMBERS),
    "ledger": (NaiveBayes(Gaussian(), ledger=True), NUMBERS),
    "point mass": (NaiveBayes(PointMass(family=Exponential())), np.maximum(NUMBERS, 0.0)),
    "prototypes": (NearestPrototype(), NUMBERS),
    "regression": (GenerativeRegressor(), NUMBERS),
    "coefficients": (SoftmaxRegression(estimation="bayes"), NUMBERS),
    "softmax": (SoftmaxRegression(), NUMBERS),
    "given": (GenerativeClassifier.from_parameters("uniform", np.eye(2), np.eye(2)), NUMBERS[:, :2]),
    "hybrid": (HybridClassifier(blend=0.5), MIXED),
    "documents": (TextClassifier(order=2), TEXTS),
    "text": (GenerativeClassifier({"t": Text()}), pd.DataFrame({"t": TEXTS})),
    "evidence": (EvidenceClassifier(n_trees=2), MIXED.assign(t=[f"{each} {i}" for i, each in enumerate(TEXTS)])),
}


@cache
def saved(name: str) -> bytes:
    model, X = WITH_ARRAYS[name]
    with TemporaryDirectory() as folder:
        (model if name == "given" else model.fit(X, CLASSES)).save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def fields_of_arrays(data: bytes) -> dict[str, str]:
    """One array of each field of each class: its name in a file."""
    length = int.from_bytes(data[:8], "little")
    found: dict[str, str] = {}

    def visit(tree: Any, field: str) -> None:
        if isinstance(tree, list):
            for part in tree:
                visit(part, field)
        elif isinstance(tree, dict) and "array" in tree:
            found.setdefault(field, tree["array"])
        elif isinstance(tree, dict):
            owner = f"{tree['object']}." if "object" in tree else ""
            for key, part in tree.get("fields", tree).items():
                visit(part, owner + key if owner else field if key in ("tuple", "list", "dict") else f"{field} {key}")

    visit(json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["likely"]), "")
    return found


def forged_arrays(array: Any) -> list[Any]:
    """Arrays of other values, lengths and types."""
    wide = np.float32 if array.dtype == np.float64 else np.float64
    limits = {"f4": (1e30, 1e-30), "f8": (1e300, 1e-300, np.nan, np.inf)}.get(array.dtype.str[1:], (1, 100))
    changed = [np.zeros_like(array), -1 - array if array.dtype.kind in "if" else ~array]
    changed += [array[:-1], np.concatenate([array, array[:1]]), array[None], array.astype(wide)]
    changed += [np.concatenate([np.zeros_like(array[:1]), array[1:]]), np.concatenate([array[:-1], array[:1] * 0])]
    return [*changed, *(np.full_like(array, each) for each in limits)]


def test_every_class_with_arrays_is_forged() -> None:
    found = {field.partition(".")[0] for name in WITH_ARRAYS for field in fields_of_arrays(saved(name))}
    wanted = set()
    for name, kind in persistence._classes.items():
        if is_dataclass(kind) and kind.__module__.startswith("likely."):
            hints = get_type_hints(kind, include_extras=True)
            wanted |= {name for field in fields(kind) if "numpy.ndarray[" in str(hints[field.name])}
    assert wanted <= found


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_a_forged_array_is_refused_or_harmless(name: str, tmp_path: Path) -> None:
    """Neither loading nor the first prediction raises an error of another library, or gives NaN."""
    data, X, path = saved(name), WITH_ARRAYS[name][1], tmp_path / "model"
    arrays, refusals = load_arrays(data), 0
    for field, place in fields_of_arrays(data).items():
        for array in forged_arrays(arrays[place]):
            change = {place: np.ascontiguousarray(array)}
            path.write_bytes(forged(data, lambda tree, all_arrays, change=change: all_arrays.update(change)))  # type: ignore[misc]
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    loaded = likely.load(path)
                    found = loaded.predict_proba(X[:5]) if hasattr(loaded, "predict_proba") else loaded.predict(X[:5])
            except LikelyError as error:
                refusals += isinstance(error, ModelFileError)
                continue
            assert not np.isnan(np.asarray(found, dtype=np.float64)).any(), field
    assert refusals > 3 * len(fields_of_arrays(data))


@pytest.mark.parametrize("labels", [["a", "b", "secretlabel"], [b"a", b"b", b"secretlabel"]])
@pytest.mark.parametrize("way", ["forget", "drop_class"])
def test_the_length_of_a_label_is_forgotten_with_it(labels: list[Any], way: str, tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.array(labels * 3)
    model = QuadraticDiscriminant(estimation="bayes").fit(X, y)
    last = y == labels[2]
    changed = model.drop_class(labels[2]) if way == "drop_class" else model.forget(X[last], y[last])
    assert_array_equal(kept(changed, tmp_path / "model").predict_proba(X), changed.predict_proba(X))
    assert b"11" not in (tmp_path / "model").read_bytes().split(b"classes")[1][:200]


def test_what_is_forgotten_goes_on_after_a_file(tmp_path: Path) -> None:
    X, y = np.array([[1.1], [0.3], [0.3], [1.0], [2.0]]), np.array(list("aaabb"))
    model = QuadraticDiscriminant(estimation="bayes").fit(X, y).forget(X[:1], y[:1])
    loaded = kept(model, tmp_path / "model")
    assert_array_equal(loaded.forget(X[1:2], y[1:2]).predict_proba(X), model.forget(X[1:2], y[1:2]).predict_proba(X))


def test_a_long_tail_is_not_read(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(small)
    os.truncate(path, 2**40)  # nothing is there, and no memory would hold it
    with pytest.raises(ModelFileError, match="its length differs from that in its header"):
        likely.load(path)


def test_who_may_read_a_file_may_read_the_next_one(tmp_path: Path) -> None:
    path, model = tmp_path / "model", NaiveBayes().fit([[0.5], [1.5]], [0, 1])
    model.save(path)
    path.chmod(0o600)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a file nor a place for one"):
        model.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_sets_are_labels_that_come_back_as_they_were(tmp_path: Path) -> None:
    X, labels = np.arange(6.0)[:, None], np.empty(6, dtype=object)
    labels[:] = [frozenset({1}), frozenset({1, 2})] * 3
    model = NaiveBayes(Gaussian("diagonal")).fit(X, labels)
    loaded = kept(model, tmp_path / "model").partial_fit(X, labels)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert_array_equal(loaded.predict_proba(X), model.partial_fit(X, labels).predict_proba(X))


def test_a_number_too_long_for_a_file_is_refused(tmp_path: Path) -> None:
    long = NaiveBayes().fit([[0.5], [1.5]], np.array([10**5000, 0], dtype=object))
    with pytest.raises(InputError, match="bits cannot be part of a model file"):
        long.save(tmp_path / "model")


@pytest.mark.parametrize("name", Forgery.cases)
def test_contents_that_no_model_has_are_refused(name: str, small: bytes, tmp_path: Path) -> None:
    refused(forged(small, Forgery.cases[name]), tmp_path / "model")


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        likely.load(tmp_path / "nothing")


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    path = tmp_path / "model"
    NaiveBayes().fit(X, y).save(path)
    before = path.read_bytes()

    def crash(_: int) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", crash)
        with pytest.raises(OSError, match="full"):
            LinearDiscriminant().fit(X, y).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    LinearDiscriminant().fit(X, y).save(path)
    assert isinstance(likely.load(path), LinearDiscriminant)


def test_a_model_before_its_fit_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not fitted"):
        NaiveBayes().save(tmp_path / "model")


def test_gaussian_options_are_compared_as_they_are(tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = GenerativeClassifier({(0, 1): Gaussian(shared=[[0, 1]])}).fit(X, y)
    loaded = kept(model, tmp_path / "model")
    agree(loaded + model, model + model, X)
