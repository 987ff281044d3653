"""Model files: equal for equal models, read only after their checksum, and without traces of killed processes."""

import errno
import hashlib
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import likely
from likely import (
    Bernoulli,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    Geometric,
    HybridClassifier,
    NaiveBayes,
    PointMass,
    Poisson,
    SoftmaxRegression,
    TextClassifier,
    VonMises,
)
from likely.data import new_files
from likely.data.new_files import new_file
from likely.errors import ModelFileError

A = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 2
FRAME = pd.DataFrame({"a": A[:, 0], "c": ["x", "y", "z", "w"] * 10, "n": np.arange(40) % 7})


@pytest.mark.parametrize(
    "model",
    [
        GenerativeClassifier().fit(FRAME, Y),
        NaiveBayes({"c": Categorical(categories={"v", "w", "x", "y", "z"})}).fit(FRAME, Y),  # type: ignore[arg-type]
        GenerativeRegressor().fit(A, A[:, 0]),
        SoftmaxRegression().fit(A, Y),
        HybridClassifier(blend=0.5).fit(A, Y),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_same_model_gives_the_same_bytes(model: Any, tmp_path: Path) -> None:
    files = []
    for i in range(8):
        model.save(tmp_path / f"{i}")
        files.append((tmp_path / f"{i}").read_bytes())
    assert len(set(files)) == 1
    assert load_arrays(files[0]).keys()  # safetensors reads it
    again = likely.load(tmp_path / "0")
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == files[0]


def test_the_bytes_do_not_depend_on_the_hashes_of_text(tmp_path: Path) -> None:
    """A process with other hashes than this one writes the same file."""
    script = (
        "import numpy as np, sys; from likely import NaiveBayes;"
        "y = np.empty(40, dtype=object); y[:] = [frozenset('abc'), frozenset('xyz')] * 20;"
        "NaiveBayes().fit(np.arange(80.0).reshape(40, 2), y).save(sys.argv[1])"
    )
    y = np.empty(40, dtype=object)
    y[:] = [frozenset("abc"), frozenset("xyz")] * 20
    NaiveBayes().fit(np.arange(80.0).reshape(40, 2), y).save(tmp_path / "here")
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "there")], check=True, env=environment)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


