"""Vectorizers, vocabularies and sparse sums as plain values, as model files store them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from likely.errors import InputError, ModelFileError
from likely.families.text.vocabulary import Vocabulary, packed, set_columns, unpacked
from likely.statistics.term_sums import TermSums

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
    vectorizer._validate_params()
    if vectorizer.input == "content":
        vectorizer.build_analyzer()("a text")  # raises for options that contradict each other
    if columns is not None and not isinstance(vectorizer, HashingVectorizer):
        set_columns(vectorizer, columns, content["idf"])
    return vectorizer


def sums_content(vocabulary: Vocabulary, sums: TermSums) -> dict[str, Any]:
    """A vocabulary and sums of its terms as plain values."""
    return {
        "vectorizer": vectorizer_content(vocabulary.vectorizer),
        "grows": vocabulary.grows,
        "size": vocabulary.size,
        "terms": None if vocabulary.columns is None else packed(vocabulary.terms),
        "counts": sums.counts,
        "values": _sparse_content(sums.values),
        "raw": None if sums.raw is sums.values else _sparse_content(sums.raw),
        "empty": sums.empty,
    }


def restored_sums(content: dict[str, Any]) -> tuple[Vocabulary, TermSums]:
    """The vocabulary and the sums in a model file."""
    size, terms = content["size"], content["terms"]
    columns = None if terms is None else {term: j for j, term in enumerate(unpacked(terms))}
    vectorizer = restored_vectorizer(content["vectorizer"], columns)
    vocabulary = Vocabulary(vectorizer, bool(content["grows"]), columns, int(size))
    if vocabulary.grows and columns is None:
        raise ModelFileError("its vocabulary has no terms")
    counts = content["counts"]
    shape = (len(counts.classes), int(size))
    values = _restored_sparse(content["values"], shape)
    raw = values if content["raw"] is None else _restored_sparse(content["raw"], shape)
    return vocabulary, TermSums(counts, values, raw, int(content["empty"]))


def _sparse_content(part: Any) -> dict[str, Any]:
    return {"data": part.data, "indices": part.indices, "indptr": part.indptr}


def _restored_sparse(content: dict[str, Any], shape: tuple[int, int]) -> Any:
    if np.any(np.diff(content["indptr"]) < 0):  # SciPy does not check arrays whose last pointer is 0
        raise ModelFileError("its sums of terms are malformed")
    found = scipy.sparse.csr_array((content["data"], content["indices"], content["indptr"]), shape=shape)
    found.check_format(full_check=True)
    return found
