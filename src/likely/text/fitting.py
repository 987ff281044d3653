"""A fitted model of documents: its statistics, and what leave-one-out evidence chose before it was frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from likely.choice.term_options import Sample, TermChoice, TermTrial, best_first
from likely.data.ledger import Ledger, united
from likely.errors import InputError, NotEstimableError
from likely.families.estimation import Estimation
from likely.families.text.files import restored_sums, sums_content
from likely.families.text.term_models import CompactSums, ComplementTerms, LinearEvidence, TermModel, length_factors
from likely.families.text.vocabulary import Vocabulary
from likely.model.calibration import Calibration
from likely.model.choices import UnlabeledWeight
from likely.model.class_prior import estimate_prior
from likely.model.explanation import code_of
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape, check
from likely.statistics.bigram_counts import BigramCounts
from likely.statistics.counts import positions
from likely.statistics.term_sums import TermSums
from likely.text.class_bigrams import ClassBigrams, check_ordered_terms
from likely.text.documents import LabeledDocuments
from likely.text.language_model import term_ids
from likely.typing import AnyArray, Array, Codes


@dataclass(frozen=True, eq=False)
class TextFit:
    """Vocabulary, statistics and choices of a model of documents."""

    vocabulary: Annotated[Vocabulary, Shape("columns")]
    sums: Annotated[TermSums, Shape("classes columns")]
    choices: tuple[TermChoice, ...]  # the chosen one first
    prior: Any  # class prior as given
    bigrams: Annotated[ClassBigrams | None, Shape("classes")] = None  # for language models of order 2
    unlabeled: UnlabeledWeight | None = None  # weight of unlabeled documents; None without any
    column: Any = None  # name of the column of documents in a frame; None if X was not a frame
    library: str | None = None  # of that frame, for tables of results
    pairs: bool = False  # whether pairs of consecutive terms are counted
    ledger: Ledger | None = None  # of the documents, if it is kept

    def _valid(self) -> bool:
        pairs = () if self.bigrams is None else (self.bigrams.counts.terms, self.bigrams.counts.previous)
        return len(self.choices) > 0 and all(np.all(each < self.vocabulary.size) for each in pairs)

    def check_additive(self, method: str) -> None:
        """Raise where expected sums of unlabeled documents are part of the statistics."""
        if self.unlabeled is not None and self.unlabeled.weight > 0.0:
            raise InputError(
                f"{method} is not available: the model was fitted with unlabeled documents, whose sums are "
                "expectations. Fit it again, with all documents."
            )

    def check_documents(self) -> None:
        """Raise where no documents are left."""
        if not len(self.sums.classes):
            raise NotEstimableError("The model has no documents: all of them were forgotten.")

    @property
    def chosen(self) -> TermChoice:
        """The choice that predictions use."""
        return self.choices[0]

    @property
    def model(self) -> TermModel:
        """The model of terms."""
        return self.chosen.model

    @property
    def calibration(self) -> Calibration | None:
        """Calibration for the classes of the fit."""
        found = self.chosen.calibration
        return None if found is None else found.align(self.sums.classes)

    @cached_property
    def class_prior(self) -> Array:
        """Class prior; complement scores without calibration have a uniform one."""
        self.check_documents()
        prior = self.prior
        if prior is None and not self.uses_proportions:
            prior = "uniform"
        return estimate_prior(prior, self.sums.counts, Estimation.MLE if prior is None else Estimation.BAYES)

    @property
    def uses_proportions(self) -> bool:
        """Whether the class prior is the class proportions."""
        plain = self.calibration is None and isinstance(self.model, ComplementTerms)
        return self.prior is None and not plain

    @property
    def log_prior(self) -> Array:
        """Logarithm of the class prior."""
        with np.errstate(divide="ignore"):
            return np.log(self.class_prior)

    @property
    def intercepts(self) -> Array:
        """Intercepts of the classes."""
        calibration = self.calibration
        return np.zeros(len(self.sums.classes)) if calibration is None else calibration.intercepts

    def scores(self, values: Any, blank: AnyArray, evidence: Array | None = None) -> Array:
        """t·evidence + log class prior + intercept of transformed documents, (classes, documents).

        Documents without evidence, which are `blank`, have the class prior.
        """
        found = self.evidence.scores(values) if evidence is None else evidence
        scores = np.ascontiguousarray((found * self.factors(values)[:, None]).T)
        scores += (self.log_prior + self.intercepts)[:, None]
        scores[:, blank] = self.log_prior[:, None]
        return scores

    @cached_property
    def evidence(self) -> LinearEvidence:
        """Estimated coefficients."""
        self.check_documents()
        return self.model.estimate(CompactSums.of(self.sums, self.model.merged, not self.vocabulary.grows))

    def reduced(self, sums: TermSums) -> Self:
        """The fit with what is left of its statistics; terms that no document has any more are removed."""
        bigrams = None if self.bigrams is None else self.bigrams.align(sums.classes)
        vocabulary, columns = self.vocabulary.of_used(sums)
        if columns is not None:
            sums = sums.renumbered(columns, vocabulary.size)
            bigrams = None if bigrams is None else bigrams.renumbered(columns, vocabulary.size)
        return replace(self, vocabulary=vocabulary, sums=sums, bigrams=bigrams)

    def length_factors(self, rows: Any) -> Array:
        """(n/m)^−γ for each document."""
        return length_factors(rows, self.chosen.length_exponent, self.chosen.mean_length)

    def factors(self, rows: Any) -> Array:
        """The factor of the evidence of each document, t·(n/m)^−γ."""
        return self.length_factors(rows) * (1.0 if self.calibration is None else self.calibration.exponent)

    def calibrated(self, sample: Sample) -> Self:
        """The fit with what leave-one-out evidence of some of its documents chooses."""
        trial = TermTrial(self.sums, not self.vocabulary.grows, sample)
        return replace(self, choices=trial.choices(self.model))

    # -- updates

    def added(self, more: LabeledDocuments) -> Self:
        """The fit of these documents too."""
        self.check_additive("partial_fit")
        return self.summed(more.used())[0]

    def summed(self, more: LabeledDocuments) -> tuple[Self, Codes, Sample]:
        """The fit of these documents too, their class codes in it, and a sample of them."""
        vocabulary, rows = self.vocabulary.learn(more.texts)
        values = self.model.transform(rows)
        counts = vocabulary.counts(more.texts, rows)
        total = (self.sums + TermSums.of(more.classes, more.codes, more.weights, values, counts)).observed()
        bigrams = self._bigrams_of(more, vocabulary)
        if bigrams is not None:
            bigrams = (bigrams if self.bigrams is None else self.bigrams + bigrams).align(total.classes)
            bigrams = bigrams.with_concentrations(total.raw)
        codes = positions(total.classes, more.classes)[more.codes]
        ledger = None if self.ledger is None else self.ledger.added([more.hashed()])
        found = replace(self, vocabulary=vocabulary, sums=total, bigrams=bigrams, ledger=ledger)
        return found, codes, Sample.of(more.texts, values, codes, more.weights)

    def without(self, less: LabeledDocuments) -> Self:
        """The fit without these documents."""
        self.check_additive("forget")
        ledger = None if self.ledger is None else self.ledger.without([less.hashed()])
        rows = self.vocabulary.read(less.texts)
        if self.vocabulary.grows and np.any(rows.indices == self.vocabulary.size):
            row = int(np.searchsorted(rows.indptr, np.argmax(rows.indices == rows.shape[1] - 1), side="right")) - 1
            raise InputError(f"X, row {row}: the document has terms that no training document has.")
        counts = self.vocabulary.counts(less.texts, rows)
        removed = TermSums.of(less.classes, less.codes, less.weights, self.model.transform(rows), counts).observed()
        bigrams, fit = self._bigrams_of(less, self.vocabulary), replace(self, ledger=ledger)
        if bigrams is not None and self.bigrams is not None:
            fit = replace(fit, bigrams=self.bigrams - bigrams)
        return fit.reduced(self.sums - removed)

    def without_class(self, label: object) -> Self:
        """The fit without the documents of a class."""
        self.check_additive("drop_class")
        left = self.sums.without(code_of(self.sums.classes, label))
        fit = self if self.ledger is None else replace(self, ledger=self.ledger.without_class(label))
        return fit.reduced(left)

    def __add__(self, other: Self) -> Self:
        """The fit of the documents of both."""
        for each in (self, other):
            each.check_additive("adding models")
        vocabulary, mapping = self.vocabulary.united(other.vocabulary)
        sums = self.sums + other.sums.renumbered(mapping, vocabulary.size)
        bigrams = self.bigrams
        if bigrams is not None and other.bigrams is not None:
            bigrams = (bigrams + other.bigrams.renumbered(mapping, vocabulary.size)).align(sums.classes)
        column = other.column if self.column is None else self.column
        choices = common_choices(self, other)
        fit = replace(self, vocabulary=vocabulary, sums=sums, choices=choices, bigrams=bigrams, column=column)
        return replace(fit, ledger=united(self.ledger, other.ledger))

    def _bigrams_of(self, documents: LabeledDocuments, vocabulary: Vocabulary) -> ClassBigrams | None:
        """Pairs of consecutive terms of documents; None if the fit has none."""
        if not self.pairs:
            return None
        check_ordered_terms(vocabulary.vectorizer)
        assert vocabulary.columns is not None
        terms = term_ids(documents.texts, vocabulary.vectorizer.build_analyzer(), vocabulary.columns)
        counts = BigramCounts.of(terms, documents.codes, documents.weights, len(documents.classes))
        return ClassBigrams(documents.classes, counts, np.full(len(documents.classes), np.nan))

    # -- files

    def content(self) -> dict[str, Any]:
        """Vocabulary, statistics and choices as plain values."""
        named = ("choices", "prior", "bigrams", "unlabeled", "column", "library", "ledger")
        return sums_content(self.vocabulary, self.sums) | {name: getattr(self, name) for name in named}

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> Self:
        """The fit in a model file, validated."""
        vocabulary, sums = restored_sums(content)
        names = ("choices", "prior", "bigrams", "unlabeled", "column", "library", "ledger")
        given: dict[str, Any] = {name: content[name] for name in names}
        fit = cls(vocabulary, sums, **given, pairs=content["bigrams"] is not None)
        check(fit)
        return fit


def common_choices(mine: TextFit, yours: TextFit) -> tuple[TermChoice, ...]:
    """Choices that two fits have both judged, with the mean of their losses and calibrations; the best one first.

    Of two fits of which one is calibrated, these are the choices of that one.
    """
    calibrated = [each for each in (mine, yours) if any(choice.calibration for choice in each.choices)]
    if len(calibrated) == 1:  # the other one was begun by partial_fit
        return calibrated[0].choices
    weights = float(mine.sums.counts.weight.sum()), float(yours.sums.counts.weight.sum())
    theirs = {choice.key: choice for choice in yours.choices}
    both = [(choice, theirs[choice.key]) for choice in mine.choices if choice.key in theirs]
    merged = []
    for first, second in both:
        calibration = None
        if first.calibration is not None and second.calibration is not None:
            calibration = first.calibration.merged(second.calibration, weights)
        part = weights[0] / sum(weights) if sum(weights) > 0.0 else 0.5
        length = part * first.mean_length + (1.0 - part) * second.mean_length
        merged.append(replace(first, mean_length=length, calibration=calibration))
    if not merged:
        raise InputError(
            f"The models were fitted with different options: {mine.model} and {yours.model}. Use the same options."
        )
    return best_first(merged)
