"""Model files of text classifiers: options of vectorizers, vocabularies and sparse statistics as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from likely.errors import InputError
from likely.model.calibration import Calibration
from likely.model.unlabeled_weight import UnlabeledWeight
from likely.statistics.counts import Counts
from likely.text.class_bigrams import ClassBigrams
from likely.text.counts import TermSums
from likely.text.fitting import TermChoice, TextFit
from likely.text.term_models import TermModel
from likely.text.vocabulary import Vocabulary, packed, unpacked

VECTORIZERS = {kind.__name__: kind for kind in (CountVectorizer, TfidfVectorizer, HashingVectorizer)}


def vectorizer_content(vectorizer: Any) -> dict[str, Any]:
    """The options of a vectorizer, and what it has learnt."""
    name = type(vectorizer).__name__
    if VECTORIZERS.get(name) is not type(vectorizer):
        raise InputError(f"vectorizer: {name} cannot be part of a model file. Use {', '.join(VECTORIZERS)}.")
    options = vectorizer.get_params(deep=False)
    functions = [key for key, value in options.items() if key != "dtype" and callable(value)]
    if functions:
        raise InputError(f"vectorizer: {functions[0]} is a function, and functions cannot be part of a model file.")
    options["dtype"] = np.dtype(options["dtype"]).str
    return {"name": name, "options": options, "idf": getattr(vectorizer, "idf_", None)}


def restored_vectorizer(content: dict[str, Any], columns: dict[str, int] | None) -> Any:
    """The vectorizer with these options, fitted if it has columns."""
    options = dict(content["options"])
    options["dtype"] = np.dtype(options["dtype"]).type
    vectorizer = VECTORIZERS[content["name"]](**options)
    if columns is not None and not isinstance(vectorizer, HashingVectorizer):
        vectorizer.vocabulary_ = columns
        vectorizer.fixed_vocabulary_ = options.get("vocabulary") is not None
        if content["idf"] is not None:
            vectorizer.idf_ = content["idf"]
    return vectorizer


def fit_content(fit: TextFit) -> dict[str, Any]:
    """Vocabulary, statistics and choices as plain values."""
    sums, vocabulary = fit.sums, fit.vocabulary
    return {
        "vectorizer": vectorizer_content(vocabulary.vectorizer),
        "grows": vocabulary.grows,
        "size": vocabulary.size,
        "terms": None if vocabulary.columns is None else packed(vocabulary.terms),
        "counts": sums.counts,
        "values": _sparse_content(sums.values),
        "raw": None if sums.raw is sums.values else _sparse_content(sums.raw),
        "empty": sums.empty,
        "choices": fit.choices,
        "prior": fit.prior,
        "bigrams": fit.bigrams,
        "unlabeled": fit.unlabeled,
    }


def restored_fit(content: dict[str, Any]) -> TextFit:
    """The fit in a model file, validated."""
    size, terms = content["size"], content["terms"]
    columns = None if terms is None else {term: j for j, term in enumerate(unpacked(terms))}
    if columns is not None and len(columns) != size:
        raise TypeError("the vocabulary has another size")
    vectorizer = restored_vectorizer(content["vectorizer"], columns)
    vocabulary = Vocabulary(vectorizer, bool(content["grows"]), columns, int(size))
    counts = content["counts"]
    if not isinstance(counts, Counts):
        raise TypeError("counts of documents are needed")
    shape = (len(counts.classes), int(size))
    values = _restored_sparse(content["values"], shape)
    raw = values if content["raw"] is None else _restored_sparse(content["raw"], shape)
    sums = TermSums(counts, values, raw, int(content["empty"]))
    choices = tuple(content["choices"])
    if not (choices and sums.sound() and all(map(_sound, choices))):
        raise TypeError("no documents have such statistics")
    bigrams = content["bigrams"]
    if not (bigrams is None or (isinstance(bigrams, ClassBigrams) and bigrams.sound(counts.classes, int(size)))):
        raise TypeError("no documents have such pairs of terms")
    unlabeled = content["unlabeled"]
    if not (unlabeled is None or isinstance(unlabeled, UnlabeledWeight)):
        raise TypeError("the weight of unlabeled documents is invalid")
    return TextFit(vocabulary, sums, choices, content["prior"], bigrams, unlabeled)


def _sound(choice: Any) -> bool:
    calibration = choice.calibration if isinstance(choice, TermChoice) else False
    valid = calibration is None or (isinstance(calibration, Calibration) and calibration.sound())
    return valid and isinstance(choice.model, TermModel) and choice.mean_length > 0.0


def _sparse_content(part: Any) -> dict[str, Any]:
    return {"data": part.data, "indices": part.indices, "indptr": part.indptr}


def _restored_sparse(content: dict[str, Any], shape: tuple[int, int]) -> Any:
    found = scipy.sparse.csr_array((content["data"], content["indices"], content["indptr"]), shape=shape)
    found.check_format(full_check=True)
    return found
