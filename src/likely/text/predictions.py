"""Predictions for documents: probabilities, decisions, densities, explanations, and the terms that mark each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.data.sources import predicted_with_targets
from likely.data.validation import accuracy
from likely.errors import InputError, amount, check_number
from likely.families.text.term_models import unobserved
from likely.model.decision import Decisions, decide
from likely.model.explanation import code_of
from likely.model.rendering import frame_library, to_frame
from likely.numerics.special import log_softmax_into, softmax_into
from likely.text.documents import DocumentsLike, read_documents
from likely.text.explanation import SHOWN_TERMS, TextExplanation, TextSummary, expected_evidence, marks, ordered
from likely.text.fitting import TextFit
from likely.typing import AnyArray, Array, LabelsLike, LossLike, WeightsLike

MOST_CELLS = 2**27  # of an explanation


class TextPredictions:
    """Mixin of `TextClassifier`: everything that is computed for new documents."""

    _fit: TextFit
    column: Any
    _target_names: tuple[Any, ...]
    if TYPE_CHECKING:

        @property
        def classes_(self) -> AnyArray: ...
        @property
        def class_prior_(self) -> Array: ...

    def _documents(self, X: Any) -> list[str]:
        """The documents of X."""
        check_is_fitted(self)
        fit = self._fit
        column = fit.column if self.column is None else self.column
        return read_documents(X, column, fit.vocabulary.encoding, self._target_names)[0]

    def _scores(self, X: Any) -> Array:
        """t·evidence + log class prior + intercept, (classes, documents)."""
        documents, fit = self._documents(X), self._fit
        rows = fit.model.transform(fit.vocabulary.read(documents))
        return fit.scores(rows, unobserved(fit.model, rows, documents))

    def predict(self, X: DocumentsLike) -> AnyArray:
        """Predict the most probable class of each document.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.

        See Also
        --------
        predict_proba : Probabilities of all classes.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().fit(["free prize", "win a prize", "see you", "are you home"], [1, 1, 0, 0])
        >>> model.predict(["a free prize", "home"])
        array([1, 0])
        """
        return np.asarray(self.classes_[self._scores(X).argmax(axis=0)])

    def predict_proba(self, X: DocumentsLike) -> Array:
        """Predict class probabilities, p(class | document).

        None, NaN, empty strings and documents without any known term have the class prior. Only for `Bernoulli` and
        `Poisson` models, in which absent terms are evidence, documents with unknown terms alone have that evidence.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`. Each row sums to 1.

        See Also
        --------
        left_out_proba : Leave-one-out probabilities of the training documents.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().fit(["free prize", "win a prize", "see you", "are you home"], [1, 1, 0, 0])
        >>> model.predict_proba([""])
        array([[0.5, 0.5]])
        """
        scores = self._scores(X)
        found = np.empty(scores.shape[::-1])
        softmax_into(scores, found)
        return found

    def predict_log_proba(self, X: DocumentsLike) -> Array:
        """Predict logarithms of class probabilities, log p(class | document).

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.

        See Also
        --------
        predict_proba : The probabilities.
        """
        scores = self._scores(X)
        found = np.empty(scores.shape[::-1])
        log_softmax_into(scores, found)
        return found

    def decision_function(self, X: DocumentsLike) -> Array:
        """Compute log-odds or scores of the classes.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the log-odds of the second class against the first, otherwise log p(class | document).

        See Also
        --------
        predict_proba : Class probabilities.
        """
        if len(self.classes_) == 2:
            scores = self._scores(X)
            return np.asarray(scores[1] - scores[0])
        return self.predict_log_proba(X)

    def score(self, X: DocumentsLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.
        y : array-like of shape (n_samples,) or str
            True class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the documents. None is 1 for all documents.

        Returns
        -------
        float
            Proportion of documents whose class is predicted.
        """
        check_is_fitted(self)
        predicted, y, weights = predicted_with_targets(self.predict, X, y, sample_weight)
        return accuracy(predicted, self.classes_, y, weights, self)

    def decide(
        self,
        X: DocumentsLike,
        loss: LossLike | None = None,
        reject: float | None = None,
        reject_label: object = None,
    ) -> Decisions:
        """Choose the action with the least expected loss for each document.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.
        loss : mapping, frame or array-like of shape (n_classes, n_actions), default=None
            Loss of each action under each true class, such as ``{'ham': {'keep': 0, 'drop': 10}, 'spam': {'keep': 1,
            'drop': 0}}``. None is 0 for the true class and 1 for any other.
        reject : float, default=None
            Cost of abstaining. A document is rejected where its least expected loss exceeds it. None never rejects.
        reject_label : object, default=None
            The `action` of rejected documents, such as 'ask an expert'.

        Returns
        -------
        Decisions
            Arrays `action`, `expected_loss`, `rejected` and `best_action` of shape (n_samples,).

        See Also
        --------
        predict : The most probable class.
        """
        return decide(self.predict_proba(X), self.classes_, loss, reject, reject_label, frame_library(X))

    def explain(self, X: DocumentsLike) -> TextExplanation:
        """Decompose the score of each class into contributions of the terms of each document.

        The decomposition is exact: the softmax of the offset plus the sum of the contributions is `predict_proba`. A
        term contributes its evidence relative to its proportion in all documents (default model), so that a term that
        is equally frequent in all classes contributes about the same to all of them.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        TextExplanation
            `evidence` of shape (n_samples, n_classes, n_terms), `offset` of shape (n_samples, n_classes) and the terms
            as `columns`. `to_frame()` has the contributions of the terms of each document as a table, and `top(row)`
            the largest ones; in notebooks the terms are highlighted in the text.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().fit(["free prize", "win a prize", "see you", "are you home"], [1, 1, 0, 0])
        >>> model.explain(["prize for you"]).top(0, n=2)["column"].tolist()
        ['prize', 'you']
        """
        documents, fit = self._documents(X), self._fit
        analyze = fit.vocabulary.analyze
        rows = fit.model.transform(fit.vocabulary.read(documents))
        terms, at = self._terms_of(documents, rows)
        names = tuple(dict.fromkeys(term for each in terms for term in each))
        place = {term: j for j, term in enumerate(names)}
        size = len(documents) * len(self.classes_) * len(names)
        if size > MOST_CELLS:
            raise InputError(f"X has {len(documents)} documents with {len(names)} terms. Explain fewer at a time.")
        evidence = np.zeros((len(documents), len(self.classes_), len(names)))
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
            self.classes_,
            _library=frame_library(X),
            documents=tuple(documents),
            _present=tuple(present),
            _marks=tuple(marks(document, pattern, analyze, place) for document in documents),
        )

    def _terms_of(self, documents: list[str], rows: Any) -> tuple[list[list[str]], list[AnyArray]]:
        """Names of the terms of each document, and which of them each stored value belongs to."""
        vocabulary = self._fit.vocabulary
        if vocabulary.grows:
            analyze = vocabulary.vectorizer.build_analyzer()
            named = [list(dict.fromkeys(analyze(document))) for document in documents]
            return named, [np.arange(len(each)) for each in named]
        known = vocabulary.terms
        parts = [rows.indices[rows.indptr[i] : rows.indptr[i + 1]] for i in range(len(documents))]
        return [[known[j] for j in part] for part in parts], [np.arange(len(part)) for part in parts]

    def top_terms(self, label: object, n: int = 10) -> Any:
        """List the terms that mark a class, by their expected evidence against the other classes.

        Expected evidence is p(term | class) times the contribution of the term to the log-odds of the class against
        the mean of the others, weighted by the class prior. Frequent terms that all classes have count little, and so
        do terms that occur once.

        Parameters
        ----------
        label : object
            A class label.
        n : int, default=10
            Number of terms.

        Returns
        -------
        frame
            Columns `term`, `evidence`, `count` (in documents of the class) and `total` (in all documents), the largest
            evidence first.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().fit(["free prize", "win a prize", "see you", "are you home"], [1, 1, 0, 0])
        >>> model.top_terms(1, n=1)["term"].tolist()
        ['prize']
        """
        check_is_fitted(self)
        check_number("n", n, 1, whole=True)
        code = code_of(self.classes_, label)
        terms, scores = self._fit.vocabulary.terms, self._expected_evidence(code)
        top = ordered(scores, terms, n)
        raw = self._fit.sums.raw
        counts, totals = raw[[code]].toarray()[0], np.asarray(raw.sum(axis=0)).ravel()
        data = {
            "term": [terms[j] for j in top],
            "evidence": scores[top],
            "count": counts[top],
            "total": totals[top],
        }
        return to_frame(data, self._fit.library)

    def _expected_evidence(self, code: int) -> Array:
        """Expected evidence of all columns for one class."""
        fit = self._fit
        prior = np.delete(self.class_prior_, code)
        others = np.zeros(len(self.classes_))
        others[np.arange(len(others)) != code] = prior / prior.sum() if prior.sum() > 0.0 else 1.0 / max(len(prior), 1)
        values = fit.sums.values[[code]].toarray()[0]
        probability = values / max(float(values.sum()), np.finfo(float).tiny)
        exponent = 1.0 if fit.calibration is None else fit.calibration.exponent
        coefficients = exponent * fit.evidence.coefficients(np.arange(fit.sums.size))
        return expected_evidence(coefficients, probability, code, others)

    def summary(self) -> TextSummary:
        """Summarize the fitted model: classes, the terms that mark them, vocabulary, calibration and choices.

        Returns
        -------
        TextSummary
            Plain data; ``print(model.summary())`` shows it as text.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().fit(["free prize", "win a prize", "see you", "are you home"], [1, 1, 0, 0])
        >>> model.summary().terms[0][0]
        'you'
        """
        check_is_fitted(self)
        fit = self._fit
        names = fit.vocabulary.terms
        terms = tuple(
            tuple(names[j] for j in ordered(scores, names, SHOWN_TERMS) if scores[j] > 0.0)
            for scores in map(self._expected_evidence, range(len(self.classes_)))
        )
        used = int(np.count_nonzero(np.bincount(fit.sums.raw.indices, minlength=1)))
        notes = [
            f"{used} {'term' if used == 1 else 'terms'}: {fit.model.describe()}",
            str(fit.calibration) if fit.calibration else "not calibrated",
        ]
        if fit.chosen.length_exponent:
            notes.append(f"exponent of the document's length: -{fit.chosen.length_exponent:g}")
        if fit.sums.empty:
            several = "document has" if fit.sums.empty == 1 else "documents have"
            notes.append(f"{fit.sums.empty} training {several} no terms: only the class prior uses them")
        if fit.unlabeled is not None:
            notes.append(str(fit.unlabeled))
        counts = fit.sums.counts
        size = amount(int(counts.rows.sum()), "document", "documents")
        title = f"{type(self).__name__}: {size}, {amount(len(self.classes_), 'class', 'classes')}"
        return TextSummary(title, self.classes_, counts.weight, self.class_prior_, terms, tuple(notes))


def _word_pattern(vectorizer: Any) -> str | None:
    """The pattern of words; None where terms are not words."""
    if getattr(vectorizer, "analyzer", None) != "word" or getattr(vectorizer, "tokenizer", None) is not None:
        return None
    return getattr(vectorizer, "token_pattern", None)
