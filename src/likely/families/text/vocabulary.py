"""Vocabularies: documents as sparse counts of terms, counted once by the analyzer or the vectorizer of scikit-learn.

The vocabulary of a plain `CountVectorizer` grows with every document, and two of them unite. All terms that are not in
it are counted in one more column, the last one. Other vectorizers (limits on document frequencies, a given vocabulary,
tf-idf, hashing) have columns that are fixed by the first fit.
"""

from __future__ import annotations

import codecs
import re
import warnings
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, repeat
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from likely.errors import InputError, InputTypeError
from likely.statistics.documents import Documents
from likely.statistics.term_sums import TermSums
from likely.typing import Array, Index

TOKENS = r"\w+|[!?$£€]"  # words, and the marks that distinguish advertisements from letters


def default_vectorizer() -> CountVectorizer:
    """Words of any length, in lower case, and the marks ! ? $ £ €."""
    return CountVectorizer(token_pattern=TOKENS)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The terms that documents are counted by, each with its column."""

    vectorizer: Any  # fitted, where the columns are fixed
    grows: bool
    columns: dict[str, int] | None  # None if terms are hashed
    size: int  # number of columns, without that of unknown terms

    def _sizes(self) -> dict[str, Any]:
        return {"columns": self.size if self.columns is None else len(self.columns)}

    def _valid(self) -> bool:
        return self.columns is None or len(self.columns) == self.size

    @classmethod
    def empty(cls, vectorizer: Any) -> Self:
        """A vocabulary without terms, of a copy of a vectorizer."""
        grows = type(vectorizer) is CountVectorizer and _counts_everything(vectorizer)
        return cls(clone(vectorizer), grows, {} if grows else None, 0)

    @classmethod
    def fixed(cls, vectorizer: Any, idf: Array | None) -> Self:
        """The vocabulary of a vectorizer whose columns are options, with the weights `idf` of tf-idf."""
        vectorizer = clone(vectorizer)
        if isinstance(vectorizer, HashingVectorizer):
            return cls(vectorizer, False, None, int(vectorizer.n_features))
        given = vectorizer.vocabulary
        columns = {term: j for j, term in enumerate(given)} if not hasattr(given, "items") else dict(given)
        set_columns(vectorizer, columns, idf)
        return cls(vectorizer, False, columns, len(columns))

    @property
    def encoding(self) -> tuple[str, str]:
        """How the vectorizer decodes bytes: the encoding, and what it does with errors."""
        return getattr(self.vectorizer, "encoding", "utf-8"), getattr(self.vectorizer, "decode_error", "strict")

    @property
    def analyze(self) -> Callable[[str], Sequence[str]] | None:
        """The function from a document to its terms; None if the vectorizer does not have one."""
        build = getattr(self.vectorizer, "build_analyzer", None)
        if build is None:
            return None
        given = any(callable(getattr(self.vectorizer, name, None)) for name in ("analyzer", "tokenizer"))
        return _only_strings(build()) if given else build()

    @property
    def terms(self) -> list[str]:
        """The terms in the order of their columns; names of columns where terms are hashed."""
        if self.columns is None:
            return [f"column {j}" for j in range(self.size)]
        return list(self.columns) if self.grows else sorted(self.columns, key=self.columns.__getitem__)

    def learn(self, documents: Sequence[str]) -> tuple[Self, Any]:
        """A vocabulary that has the terms of documents too, and their counts, (documents, columns + 1)."""
        if not self.grows:
            return (self, self.read(documents)) if self.size else self._fix(documents)
        if isinstance(documents, Documents):
            return self._learnt(documents)
        columns: defaultdict[str, int] = defaultdict(None, self.columns or {})
        columns.default_factory = columns.__len__
        counted = self._counted(documents, lambda terms: map(columns.__getitem__, terms))
        columns.default_factory = None
        found = replace(self, columns=columns, size=len(columns))
        return found, _matrix(*counted, found.size)

    def read(self, documents: Sequence[str]) -> Any:
        """Counts of the terms of documents, (documents, columns + 1); each unknown term has an entry."""
        if self.grows and isinstance(documents, Documents):
            return self._mapped(documents)
        if self.grows:
            assert self.columns is not None
            known, unknown = self.columns.get, repeat(self.size)
            return _matrix(*self._counted(documents, lambda terms: map(known, terms, unknown)), self.size)
        return _checked(_called(self.vectorizer.transform, documents), self.size)

    def counts(self, documents: Sequence[str], rows: Any) -> Any:
        """Counts of the terms of documents, whose `rows` the vectorizer has weighted by tf-idf or not."""
        if not isinstance(self.vectorizer, TfidfVectorizer):
            return rows
        return _checked(CountVectorizer.transform(self.vectorizer, documents), self.size)

    def _shared(self, documents: Documents) -> SharedCounts:
        """Counts of all distinct documents of a column, by a vocabulary of their own; terms are counted once."""
        options = repr([item for item in vars(self.vectorizer).items() if not item[0].endswith("_")])

        def count(texts: list[str]) -> SharedCounts:
            own, rows = self.empty(self.vectorizer).learn(texts)
            return SharedCounts(own.vectorizer, own.terms, rows)

        found: SharedCounts = documents.counted(options, count)
        return found

    def _learnt(self, documents: Documents) -> tuple[Self, Any]:
        """`learn`, from the counts that the rows of a column share; new terms in the order of first occurrence."""
        rows = self._mapped(documents)
        if not len(rows.indices) or rows.indices.max() < self.size:
            return self, rows
        shared, columns = self._shared(documents), dict(self.columns or {})
        used, first = np.unique(shared.rows[documents.codes].indices, return_index=True)
        for j in used[np.argsort(first)].tolist():
            columns.setdefault(shared.terms[j], len(columns))
        found = replace(self, columns=columns, size=len(columns))
        return found, found._mapped(documents)

    def _mapped(self, documents: Documents) -> Any:
        """`read`, from the counts that the rows of a column share."""
        assert self.columns is not None
        shared = self._shared(documents)
        rows = shared.rows[documents.codes]
        return _matrix(rows.data, shared.places(self.columns)[rows.indices], rows.indptr, self.size)

    def _counted(
        self, documents: Sequence[str], numbers: Callable[[Iterable[str]], Iterable[int]]
    ) -> tuple[Any, Any, Any]:
        """Counts and columns of the terms of each document, and where each document ends."""
        analyze, binary = self.analyze, bool(self.vectorizer.binary)
        assert analyze is not None
        columns, counts, ends = array("i"), array("i"), array("q", [0])
        for document in documents:
            found = Counter(analyze(document))
            columns.extend(numbers(found))
            counts.extend(found.values())
            ends.append(len(columns))
        values = np.asarray(counts)
        return np.ones_like(values) if binary else values, np.asarray(columns), np.asarray(ends)

    def _fix(self, documents: Sequence[str]) -> tuple[Self, Any]:
        """The vocabulary whose columns the vectorizer determines from documents."""
        vectorizer = clone(self.vectorizer)
        values = _called(vectorizer.fit_transform, documents)
        columns = getattr(vectorizer, "vocabulary_", None)
        if columns is None and hasattr(vectorizer, "get_feature_names_out"):
            columns = {str(name): j for j, name in enumerate(vectorizer.get_feature_names_out())}
        size = int(values.shape[1])
        return replace(self, vectorizer=vectorizer, columns=columns, size=size), _checked(values, size)

    def united(self, other: Vocabulary) -> tuple[Self, Index]:
        """A vocabulary with the terms of both, and the columns in it of the terms of `other`."""
        if not self.grows:
            if not self._same_columns(other):
                raise InputError(
                    "The vectorizers of the two models have different columns, so that the models cannot be added. "
                    "Use CountVectorizer without limits on document frequencies, or a given vocabulary."
                )
            return self, np.arange(self.size)
        assert self.columns is not None
        theirs = other.terms
        if theirs[: self.size] == self.terms:  # as in EM, which adds documents to the vocabulary of labeled ones
            return replace(self, columns=other.columns, size=other.size), np.arange(other.size)
        columns = dict(self.columns)
        mapping = np.array([columns.setdefault(term, len(columns)) for term in theirs], dtype=np.intp)
        return replace(self, columns=columns, size=len(columns)), mapping

    def of_used(self, sums: TermSums) -> tuple[Self, Index | None]:
        """The vocabulary of the terms that have a count, and the new columns of all; None if they stay."""
        used = np.bincount(sums.raw.indices, minlength=sums.size) > 0
        if not self.grows or used.all():
            return self, None
        columns = {term: j for j, term in enumerate(compress(self.terms, used))}
        return replace(self, columns=columns, size=len(columns)), np.where(used, np.cumsum(used) - 1, -1)

    def _same_columns(self, other: Vocabulary) -> bool:
        mine, yours = (getattr(each.vectorizer, "idf_", np.zeros(0)) for each in (self, other))
        return self.size == other.size and self.columns == other.columns and np.array_equal(mine, yours)


class SharedCounts:
    """Counts of the distinct documents of a column, with the terms of their columns."""

    def __init__(self, vectorizer: Any, terms: list[str], rows: Any) -> None:
        self.vectorizer, self.terms, self.rows = vectorizer, terms, rows
        self._last: tuple[dict[str, int] | None, Index] = (None, np.zeros(0, dtype=np.int32))

    def places(self, columns: dict[str, int]) -> Index:
        """The columns of all terms in a vocabulary, unknown ones in one more; the last ones found are kept."""
        known, found = self._last
        if known is not columns:
            each = map(columns.get, self.terms, repeat(len(columns)))
            found = np.fromiter(each, dtype=np.int32, count=len(self.terms))
            self._last = columns, found
        return found


def check_vectorizer(vectorizer: Any) -> None:
    """Raise where an object is not a vectorizer, or its options are invalid."""
    methods = ("fit_transform", "transform")
    if isinstance(vectorizer, type) or not all(hasattr(vectorizer, name) for name in methods):
        raise InputTypeError(f"vectorizer={vectorizer!r} is not a vectorizer, such as CountVectorizer().")
    if getattr(vectorizer, "input", "content") != "content":
        raise InputError(f"vectorizer: input={vectorizer.input!r} is not supported. Read the files first.")
    if isinstance(vectorizer, HashingVectorizer) and vectorizer.alternate_sign:
        raise InputError(
            "HashingVectorizer(alternate_sign=True) gives negative counts. Use HashingVectorizer("
            "alternate_sign=False, norm=None)."
        )
    if isinstance(vectorizer, CountVectorizer | HashingVectorizer):
        _called(_fit_to_nothing, vectorizer)


def _fit_to_nothing(vectorizer: Any) -> None:
    """Fit a copy to no documents, so that scikit-learn validates the options."""
    trial = clone(vectorizer)
    codecs.lookup(trial.encoding)
    trial.build_analyzer()
    least, most = trial.ngram_range
    if least > most:
        raise ValueError(f"ngram_range={trial.ngram_range} has a lower limit above the upper one")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to documents warns, too
        if isinstance(trial, HashingVectorizer):
            trial.fit([""])
        else:
            given = trial.vocabulary
            CountVectorizer.fit_transform(trial.set_params(vocabulary=[""] if given is None else given), [])


def _called(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a vectorizer returns; its errors are errors of the library."""
    try:
        return call(*arguments)
    except (ValueError, TypeError, LookupError, AttributeError, re.error) as error:
        raise InputError(f"vectorizer: {str(error).rstrip('.')}. Check its options, and the documents.") from error


