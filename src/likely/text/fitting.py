"""A fitted model of documents: its statistics, and what leave-one-out evidence chose before it was frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from likely.choice.term_options import Sample, TermChoice, TermTrial
from likely.errors import InputError, NotEstimableError
from likely.families.estimation import Estimation
from likely.families.text.term_models import CompactSums, ComplementTerms, LinearEvidence, TermModel, length_factors
from likely.families.text.vocabulary import Vocabulary
from likely.model.calibration import Calibration
from likely.model.choices import UnlabeledWeight
from likely.model.class_prior import estimate_prior
from likely.statistics.term_sums import TermSums
from likely.text.class_bigrams import ClassBigrams
from likely.typing import AnyArray, Array


@dataclass(frozen=True, eq=False)
class TextFit:
    """Vocabulary, statistics and choices of a model of documents."""

    vocabulary: Vocabulary
    sums: TermSums
    choices: tuple[TermChoice, ...]  # the chosen one first
    prior: Any  # class prior as given
    bigrams: ClassBigrams | None = None  # for language models of order 2
    unlabeled: UnlabeledWeight | None = None  # weight of unlabeled documents; None without any
    column: Any = None  # name of the column of documents in a frame; None where X was not a frame
    library: str | None = None  # of that frame, for tables of results

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
        known = [each.calibration for each in (first, second) if each.calibration is not None]
        calibration = known[0] if known else None
        if len(known) == 2:
            calibration = known[0].merged(known[1], weights)
        part = weights[0] / sum(weights) if sum(weights) > 0.0 else 0.5
        length = part * first.mean_length + (1.0 - part) * second.mean_length
        merged.append(replace(first, mean_length=length, calibration=calibration))
    if not merged:
        raise InputError(
            f"The models were fitted with different options: {mine.model} and {yours.model}. Use the same options."
        )
    best = min(merged, key=lambda choice: choice.loss)
    return best, *(choice for choice in merged if choice is not best)