def forged(path: Path, change: Callable[..., Any]) -> None:
    """Change the content of a model file, and its arrays where the change takes them, under a right checksum."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tree = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["likely"])
    arrays = {name: np.array(array) for name, array in load_arrays(data).items()}
    change(*(tree, arrays)[: len(inspect.signature(change).parameters)])
    blank = save_arrays(arrays, metadata={"likely": json.dumps(tree), "sha256": "0" * 64})
    digest = hashlib.sha256(blank).hexdigest().encode()
    path.write_bytes(blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest))


def family_option(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(tree: dict[str, Any]) -> None:
        for plan in tree["specification"]["fields"]["plans"]["tuple"]:
            plan["fields"]["family"]["fields"][name] = value

    return change


FORGERIES: dict[str, tuple[Any, Callable[[dict[str, Any]], Any]]] = {
    "a negative period": (NaiveBayes(VonMises()), family_option("period", -1)),
    "a shape that is no number": (NaiveBayes(Gamma()), family_option("shape", {"float": "nan"})),
    "an unknown way to estimate": (NaiveBayes(), lambda tree: tree["estimator"]["fields"].update(estimation="guess")),
    "a negative tolerance": (NaiveBayes(), lambda tree: tree["estimator"]["fields"].update(tol=-1.0)),
    "choices that are text": (GenerativeClassifier(), lambda tree: tree.update(choices={"tuple": ["Gaussian"]})),
    "choices of other columns": (
        GenerativeClassifier(),
        lambda tree: [choice["fields"].update(columns={"tuple": ["z"]}) for choice in tree["choices"]["tuple"]],
    ),
    "a choice that is no candidate": (
        GenerativeClassifier(),
        lambda tree: [choice["fields"].update(family="Zipf") for choice in tree["choices"]["tuple"]],
    ),
    "an unknown library": (NaiveBayes(), lambda tree: tree["columns"]["dict"].append(["frame", "SPSS"])),
    "names that are text": (NaiveBayes(), lambda tree: tree["columns"]["dict"].append(["labels", "abc"])),
    "names of more columns": (NaiveBayes(), lambda tree: tree["columns"]["dict"].append(["labels", {"list": [1] * 9}])),
    "more targets than columns": (
        NaiveBayes(),
        lambda tree: tree["columns"]["dict"].append(["targets", {"tuple": [99]}]),
    ),
    "targets that are no numbers": (
        NaiveBayes(),
        lambda tree: tree["columns"]["dict"].append(["targets", {"tuple": ["y"]}]),
    ),
    "no calibration": (NaiveBayes(), lambda tree: tree.pop("calibration")),
    "no targets": (
        NaiveBayes(),
        lambda tree: tree["columns"].update(dict=[pair for pair in tree["columns"]["dict"] if pair[0] != "targets"]),
    ),
    "coefficients of other columns": (
        SoftmaxRegression(),
        lambda tree: tree["odds_"]["fields"].update(linear=tree["odds_"]["fields"]["covariance"]),
    ),
    "columns of another number": (SoftmaxRegression(), lambda tree: tree.update(n_features_in_=2)),
    "classes that are text": (SoftmaxRegression(), lambda tree: tree.update(classes_="ab")),
    "a goodness of fit that is a number": (SoftmaxRegression(), lambda tree: tree.update(fit_=1.0)),
    "no covariance of the coefficients": (
        SoftmaxRegression(estimation="bayes"),
        lambda tree: tree["odds_"]["fields"].update(covariance=None),
    ),
    "a reference that is no class": (
        SoftmaxRegression(reference=1),
        lambda tree: tree["estimator"]["fields"].update(reference="z"),
    ),
    "a block without columns": (
        NaiveBayes({0: Gamma(), 1: Exponential(), 2: Gaussian("diagonal")}),
        lambda tree: tree["specification"]["fields"]["plans"]["tuple"][0]["fields"].update(columns={"tuple": []}),
    ),
    "a negative penalty": (SoftmaxRegression(), lambda tree: tree["estimator"]["fields"].update(penalty=-1.0)),
}


def vectorizer_option(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(tree: dict[str, Any]) -> None:
        (options,) = [pair[1] for pair in dict(tree["fit"]["dict"])["vectorizer"]["dict"] if pair[0] == "options"]
        options["dict"] = [[key, value if key == name else old] for key, old in options["dict"]]

    return change


def smoothing(value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(tree: dict[str, Any]) -> None:
        for choice in dict(tree["fit"]["dict"])["choices"]["tuple"]:
            choice["fields"]["model"]["fields"]["smoothing"] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        vectorizer_option("analyzer", "letters"),
        vectorizer_option("ngram_range", {"tuple": [2]}),
        vectorizer_option("ngram_range", {"tuple": ["a", "b"]}),
        vectorizer_option("stop_words", "x"),
        vectorizer_option("token_pattern", 1),
        vectorizer_option("tokenizer", 7),
        smoothing({"float": "nan"}),
        smoothing(1e300),
        smoothing(10**30 * -1),
        lambda tree: tree["fit"].update(dict=[[k, None if k == "terms" else v] for k, v in tree["fit"]["dict"]]),
    ],
)
def test_options_of_text_are_checked_at_load(change: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    texts = [f"word{i % 3} w{i % 5} z{i % 7}" for i in range(40)]
    TextClassifier().fit(texts, Y).save(tmp_path / "model")
    forged(tmp_path / "model", change)
    with pytest.raises(ModelFileError):
        likely.load(tmp_path / "model")


@pytest.mark.parametrize("family", [Poisson(), Geometric(), Bernoulli(), PointMass(family=Exponential())])
def test_sums_that_no_rows_have_are_refused_at_load(family: Any, tmp_path: Path) -> None:
    X = (np.abs(A) > 0.5) * 1.0
    NaiveBayes(family).fit(X, Y).save(tmp_path / "model")

    def change(tree: dict[str, Any], arrays: dict[str, Any]) -> None:
        (block,) = tree["statistics"]["fields"]["blocks"]["tuple"]
        sums = block["fields"].get("indicator", block)
        totals = arrays[sums["fields"]["totals"]["array"]]
        totals.reshape(-1)[0] = -1.0

    forged(tmp_path / "model", change)
    with pytest.raises(ModelFileError):
        likely.load(tmp_path / "model")


@pytest.mark.parametrize("name", FORGERIES)
def test_options_choices_and_columns_are_checked_at_load(name: str, tmp_path: Path) -> None:
    model, change = FORGERIES[name]
    model.fit(np.exp(A), Y).save(tmp_path / "model")
    assert likely.load(tmp_path / "model") is not None
    forged(tmp_path / "model", change)
    with pytest.raises(ModelFileError):
        likely.load(tmp_path / "model")


def test_a_header_is_not_parsed_before_its_checksum(tmp_path: Path) -> None:
    junk = b'{"likely":' + b"[" * 10_000_000 + b',"sha256":"' + b"0" * 64 + b'"'
    path = tmp_path / "junk"
    path.write_bytes(len(junk).to_bytes(8, "little") + junk)
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(ModelFileError, match="checksum"):
        likely.load(path)
    assert tracemalloc.get_traced_memory()[1] < 6 * len(junk)
    assert time.process_time() - start < 2.0
    tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found: list[BaseException] = []

    def work() -> None:
        try:
            likely.load(tmp_path / "pipe")
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10.0)
    assert found
    assert isinstance(found[0], ModelFileError)
    assert "pipe" in str(found[0])


def test_paths_may_be_bytes(tmp_path: Path) -> None:
    model = NaiveBayes().fit(A, Y)
    path = os.fsencode(tmp_path / "möðel")
    model.save(path)
    assert np.array_equal(likely.load(path).predict_proba(A), model.predict_proba(A))
    with pytest.raises(FileNotFoundError):
        likely.load(path + b"2")


KILLED = (
    "import os, signal, sys, numpy as np; from likely import NaiveBayes;"
    "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL);"
    "NaiveBayes().fit(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]).save(sys.argv[1])"
)


def killed_while_saving(path: Path) -> None:
    """Save a model in a process that is killed before its draft becomes the file."""
    before = len(list(path.parent.iterdir()))
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(path.parent.iterdir())) == before + 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill")
def test_drafts_of_killed_processes_are_removed_by_the_next_save_in_the_directory(tmp_path: Path) -> None:
    killed_while_saving(tmp_path / "2026-01-31")
    (tmp_path / ".likely-notes.tmp").write_text("mine")
    NaiveBayes().fit(A, Y).save(tmp_path / "2026-02-01")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".likely-notes.tmp", "2026-02-01"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill")
def test_drafts_of_another_computer_are_removed_after_a_day(tmp_path: Path) -> None:
    killed_while_saving(tmp_path / "model")
    (draft,) = tmp_path.iterdir()
    other = draft.rename(tmp_path / f".likely-1{draft.name.split('-')[1]}-{'0' * 32}.tmp")
    NaiveBayes().fit(A, Y).save(tmp_path / "model")
    assert other.exists()
    os.utime(other, (time.time() - 90_000.0,) * 2)
    NaiveBayes().fit(A, Y).save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill")
def test_file_systems_without_locks_keep_drafts_and_write_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "no locks")

    killed_while_saving(tmp_path / "model")
    monkeypatch.setattr(fcntl, "flock", refused)
    NaiveBayes().fit(A, Y).save(tmp_path / "model")
    assert len(list(tmp_path.iterdir())) == 2
    assert likely.load(tmp_path / "model") is not None


@pytest.mark.parametrize("days", [0, 3])
def test_no_process_removes_a_draft_that_another_one_is_writing(
    days: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process numbers of another container, and the address of another computer, may be those of nobody here."""
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)
    with new_file(tmp_path / "first") as file:
        file.write(b"some")
        (draft,) = tmp_path.iterdir()
        os.utime(draft, (time.time() - 86_400.0 * days,) * 2)
        save = "import sys, numpy as np; from likely import NaiveBayes; X = np.arange(8.0).reshape(4, 2);"
        save += "NaiveBayes().fit(X, [0, 1, 0, 1]).save(sys.argv[1])"
        for name in ("first", "second"):
            subprocess.run([sys.executable, "-c", save, str(tmp_path / name)], check=True)
        with new_file(tmp_path / "third"):
            assert draft.exists()
        file.write(b" bytes")
    assert (tmp_path / "first").read_bytes() == b"some bytes"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second", "third"]


def test_a_draft_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, calls = new_files._lock, list[int]()

    def late(descriptor: int) -> bool | None:
        if not calls:
            next(tmp_path.iterdir()).unlink()
        calls.append(descriptor)
        return lock(descriptor)

    monkeypatch.setattr(new_files, "_lock", late)
    with new_file(tmp_path / "file") as file:
        file.write(b"some")
    assert len(calls) == 2
    assert (tmp_path / "file").read_bytes() == b"some"
