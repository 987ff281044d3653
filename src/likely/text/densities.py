"""Densities of documents, where the model of terms has one: log-densities, samples, and what has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from likely.errors import NoDensityError, check_number
from likely.model.explanation import code_of
from likely.numerics.random import seeded
from likely.numerics.special import log_sum_exp
from likely.text.documents import DocumentsLike
from likely.text.fitting import TextFit
from likely.text.language_model import LanguageModel
from likely.text.presence_models import BernoulliTerms
from likely.text.vocabulary import is_weighted
from likely.typing import AnyArray, Array, RandomStateLike


class NoTextEvidenceError(NoDensityError, AttributeError):
    """A model of documents without a marginal likelihood."""


class TextDensities:
    """Mixin of `TextClassifier`: densities of documents."""

    _fit: TextFit
    if TYPE_CHECKING:

        @property
        def classes_(self) -> AnyArray: ...
        @property
        def class_prior_(self) -> Array: ...
        def _documents(self, X: Any) -> list[str]: ...

    def log_joint(self, X: DocumentsLike) -> Array:
        """Compute the joint log-density log p(document, class), without calibration.

        Terms that are not in the vocabulary are ignored. A multinomial density is conditional on the length of the
        document, and a Poisson density with ``exposure="row totals"`` too.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Joint log-densities, in the order of `classes_`.

        Raises
        ------
        NoDensityError
            For the default model, complement scores and weighted counts such as tf-idf, which have no density.
        """
        fit, documents = self._fit, self._documents(X)
        rows = fit.model.transform(fit.vocabulary.read(documents))
        carrier = fit.model.log_carrier(fit.evidence, rows)
        return fit.evidence.scores(rows) + carrier[:, None] + fit.log_prior

    def log_density(self, X: DocumentsLike, label: object = None) -> Array:
        """Compute the log-density log p(document), or log p(document | class) under one class.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.
        label : object, default=None
            A class label, for log p(document | label). None is log p(document).

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.

        Raises
        ------
        NoDensityError
            For the default model, complement scores and weighted counts such as tf-idf, which have no density.
        """
        joint = self.log_joint(X)
        if label is None:
            return np.asarray(log_sum_exp(np.ascontiguousarray(joint.T)))
        code = code_of(self.classes_, label)
        return np.asarray(joint[:, code] - self._fit.log_prior[code])

    def score_samples(self, X: DocumentsLike) -> Array:
        """Compute the log-density log p(document), under scikit-learn's name.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.

        See Also
        --------
        log_density : The same method.
        """
        return self.log_density(X)

    def sample(
        self, n_samples: int = 1, label: object = None, random_state: RandomStateLike | None = None
    ) -> tuple[list[str], AnyArray]:
        """Draw documents and their classes from the model: terms in random order, joined by blanks.

        A document has the mean number of terms of its class, at least one. A Bernoulli model draws whether each term
        occurs.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        label : object, default=None
            Class to draw from. None draws the class of each document from the class prior.
        random_state : int or RandomState, default=None
            Seed.

        Returns
        -------
        X : list of str
            Documents.
        y : ndarray of shape (n_samples,)
            Class labels.

        Raises
        ------
        NoDensityError
            For the default model, complement scores and weighted counts such as tf-idf, which have no density.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, 1, whole=True)
        fit, rng = self._fit, seeded(random_state)
        nothing = scipy.sparse.csr_array((0, fit.sums.size + 1))
        fit.model.log_carrier(fit.evidence, nothing)  # raises where there is no density
        if label is None:
            codes = rng.choice(len(self.classes_), size=n_samples, p=self.class_prior_)
        else:
            codes = np.full(n_samples, code_of(self.classes_, label))
        used = np.flatnonzero(np.bincount(fit.sums.raw.indices, minlength=fit.sums.size))
        names = fit.vocabulary.terms
        coefficients = fit.evidence.coefficients(used)
        counts, found = fit.sums.counts, []
        for k in codes:
            if isinstance(fit.model, BernoulliTerms):
                odds = np.exp(coefficients[:, k])
                drawn = np.flatnonzero(rng.random_sample(len(used)) * (1.0 + odds) < odds)
            else:
                weights = np.exp(coefficients[:, k] - coefficients[:, k].max())
                length = max(int(np.rint(fit.sums.raw[[k]].sum() / counts.weight[k])), 1)
                drawn = rng.choice(len(used), size=length, p=weights / weights.sum())
            found.append(" ".join(names[used[j]] for j in rng.permutation(drawn)))
        return found, np.asarray(self.classes_[codes])

    def language_model(self, label: object, smoothing: float = 0.5) -> LanguageModel:
        """Return the language model of a class: the distribution of its terms, from their counts.

        Parameters
        ----------
        label : object
            A class label.
        smoothing : float, default=0.5
            Pseudo-count of each term. 0 is maximum likelihood.

        Returns
        -------
        LanguageModel
            Probabilities of terms, `perplexity`, `next_term` and `generate`. With ``order=2`` a term depends on the
            previous one; the concentration μ of the bigrams is chosen by their leave-one-out log-probability.

        Raises
        ------
        NoDensityError
            Where the vectorizer hashes terms or gives weighted counts other than those of TfidfVectorizer.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier(order=2).fit(["to be or not to be", "or so it seems"], ["a", "b"])
        >>> bool(model.language_model("a").probability("be", history="not to") > 0.4)
        True
        """
        check_is_fitted(self)
        code, fit = code_of(self.classes_, label), self._fit
        vectorizer = fit.vocabulary.vectorizer
        if fit.vocabulary.columns is None or (is_weighted(vectorizer) and not isinstance(vectorizer, TfidfVectorizer)):
            raise NoDensityError("language_model needs counts of terms, which CountVectorizer has. Use it.")
        bigrams = None if fit.bigrams is None else fit.bigrams.counts.select(code)
        counts = fit.sums.raw[[code]].toarray()[0]
        analyze = vectorizer.build_analyzer()
        return LanguageModel(fit.vocabulary.terms, counts, smoothing, analyze, bigrams)

    def typicality(self, X: DocumentsLike) -> None:
        """Raise `NoDensityError`: densities of documents of different lengths are not comparable.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Raises
        ------
        NoDensityError
            Always. Use `log_density`, or the perplexity of a language model.
        """
        check_is_fitted(self)
        raise NoDensityError(
            "Documents have no typicality: densities of different lengths are not comparable. Use the perplexity of "
            "language_model(label)."
        )

    def novelty(self, X: DocumentsLike) -> None:
        """Raise `NoDensityError`: densities of documents of different lengths are not comparable.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.

        Raises
        ------
        NoDensityError
            Always. Use `log_density`, or the perplexity of a language model.
        """
        self.typicality(X)

    @property
    def log_evidence_(self) -> float:
        """Not available: the posterior-mean probabilities have no marginal likelihood. Raises `NoDensityError`."""
        check_is_fitted(self)
        raise NoTextEvidenceError("TextClassifier has no log_evidence_: it uses posterior-mean probabilities.")
