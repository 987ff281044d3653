"""`TextClassifier`: a generative classifier of raw documents, with a distribution of terms for each class."""

from __future__ import annotations

import copy
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from likely.choice.term_options import Sample, TermChoice
from likely.data.frames import target_names
from likely.data.labels import EncodedLabels, encode_labels
from likely.data.ledger import Ledger
from likely.data.sources import in_memory, targets_apart
from likely.data.target_checks import warn_target
from likely.data.validation import read_weights
from likely.errors import InputError, check_choice, check_number, listed
from likely.estimators import posterior
from likely.estimators.base import Learner
from likely.estimators.model_options import check_alike, check_ledger
from likely.estimators.posterior import about
from likely.families.text.declared import term_model
from likely.families.text.term_models import ComplementTerms, left_out, unobserved
from likely.families.text.vocabulary import Vocabulary, check_vectorizer, default_vectorizer, is_weighted
from likely.model import persistence
from likely.model.class_prior import PriorShift
from likely.model.explanation import code_of
from likely.model.rendering import frame_library
from likely.numerics.special import softmax_into
from likely.numerics.threads import one_at_a_time
from likely.statistics.counts import Counts, positions
from likely.statistics.term_sums import TermSums
from likely.text.class_bigrams import check_ordered_terms
from likely.text.densities import DOCUMENTS, TextDensities
from likely.text.documents import DocumentsLike, LabeledDocuments, read_documents
from likely.text.explanation import TextExplanation, TextSummary, explained, summarise_text, top_terms
from likely.text.fitting import TextFit
from likely.text.unlabeled import Documents, with_unlabeled
from likely.typing import AnyArray, Array, ClassPriorLike, Codes, FamilyLike, LabelsLike, TransformerLike, WeightsLike

Weighted = tuple[list[str], Array | None]  # documents and their weights


