"""Explanations of documents: the contribution of each term to the score of each class, and the terms in the text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.errors import InputError, amount
from likely.families.text.term_models import unobserved
from likely.model.explanation import OFFSET, Explanation
from likely.model.rendering import RenderedResult, TextTable, count, encodable, number, short_names, to_frame
from likely.numerics.ties import tie_ranks
from likely.text.fitting import TextFit
from likely.typing import AnyArray, Array, Index

MOST_CELLS = 2**27  # of an explanation
SHOWN_TERMS = 8  # of each class in a summary
MOST_CHARACTERS = 5000  # of a document in HTML
Mark = tuple[int, int, int]  # where a term begins and ends in its document, and its place among the terms


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextExplanation(Explanation):
    """Decomposition of the score of each class into contributions of the terms of documents.

    The offset plus the evidence summed over the terms is t·log p(x | class) + log p(class) + c, up to a constant common
    to all classes. Its softmax over the classes is `predict_proba`. In notebooks, the terms of the first document are
    highlighted in its text.

    Attributes
    ----------
    evidence : ndarray of shape (n_samples, n_classes, n_terms)
        Contribution of each term to each class: 0 for terms that a document does not have.
    offset : ndarray of shape (n_samples, n_classes)
        Log class prior and intercept, and the evidence of absent terms.
    columns : tuple of str
        The terms of all documents.
    classes : ndarray of shape (n_classes,)
        The classes.
    documents : tuple of str
        The documents.

    See Also
    --------
    TextClassifier.explain : Returns this object.
    """

    documents: tuple[str, ...] = ()
    _present: tuple[Index, ...] = ()  # positions of the terms of each document, in their order
    _marks: tuple[tuple[Mark, ...], ...] = ()

    def to_frame(self) -> Any:
        """Return the contributions of the terms of each document as a tidy table.

        Returns
        -------
        frame
            One row for each document, class and term of the document, with `row`, `class`, `column` (the term) and
            `contribution`. The offset is the column '(offset)', so that contributions sum to the score of the class.
            The frame is of the library of X; otherwise of pandas, or of pyarrow if pandas is not installed.
        """
        data: dict[str, list[Any]] = {"row": [], "class": [], "column": [], "contribution": []}
        for row, present in enumerate(self._present):
            names = [*(self.columns[j] for j in present), OFFSET]
            for k, label in enumerate(self.classes.tolist()):
                data["row"] += [row] * len(names)
                data["class"] += [label] * len(names)
                data["column"] += names
                data["contribution"] += [*self.evidence[row, k, present].tolist(), float(self.offset[row, k])]
        return to_frame(data, self._library)

    def highlighted(self, row: int = 0, first: object = None, second: object = None) -> str:
        """Return a document as HTML, with its terms coloured by their contribution to the log-odds of two classes.

        Parameters
        ----------
        row : int, default=0
            Position of the document.
        first : object, default=None
            A class label. None is the most probable class of the document.
        second : object, default=None
            Another class label. None is the most probable one of the others.

        Returns
        -------
        str
            HTML. Terms in favour of the first class are blue, against it red; the tooltip has the contribution.
        """
        title, terms, _ = self._compared(row, first, second)
        row = self._checked(row)
        document, parts, last = self.documents[row], [], 0
        largest = float(np.abs(terms).max(initial=0.0)) or 1.0
        for start, stop, place in self._marks[row]:
            if start < last or stop > MOST_CHARACTERS:
                continue
            value = float(terms[place])
            colour = "31, 119, 180" if value >= 0.0 else "214, 39, 40"
            style = f"background-color: rgba({colour}, {0.6 * abs(value) / largest:.2f})"
            word = _escaped(document[start:stop])
            parts += [_escaped(document[last:start]), f'<span style="{style}" title="{value:+.2f}">{word}</span>']
            last = stop
        rest = document[last:MOST_CHARACTERS] + ("…" if len(document) > MOST_CHARACTERS else "")
        text = "".join([*parts, _escaped(rest)])
        return f'<p>{_escaped(title)}</p><p dir="auto" style="white-space: pre-wrap">{text}</p>'

    def _repr_html_(self) -> str:
        return f"<div>{self.highlighted(0)}{RenderedResult._repr_html_(self)}</div>"

    def _parts(self) -> list[str | TextTable]:
        """The first document: its terms alone, not those of the others."""
        present = self._present[0]
        one = Explanation(
            self.evidence[:, :, present], self.offset, tuple(self.columns[j] for j in present), self.classes
        )
        title, table, *more = one._parts()
        assert isinstance(table, TextTable)
        rows = [[line[0].replace(" other column", " other term"), *line[1:]] for line in table.rows]
        return [title, TextTable(["term", *table.header[1:]], rows), *more]


def _escaped(text: str) -> str:
    """Text as HTML, with lone surrogates as escapes."""
    return html.escape(encodable(text))


def marks(document: str, pattern: str | None, analyze: Any, place: dict[str, int]) -> tuple[Mark, ...]:
    """Where the terms of a document are in its text; none where terms are not words that a pattern finds."""
    if pattern is None:
        return ()
    found: list[Mark] = []
    for match in re.finditer(pattern, document):
        known = [place[term] for term in analyze(match.group()) if term in place]
        if known:
            found.append((match.start(), match.end(), known[0]))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextSummary(RenderedResult):
    """Summary of a fitted `TextClassifier`: classes with the terms that mark them, and notes. Printing shows it.

    Attributes
    ----------
    title : str
        The model in one line.
    classes : ndarray of shape (n_classes,)
        Class labels.
    documents : ndarray of shape (n_classes,)
        Weight of the training documents of each class.
    prior : ndarray of shape (n_classes,)
        Class prior.
    terms : tuple of tuple of str
        Terms of each class with the largest expected evidence against the other classes, the largest first.
    notes : tuple of str
        Vocabulary, calibration, choices, documents without terms.
    """

    title: str
    classes: Any
    documents: Array
    prior: Array
    terms: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return str(self)

    def to_frame(self) -> Any:
        """Return the classes as a table.

        Returns
        -------
        frame
            One row for each class, with `class`, `documents`, `prior` and `terms`.
        """
        data = {
            "class": self.classes.tolist(),
            "documents": self.documents,
            "prior": self.prior,
            "terms": [" ".join(each) for each in self.terms],
        }
        return to_frame(data, None)

    def _parts(self) -> list[str | TextTable]:
        names = short_names(self.classes.tolist())
        rows = [
            [name, count(float(weight)), number(float(prior), 3), " ".join(terms)]
            for name, weight, prior, terms in zip(names, self.documents, self.prior, self.terms, strict=True)
        ]
        return [self.title, TextTable(["class", "documents", "prior", "terms"], rows), "\n".join(self.notes)]


def expected_evidence(coefficients: Array, probability: Array, code: int, others: Array) -> Array:
    """Expected evidence of each term for a class against the others, in a document of the class.

    p_kj·(w_kj − Σ_{l≠k} π_l·w_lj), with the coefficients w, (terms, classes), the probability p of a term in the
    class, (terms,), and the weights π of the other classes.
    """
    return np.asarray(probability * (coefficients[:, code] - coefficients @ others))


def ordered(scores: Array, terms: Sequence[str], n: int) -> list[int]:
    """Positions of the n largest scores; of equal ones in the order of the terms."""
    ranks = tie_ranks(scores, 0.0)
    some = np.argsort(ranks, kind="stable")[: max(4 * n, 64)].tolist()
    return sorted(some, key=lambda j: (ranks[j], terms[j]))[:n]


def explained(fit: TextFit, documents: list[str], library: str | None) -> TextExplanation:
    """The contributions of the terms of documents."""
    analyze = fit.vocabulary.analyze
    rows = fit.model.transform(fit.vocabulary.read(documents))
    terms, at = _terms_of(fit, documents, rows)
    names = tuple(dict.fromkeys(term for each in terms for term in each))
    place = {term: j for j, term in enumerate(names)}
    size = len(documents) * len(fit.sums.classes) * len(names)
    if size > MOST_CELLS:
        raise InputError(f"X has {len(documents)} documents with {len(names)} terms. Explain fewer at a time.")
    evidence = np.zeros((len(documents), len(fit.sums.classes), len(names)))
    factors, present = fit.factors(rows), []
    for i, each in enumerate(terms):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        values = fit.evidence.coefficients(rows.indices[part]) * (factors[i] * rows.data[part, None])
        where = np.array([place[term] for term in each], dtype=np.intp)
        np.add.at(evidence[i].T, where[at[i]], values)
        present.append(np.unique(where))
    blank = unobserved(fit.model, rows, documents)
    evidence[blank] = 0.0
    constant = factors[:, None] * fit.evidence.constant + fit.log_prior + fit.intercepts
    offset = np.where(blank[:, None], fit.log_prior, constant)
    pattern = _word_pattern(fit.vocabulary.vectorizer)
    return TextExplanation(
        evidence,
        offset,
        names,
        fit.sums.classes,
        _library=library,
        documents=tuple(documents),
        _present=tuple(present),
        _marks=tuple(marks(document, pattern, analyze, place) for document in documents),
    )


def _terms_of(fit: TextFit, documents: list[str], rows: Any) -> tuple[list[list[str]], list[AnyArray]]:
    """Names of the terms of each document, and which of them each stored value belongs to."""
    vocabulary = fit.vocabulary
    if vocabulary.grows:
        analyze = vocabulary.vectorizer.build_analyzer()
        named = [list(dict.fromkeys(analyze(document))) for document in documents]
        return named, [np.arange(len(each)) for each in named]
    known = vocabulary.terms
    parts = [rows.indices[rows.indptr[i] : rows.indptr[i + 1]] for i in range(len(documents))]
    return [[known[j] for j in part] for part in parts], [np.arange(len(part)) for part in parts]


def top_terms(fit: TextFit, code: int, n: int) -> Any:
    """A frame of the terms that mark a class."""
    terms, scores = fit.vocabulary.terms, _class_evidence(fit, code)
    top = ordered(scores, terms, n)
    raw = fit.sums.raw
    counts, totals = raw[[code]].toarray()[0], np.asarray(raw.sum(axis=0)).ravel()
    data = {
        "term": [terms[j] for j in top],
        "evidence": scores[top],
        "count": counts[top],
        "total": totals[top],
    }
    return to_frame(data, fit.library)


def _class_evidence(fit: TextFit, code: int) -> Array:
    """Expected evidence of all columns for one class."""
    prior = np.delete(fit.class_prior, code)
    others = np.zeros(len(fit.sums.classes))
    others[np.arange(len(others)) != code] = prior / prior.sum() if prior.sum() > 0.0 else 1.0 / max(len(prior), 1)
    values = fit.sums.values[[code]].toarray()[0]
    probability = values / max(float(values.sum()), np.finfo(float).tiny)
    exponent = 1.0 if fit.calibration is None else fit.calibration.exponent
    coefficients = exponent * fit.evidence.coefficients(np.arange(fit.sums.size))
    return expected_evidence(coefficients, probability, code, others)


def summarise_text(name: str, fit: TextFit) -> TextSummary:
    """The summary of a model of documents."""
    names = fit.vocabulary.terms
    terms = tuple(
        tuple(names[j] for j in ordered(scores, names, SHOWN_TERMS) if scores[j] > 0.0)
        for scores in (_class_evidence(fit, code) for code in range(len(fit.sums.classes)))
    )
    used = int(np.count_nonzero(np.bincount(fit.sums.raw.indices, minlength=1)))
    notes = [
        f"{used} {'term' if used == 1 else 'terms'}: {fit.model.describe()}",
        str(fit.calibration) if fit.calibration else "not calibrated",
    ]
    if fit.chosen.length_exponent:
        notes.append(f"exponent of the document's length: -{fit.chosen.length_exponent:g}")
    if fit.sums.empty:
        several = "document has no terms and counts" if fit.sums.empty == 1 else "documents have no terms and count"
        notes.append(f"{fit.sums.empty} training {several} only in the class prior")
    if fit.unlabeled is not None:
        notes.append(str(fit.unlabeled))
    counts = fit.sums.counts
    size = amount(int(counts.rows.sum()), "document", "documents")
    title = f"{name}: {size}, {amount(len(fit.sums.classes), 'class', 'classes')}"
    return TextSummary(title, fit.sums.classes, counts.weight, fit.class_prior, terms, tuple(notes))


def _word_pattern(vectorizer: Any) -> str | None:
    """The pattern of words; None if terms are not words."""
    if getattr(vectorizer, "analyzer", None) != "word" or getattr(vectorizer, "tokenizer", None) is not None:
        return None
    return getattr(vectorizer, "token_pattern", None)
