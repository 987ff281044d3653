"""Choices for models of terms, by the leave-one-out log-loss of a sample of the documents.

The exponent of the evidence is t·(n/m)^−γ for a document of length n, where m is the mean length of the training
documents. Smoothing, γ, and whether rare terms are one term are those with the least calibrated leave-one-out log-loss.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from likely.families.text.declared import KINDS
from likely.families.text.term_models import (
    CompactSums,
    ScaledTerms,
    TermModel,
    left_out,
    length_factors,
    unobserved,
)
from likely.model.calibration import Calibration, learn_calibration
from likely.model.persistence import register
from likely.statistics.term_sums import TermSums
from likely.typing import AnyArray, Array, Codes

SMOOTHING = (0.1, 1.0, 0.5, 0.01)  # the first one is the default without calibration
LENGTH_EXPONENTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MOST_DOCUMENTS = 2000  # documents that choices and calibration are judged by, about

for _kind in KINDS:
    register(_kind)


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


@dataclass(frozen=True, slots=True, eq=False)
class TermTrial:
    """Sums of training documents, and a sample of them that candidates are judged by."""

    sums: TermSums
    fixed: bool  # whether the vectorizer has fixed columns
    sample: Sample

    def choices(
        self, model: TermModel, smoothing: float | None = None, merged: bool | None = None
    ) -> tuple[TermChoice, ...]:
        """Candidates with their calibrations, the best one first; a given `smoothing` or `merged` is kept."""
        found = tuple(self._candidates(model, smoothing, merged))
        best = min(found, key=lambda choice: choice.loss)
        return best, *(choice for choice in found if choice is not best)

    def _candidates(self, model: TermModel, smoothing: float | None, merged: bool | None) -> Iterator[TermChoice]:
        """Of the default model whether rare terms are merged, and then its smoothing; of others the length."""
        if not isinstance(model, ScaledTerms):
            yield from self._with_lengths(model)
            return
        options = ((False,) if self.fixed else (False, True)) if merged is None else (merged,)
        values = SMOOTHING if smoothing is None else (smoothing,)
        tried: list[TermChoice] = []
        for each in options:
            start = tried[0].calibration if tried else None
            tried.append(self._judged(replace(model, merged=each, smoothing=values[0]), start))
        best = min(tried, key=lambda choice: choice.loss)
        yield from tried
        for s in values[1:]:
            yield self._judged(replace(model, merged=best.model.merged, smoothing=s), best.calibration)

    def _evidence(self, model: TermModel) -> tuple[Array, AnyArray]:
        """Leave-one-out evidence, (documents, classes), and which documents have none."""
        sample = self.sample
        fitted = model.estimate(CompactSums.of(self.sums, model.merged, self.fixed))
        evidence = left_out(model, fitted, sample.values, sample.codes, np.minimum(sample.weights, 1.0))
        return evidence, unobserved(model, sample.values, sample.documents)

    def _learnt(self, evidence: Array, blank: AnyArray, start: Calibration | None) -> Calibration:
        counts, sample = self.sums.counts, self.sample
        with np.errstate(divide="ignore"):
            log_prior = np.log(counts.weight / counts.weight.sum())
        prior = np.repeat(log_prior[:, None], len(sample.codes), axis=1)
        by_class = np.ascontiguousarray(evidence.T)
        found = learn_calibration(counts.classes, by_class, prior, sample.codes, sample.weights, blank, start)
        return found.calibration

    def _judged(self, model: TermModel, start: Calibration | None = None) -> TermChoice:
        evidence, blank = self._evidence(model)
        return TermChoice(model, 0.0, 1.0, self._learnt(evidence, blank, start))

    def _with_lengths(self, model: TermModel) -> Iterator[TermChoice]:
        """Calibrations for each exponent of the length, of models that learn it."""
        evidence, blank = self._evidence(model)
        mean = float(self.sums.values.sum() / self.sums.counts.weight.sum()) or 1.0
        start: Calibration | None = None
        for exponent in LENGTH_EXPONENTS if model.learns_length else LENGTH_EXPONENTS[:1]:
            scaled = evidence * length_factors(self.sample.values, exponent, mean)[:, None]
            start = self._learnt(scaled, blank, start)
            yield TermChoice(model, exponent, mean, start)