@persistence.register
class TextClassifier(TextDensities):
    """Classifier of raw text documents, with a distribution of terms for each class.

    By default, counts of terms are transformed to log(1 + count), each document is scaled to unit (Euclidean) length,
    and a multinomial model of each class is smoothed towards the proportions of the terms in all documents. The
    smoothing, whether rare and unknown terms are merged into one term, the exponent of the evidence and the intercepts
    of the classes are chosen by the leave-one-out log-loss, which needs no refitting. Documents are sparse rows.

    None, NaN, empty strings and documents without any known term have the class prior. Only for `Bernoulli` and
    `Poisson` models, in which absent terms are evidence, documents with unknown terms alone have that evidence.

    Parameters
    ----------
    vectorizer : vectorizer of scikit-learn, default=None
        Counts the terms: `CountVectorizer` for words, characters and n-grams, `HashingVectorizer(alternate_sign=False,
        norm=None)` for a fixed number of columns, `TfidfVectorizer` for weighted counts. The vocabulary of a
        CountVectorizer grows with new documents unless min_df, max_df, max_features or vocabulary is set. The
        columns of other vectorizers, and idf, are fixed at the first fit. None counts lower-case words and the symbols
        ! ? $ £ €; with a `family`, None is CountVectorizer().
    family : Multinomial, Bernoulli, Poisson or None, default=None
        Model of the counts, with posterior-mean probabilities. With ``calibration=None``, `Multinomial(smoothing=1)`
        equals scikit-learn's MultinomialNB, `Multinomial(smoothing=1, complement=True)` ComplementNB, and
        `Bernoulli(smoothing=1)` BernoulliNB. `Poisson(exposure="row totals")` has rates per term of the document. With
        calibration, the exponent of a multinomial is t·(n/m)^−γ for a document of n terms, where m is the mean number
        of terms of the training documents, and γ is learnt too. None is the default model described above.
    column : str or int, default=None
        Column of the documents if X is a frame. None is its only text column at the first fit: of strings, or of
        categories if no column has strings. Predictions use the column of the same name.
    calibration : {'auto'} or None, default='auto'
        'auto' learns the exponent and intercepts, and the smoothing of the default model, from leave-one-out evidence
        at `fit`; later updates keep them. None is exponent 1 without intercepts, and smoothing 0.1 in the default
        model.
    order : {1, 2}, default=1
        2 also counts pairs of consecutive terms, for `language_model`. Classification uses single terms only.
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict, Dirichlet or None, default=None
        Class prior. None is the class proportions; for complement scores without calibration it is uniform, as in
        ComplementNB.
    unlabeled : object, default=None
        A label that marks unlabeled documents, besides None and NaN.
    unlabeled_weight : float or {'auto'}, default='auto'
        Weight of an unlabeled document in EM, relative to a labeled one. 'auto' chooses among 0, 0.01, 0.03, 0.1, 0.3
        and 1 by the cross-validated log-loss of labeled documents: the smallest one within one standard error of the
        least, if it is better than 0 by two standard errors. With weight 0 unlabeled documents are ignored.
    max_iter : int, default=5
        Maximum number of EM iterations for each weight up to the chosen one. Few iterations are safer where few
        documents have labels.
    ledger : bool, default=False
        Whether to keep hashes of the learnt rows, so that `forget` refuses rows that were never learnt, or were
        forgotten already.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class prior.
    calibration_ : Calibration or None
        Exponent and intercepts, with the leave-one-out log-loss before and after.
    terms_ : list of str
        The vocabulary.
    term_counts_ : sparse array of shape (n_classes, n_terms)
        Counts of the terms in the documents of each class.
    vectorizer_ : vectorizer
        The vectorizer.

    See Also
    --------
    GenerativeClassifier : Tables of numbers and categories.

    Examples
    --------
    >>> from likely import TextClassifier
    >>> documents = ["win a free prize now", "free entry, call now", "see you at home", "are you home tonight?"]
    >>> model = TextClassifier().fit(documents, ["spam", "spam", "ham", "ham"])
    >>> model.predict(["a free call", "home at last"])
    array(['spam', 'ham'], dtype='<U4')
    """

    prior_shift_: PriorShift

    _not_exported = "splitting text into terms has no expression"

    def __init__(
        self,
        vectorizer: TransformerLike | None = None,
        family: FamilyLike | None = None,
        column: str | int | None = None,
        calibration: str | None = "auto",
        order: int = 1,
        class_prior: ClassPriorLike | None = None,
        unlabeled: object = None,
        unlabeled_weight: float | str = "auto",
        max_iter: int = 5,
        ledger: bool = False,
    ) -> None:
        self.vectorizer = vectorizer
        self.family = family
        self.column = column
        self.calibration = calibration
        self.order = order
        self.class_prior = class_prior
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.max_iter = max_iter
        self.ledger = ledger

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _check_options(self) -> None:
        """Raise for invalid options."""
        if self.calibration is not None:
            check_choice("calibration", self.calibration, ("auto",))
        check_number("order", self.order, 1, whole=True)
        check_number("max_iter", self.max_iter, 1, whole=True)
        check_number("unlabeled_weight", self.unlabeled_weight, 0.0, choice="auto")
        if self.order > 2:
            raise InputError(f"order={self.order!r} is not supported. Use 1 or 2.")
        if self.order == 2:
            check_ordered_terms(self.vectorizer)

    def _empty(self) -> TextFit:
        """A fit without documents, whose vocabulary has no terms."""
        self._check_options()
        given = self.vectorizer
        if given is None:
            given = default_vectorizer() if self.family is None else CountVectorizer()
        check_vectorizer(given)
        vocabulary = Vocabulary.empty(given)
        model = term_model(self.family, is_weighted(given))
        if self.calibration is not None and isinstance(model, ComplementTerms) and model.normalize:
            raise InputError(
                "Multinomial(normalize=True) has too little evidence to be calibrated. Use calibration=None."
            )
        sums = TermSums.empty_sums()
        choices = (TermChoice(model, 0.0, 1.0, None),)
        ledger = Ledger.empty() if self.ledger else None
        return TextFit(vocabulary, sums, choices, copy.deepcopy(self.class_prior), pairs=self.order == 2, ledger=ledger)

    def fit(self, X: DocumentsLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Fit the model to documents.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,), series or frame
            Documents. None, NaN and empty strings are documents without terms. Bytes are decoded with the encoding of
            the vectorizer. In a frame, the column `column` is used.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them. None, NaN and the value of `unlabeled` mark
            unlabeled documents.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights: the number of times that each document counts. Limits on document frequencies and idf of
            a vectorizer count each document of positive weight once. None is 1 for all documents.

        Returns
        -------
        TextClassifier
            The fitted estimator itself.

        See Also
        --------
        partial_fit : Adds documents to a fitted model.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> model = TextClassifier().fit(["good film", "bad film", "good story"], ["+", "-", "+"])
        >>> model.classes_
        array(['+', '-'], dtype='<U1')
        """
        empty, documents, labels, weights = self._given(self._empty(), X, y, sample_weight, allow_unlabeled=True)
        missing = np.zeros(len(documents), dtype=bool) if labels.missing is None else labels.missing
        texts, mine = _taken(documents, weights, ~missing)
        if not len(texts):
            raise InputError("No document with a label has a positive weight.")
        given = labels.codes if weights is None else labels.codes[weights[~missing] > 0.0]
        warn_target(Counts.of(labels.classes, given))
        fit, codes, sample = empty.summed(LabeledDocuments(texts, labels.classes, given, mine))
        if not fit.sums.raw.nnz:
            raise InputError(
                "No document has a term: empty vocabulary. Check the documents, and the options of the vectorizer."
            )
        if self.calibration is not None:
            fit = fit.calibrated(sample)
        unlabeled = _taken(documents, weights, missing)
        if len(unlabeled[0]):
            fit = self._with_unlabeled(fit, (texts, mine), codes, unlabeled)
        self._target_names = target_names(y, sample_weight)
        self.__dict__.pop("prior_shift_", None)  # of an earlier fit
        self._fit = fit
        return self

    def _with_unlabeled(self, fit: TextFit, labeled: Weighted, codes: Codes, unlabeled: Weighted) -> TextFit:
        """A fit of labeled documents with unlabeled ones, which are recorded but not used where their weight is 0."""
        vocabulary, rows = fit.vocabulary.learn(unlabeled[0])
        grown = replace(fit, vocabulary=vocabulary, sums=fit.sums.align(fit.sums.classes, vocabulary.size))
        parts = (
            Documents.of(grown, labeled[0], vocabulary.read(labeled[0]), labeled[1]),
            Documents.of(grown, unlabeled[0], rows, unlabeled[1]),
        )
        weight = None if isinstance(self.unlabeled_weight, str) else float(self.unlabeled_weight)
        found = with_unlabeled(grown, parts[0], codes, parts[1], weight, self.max_iter)
        used = found.unlabeled is not None and found.unlabeled.weight > 0.0
        return found if used else replace(fit, unlabeled=found.unlabeled)

    def _given(
        self, fit: TextFit, X: Any, y: Any, sample_weight: Any, allow_unlabeled: bool = False
    ) -> tuple[TextFit, list[str], EncodedLabels, Array | None]:
        """The fit with the name of the column of documents, and the documents with their labels and weights."""
        ignored = target_names(y, sample_weight)
        X, y, sample_weight = targets_apart(in_memory(X, y, sample_weight), y, sample_weight)
        column = fit.column if self.column is None else self.column
        documents, column = read_documents(X, column, fit.vocabulary.encoding, ignored)
        marker = self.unlabeled if allow_unlabeled else None
        labels = encode_labels(y, len(documents), type(self).__name__, 0, allow_unlabeled, marker)
        fit = replace(fit, column=column, library=fit.library or frame_library(X))
        return fit, documents, labels, read_weights(sample_weight, len(documents))

    # -- updates

    def _labeled(self, fit: TextFit, X: Any, y: Any, sample_weight: Any) -> tuple[TextFit, LabeledDocuments]:
        """The fit with the name of the column of documents, and the documents with their labels."""
        fit, documents, labels, weights = self._given(fit, X, y, sample_weight)
        if weights is not None and not weights.any():
            raise InputError("All weights in sample_weight are zero: no document counts.")
        return fit, LabeledDocuments(documents, labels.classes, labels.codes, weights)

    @one_at_a_time
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
        fit, documents = self._labeled(self._fit if fitted else self._empty(), X, y, sample_weight)
        fit = fit.added(documents)
        if classes is not None:
            known = encode_labels(classes, len(np.asarray(classes)), type(self).__name__).classes.tolist()
            strange = [label for label in fit.sums.classes.tolist() if label not in known]
            if strange:
                raise InputError(f"y has the label {listed(strange)}, which is not among classes={listed(known)}.")
        if not fitted:
            self._target_names = target_names(y, sample_weight)
        self._fit = fit
        return self

    @one_at_a_time
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
        check_ledger(self, self._fitted().ledger)
        fit, documents = self._labeled(self._fitted(), X, y, sample_weight)
        self._fit = fit.without(documents)
        return self

    @one_at_a_time
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
        self._fit = self._fitted().without_class(label)
        return self

    def __add__(self, other: Any) -> Self:
        """Combine two fitted models into a new one, as if it had been fitted to the documents of both.

        Vocabularies unite. Of a calibrated and an uncalibrated model, the choices of the calibrated one are kept.
        Otherwise smoothing is the one with the least leave-one-out log-loss in both; exponents and intercepts
        are averaged, weighted by the documents of both. The concentrations of bigrams, where they differ, have the
        geometric mean, weighted by the pairs of both.
        """
        if not isinstance(other, TextClassifier):
            return NotImplemented
        fits = self._fitted(), other._fitted()
        check_alike(self, other)
        total = copy.copy(self)
        total._fit = fits[0] + fits[1]
        return total

    __radd__ = Learner.__radd__

    @one_at_a_time
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
        self._fitted().check_additive("calibrate")
        documents, rows, codes, weights = self._training(X, y, sample_weight)
        values = self._fit.model.transform(rows)
        self._fit = self._fit.calibrated(Sample.of(documents, values, codes, weights))
        return self

    def _training(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[str], Any, Codes, Array | None]:
        """Training documents, with their counts, class codes and weights."""
        _, documents = self._labeled(self._fit, X, y, sample_weight)
        unknown = [label for label in documents.classes.tolist() if label not in self.classes_.tolist()]
        if unknown:
            raise InputError(f"y has the label {listed(unknown)}, which is not among the classes of the model.")
        codes = positions(self.classes_, documents.classes)[documents.codes]
        return documents.texts, self._fit.vocabulary.read(documents.texts), codes, documents.weights

    # -- results

    def left_out_proba(self, X: DocumentsLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Array:
        """Compute leave-one-out class probabilities of the training documents.

        Each document is predicted by the model without it: its counts are subtracted from the sums of its class.
        Vocabulary, prior proportions of the terms, smoothing, exponent and intercepts are those of all documents.

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
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.

        Examples
        --------
        >>> from likely import TextClassifier
        >>> documents = ["free prize", "win a prize", "see you", "are you home"]
        >>> model = TextClassifier().fit(documents, [1, 1, 0, 0])
        >>> model.left_out_proba(documents, [1, 1, 0, 0]).shape
        (4, 2)
        """
        fit = self._fitted()
        fit.check_additive("left_out_proba")
        documents, rows, codes, weights = self._training(X, y, sample_weight)
        held = np.ones(len(codes)) if weights is None else weights
        values = fit.model.transform(rows)
        evidence = left_out(fit.model, fit.evidence, values, codes, held)
        scores = fit.scores(values, unobserved(fit.model, values, documents), evidence)
        if fit.uses_proportions and len(self.classes_) > 1:
            before = fit.sums.counts.weight[codes]
            with np.errstate(divide="ignore"):
                scores[codes, np.arange(len(codes))] += np.log(np.maximum(before - held, 0.0) / before)
        found = np.empty(scores.shape[::-1])
        softmax_into(scores, found)
        return found

    def with_prior(self, prior: ClassPriorLike | None) -> Self:
        """Return an estimator with another class prior and the same distributions of terms.

        Parameters
        ----------
        prior : {'uniform'}, array-like of shape (n_classes,), dict, Dirichlet or None
            Class prior: equal probabilities, probabilities in the order of `classes_`, a mapping {class: probability},
            or a `Dirichlet` prior, which is updated by the class counts. None is the class proportions.

        Returns
        -------
        TextClassifier
            A new, fitted estimator.

        See Also
        --------
        adapt_prior : Estimates the class prior from unlabeled documents.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.class_prior, other._fit = prior, replace(self._fit, prior=copy.deepcopy(prior))
        _ = other._fit.class_prior  # raises for a prior of other classes
        return other

    adapt_prior = about(DOCUMENTS, posterior.adapt_prior)

    calibration_, unlabeled_weight_ = Learner.calibration_, Learner.unlabeled_weight_
    unlabeled_scores_ = Learner.unlabeled_scores_

    @property
    def choices_(self) -> tuple[TermChoice, ...]:
        """Models of terms that were compared, with their calibrations. The first one was chosen."""
        return self._fitted().choices

    @property
    def vectorizer_(self) -> Any:
        """The vectorizer, fitted."""
        vocabulary = self._fitted().vocabulary
        if vocabulary.grows:
            vocabulary.vectorizer.vocabulary_ = dict(vocabulary.columns or {})
        return vocabulary.vectorizer

    @property
    def terms_(self) -> list[str]:
        """The terms, in the order of the columns of `term_counts_`."""
        return self._fitted().vocabulary.terms

    @property
    def term_counts_(self) -> Any:
        """Counts of the terms in the documents of each class, a sparse array of shape (n_classes, n_terms)."""
        return self._fitted().sums.raw

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
        documents = self._documents(X)
        return explained(self._fit, documents, frame_library(X))

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
        return top_terms(self._fit, code_of(self.classes_, label), n)

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
        return summarise_text(type(self).__name__, self._fit)

    # -- files

    def _content(self) -> dict[str, Any]:
        options = copy.copy(self)
        options.vectorizer = None
        content: dict[str, Any] = {"version": version("likely"), "estimator": options, "fit": self._fit.content()}
        return content | {"target_names": self._target_names, "vectorizer": self.vectorizer is not None}

    def _restore(self, content: dict[str, Any]) -> Self:
        """Set the fitted attributes from the content of a model file."""
        self._fit = TextFit.of_content(content["fit"])
        self._target_names = tuple(content["target_names"])
        if content["vectorizer"]:
            self.vectorizer = copy.copy(self._fit.vocabulary.vectorizer)
        self._check_options()
        return self


def _taken(documents: list[str], weights: Array | None, which: AnyArray) -> Weighted:
    """Some documents of positive weight, and their weights."""
    if weights is not None:
        which = which & (weights > 0.0)
    if which.all():
        return documents, weights
    rows = np.flatnonzero(which)
    return [documents[i] for i in rows.tolist()], None if weights is None else weights[rows]
