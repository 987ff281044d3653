"""Time, memory and quality of `TextClassifier`, on text messages and on 20 newsgroups.

    python -m benchmarks text
    NEWSGROUPS=folder python -m benchmarks text

The messages are in the repository. The newsgroups are not: the folder has `train` and `test` as .parquet or .csv, with
the columns `text` (whole messages with their headers) and `label`, split by date.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss

from benchmarks.missing import MESSAGES
from benchmarks.timing import Line, alternate, at_least, at_most, peak_megabytes
from likely import TextClassifier

VARIABLE = "NEWSGROUPS"


def text() -> Iterator[Line]:
    messages = pd.read_csv(MESSAGES, keep_default_na=False)
    yield from corpus("text messages", messages[:4000], messages[4000:], loss=0.04, accuracy=0.985)
    folder = Path(os.environ.get(VARIABLE) or "no folder")
    if not folder.is_dir():
        yield f"20 newsgroups: skipped. {VARIABLE}=folder of train and test, .parquet or .csv, adds them."
        return
    train, test = (read(folder, name) for name in ("train", "test"))
    yield from corpus("20 newsgroups", train, test, loss=0.56, accuracy=0.85)


def read(folder: Path, name: str) -> pd.DataFrame:
    """The documents and labels in a file."""
    parquet = folder / f"{name}.parquet"
    return pd.read_parquet(parquet) if parquet.exists() else pd.read_csv(folder / f"{name}.csv", keep_default_na=False)


def corpus(name: str, train: pd.DataFrame, test: pd.DataFrame, loss: float, accuracy: float) -> Iterator[Line]:
    """A fit and probabilities of new documents, in units of counting their words with scikit-learn."""
    yield f"{name}: {len(train):,} documents, {len(test):,} to predict"
    model, words = TextClassifier(), CountVectorizer()
    given, new = train["text"].to_numpy(dtype=object), test["text"].to_numpy(dtype=object)
    y = train["label"].to_numpy(dtype=object)
    mine, bare = alternate([partial(model.fit, given, y), partial(words.fit_transform, given)], repeats=2)
    yield at_most("fit / CountVectorizer.fit_transform", mine / bare, 2.0, f"{mine:.2f} s")
    mine, bare = alternate([partial(model.predict_proba, new), partial(words.transform, new)], repeats=2)
    yield at_most("probabilities / CountVectorizer.transform", mine / bare, 2.0, f"{mine:.2f} s")
    yield at_most("memory in MB, fit", peak_megabytes(partial(model.fit, given, y)), 80.0)
    yield at_most("memory in MB, probabilities", peak_megabytes(partial(model.predict_proba, new)), 80.0)
    posterior, classes = model.predict_proba(new), np.asarray(model.classes_)
    yield at_most("log-loss", log_loss(test["label"], posterior, labels=classes), loss)
    yield at_least("accuracy", np.mean(classes[posterior.argmax(axis=1)] == test["label"].to_numpy()), accuracy)
