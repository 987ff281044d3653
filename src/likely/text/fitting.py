"""A fitted model of documents: its statistics, and what leave-one-out evidence chose before it was frozen.

The exponent of the evidence is t·(n/m)^−γ for a document of length n, where m is the mean length of the training
documents. Smoothing, γ, and whether rare terms are one term are those with the least calibrated leave-one-out log-loss
on a sample of the documents.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from likely.errors import InputError
from likely.families import Bernoulli, Multinomial, Poisson
from likely.families.estimation import Estimation
from likely.families.priors import GammaPrior
from likely.model.calibration import Calibration, learn_calibration
from likely.model.class_prior import estimate_prior
from likely.model.persistence import register
from likely.model.unlabeled_weight import UnlabeledWeight
from likely.text.class_bigrams import ClassBigrams
from likely.text.counts import TermSums, row_blocks
from likely.text.presence_models import BernoulliTerms, PoissonTerms
from likely.text.term_models import (
    CompactSums,
    ComplementTerms,
    LinearEvidence,
    MultinomialTerms,
    ScaledTerms,
    TermModel,
)
from likely.text.vocabulary import Vocabulary
from likely.typing import AnyArray, Array, Codes

SMOOTHING = (0.1, 1.0, 0.5, 0.01)  # the first one is the default without calibration
LENGTH_EXPONENTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MOST_DOCUMENTS = 4000  # documents that choices and calibration are judged by, about

for _kind in (ScaledTerms, MultinomialTerms, ComplementTerms, BernoulliTerms, PoissonTerms):
    register(_kind)


def term_model(family: Any, weighted: bool) -> TermModel:
    """The model of terms that a family of the library declares; None is the default."""
    bayes = Estimation.BAYES
    if family is None:
        return ScaledTerms(weighted=weighted)
    if isinstance(family, Multinomial):
        family.check(bayes)
        s = family._pseudo_count(bayes)
        if family.complement:
            return ComplementTerms(smoothing=s, normalize=bool(family.normalize))
        return MultinomialTerms(smoothing=s, weighted=weighted)
    if isinstance(family, Bernoulli):
        return BernoulliTerms(False, *family._pseudo_counts(bayes))
    if isinstance(family, Poisson):
        family.check(bayes)
        if family.exposure is not None and not family._exposure_is_total:
            raise InputError(f"Poisson(exposure={family.exposure!r}): documents have no columns. Use 'row totals'.")
        if weighted:
            raise InputError("Poisson() needs counts, and the vectorizer gives weighted counts. Use CountVectorizer().")
        prior = family.prior or GammaPrior()
        return PoissonTerms(False, prior.events, prior.exposure, family.exposure is not None)
    raise InputError(
        f"family={family!r} is not supported for text. Use Multinomial(), Bernoulli() or Poisson(), or None."
    )


@register
@dataclass(frozen=True, slots=True, eq=False)
class TermChoice:
    """A model of terms, the exponent γ of the document's length, and the calibration with both."""

    model: TermModel
    length_exponent: float
    mean_length: float
    calibration: Calibration | None

    @property
    def key(self) -> tuple[Any, ...]:
        """What is chosen."""
        return self.model, self.length_exponent

    @property
    def loss(self) -> float:
        """Calibrated leave-one-out log-loss."""
        return np.inf if self.calibration is None else self.calibration.log_loss_after


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Training documents that choices are judged by: transformed counts, class codes and weights."""

    documents: Sequence[str]
    values: Any
    codes: Codes
    weights: Array

    @classmethod
    def of(cls, documents: Sequence[str], values: Any, codes: Codes, weights: Array | None) -> Self:
        """About MOST_DOCUMENTS documents of positive weight, drawn by a checksum of their text."""
        used = np.arange(len(documents)) if weights is None else np.flatnonzero(weights)
        if len(used) > MOST_DOCUMENTS:
            below = 2**32 * MOST_DOCUMENTS / len(used)
            chosen = [zlib.crc32(documents[i].encode("utf-8", "surrogatepass")) < below for i in used.tolist()]
            used = used[np.array(chosen)]
        weight = np.ones(len(used)) if weights is None else weights[used]
        return cls([documents[i] for i in used.tolist()], values[used], codes[used].astype(np.intp), weight)


@dataclass(frozen=True, eq=False)
class TextFit:
    """Vocabulary, statistics and choices of a model of documents."""

    vocabulary: Vocabulary
    sums: TermSums
    choices: tuple[TermChoice, ...]  # the chosen one first
    prior: Any  # class prior as given
    bigrams: ClassBigrams | None = None  # for language models of order 2
    unlabeled: UnlabeledWeight | None = None  # weight of unlabeled documents; None without any

    def check_additive(self, method: str) -> None:
        """Raise where expected sums of unlabeled documents are part of the statistics."""
        if self.unlabeled is not None and self.unlabeled.weight > 0.0:
            raise InputError(
                f"{method} is not available: the model was fitted with unlabeled documents, whose sums are "
                "expectations. Fit it again, with all documents."
            )

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
        return self.model.estimate(CompactSums.of(self.sums, self.model.merged, not self.vocabulary.grows))

    def reduced(self, sums: TermSums) -> Self:
        """The fit with what is left of its statistics; terms that no document has any more are removed."""
        bigrams = None if self.bigrams is None else self.bigrams.align(sums.classes)
        used = np.bincount(sums.raw.indices, minlength=sums.size) > 0
        if not self.vocabulary.grows or used.all():
            return replace(self, sums=sums, bigrams=bigrams)
        kept, columns = np.flatnonzero(used), np.where(used, np.cumsum(used) - 1, -1)
        return replace(
            self,
            vocabulary=self.vocabulary.reduced(kept),
            sums=sums.renumbered(columns, len(kept)),
            bigrams=None if bigrams is None else bigrams.renumbered(columns, len(kept)),
        )

    def factors(self, rows: Any) -> Array:
        """The factor of the evidence of each document, t·(n/m)^−γ."""
        return length_factors(self.chosen, rows) * (1.0 if self.calibration is None else self.calibration.exponent)

    def calibrated(self, sample: Sample) -> Self:
        """The fit with what leave-one-out evidence of some of its documents chooses."""
        found = tuple(_candidates(self, sample))
        best = min(found, key=lambda choice: choice.loss)
        return replace(self, choices=(best, *(choice for choice in found if choice is not best)))


def length_factors(choice: TermChoice, rows: Any) -> Array:
    """(n/m)^−γ for documents of length n; 1 for documents without terms."""
    if choice.length_exponent == 0.0:
        return np.ones(rows.shape[0])
    n = np.asarray(rows.sum(axis=1), dtype=np.float64)
    return np.where(n > 0.0, n / choice.mean_length, 1.0) ** -choice.length_exponent


def unobserved(model: TermModel, rows: Any, documents: Sequence[str]) -> AnyArray:
    """Which transformed documents have no evidence: no known terms, or no text where absent terms count."""
    if model.absence_counts:
        return np.fromiter((not document for document in documents), dtype=bool, count=len(documents))
    return np.asarray(rows.sum(axis=1) == 0.0)


def _candidates(fit: TextFit, sample: Sample) -> Iterator[TermChoice]:
    """Choices with their calibration: of the default model whether rare terms are merged, and then its smoothing."""
    model = fit.model
    if not isinstance(model, ScaledTerms):
        yield from _with_lengths(fit, model, sample)
        return
    first = [replace(model, merged=merged, smoothing=SMOOTHING[0]) for merged in (False, True)]
    tried = [_judged(fit, each, sample) for each in first[: 2 if fit.vocabulary.grows else 1]]
    best = min(tried, key=lambda choice: choice.loss)
    yield from tried
    for s in SMOOTHING[1:]:
        yield _judged(fit, replace(model, merged=best.model.merged, smoothing=s), sample, best.calibration)


def _evidence(fit: TextFit, model: TermModel, sample: Sample) -> tuple[Array, AnyArray]:
    """Leave-one-out evidence, (documents, classes), and which documents have none."""
    fitted = model.estimate(CompactSums.of(fit.sums, model.merged, not fit.vocabulary.grows))
    evidence = left_out(model, fitted, sample.values, sample.codes, np.minimum(sample.weights, 1.0))
    return evidence, unobserved(model, sample.values, sample.documents)


def left_out(model: TermModel, fitted: LinearEvidence, values: Any, codes: Codes, weights: Array) -> Array:
    """Leave-one-out evidence of transformed documents, (documents, classes), some of them at a time."""
    found = np.empty((len(codes), fitted.table.shape[1]))
    for rows in row_blocks(values.indptr):
        found[rows] = model.leave_one_out(fitted, values[rows], codes[rows], weights[rows])
    return found


def _learnt(fit: TextFit, evidence: Array, blank: AnyArray, sample: Sample, start: Calibration | None) -> Calibration:
    counts = fit.sums.counts
    with np.errstate(divide="ignore"):
        log_prior = np.log(counts.weight / counts.weight.sum())
    prior = np.repeat(log_prior[:, None], len(sample.codes), axis=1)
    by_class = np.ascontiguousarray(evidence.T)
    return learn_calibration(counts.classes, by_class, prior, sample.codes, sample.weights, blank, start).calibration


def _judged(fit: TextFit, model: TermModel, sample: Sample, start: Calibration | None = None) -> TermChoice:
    evidence, blank = _evidence(fit, model, sample)
    return TermChoice(model, 0.0, 1.0, _learnt(fit, evidence, blank, sample, start))


def _with_lengths(fit: TextFit, model: TermModel, sample: Sample) -> Iterator[TermChoice]:
    """Calibrations for each exponent of the length, of models that learn it."""
    evidence, blank = _evidence(fit, model, sample)
    mean = float(fit.sums.values.sum() / fit.sums.counts.weight.sum()) or 1.0
    start: Calibration | None = None
    for exponent in LENGTH_EXPONENTS if model.learns_length else LENGTH_EXPONENTS[:1]:
        choice = TermChoice(model, exponent, mean, None)
        scaled = evidence * length_factors(choice, sample.values)[:, None]
        start = _learnt(fit, scaled, blank, sample, start)
        yield replace(choice, calibration=start)


def common_choices(mine: TextFit, yours: TextFit) -> tuple[TermChoice, ...]:
    """Choices that two fits have both judged, with the mean of their losses and calibrations; the best one first."""
    weights = float(mine.sums.counts.weight.sum()), float(yours.sums.counts.weight.sum())
    theirs = {choice.key: choice for choice in yours.choices}
    both = [(choice, theirs[choice.key]) for choice in mine.choices if choice.key in theirs]
    merged = []
    for first, second in both:
        known = [each.calibration for each in (first, second) if each.calibration is not None]
        calibration = known[0] if known else None
        if len(known) == 2:
            calibration = known[0].merged(known[1], weights)
        lengths = np.average([first.mean_length, second.mean_length], weights=weights)
        merged.append(replace(first, mean_length=float(lengths), calibration=calibration))
    if not merged:
        raise InputError(
            f"The models were fitted with different options: {mine.model} and {yours.model}. Use the same options."
        )
    best = min(merged, key=lambda choice: choice.loss)
    return best, *(choice for choice in merged if choice is not best)