def _only_strings(analyze: Callable[[str], Any]) -> Callable[[str], list[str]]:
    """A given function from a document to its terms, which raises unless they are strings."""

    def terms(document: str) -> list[str]:
        found = analyze(document)
        if found is None or isinstance(found, str):
            raise InputError(f"vectorizer: the analyzer returns {found!r}, and not a list of terms.")
        found = list(found)
        wrong = [term for term in found if not isinstance(term, str)]
        if wrong:
            raise InputError(f"vectorizer: the analyzer returns the term {wrong[0]!r}, and terms are strings.")
        return found

    return terms


def _counts_everything(vectorizer: CountVectorizer) -> bool:
    """Whether every term of every document has a column."""
    at_least, at_most = vectorizer.min_df, vectorizer.max_df
    return (
        vectorizer.vocabulary is None
        and vectorizer.max_features is None
        and isinstance(at_least, Integral)
        and at_least <= 1
        and not isinstance(at_most, Integral)
        and at_most == 1.0
    )


def _matrix(values: Array, columns: Index, ends: Index, size: int) -> Any:
    return scipy.sparse.csr_array((values, columns, ends), shape=(len(ends) - 1, size + 1))


def _checked(values: Any, size: int) -> Any:
    """The rows of a vectorizer with a column of unknown terms, which has no entries; negative values are an error."""
    rows = scipy.sparse.csr_array(values)
    if rows.nnz and not rows.data.min() >= 0.0:
        raise InputError("vectorizer: it gives negative values, and counts are not negative.")
    return scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], size + 1))


