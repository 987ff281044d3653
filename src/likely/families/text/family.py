"""The family `Text`: a column of documents, with a distribution of terms for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from likely.errors import InputError, InputTypeError, check_number
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.text.conditionals import TextConditionals
from likely.families.text.declared import term_model
from likely.families.text.document_sums import DocumentAccumulator, DocumentSums
from likely.families.text.files import VECTORIZERS, restored_vectorizer, vectorizer_content
from likely.families.text.term_models import CompactSums, ComplementTerms, ScaledTerms, TermModel, left_out
from likely.families.text.vocabulary import Vocabulary, check_vectorizer, default_vectorizer, is_weighted
from likely.typing import AnyArray, Array, Codes, FamilyLike, TransformerLike


class Text(Family):
    """Model of a column of text, with a distribution of terms for each class.

    It is the model of `TextClassifier`, for a column beside others in `GenerativeClassifier` and `NaiveBayes`. The
    evidence of a document has an exponent of its own; the calibration of the classifier then applies to the evidence of
    all columns. Options that are None are chosen by the leave-one-out log-loss of the text column at the first `fit` or
    `partial_fit`, and fixed: `families_` has their values.

    Parameters
    ----------
    vectorizer : CountVectorizer, TfidfVectorizer or HashingVectorizer, default=None
        Counts the terms, as in `TextClassifier`. None counts lower-case words and the symbols ! ? $ £ €; with a
        `family`, None is CountVectorizer(). The vocabulary of a CountVectorizer grows with new rows unless min_df,
        max_df, max_features or vocabulary is set; otherwise the first fit determines its columns.
    family : Multinomial, Bernoulli, Poisson or None, default=None
        Model of the counts, with posterior-mean probabilities. None is a multinomial model of log(1 + count) in
        documents of unit length, which has no density.
    smoothing : float, default=None
        Smoothing of the model without a `family`. None chooses among 0.01, 0.1, 0.5 and 1.
    merge_rare : bool, default=None
        Whether terms that occur once, and unknown terms, are one term, in the model without a `family`. None chooses it
        if `smoothing` is None, too, and is False otherwise.
    exponent : float, default=None
        Exponent of the evidence, from 0.01. None learns it.
    length_exponent : float, default=None
        γ, where the exponent of a document of n terms is exponent·n^−γ. None chooses it for a `Multinomial` if
        `exponent` is None, too, and is 0 otherwise.
    idf : array-like of shape (n_terms,), default=None
        Weights of the terms for a TfidfVectorizer with a vocabulary. None determines them at the first fit.

    See Also
    --------
    TextClassifier : Documents alone, with language models and explanations by terms.

    Notes
    -----
    The parameters are posterior means for every `estimation`. Only models with a `family` other than complement scores,
    and with counts, have `log_density` and `sample`; the density is conditional on the length of the document. EM for
    unlabeled rows uses the evidence with its exponent.

    Models can be added if these options are the same: fit all of them with those of the first one, as in
    ``families=first.families_``.

    Examples
    --------
    >>> import pandas as pd
    >>> from likely import GenerativeClassifier, Text
    >>> X = pd.DataFrame(
    ...     {
    ...         "body": ["win a free prize", "see you at home", "free entry, call now", "are you at home?"],
    ...         "length": [16.0, 15.0, 20.0, 16.0],
    ...     }
    ... )
    >>> model = GenerativeClassifier({"body": Text(smoothing=0.5, exponent=1.0)}, calibration=None)
    >>> model = model.fit(X, ["spam", "ham", "spam", "ham"])
    >>> model.predict(pd.DataFrame({"body": ["a free call", "home"], "length": [16.0, 16.0]}))
    array(['spam', 'ham'], dtype='<U4')
    """

    _reads_text: ClassVar[bool] = True
    _learns_options: ClassVar[bool] = True

    def __init__(
        self,
        vectorizer: TransformerLike | None = None,
        family: FamilyLike | None = None,
        smoothing: float | None = None,
        merge_rare: bool | None = None,
        exponent: float | None = None,
        length_exponent: float | None = None,
        idf: Any = None,
    ) -> None:
        self.vectorizer = vectorizer
        self.family = family
        self.smoothing = smoothing
        self.merge_rare = merge_rare
        self.exponent = exponent
        self.length_exponent = length_exponent
        self.idf = idf

    def check(self, estimation: Estimation) -> None:
        for name, least in (("smoothing", 1e-12), ("exponent", 0.01), ("length_exponent", 0.0)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least)
        if not (self.merge_rare is None or isinstance(self.merge_rare, bool | np.bool_)):
            raise InputError(f"merge_rare={self.merge_rare!r} is neither True, False nor None.")
        kind = type(self.vectorizer)
        if self.vectorizer is not None and VECTORIZERS.get(kind.__name__) is not kind:
            raise InputTypeError(
                f"Text(vectorizer={self.vectorizer!r}) is not supported. Use {', '.join(VECTORIZERS)}, or None."
            )
        check_vectorizer(self._used_vectorizer)
        if self.idf is not None and not (isinstance(self.vectorizer, TfidfVectorizer) and self.vectorizer.use_idf):
            raise InputError(f"Text(idf=...) needs TfidfVectorizer(use_idf=True), not {self._used_vectorizer!r}.")
        for name in ("smoothing", "merge_rare"):
            if self.family is not None and getattr(self, name) is not None:
                raise InputError(f"Text({name}={getattr(self, name)!r}) is an option of the model without a family.")
        model = self._model
        if isinstance(model, ComplementTerms) and model.normalize:
            raise InputError("Multinomial(normalize=True) has too little evidence to be calibrated.")

    def describe(self) -> str:
        power = "" if not self.length_exponent else f"·n^−{self.length_exponent:g}"
        exponent = "" if self.exponent is None else f"; exponent {self.exponent:.3g}{power}"
        return f"Text: {self._model.describe()}{exponent}"

    # -- options that the first fit determines

    @property
    def _used_vectorizer(self) -> Any:
        if self.vectorizer is not None:
            return self.vectorizer
        return default_vectorizer() if self.family is None else CountVectorizer()

    @property
    def _model(self) -> TermModel:
        """The model of terms; with default options where they are still to be chosen."""
        weighted = is_weighted(self._used_vectorizer)
        if self.family is not None:
            return term_model(self.family, weighted)
        model = ScaledTerms(merged=bool(self.merge_rare), weighted=weighted)
        return model if self.smoothing is None else ScaledTerms(model.merged, float(self.smoothing), weighted)

    @property
    def _merging(self) -> bool | None:
        """Whether rare terms are merged; None where it is to be chosen."""
        return False if self.merge_rare is None and self.smoothing is not None else self.merge_rare

    @property
    def _empty_vocabulary(self) -> Vocabulary:
        """The vocabulary that documents are counted by; without terms where it grows, or is not fixed yet."""
        vocabulary = Vocabulary.empty(self._used_vectorizer)
        return vocabulary if vocabulary.grows or not self._has_columns else Vocabulary.fixed(self.vectorizer, self.idf)

    @property
    def _has_columns(self) -> bool:
        """Whether the columns of a vectorizer with fixed columns are known."""
        vectorizer = self._used_vectorizer
        if isinstance(vectorizer, HashingVectorizer):
            return True
        weights = isinstance(vectorizer, TfidfVectorizer) and bool(vectorizer.use_idf)
        return vectorizer.vocabulary is not None and (self.idf is not None or not weights)

    @property
    def _is_fixed(self) -> bool:
        """Whether nothing is left to be determined by the first fit."""
        known = self.exponent is not None and (self.smoothing is not None or self.family is not None)
        return known and (Vocabulary.empty(self._used_vectorizer).grows or self._has_columns)

    def _fixed(self, vocabulary: Vocabulary, model: TermModel, exponent: float, length_exponent: float) -> Text:
        """The same family with these choices, and with the columns of a vocabulary that does not grow."""
        found: Text = clone(self)
        found.exponent, found.length_exponent = exponent, length_exponent
        if isinstance(model, ScaledTerms):
            found.smoothing, found.merge_rare = model.smoothing, model.merged
        if not vocabulary.grows and vocabulary.columns is not None:
            found.vectorizer = clone(self._used_vectorizer).set_params(vocabulary=dict(vocabulary.columns))
            found.idf = getattr(vocabulary.vectorizer, "idf_", None)
        return found

    def _statistics_key(self) -> tuple[Any, ...]:
        vectorizer = self._used_vectorizer
        options = repr(sorted(vectorizer.get_params(deep=False).items(), key=lambda item: item[0]))
        idf = None if self.idf is None else np.asarray(self.idf).tobytes()
        model = self._model
        return (*super()._statistics_key(), type(vectorizer), options, idf, type(model), model.merged)

    def _accumulator(self, classes: AnyArray, columns: Columns) -> DocumentAccumulator:
        if columns.dimension != 1:
            raise InputError(
                f"Text() models one column, and the block has {columns.dimension}. Declare each of them, as in "
                f"families={{{columns.names[0]!r}: Text()}}."
            )
        if not self._is_fixed:
            raise InputError(
                "Text() is available in GenerativeClassifier and NaiveBayes, which choose its options. Use one of "
                "them, or set the column aside with families={column: None}."
            )
        return DocumentAccumulator(classes, self._empty_vocabulary, self._model)

    def _expected_accumulator(self, builder: Any, fitted: Conditionals) -> Any:
        """The accumulator, with the vocabulary of the model: in EM it is soon that of all documents."""
        assert isinstance(builder, DocumentAccumulator)
        assert isinstance(fitted, TextConditionals)
        return DocumentAccumulator(builder.classes, fitted.vocabulary, builder.model)

    # -- estimates

    def estimate(self, statistics: DocumentSums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        model, vocabulary = self._model, statistics.vocabulary
        fitted = model.estimate(CompactSums.of(statistics.sums, model.merged, not vocabulary.grows))
        exponent = 1.0 if self.exponent is None else float(self.exponent)
        power = 0.0 if self.length_exponent is None else float(self.length_exponent)
        return TextConditionals(names[0], vocabulary, statistics.sums, model, fitted, exponent, power)

    def _smooths(self, estimation: Estimation) -> bool:
        return True

    def _leave_one_out(
        self, statistics: DocumentSums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        """Evidence with its exponent, of documents that are removed from the sums of their class."""
        assert isinstance(fitted, TextConditionals)

        def evidence(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            values, blank = fitted.counted(rows)
            found = left_out(fitted.model, fitted.fitted, values, np.asarray(codes), np.asarray(weights))
            return fitted.weighted(found, values, blank)

        return evidence

    # -- model files

    def _file_fields(self) -> dict[str, Any]:
        options = self.get_params(deep=False)
        if self.vectorizer is not None:
            self.check(Estimation.BAYES)
            options["vectorizer"] = vectorizer_content(self.vectorizer) | {"idf": None}
        return options

    @classmethod
    def _of_file(cls, content: dict[str, Any]) -> Text:
        options = dict(content)
        if options["vectorizer"] is not None:
            options["vectorizer"] = restored_vectorizer(options["vectorizer"], None)
        return cls(**options)
