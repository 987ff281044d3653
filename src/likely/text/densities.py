"""Class probabilities of documents; and densities and samples, where the model of terms has a density."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from likely.errors import NoDensityError, check_number
from likely.estimators.base import Learner
from likely.estimators.generative import JointDensity
from likely.estimators.posterior import Posterior, about
from likely.families.text.conditionals import draw_documents
from likely.families.text.term_models import unobserved
from likely.families.text.vocabulary import is_weighted
from likely.model.explanation import code_of
from likely.model.typicality import Typicality
from likely.numerics.random import seeded
from likely.numerics.special import log_sum_exp
from likely.text.documents import DocumentsLike, TextRows, read_documents
from likely.text.fitting import TextFit
from likely.text.language_model import LanguageModel
from likely.text.typicality import text_typicality
from likely.typing import AnyArray, Array, RandomStateLike


class NoTextEvidenceError(NoDensityError, AttributeError):
    """A model of documents without a marginal likelihood."""


DOCUMENTS = """X : array-like of str of shape (n_samples,), series or frame
    Documents.
"""


class TextDensities(Posterior, rows=DOCUMENTS):
    """What a fitted model of documents has of a joint density: class probabilities, densities, language models."""

    _fit: TextFit
    _target_names: tuple[Any, ...]
    _predicts_lazily = False
    column: Any

    __sklearn_is_fitted__ = Learner.__sklearn_is_fitted__

    def _fitted(self) -> TextFit:
        check_is_fitted(self)
        return self._fit

    @property
    def classes_(self) -> AnyArray:
        """Class labels, a sorted array of shape (n_classes,)."""
        return self._fitted().sums.classes

    @property
    def class_prior_(self) -> Array:
        """Class prior, an array of shape (n_classes,)."""
        return self._fitted().class_prior

    def _documents(self, X: Any, start: int = 0) -> list[str]:
        """The documents of X."""
        fit = self._fitted()
        column = fit.column if self.column is None else self.column
        return read_documents(X, column, fit.vocabulary.encoding, self._target_names, start)[0]

    def _read(self, X: Any, start: int = 0) -> TextRows:
        return TextRows(self._documents(X, start))

    def _over_scores(self, rows: TextRows, work: Callable[[int, int, Array], None]) -> None:
        fit, values = self._fit, self._fit.model.transform(self._fit.vocabulary.read(rows.texts))
        work(0, rows.rows, fit.scores(values, unobserved(fit.model, values, rows.texts)))

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
        documents, fit = self._documents(X), self._fit
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

    score_samples = about(DOCUMENTS, JointDensity.score_samples)

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
        found = draw_documents(fit.model, fit.evidence, fit.vocabulary, fit.sums, codes, rng)
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
            previous one. The concentration μ of the bigrams of a class is chosen by their leave-one-out
            log-probability, with smoothing 0.5, where the first documents of the class are fitted, and then fixed. With
            unlabeled documents, p(w) includes their expected counts, and pairs of terms are those of labeled documents.

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
        code, fit = code_of(self.classes_, label), self._fitted()
        vectorizer = fit.vocabulary.vectorizer
        if fit.vocabulary.columns is None or (is_weighted(vectorizer) and not isinstance(vectorizer, TfidfVectorizer)):
            raise NoDensityError("language_model needs counts of terms, which CountVectorizer has. Use it.")
        bigrams, mu = None, None
        if fit.bigrams is not None:
            bigrams = fit.bigrams.counts.select(code)
            mu = float(fit.bigrams.concentrations[code])
        counts = fit.sums.raw[[code]].toarray()[0]
        analyze = vectorizer.build_analyzer()
        return LanguageModel(fit.vocabulary.terms, counts, smoothing, analyze, bigrams, mu, fit.library)

    def typicality(
        self, X: DocumentsLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0
    ) -> Array:
        """Compute the typicality of each document, a p-value that is small for novel documents.

        It is the probability that a document with as many known terms, drawn from the mixture of all classes, has at
        most the density of this one. Unknown terms are ignored. A document with more than 2,000 known terms is
        represented by 2,000 of its terms, drawn at random. Bernoulli models draw documents of any length, because
        absent terms have probabilities there. Calibration is not used.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.
        n_samples : int, default=None
            Number of documents to draw from each class. None is 4,000 in total, at least 200 per class.
        random_state : int or RandomState, default=0
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples,)
            Typicality, from 0 (novel) to 1. Documents without known terms have 1, and empty ones of a Bernoulli model.

        Raises
        ------
        NoDensityError
            For the default model, complement scores and weighted counts such as tf-idf, which have no density.

        See Also
        --------
        novelty : Its negative logarithm, which also ranks documents below all draws.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from likely import Multinomial, TextClassifier
        >>> documents = ["a a a b", "a a b a", "b a a a c", "a a a", "c c c d", "c c d c"]
        >>> vectorizer = CountVectorizer(token_pattern="[a-d]")
        >>> model = TextClassifier(vectorizer, Multinomial()).fit(documents, [0, 0, 0, 0, 1, 1])
        >>> usual, novel = model.typicality(["a a a b", "d d b b"])
        >>> bool(usual > 0.5 and novel < 0.05)
        True
        """
        return self._typicality(X, n_samples, random_state).p_value

    def novelty(
        self, X: DocumentsLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0
    ) -> Array:
        """Compute a novelty score of each document, which is large for novel documents.

        It is −log10 of the typicality under the mixture of all classes, whereas `GenerativeClassifier.novelty` uses the
        largest p-value of the classes. Documents whose density is below
        that of all drawn documents are ranked by their log-density.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents.
        n_samples : int, default=None
            Number of documents to draw from each class. None is 4,000 in total, at least 200 per class.
        random_state : int or RandomState, default=0
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples,)
            Novelty, from 0.

        Raises
        ------
        NoDensityError
            For the default model, complement scores and weighted counts such as tf-idf, which have no density.

        See Also
        --------
        typicality : The p-value.
        """
        return self._typicality(X, n_samples, random_state).novelty

    def _typicality(self, X: Any, n_samples: int | None, random_state: Any) -> Typicality:
        check_is_fitted(self)
        if n_samples is not None:
            check_number("n_samples", n_samples, 1, whole=True)
        fit = self._fit
        fit.model.log_carrier(fit.evidence, scipy.sparse.csr_array((0, fit.sums.size + 1)))  # raises without a density
        documents = self._documents(X)
        rows = fit.model.transform(fit.vocabulary.read(documents))
        seed = int(seeded(random_state).randint(2**32, dtype=np.uint64))
        found, blank = text_typicality(fit, rows, n_samples, seed), unobserved(fit.model, rows, documents)
        return Typicality(np.where(blank, 1.0, found.p_value), np.where(blank, 0.0, found.novelty))

    @property
    def log_evidence_(self) -> float:
        """Not available: the posterior-mean probabilities have no marginal likelihood. Raises `NoDensityError`."""
        check_is_fitted(self)
        raise NoTextEvidenceError("TextClassifier has no log_evidence_: it uses posterior-mean probabilities.")