def set_columns(vectorizer: Any, columns: dict[str, int], idf: Array | None) -> None:
    """Fit a CountVectorizer or TfidfVectorizer to given columns and weights `idf` of tf-idf."""
    vocabulary = vectorizer.vocabulary
    if isinstance(vectorizer, TfidfVectorizer) and not vectorizer.use_idf:
        vectorizer.set_params(vocabulary=columns).fit([""]).set_params(vocabulary=vocabulary)
    vectorizer.vocabulary_, vectorizer.fixed_vocabulary_ = columns, vocabulary is not None
    if idf is not None:
        vectorizer.idf_ = np.asarray(idf, dtype=np.float64)


def is_weighted(vectorizer: Any) -> bool:
    """Whether a vectorizer of scikit-learn gives weighted counts, such as tf-idf, instead of counts."""
    if isinstance(vectorizer, HashingVectorizer):
        return vectorizer.norm is not None
    return isinstance(vectorizer, TfidfVectorizer) or not isinstance(vectorizer, CountVectorizer)


def packed(terms: Iterable[str]) -> dict[str, Any]:
    """Terms as two arrays, their text in UTF-8 and the number of bytes of each, as model files store them."""
    parts = [term.encode("utf-8", "surrogatepass") for term in terms]
    text = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return {"text": text, "bytes": np.array([len(part) for part in parts], dtype=np.int64)}


def unpacked(content: dict[str, Any]) -> list[str]:
    """The terms in two arrays of `packed`."""
    text, ends = content["text"].tobytes(), np.cumsum(content["bytes"]).tolist()
    if (ends[-1] if ends else 0) != len(text) or np.any(content["bytes"] < 0):
        raise TypeError("terms are of another length")
    return [text[start:stop].decode("utf-8", "surrogatepass") for start, stop in zip([0, *ends], ends, strict=False)]
