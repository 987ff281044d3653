"""Statistics of documents add up: documents and other models are added to a fit, and documents removed from it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.choice.term_options import Sample
from likely.data.frames import target_names
from likely.data.labels import encode_labels
from likely.data.sources import in_memory, targets_apart
from likely.data.validation import read_weights
from likely.errors import InputError, listed
from likely.estimators.algebra import plain_text
from likely.families.text.vocabulary import Vocabulary
from likely.model.explanation import code_of
from likely.model.rendering import frame_library
from likely.statistics.counts import positions
from likely.statistics.term_sums import TermSums
from likely.text.class_bigrams import ClassBigrams, check_ordered_terms
from likely.text.documents import DocumentsLike, read_documents
from likely.text.fitting import TextFit, common_choices
from likely.typing import AnyArray, Array, Codes, LabelsLike, WeightsLike


class TextUpdates:
    """Mixin of `TextClassifier`: more documents, other models, documents and classes to be removed."""

    _fit: TextFit
    _target_names: tuple[Any, ...]
    column: Any
    order: int
    if TYPE_CHECKING:

        @property
        def classes_(self) -> AnyArray: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def _empty(self) -> TextFit: ...
        def __sklearn_is_fitted__(self) -> bool: ...

    def _sum(
        self, fit: TextFit, documents: list[str], classes: AnyArray, codes: Codes, weights: Array | None
    ) -> tuple[TextFit, Codes, Sample]:
        """A fit with the statistics of documents too, their class codes in it, and a sample of them."""
        vocabulary, rows = fit.vocabulary.learn(documents)
        values = fit.model.transform(rows)
        sums = TermSums.of(classes, codes, weights, values, vocabulary.counts(documents, rows))
        total = (fit.sums + sums).observed()
        bigrams = self._bigrams(vocabulary, documents, classes, codes, weights)
        if bigrams is not None:
            bigrams = (bigrams if fit.bigrams is None else fit.bigrams + bigrams).align(total.classes)
            bigrams = bigrams.with_concentrations(total.raw)
        found = replace(fit, vocabulary=vocabulary, sums=total, bigrams=bigrams)
        mine = _codes(total, classes, codes)
        return found, mine, Sample.of(documents, values, mine, weights)

    def _bigrams(
        self, vocabulary: Vocabulary, documents: list[str], classes: AnyArray, codes: Codes, weights: Array | None
    ) -> ClassBigrams | None:
        """Pairs of consecutive terms of documents; None for order=1."""
        if self.order == 1:
            return None
        check_ordered_terms(vocabulary.vectorizer)
        assert vocabulary.columns is not None
        analyze = vocabulary.vectorizer.build_analyzer()
        return ClassBigrams.of(classes, codes, weights, documents, analyze, vocabulary.columns)

    def _read(
        self, fit: TextFit, X: Any, y: Any, sample_weight: Any
    ) -> tuple[TextFit, list[str], AnyArray, Codes, Array | None]:
        """The fit with the name of the column of documents, documents, classes, class codes and weights."""
        ignored = target_names(y, sample_weight)
        X, y, sample_weight = targets_apart(in_memory(X, y, sample_weight), y, sample_weight)
        column = fit.column if self.column is None else self.column
        documents, column = read_documents(X, column, fit.vocabulary.encoding, ignored)
        labels = encode_labels(y, len(documents), type(self).__name__)
        weights = read_weights(sample_weight, len(documents))
        if weights is not None and not weights.any():
            raise InputError("All weights in sample_weight are zero: no document counts.")
        fit = replace(fit, column=column, library=fit.library or frame_library(X))
        return fit, documents, labels.classes, labels.codes, weights

    def partial_fit(
        self,
        X: DocumentsLike,
        y: LabelsLike,
        classes: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
    ) -> Self:
        """Add documents to the model.

        The vocabulary grows, and new classes may occur. The result is that of `fit` on all documents so far, but for
        what `fit` learns from leave-one-out evidence: smoothing, exponent and intercepts stay as they are. A model that
        begins with `partial_fit` is not calibrated; `calibrate` does it.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them.
        classes : array-like of shape (n_classes,), default=None
            All classes that may occur. Other labels are then an error. None allows any label.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each document counts. None is 1 for all documents.

        Returns
        -------
        TextClassifier
            The fitted estimator itself.

        See Also
        --------
        forget : Removes documents.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().partial_fit(["good film", "bad film"], ["+", "-"])
        >>> model.partial_fit(["dull story"], ["-"]).predict(["a dull evening"])
        array(['-'], dtype='<U1')
        """
        fitted = self.__sklearn_is_fitted__()
        if fitted:
            self._fit.check_additive("partial_fit")
        fit = self._fit if fitted else self._empty()
        fit, documents, labels, codes, weights = self._read(fit, X, y, sample_weight)
        if weights is not None and not weights.all():
            used = np.flatnonzero(weights)
            documents, codes, weights = [documents[i] for i in used.tolist()], codes[used], weights[used]
        fit = self._sum(fit, documents, labels, codes, weights)[0]
        if classes is not None:
            known = encode_labels(classes, len(np.asarray(classes)), type(self).__name__).classes.tolist()
            strange = [label for label in fit.sums.classes.tolist() if label not in known]
            if strange:
                raise InputError(f"y has the label {listed(strange)}, which is not among classes={listed(known)}.")
        if not fitted:
            self._target_names = target_names(y, sample_weight)
        self._fit = fit
        return self

    def forget(self, X: DocumentsLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Remove training documents from the model, as if it had been fitted without them.

        Classes and terms without remaining documents are removed. Documents that cannot have been in the fit raise an
        error where the counts show it, and the model is then unchanged.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents of the fit.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all documents.

        Returns
        -------
        TextClassifier
            The fitted estimator itself.

        See Also
        --------
        partial_fit : Adds documents.
        """
        check_is_fitted(self)
        self._fit.check_additive("forget")
        fit, documents, classes, codes, weights = self._read(self._fit, X, y, sample_weight)
        rows = self._fit.vocabulary.read(documents)
        if self._fit.vocabulary.grows and np.any(rows.indices == self._fit.vocabulary.size):
            row = int(np.searchsorted(rows.indptr, np.argmax(rows.indices == rows.shape[1] - 1), side="right")) - 1
            raise InputError(f"X, row {row}: the document has terms that no training document has.")
        counts = fit.vocabulary.counts(documents, rows)
        removed = TermSums.of(classes, codes, weights, fit.model.transform(rows), counts).observed()
        bigrams = self._bigrams(fit.vocabulary, documents, classes, codes, weights)
        if bigrams is not None and fit.bigrams is not None:
            fit = replace(fit, bigrams=fit.bigrams - bigrams)
        self._fit = fit.reduced(fit.sums - removed)
        return self

    def drop_class(self, label: object) -> Self:
        """Remove all documents of a class from the model.

        Parameters
        ----------
        label : object
            The class.

        Returns
        -------
        TextClassifier
            The fitted estimator itself.
        """
        check_is_fitted(self)
        self._fit.check_additive("drop_class")
        self._fit = self._fit.reduced(self._fit.sums.without(code_of(self.classes_, label)))
        return self

    def __add__(self, other: Any) -> Self:
        """Combine two fitted models into a new one, as if it had been fitted to the documents of both.

        Vocabularies unite. Of a calibrated and an uncalibrated model, the choices of the calibrated one are kept.
        Otherwise smoothing is the one with the least leave-one-out log-loss in both; exponents and intercepts
        are averaged, weighted by the documents of both. The concentrations of bigrams, where they differ, have the
        geometric mean, weighted by the pairs of both.
        """
        if not isinstance(other, TextUpdates):
            return NotImplemented
        check_is_fitted(self)
        check_is_fitted(other)
        for each in (self, other):
            each._fit.check_additive("adding models")
        mine, yours = self.get_params(deep=False), other.get_params(deep=False)
        different = [
            f"{name}: {plain_text(mine[name])} and {plain_text(yours[name])}"
            for name in mine
            if plain_text(mine[name]) != plain_text(yours[name])
        ]
        if different:
            raise InputError(f"Models with different options cannot be added: {'; '.join(different)}.")
        vocabulary, mapping = self._fit.vocabulary.united(other._fit.vocabulary)
        sums = self._fit.sums + other._fit.sums.renumbered(mapping, vocabulary.size)
        bigrams = self._fit.bigrams
        if bigrams is not None and other._fit.bigrams is not None:
            bigrams = (bigrams + other._fit.bigrams.renumbered(mapping, vocabulary.size)).align(sums.classes)
        total = copy.copy(self)
        choices = common_choices(self._fit, other._fit)
        column = other._fit.column if self._fit.column is None else self._fit.column
        total._fit = replace(
            self._fit, vocabulary=vocabulary, sums=sums, choices=choices, bigrams=bigrams, column=column
        )
        return total

    def __radd__(self, other: Any) -> Self:
        """For ``sum(models)``, which starts from 0."""
        if not (isinstance(other, int) and other == 0):
            return NotImplemented
        check_is_fitted(self)
        return copy.copy(self)

    def calibrate(self, X: DocumentsLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Learn smoothing, exponent and intercepts again, from leave-one-out evidence of training documents.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Training documents, or some of them.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all documents.

        Returns
        -------
        TextClassifier
            The fitted estimator itself.
        """
        check_is_fitted(self)
        self._fit.check_additive("calibrate")
        documents, rows, codes, weights = self._training(X, y, sample_weight)
        values = self._fit.model.transform(rows)
        self._fit = self._fit.calibrated(Sample.of(documents, values, codes, weights))
        return self

    def _training(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[str], Any, Codes, Array | None]:
        """Training documents, with their counts, class codes and weights."""
        _, documents, classes, codes, weights = self._read(self._fit, X, y, sample_weight)
        unknown = [label for label in classes.tolist() if label not in self.classes_.tolist()]
        if unknown:
            raise InputError(f"y has the label {listed(unknown)}, which is not among the classes of the model.")
        return documents, self._fit.vocabulary.read(documents), positions(self.classes_, classes)[codes], weights


def _codes(sums: TermSums, classes: AnyArray, codes: Codes) -> Codes:
    """Codes of classes as codes of the classes of sums, which may lack classes without documents."""
    known = np.isin(classes, sums.classes)
    mapping = np.zeros(len(classes), dtype=np.intp)
    mapping[known] = positions(sums.classes, classes[known])
    return mapping[codes]
